"""LMP: Bass acquisition with attrition (Libai, Muller and Peres 2009), without covariates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cbmt_core.models.aov_regression import AovRegression
from cbmt_core.models.classical import FittedClassical, check_history
from cbmt_core.models.diffusion import BassAttrition, fit_diffusion
from cbmt_core.models.ropc_regression import RopcRegression
from cbmt_core.panel import LEFT_CENSORED, FirmPanel

__all__ = ["Lmp"]


@dataclass(frozen=True)
class Lmp:
    """Version 1: weekly totals; 2: cohort-weeks (Web App. "Variants of Probabilistic Benchmark Models").

    Attrition is estimated from the repeat orders, then the diffusion is fitted given it. The number of customers of
    the washout that are active at the start is estimated from how much they order, compared with new ones. AOV has
    month dummies as in every classical model (section "Benchmark Models").
    """

    version: int

    def fit(self, panel: FirmPanel, *, seed: int) -> FittedClassical:
        check_history(f"lmp_v{self.version}", panel)
        if self.version == 2:
            ropc = RopcRegression.fit_cells(panel, months=False, scale="tenure")
            aov = AovRegression.fit_cohorts(panel)
        else:
            ropc = RopcRegression.fit_stock(panel, months=False)
            aov = AovRegression.fit_weekly(panel)
        before = float(panel.size[panel.birth == LEFT_CENSORED].sum())
        share = float(np.exp(min(ropc.censored[0] - ropc.young[0], 0.0)))
        curve = BassAttrition(initial=before * share, attrition=ropc.attrition)
        return FittedClassical.of(panel, fit_diffusion(curve, panel.A, None), ropc, aov)
