"""SSW: Bass acquisition with constant retention (Schulze, Skiera and Wiesel 2012)."""

from __future__ import annotations

from dataclasses import dataclass

from cbmt_core.models.aov_regression import AovRegression
from cbmt_core.models.classical import FittedClassical, check_history
from cbmt_core.models.diffusion import Bass, fit_diffusion
from cbmt_core.models.ropc_regression import RopcRegression
from cbmt_core.panel import LEFT_CENSORED, FirmPanel

__all__ = ["Ssw"]


@dataclass(frozen=True)
class Ssw:
    """Versions as in GLS. A cohort orders at a constant rate for as long as it is retained.

    Customers of the washout count as the first adopters of the market.
    """

    version: int

    def fit(self, panel: FirmPanel, *, seed: int) -> FittedClassical:
        check_history(f"ssw_v{self.version}", panel)
        month = panel.calendar().month if self.version > 1 else None
        before = float(panel.size[panel.birth == LEFT_CENSORED].sum())
        acquisition = fit_diffusion(Bass(initial=before), panel.A, month)
        if self.version == 3:
            ropc = RopcRegression.fit_cells(panel, months=True, scale="tenure")
            return FittedClassical.of(panel, acquisition, ropc, AovRegression.fit_cohorts(panel))
        ropc = RopcRegression.fit_stock(panel, months=self.version == 2)
        return FittedClassical.of(panel, acquisition, ropc, AovRegression.fit_weekly(panel))
