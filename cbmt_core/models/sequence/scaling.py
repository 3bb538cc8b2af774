"""Min-max scaling of the outcomes, from what a model is fitted on and nothing else."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cbmt_core.panel import LEFT_CENSORED, FirmPanel

__all__ = ["OUTCOMES", "YOUNG", "Scaling"]

OUTCOMES = ("A", "R", "V", "S")
"""Order of the outcomes in every window, target and prediction."""

YOUNG = 13
"""Weeks from birth in which a cohort tells what to expect of the next ones."""

_SCALED = (*OUTCOMES, "Y")


@dataclass(frozen=True)
class Scaling:
    """x -> (x - low) / span for the four outcomes and cohort sales (Web App. "Input scaling and embeddings").

    `weeks` and `oldest` put the trend and the tenure of the same weeks into 0..1; `typical` is what to expect of
    an outcome of which nothing has been seen yet.
    """

    low: dict[str, float]
    span: dict[str, float]
    weeks: int
    """Weeks of the panel the scaling was taken from."""
    oldest: int
    """Longest tenure in that panel, in weeks."""
    typical: dict[str, float]
    """Means of the four outcomes; those of R and V over the first `YOUNG` weeks of cohorts."""

    @classmethod
    def of(cls, panel: FirmPanel) -> Scaling:
        low, span = {}, {}
        for name in _SCALED:
            values = getattr(panel, name)
            known = values[np.isfinite(values)]
            low[name] = float(known.min()) if known.size else 0.0
            # a series that never moved keeps its unit, so that nothing is divided by zero
            span[name] = (float(np.ptp(known)) if known.size else 0.0) or 1.0
        oldest = panel.n_weeks + panel.design.washout_weeks
        return cls(low, span, weeks=panel.n_weeks, oldest=oldest, typical=_typical(panel))

    def scale(self, name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        return (np.asarray(values, dtype=float) - self.low[name]) / self.span[name]

    def unscale(self, name: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Back to original units, never below zero."""
        return np.maximum(np.asarray(values, dtype=float) * self.span[name] + self.low[name], 0.0)

    def vectors(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """`low` and `span` of the outcomes, for networks that unscale inside their loss."""
        return np.array([self.low[k] for k in OUTCOMES]), np.array([self.span[k] for k in OUTCOMES])

    def values(self) -> dict[str, Any]:
        """JSON-ready; `Scaling(**values)` reads it back."""
        return asdict(self)


def _typical(panel: FirmPanel) -> dict[str, float]:
    young = panel.born & (panel.tenure < YOUNG) & (panel.birth != LEFT_CENSORED)[:, None]
    cells = young if young.any() else panel.born
    customers = np.where(cells, panel.size[:, None], 0.0)
    orders = np.where(cells, panel.orders, 0.0)
    return {
        "A": float(panel.A.mean()),
        "R": _mean(panel.R, customers),
        "V": _mean(panel.V, orders),
        "S": float(panel.S.mean()),
    }


def _mean(values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> float:
    total = float(weights.sum())
    return float((np.nan_to_num(values) * weights).sum()) / total if total else 0.0
