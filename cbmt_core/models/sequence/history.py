"""History: a firm's drivers up to the origin, in original units and without gaps."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Self

import numpy as np

from cbmt_core.arrays import Bools, Floats, Ints
from cbmt_core.models.contract import ModelState
from cbmt_core.panel import FirmPanel

__all__ = ["History"]


_ARRAYS = ("size", "birth", "A", "S", "R", "V", "no_orders")


@dataclass(frozen=True, eq=False)
class History:
    """The last K of a panel's `n_weeks` weeks: all of them, or as many as a forecast needs."""

    first_week: date
    """First week of the panel, also when only its last weeks are kept."""
    n_weeks: int
    country: str
    washout: int
    size: Floats
    birth: Ints
    A: Floats
    """[K]"""
    S: Floats
    """[K]"""
    R: Floats
    """[N, K]; 0 before birth."""
    V: Floats
    """[N, K]; the last known value where the cohort placed no order, NaN where none is known yet."""
    no_orders: Bools
    """[N, K]; born, but V is unknown that week."""

    @property
    def n_cohorts(self) -> int:
        return len(self.birth)

    @property
    def kept(self) -> int:
        return len(self.A)

    @classmethod
    def of(cls, panel: FirmPanel) -> Self:
        known = np.isfinite(panel.V)
        last_known = np.maximum.accumulate(np.where(known, np.arange(panel.n_weeks), 0), axis=1)
        return cls(
            first_week=panel.first_week,
            n_weeks=panel.n_weeks,
            country=panel.design.country,
            washout=panel.design.washout_weeks,
            size=panel.size.copy(),
            birth=panel.birth.copy(),
            A=panel.A.copy(),
            S=panel.S.copy(),
            R=np.nan_to_num(panel.R),
            V=np.take_along_axis(panel.V, last_known, axis=1),
            no_orders=panel.born & ~known,
        )

    def tail(self, weeks: int) -> Self:
        """The same origin with its last `weeks` weeks only."""
        last = slice(max(self.kept - weeks, 0), None)
        return replace(
            self,
            A=self.A[last].copy(),
            S=self.S[last].copy(),
            R=self.R[:, last].copy(),
            V=self.V[:, last].copy(),
            no_orders=self.no_orders[:, last].copy(),
        )

    def state(self) -> ModelState:
        values: dict[str, Any] = {
            "first_week": self.first_week.isoformat(),
            "n_weeks": self.n_weeks,
            "country": self.country,
            "washout": self.washout,
        }
        return ModelState(values, {name: getattr(self, name) for name in _ARRAYS})

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        values: dict[str, Any] = {**state.values, **{name: state.arrays[name] for name in _ARRAYS}}
        return cls(**{**values, "first_week": date.fromisoformat(values["first_week"])})
