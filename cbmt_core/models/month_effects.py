"""Spread of month effects, estimated by empirical Bayes."""

from __future__ import annotations

import numpy as np

from cbmt_core.arrays import Floats

__all__ = ["month_spread"]


BOUNDS = (0.03, 0.5)
"""Limits of the spread, in log points."""


def month_spread(effects: Floats, information: Floats, spread: float) -> float:
    """One EM update of the standard deviation of month effects, from their squares and posterior variances.

    It is the standard deviation of the normal prior that shrinks them. `effects` are the estimates under the present
    `spread`, `information` the data's information on each (an inverse variance, 0 for a month without data).
    """
    variance = 1.0 / (information + 1.0 / spread**2)
    return float(np.clip(np.sqrt(np.mean(effects**2 + variance)), *BOUNDS))
