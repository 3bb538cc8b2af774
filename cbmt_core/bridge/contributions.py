"""The bridge's windows and formula: a change in sales as three contributions that add up to it exactly.

Web App. "Construction and MAE Evaluation of the Sources of Sales Change" defines all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

import numpy as np

from cbmt_core.arrays import Floats
from cbmt_core.design import StudyDesign
from cbmt_core.timeline import SEASON, WEEK, Window

__all__ = [
    "CONTRIBUTIONS",
    "TOLERANCE",
    "BridgeWindows",
    "Contributions",
    "contributions",
    "ratio",
    "tolerance",
]


CONTRIBUTIONS = ("sales_change", "order_volume", "spend_per_order", "net_replenishment")
TOLERANCE = 1e-6
"""Currency units by which sums may differ."""


@dataclass(frozen=True)
class BridgeWindows:
    """A baseline, a later target, and the last week a forecast of the target has seen.

    Cohorts born up to the last baseline week, the cutoff, are the existing base.
    """

    baseline: Window
    target: Window
    origin: date

    def __post_init__(self) -> None:
        if not len(self.baseline) or not len(self.target):
            raise ValueError("a bridge needs a baseline and a target of at least one week")
        if self.target.first <= self.cutoff:
            raise ValueError(
                f"the target must start after the baseline, which ends with the week {self.cutoff}: "
                f"it starts with {self.target.first}"
            )
        if self.origin < self.cutoff:
            raise ValueError(f"the baseline must be observed: it ends {self.cutoff}, after {self.origin}")

    @property
    def cutoff(self) -> date:
        return self.baseline.last

    @classmethod
    def ahead(cls, origin: date, weeks: int = SEASON) -> BridgeWindows:
        """The `weeks` weeks after `origin` against the same weeks one season earlier."""
        target = Window(origin + WEEK, weeks)
        return cls(target.shifted(-SEASON), target, origin)

    @classmethod
    def of(cls, design: StudyDesign) -> BridgeWindows:
        """The windows that a study's forecasts are scored on."""
        return cls(design.bridge_baseline, design.bridge_target, design.origin)


class Contributions(NamedTuple):
    """The three contributions to the change in sales, in the order of `CONTRIBUTIONS`."""

    order_volume: Floats
    """Existing base: more or fewer repeat orders."""
    spend_per_order: Floats
    """Existing base: more or less spent on each."""
    net_replenishment: Floats
    """Sales to later cohorts, less the baseline's initial orders, which happen only once."""


def contributions(Q0: Floats, S0: Floats, I0: Floats, Q1: Floats, S1: Floats, G1: Floats) -> Contributions:
    """Subsection "Endpoint Construction, Cohort Cutoff, and Reconciliation".

    Repeat orders Q and repeat sales S of the existing base in the baseline (0) and the target (1),
    initial sales I0 of the baseline, target sales G1 of later cohorts. NaN where a spend per order is
    undefined. Exchanging (Q0, S0, I0) with (Q1, S1, G1) changes every sign and nothing else.
    """
    spend0, spend1 = ratio(S0, Q0), ratio(S1, Q1)
    return Contributions(
        order_volume=(Q1 - Q0) * (spend0 + spend1) / 2,
        spend_per_order=(spend1 - spend0) * (Q0 + Q1) / 2,
        net_replenishment=G1 - I0,
    )


def tolerance(scale: Floats) -> Floats:
    """The larger of `TOLERANCE` and the rounding error of double-precision sums of the size `scale`."""
    return np.asarray(np.maximum(TOLERANCE, 16 * np.finfo(float).eps * np.abs(scale)))


def ratio(part: Floats, whole: Floats) -> Floats:
    """part / whole; NaN where the whole is zero."""
    return np.asarray(np.divide(part, whole, out=np.full(np.shape(part), np.nan), where=whole != 0))
