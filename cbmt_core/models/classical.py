"""Base class of the fitted classical models: a diffusion curve for acquisition and regressions of ROPC and AOV."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Self

import numpy as np

from cbmt_core.calendar import calendar_of
from cbmt_core.models.aov_regression import AovRegression
from cbmt_core.models.contract import CannotFit, FitRecord, ModelState, PrimitiveForecast
from cbmt_core.models.diffusion import DiffusionFit
from cbmt_core.models.ropc_regression import RopcRegression
from cbmt_core.panel import FirmPanel

__all__ = ["FittedClassical", "check_history"]

MIN_WEEKS = 13


def check_history(model: str, panel: FirmPanel) -> None:
    """Raise CannotFit for less than a quarter of history, too little for a diffusion curve and a yearly pattern."""
    if panel.n_weeks < MIN_WEEKS:
        raise CannotFit(model, panel.firm, f"{panel.n_weeks} weeks of history; {MIN_WEEKS} are needed")
    if np.nansum(panel.Y) <= 0:
        raise CannotFit(model, panel.firm, "not a single order has a value")


@dataclass(frozen=True, eq=False)
class FittedClassical:
    first_week: date
    country: str
    n_weeks: int
    acquisition: DiffusionFit
    ropc: RopcRegression
    aov: AovRegression
    record: FitRecord

    @classmethod
    def of(
        cls, panel: FirmPanel, acquisition: DiffusionFit, ropc: RopcRegression, aov: AovRegression
    ) -> Self:
        parameters: Mapping[str, Any] = {
            "acquisition": acquisition.curve.named(acquisition.theta),
            "acquisition_months": acquisition.months.tolist(),
            "ropc": {"x": ropc.scale, "young": list(ropc.young), "left_censored": list(ropc.censored)},
            "ropc_months": ropc.months.tolist(),
        }
        return cls(
            first_week=panel.first_week,
            country=panel.design.country,
            n_weeks=panel.n_weeks,
            acquisition=acquisition,
            ropc=ropc,
            aov=aov,
            record=FitRecord(parameters, acquisition.converged, acquisition.diagnosis),
        )

    def forecast(self, horizon: int) -> PrimitiveForecast:
        month = calendar_of(self.first_week, self.n_weeks + horizon, self.country).month
        return PrimitiveForecast(
            A=self.acquisition.acquired(month)[self.n_weeks :],
            R=self.ropc.forecast(month[self.n_weeks :]),
            V=self.aov.forecast(horizon),
        )

    def state(self) -> ModelState:
        values = {
            "first_week": self.first_week.isoformat(),
            "country": self.country,
            "n_weeks": self.n_weeks,
            "acquisition": self.acquisition.values(),
            "ropc": self.ropc.values(),
            "aov": self.aov.values(),
            "record": self.record.values(),
        }
        return ModelState(values, {})

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        values = state.values
        return cls(
            first_week=date.fromisoformat(values["first_week"]),
            country=values["country"],
            n_weeks=values["n_weeks"],
            acquisition=DiffusionFit.from_values(values["acquisition"]),
            ropc=RopcRegression.from_values(values["ropc"]),
            aov=AovRegression.from_values(values["aov"]),
            record=FitRecord.from_values(values["record"]),
        )
