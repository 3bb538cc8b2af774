"""GLS: logistic acquisition (Gupta, Lehmann and Stuart 2004) with regressions of ROPC and AOV."""

from __future__ import annotations

from dataclasses import dataclass

from cbmt_core.models.aov_regression import AovRegression
from cbmt_core.models.classical import FittedClassical, check_history
from cbmt_core.models.diffusion import Logistic, fit_diffusion
from cbmt_core.models.ropc_regression import RopcRegression
from cbmt_core.panel import FirmPanel

__all__ = ["Gls"]


@dataclass(frozen=True)
class Gls:
    """The versions of Web App. "Variants of Probabilistic Benchmark Models".

    1: weekly totals without covariates; 2: weekly totals with month dummies; 3: cohort-weeks with month dummies. AOV
    has month dummies in all of them (section "Benchmark Models"). Acquisition has one observation a week in any
    layout of the data, so version 3 has the same acquisition as version 2.
    """

    version: int

    def fit(self, panel: FirmPanel, *, seed: int) -> FittedClassical:
        check_history(f"gls_v{self.version}", panel)
        month = panel.calendar().month if self.version > 1 else None
        acquisition = fit_diffusion(Logistic(), panel.A, month)
        if self.version == 3:
            ropc = RopcRegression.fit_cells(panel, months=True, scale="log_tenure")
            return FittedClassical.of(panel, acquisition, ropc, AovRegression.fit_cohorts(panel))
        ropc = RopcRegression.fit_weekly(panel, months=self.version == 2)
        return FittedClassical.of(panel, acquisition, ropc, AovRegression.fit_weekly(panel))
