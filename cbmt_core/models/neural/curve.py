"""Learning curves: training and validation errors, thinned for storage."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

__all__ = ["POINTS", "Curve", "curve"]

Curve = dict[str, list[list[float]]]
"""`training` and `validation`, each a list of [step, value]."""

POINTS = 30
"""Points of the training curve; each is the mean loss of the mini-batches since the one before."""


def curve(losses: Sequence[float], checks: Sequence[tuple[int, float]]) -> Curve:
    """The curve of a network: its loss at each step, and the error of its walk-forward at each check."""
    ends = np.unique(np.linspace(0, len(losses), min(POINTS, len(losses)) + 1).round().astype(int))
    training = [[int(end), float(f"{np.mean(losses[start:end]):.4g}")] for start, end in pairwise(ends)]
    return {"training": training, "validation": [[step, float(error)] for step, error in checks]}
