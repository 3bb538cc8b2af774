"""RoutingPanel: the features of each firm known at the origin, and both models' errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cbmt_core.arrays import Bools, Floats, Ints

__all__ = ["RoutingPanel"]


@dataclass(frozen=True, eq=False)
class RoutingPanel:
    """One row a firm. Everything but the two errors is known at the forecast origin."""

    firms: list[str]
    industry: list[str]
    measures: Floats
    """[n, m] co-movement measures, NaN where one could not be computed."""
    log_orders: Floats
    """[n] log of one plus all orders of the calibration window."""
    volatility: Floats
    """[n] size-weighted coefficient of variation of the cohorts' weekly sales."""
    joint: Floats
    """[n] SMAPE of total sales over the holdout, NaN for a firm without one."""
    single: Floats
    """[n] the same of the single-task model."""

    @property
    def inputs(self) -> Floats:
        """[n, m + 2] the measures, then scale and volatility."""
        return np.column_stack([self.measures, self.log_orders, self.volatility])

    @property
    def joint_wins(self) -> Bools:
        """WinJoint: a strictly lower error (Web App. "Model Selection for Deployment")."""
        return self.joint < self.single

    @property
    def scored(self) -> Bools:
        return np.isfinite(self.joint) & np.isfinite(self.single)

    def take(self, rows: Ints) -> RoutingPanel:
        return RoutingPanel(
            firms=[self.firms[k] for k in rows],
            industry=[self.industry[k] for k in rows],
            measures=self.measures[rows],
            log_orders=self.log_orders[rows],
            volatility=self.volatility[rows],
            joint=self.joint[rows],
            single=self.single[rows],
        )

    def joined(self, other: RoutingPanel) -> RoutingPanel:
        """Concatenate the firms of both panels."""
        arrays = {
            name: np.concatenate([getattr(self, name), getattr(other, name)])
            for name in ("measures", "log_orders", "volatility", "joint", "single")
        }
        return RoutingPanel(firms=self.firms + other.firms, industry=self.industry + other.industry, **arrays)
