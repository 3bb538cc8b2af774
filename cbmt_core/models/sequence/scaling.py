"""Min-max scaling of the outcomes, from the weeks that a model is fitted on alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cbmt_core.arrays import Floats
from cbmt_core.panel import FirmPanel

__all__ = ["OUTCOMES", "Scaling"]

OUTCOMES = ("A", "R", "V", "S")
"""Order of the outcomes in every window, target and prediction."""

_SCALED = (*OUTCOMES, "Y")


@dataclass(frozen=True)
class Scaling:
    """x -> (x - low) / span for the four outcomes and cohort sales (Web App. "Input scaling and embeddings").

    `weeks` and `oldest` scale trend and tenure to 0..1.
    """

    low: dict[str, float]
    span: dict[str, float]
    weeks: int
    """Weeks of the panel the scaling was taken from."""
    oldest: int
    """Longest tenure in that panel, in weeks."""

    @classmethod
    def of(cls, panel: FirmPanel) -> Scaling:
        low, span = {}, {}
        for name in _SCALED:
            values = getattr(panel, name)
            known = values[np.isfinite(values)]
            low[name] = float(known.min()) if known.size else 0.0
            # a constant series keeps its unit, to avoid a division by zero
            span[name] = (float(np.ptp(known)) if known.size else 0.0) or 1.0
        oldest = panel.n_weeks + panel.design.washout_weeks
        return cls(low, span, weeks=panel.n_weeks, oldest=oldest)

    def scale(self, name: str, values: npt.ArrayLike) -> Floats:
        return (np.asarray(values, dtype=float) - self.low[name]) / self.span[name]

    def unscale(self, name: str, values: npt.ArrayLike) -> Floats:
        """Back to original units, never below zero."""
        return np.maximum(np.asarray(values, dtype=float) * self.span[name] + self.low[name], 0.0)

    def values(self) -> dict[str, Any]:
        """JSON-ready; `Scaling(**values)` reads it back."""
        return asdict(self)
