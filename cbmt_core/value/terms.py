"""Terms of customer value: margin, discount rate and horizon."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cbmt_core.arrays import Floats
from cbmt_core.timeline import HORIZON, SEASON

__all__ = ["ValueTerms"]


@dataclass(frozen=True)
class ValueTerms:
    """Value = margin x sales, discounted to the origin. Nothing beyond the horizon is in it."""

    margin: float = 1.0
    """Share of sales left after variable costs; with 1, value is sales."""
    discount_rate: float = 0.1
    """Per year, such as 0.1."""
    horizon_weeks: int = HORIZON
    tail_years: int = 4
    """Years beyond the horizon that the separate estimate of the tail covers."""

    def discount(self, weeks: int) -> Floats:
        """[weeks] discount factor of each week after the origin."""
        return np.asarray((1 + self.discount_rate) ** (-np.arange(1, weeks + 1) / SEASON))
