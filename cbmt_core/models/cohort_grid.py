"""CohortGrid: which cohorts exist in each forecast week, and their tenure."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cbmt_core.arrays import Bools, Floats, Ints
from cbmt_core.panel import LEFT_CENSORED

__all__ = ["CohortGrid"]


@dataclass(frozen=True, eq=False)
class CohortGrid:
    """Rows: the panel's cohorts, then one born in each forecast week; columns: forecast weeks."""

    birth: Ints
    """[N + H] birth as an index into the panel's weeks and on."""
    week: Ints
    """[H] forecast weeks, counted on from the panel's."""
    tenure: Ints
    """[N + H, H] weeks since birth; negative before it."""

    @classmethod
    def after(cls, birth: Ints, n_weeks: int, horizon: int) -> CohortGrid:
        week = n_weeks + np.arange(horizon)
        births = np.concatenate([birth, week])
        return cls(births, week, week - births[:, None])

    @property
    def born(self) -> Bools:
        return np.greater_equal(self.tenure, 0)

    @property
    def censored(self) -> Bools:
        """[N + H, 1] True for the left-censored cohort."""
        return np.equal(self.birth, LEFT_CENSORED)[:, None]

    def since_birth(self, values: Floats) -> Floats:
        """The values with NaN before birth, as the model contract requires."""
        return np.where(self.born, np.broadcast_to(values, self.tenure.shape), np.nan)
