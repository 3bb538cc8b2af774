"""Cohort GLM: log-linear regressions of the three drivers, re-anchored on the last half year."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Self

import numpy as np

from cbmt_core.arrays import Floats, Ints
from cbmt_core.models.cohort_grid import CohortGrid
from cbmt_core.models.contract import CannotFit, FitRecord, ModelState, PrimitiveForecast
from cbmt_core.models.regression import (
    CalendarDesign,
    LogLinearFit,
    ShockDesign,
    fit_log_linear,
    tenure_features,
)
from cbmt_core.panel import LEFT_CENSORED, FirmPanel

__all__ = ["CohortGlm", "FittedCohortGlm"]


NAME = "cohort_glm"
MIN_WEEKS = 8
ANCHOR = 26
"""Weeks, up to the origin, on which levels are re-anchored."""


@dataclass(frozen=True)
class DriverDesign:
    """Settings of one driver's regression. They were chosen by forecasts from origins inside the calibration of
    simulated firms."""

    counts: bool
    calendar: CalendarDesign
    cell_sd: float
    anchor_sd: float
    """Prior standard deviation of the shift of a cohort's level over the last half year, in log points."""
    shocks: ShockDesign

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        parts = {"calendar": CalendarDesign(**values["calendar"]), "shocks": ShockDesign(**values["shocks"])}
        return cls(**{**values, **parts})


DESIGNS = {
    "A": DriverDesign(True, CalendarDesign(trend_sd=0.2), 0.05, 0.0, ShockDesign(0.7, 13.0)),
    "R": DriverDesign(True, CalendarDesign(trend_sd=0.02), 0.05, 0.1, ShockDesign(0.5, 26.0)),
    "V": DriverDesign(False, CalendarDesign(trend_sd=0.02), 0.05, 0.05, ShockDesign(0.5, 26.0)),
}


@dataclass(frozen=True, eq=False)
class Driver:
    """One fitted regression: coefficients, cohort levels before and after the anchor, bounds."""

    design: DriverDesign
    tenure: Floats
    calendar: Floats
    level: Floats
    """[N] cohort levels over the whole history."""
    anchor: Floats
    """[N] shift of each level over the last half year."""
    new_level: float
    """Level of cohorts not yet born, the anchor included."""
    shock: Floats
    """[T] week shocks."""
    ceiling: float
    """Log of the largest value a forecast may take."""


@dataclass(frozen=True, eq=False)
class FittedCohortGlm:
    first_week: date
    country: str
    n_weeks: int
    birth: Ints
    drivers: dict[str, Driver]
    record: FitRecord

    def forecast(self, horizon: int) -> PrimitiveForecast:
        return PrimitiveForecast(
            A=self._acquired(horizon)[self.n_weeks :],
            R=self._cells("R", horizon),
            V=self._cells("V", horizon),
        )

    def in_sample(self) -> PrimitiveForecast:
        """The fitted drivers in the panel's own weeks, a row for each of its cohorts.

        They contain the slow part of the week shocks but not the rest, and over the last half year the anchored
        cohort levels, so that the fit continues into the forecast without a jump. As in-sample values they are closer
        to the data than the forecast will be. For checks of a fit; no step uses it.
        """
        return PrimitiveForecast(A=self._acquired(0), R=self._cells("R", 0), V=self._cells("V", 0))

    def cohorts_alone(self, horizon: int = 0) -> tuple[Floats, Floats]:
        """R and V from tenure and cohort levels alone, without calendar and week shocks: for the panel's cohorts and
        weeks, or for the `horizon` weeks after it with the rows of `forecast`.
        """

        def cells(name: str) -> Floats:
            tenure, effect, level = self._cohorts(name, horizon)
            log_mean = effect + (self.drivers[name].calendar[0] + level)
            return np.where(tenure >= 0, np.exp(log_mean), np.nan)

        return cells("R"), cells("V")

    def _weeks(self, name: str, horizon: int) -> tuple[Floats, Floats]:
        """Trend and log effect of the panel's weeks and the `horizon` weeks after it."""
        d = self.drivers[name]
        features = d.design.calendar.features(self.first_week, self.n_weeks, horizon, self.country)
        return features[:, 1], features @ d.calendar + d.design.shocks.expected(d.shock, horizon)

    def _acquired(self, horizon: int) -> Floats:
        d = self.drivers["A"]
        return np.asarray(np.exp(np.minimum(self._weeks("A", horizon)[1] + d.level[0], d.ceiling)))

    def _cells(self, name: str, horizon: int) -> Floats:
        """A driver for the panel's cohorts and weeks, or for the `horizon` weeks after it; NaN before birth."""
        tenure, effect, level = self._cohorts(name, horizon)
        weeks = self._weeks(name, horizon)[1][-tenure.shape[1] :]
        log_mean = np.minimum(effect + weeks + level, self.drivers[name].ceiling)
        return np.where(tenure >= 0, np.exp(log_mean), np.nan)

    def _cohorts(self, name: str, horizon: int) -> tuple[Ints, Floats, Floats]:
        """Tenure, its log effect, and the cohorts' levels, in the layout of `_cells`."""
        d = self.drivers[name]
        if horizon:
            tenure = CohortGrid.after(self.birth, self.n_weeks, horizon).tenure
            level = np.concatenate([d.level + d.anchor, np.full(horizon, d.new_level)])[:, None]
        else:
            week = np.arange(self.n_weeks)
            tenure = week - self.birth[:, None]
            level = d.level[:, None] + (week >= self.n_weeks - ANCHOR) * d.anchor[:, None]
        trend = self._weeks(name, horizon)[0][-tenure.shape[1] :]
        censored = np.zeros(len(tenure), dtype=bool)
        censored[: len(self.birth)] = self.birth == LEFT_CENSORED
        features, _ = tenure_features(np.maximum(tenure, 0), censored[:, None], trend)
        return tenure, np.asarray(features @ d.tenure), level

    def state(self) -> ModelState:
        values: dict[str, Any] = {
            "first_week": self.first_week.isoformat(),
            "country": self.country,
            "n_weeks": self.n_weeks,
            "record": self.record.values(),
            "scalars": {
                k: {"design": asdict(d.design), "new_level": d.new_level, "ceiling": d.ceiling}
                for k, d in self.drivers.items()
            },
        }
        arrays = {
            f"{k}.{field}": getattr(d, field)
            for k, d in self.drivers.items()
            for field in ("tenure", "calendar", "level", "anchor", "shock")
        }
        return ModelState(values, arrays | {"birth": self.birth})

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        values, arrays = state.values, state.arrays
        return cls(
            first_week=date.fromisoformat(values["first_week"]),
            country=values["country"],
            n_weeks=values["n_weeks"],
            birth=arrays["birth"],
            drivers={
                k: Driver(
                    tenure=arrays[f"{k}.tenure"],
                    calendar=arrays[f"{k}.calendar"],
                    level=arrays[f"{k}.level"],
                    anchor=arrays[f"{k}.anchor"],
                    shock=arrays[f"{k}.shock"],
                    design=DriverDesign.from_values(scalars["design"]),
                    new_level=scalars["new_level"],
                    ceiling=scalars["ceiling"],
                )
                for k, scalars in values["scalars"].items()
            },
            record=FitRecord.from_values(values["record"]),
        )


@dataclass(frozen=True)
class CohortGlm:
    """The structural benchmark: log-linear regressions of the drivers on tenure, calendar and cohort levels."""

    def fit(self, panel: FirmPanel, *, seed: int) -> FittedCohortGlm:
        if panel.n_weeks < MIN_WEEKS:
            raise CannotFit(NAME, panel.firm, f"{panel.n_weeks} weeks of history; {MIN_WEEKS} are needed")
        orders = panel.orders
        sales = orders * np.nan_to_num(panel.V)
        if sales.sum() <= 0:
            raise CannotFit(NAME, panel.firm, "not a single order has a value")
        customers = np.where(panel.born, panel.size[:, None], 0.0)
        fits = {
            "A": _fit("A", panel, panel.A[None], np.ones((1, panel.n_weeks)), cohorts=False),
            "R": _fit("R", panel, customers * np.nan_to_num(panel.R), customers),
            "V": _fit("V", panel, sales, orders),
        }
        slow = [name for name, (fit, _) in fits.items() if not fit.converged]
        return FittedCohortGlm(
            first_week=panel.first_week,
            country=panel.design.country,
            n_weeks=panel.n_weeks,
            birth=panel.birth.copy(),
            drivers={name: driver for name, (_, driver) in fits.items()},
            record=FitRecord(
                parameters={
                    name: {
                        "dispersion": fit.dispersion,
                        "level_sd": fit.level_sd,
                        "shock_sd": fit.shock_sd,
                        "yearly_trend": float(fit.calendar[1]),
                        "new_level": driver.new_level,
                        "tenure": fit.tenure.tolist(),
                    }
                    for name, (fit, driver) in fits.items()
                },
                converged=not slow,
                diagnosis=f"Newton steps had not settled for {', '.join(slow)}" if slow else "",
            ),
        )


def _fit(
    name: str, panel: FirmPanel, y: Floats, exposure: Floats, *, cohorts: bool = True
) -> tuple[LogLinearFit, Driver]:
    design = DESIGNS[name]
    weeks = design.calendar.features(panel.first_week, panel.n_weeks, 0, panel.design.country)
    if cohorts:
        censored = panel.birth == LEFT_CENSORED
        features, sd = tenure_features(np.maximum(panel.tenure, 0), censored[:, None], weeks[:, 1])
    else:
        censored = np.zeros(1, dtype=bool)
        features, sd = np.zeros((1, panel.n_weeks, 0)), np.zeros(0)
    fit = fit_log_linear(
        y,
        exposure,
        features,
        sd,
        weeks,
        design.calendar.prior_sd(weeks.shape[1]),
        design.calendar.groups(weeks.shape[1]),
        counts=design.counts,
        wide=censored,
        cell_sd=design.cell_sd,
        shocks=design.shocks,
    )
    recent = slice(-ANCHOR, None)
    mean = np.exp(features @ fit.tenure + weeks @ fit.calendar + fit.shock + fit.level[:, None])
    # The recent ratio of actual to fitted, shrunken by its precision.
    information = exposure * mean if design.counts else exposure
    expected, seen = (x[:, recent].sum(axis=1) for x in (exposure * mean, information))
    ratio = np.log(
        np.divide(y[:, recent].sum(axis=1), expected, out=np.ones_like(expected), where=expected > 0) + 1e-3
    )
    noise = fit.dispersion / np.maximum(seen, 1e-9)
    reach = 3.0 * design.anchor_sd
    anchor = np.clip(ratio, -reach, reach) * design.anchor_sd**2 / (design.anchor_sd**2 + noise + 1e-12)
    known = np.flatnonzero(~censored)[-ANCHOR:]
    informed = 1.0 / (fit.level_sd**2 + fit.dispersion / np.maximum(information[known].sum(axis=1), 1e-9))
    new_level = float(np.average((fit.level + anchor)[known], weights=informed)) if len(known) else 0.0
    observed = np.divide(y, exposure, out=np.zeros_like(y), where=exposure > 0)
    driver = Driver(
        design=design,
        tenure=fit.tenure,
        calendar=fit.calendar,
        level=fit.level,
        anchor=anchor,
        new_level=new_level,
        shock=fit.shock,
        ceiling=float(np.log(2.0 * max(observed.max(), 1e-12))),
    )
    return fit, driver
