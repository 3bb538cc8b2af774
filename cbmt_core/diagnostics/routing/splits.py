"""Splits of the firms into training firms and held-out firms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from sklearn.model_selection import train_test_split

from cbmt_core.arrays import Ints

__all__ = ["HELD_OUT", "SMALL_INDUSTRY", "split", "strata"]


HELD_OUT = 0.3
SMALL_INDUSTRY = 10
"""Industries with fewer firms are pooled (Web App. "Model Selection for Deployment")."""
POOLED = "(pooled)"


def strata(industry: Sequence[str]) -> list[str]:
    """The group of each firm that a split divides in proportion."""
    sizes = Counter(industry)
    groups = [name if sizes[name] >= SMALL_INDUSTRY else POOLED for name in industry]
    sizes = Counter(groups)
    if 0 < sizes[POOLED] < SMALL_INDUSTRY and len(sizes) > 1:
        # A pool too small to be divided joins the largest industry.
        largest = max((name for name in sizes if name != POOLED), key=lambda name: (sizes[name], name))
        groups = [largest if name == POOLED else name for name in groups]
    return groups


def split(industry: Sequence[str], seed: int) -> tuple[Ints, Ints]:
    """Rows of policy-training firms and of held-out firms, 70/30 within each stratum."""
    rows = np.arange(len(industry))
    kept, held = train_test_split(rows, test_size=HELD_OUT, stratify=strata(industry), random_state=seed)
    return np.sort(kept), np.sort(held)
