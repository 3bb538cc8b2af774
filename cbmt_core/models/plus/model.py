"""CbmtPlus: cohorts of `cohort_glm` in weeks that follow the fitted paths of the drivers and of sales."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from cbmt_core.arrays import Floats
from cbmt_core.models.cohort_glm import CohortGlm, FittedCohortGlm
from cbmt_core.models.contract import CannotFit, FitRecord, ModelState, PrimitiveForecast
from cbmt_core.models.plus.paths import FittedPaths, fit_paths
from cbmt_core.models.plus.priors import PathPriors
from cbmt_core.models.plus.series import GROUPS, HALF, MIN_WEEKS, WeeklySeries, half_an_order, series_of
from cbmt_core.panel import LEFT_CENSORED, FirmPanel
from cbmt_core.timeline import SEASON
from cbmt_core.uncertainty import DriverUncertainty

__all__ = ["CbmtPlus", "FittedPlus"]


NAME = "cbmt_plus"
TEACHING_WEEKS = 39
"""Minimum history for learning priors from the firm alone, without other firms."""
FULL_HISTORY = 85
"""With fewer weeks a forecast relies on its prior, in particular for the season."""
TOPLINE = 0.3
"""Weight, in logs, of the direct forecast of sales against the sales composed from the drivers.
Chosen on simulated firms other than those of any reported comparison."""
FIRST_WEEKS, SOLD_BEFORE = 4, 0.5
"""Number of first weeks, and their sales relative to the mean week, from which a firm is taken to have sold before
its data begin."""
UNKNOWN_WEEKS = 8
"""First weeks whose new customers count as old ones for such a firm if there is no washout."""
REACH = 1.0
"""Limit of the log ratio of the two forecasts of sales."""
LEAST_SALES = 1e-3


@dataclass(frozen=True, eq=False)
class FittedPlus:
    size: Floats
    """[N] customers of the cohorts of the fit."""
    glm: FittedCohortGlm
    drivers: FittedPaths
    sales: FittedPaths
    half_order: float
    """Value of half an average order."""
    topline: float
    """Weight, in logs, of the direct forecast of sales."""
    old: int
    """Number of the panel's cohorts that are merged into the first cohort of the fit."""
    record: FitRecord

    def forecast(self, horizon: int) -> PrimitiveForecast:
        own = self.from_drivers(horizon)
        step = np.exp(self.topline_step(own))
        R, V = (
            np.vstack([np.repeat(x[:1], self.old - 1, axis=0), x]) if self.old else x for x in (own.R, own.V)
        )
        return PrimitiveForecast(A=own.A * step, R=R * step, V=V)

    def from_drivers(self, horizon: int) -> PrimitiveForecast:
        """The forecast of the drivers' paths alone, of the cohorts of the fit."""
        acquired, repeat, aov = self.drivers.forecast(horizon)
        R, V = self.glm.cohorts_alone(horizon)
        A = np.maximum(np.exp(acquired) - HALF, 0.0)
        return PrimitiveForecast(A=A, R=R * np.exp(repeat), V=V * np.exp(aov))

    def uncertainty(self, horizon: int) -> DriverUncertainty:
        """How far the drivers may lie from the forecast, as their paths' posterior has it."""
        return self.drivers.uncertainty(horizon)

    def topline_step(self, own: PrimitiveForecast) -> Floats:
        """[H] log factor of acquisition and of repeat orders per customer that moves sales towards their own path."""
        H, N = own.horizon, len(self.size)
        customers = np.concatenate([self.size, own.A])[:, None]
        value = np.nan_to_num(own.V)
        repeats = customers * np.nan_to_num(own.R) * value
        sales = repeats.sum(axis=0) + own.A * value[N + np.arange(H), np.arange(H)]
        path = np.exp(self.sales.forecast(H)[0]) - self.half_order
        ratio = np.log(np.maximum(path, LEAST_SALES) / np.maximum(sales, LEAST_SALES))
        # Both size and rate change the repeat orders of cohorts not yet born, so the step would count twice.
        unborn = np.divide(repeats[N:].sum(axis=0), sales, out=np.zeros(H), where=sales > 0)
        return np.asarray(self.topline * np.clip(ratio, -REACH, REACH) / (1.0 + unborn))

    def state(self) -> ModelState:
        glm = self.glm.state()
        values: dict[str, Any] = {
            "glm": glm.values,
            "drivers": self.drivers.values(),
            "sales": self.sales.values(),
            "half_order": self.half_order,
            "topline": self.topline,
            "old": self.old,
            **self.record.values(),
        }
        arrays = {f"glm/{key}": array for key, array in glm.arrays.items()}
        return ModelState(values, {"size": self.size, **arrays})

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        values, arrays = state.values, state.arrays
        glm = {key.removeprefix("glm/"): array for key, array in arrays.items() if key.startswith("glm/")}
        return cls(
            size=arrays["size"],
            glm=FittedCohortGlm.from_state(ModelState(values["glm"], glm)),
            drivers=FittedPaths.from_values(values["drivers"]),
            sales=FittedPaths.from_values(values["sales"]),
            half_order=values["half_order"],
            topline=values["topline"],
            old=values["old"],
            record=FitRecord.from_values(values),
        )


@dataclass(frozen=True)
class CbmtPlus:
    """Cohorts age as in `cohort_glm`; acquisition, repeat orders and order value are Gaussian processes in time.

    Args:
        priors: learned from many firms by `learn_priors`. Without them, those learned from the firm alone, or the
            default ones where it has less than `TEACHING_WEEKS` weeks.
    """

    priors: PathPriors | None = None

    def fit(self, panel: FirmPanel, *, seed: int) -> FittedPlus:
        panel = panel.since_first_order()
        if panel.n_weeks < MIN_WEEKS:
            raise CannotFit(
                NAME, panel.firm, f"{panel.n_weeks} weeks since its first order; {MIN_WEEKS} are needed"
            )
        weeks, unknown = panel.n_weeks, sold_before(panel)
        old = int((panel.birth < UNKNOWN_WEEKS).sum()) if unknown else 0
        if unknown:
            panel = with_unknown_ages(panel)
        topline = 1.0 if unknown else TOPLINE
        try:
            glm = CohortGlm().fit(panel, seed=seed)
        except CannotFit as error:
            raise CannotFit(NAME, panel.firm, error.reason) from error
        series = series_of(panel, glm)
        priors = self.priors or _own_priors(series, panel.design.country)
        drivers, sales = (fit_paths(series[group], priors.groups[group]) for group in GROUPS)
        record = FitRecord(
            parameters={
                "firms": priors.firms,
                "comovement": drivers.comovement,
                "scale": drivers.scale.tolist(),
                "topline": topline,
            },
            diagnosis=_diagnosis(weeks, priors.firms, unknown),
        )
        return FittedPlus(
            size=panel.size.copy(),
            glm=glm,
            drivers=drivers,
            sales=sales,
            half_order=half_an_order(panel),
            topline=topline,
            old=old,
            record=record,
        )


def sold_before(panel: FirmPanel) -> bool:
    """Whether a firm has old customers that cannot be distinguished from new ones: it sold before its data begin,
    they have no washout, and less than a year of weeks."""
    begins = panel.design.washout_weeks == 0 and panel.first_week == panel.design.panel.first
    total = float(panel.S.mean())
    return (
        begins
        and panel.n_weeks < SEASON
        and total > 0
        and float(panel.S[:FIRST_WEEKS].mean()) >= SOLD_BEFORE * total
    )


def with_unknown_ages(panel: FirmPanel) -> FirmPanel:
    """The panel after its first weeks, whose customers are one cohort of unknown age.

    Old customers who order for the first time in the data would count as acquired: acquisition and the repeat orders
    of young cohorts come out too large, and a year of such cohorts multiplies it.
    """
    first = UNKNOWN_WEEKS
    old = panel.birth < first
    orders, sales = (x[old].sum(axis=0) for x in (panel.orders, np.nan_to_num(panel.Y)))
    customers = float(panel.size[old].sum())
    of_old = {
        "R": orders / customers,
        "V": np.divide(sales, orders, out=np.full_like(sales, np.nan), where=orders > 0),
        "Y": sales,
    }
    cells = {name: np.vstack([row, getattr(panel, name)[~old]])[:, first:] for name, row in of_old.items()}
    return replace(
        panel,
        weeks=panel.weeks[first:],
        A=panel.A[first:],
        S=panel.S[first:],
        size=np.r_[customers, panel.size[~old]],
        birth=np.r_[LEFT_CENSORED, panel.birth[~old] - first],
        R=cells["R"],
        V=cells["V"],
        Y=cells["Y"],
        customers=None,
    )


def _own_priors(series: Mapping[str, WeeklySeries], country: str) -> PathPriors:
    """The priors if there are no other firms to learn from."""
    if series["drivers"].n_weeks < TEACHING_WEEKS:
        return PathPriors.default(country)
    return PathPriors.of_one(series, country)


def _diagnosis(weeks: int, firms: int, unknown: bool) -> str:
    """What a reader of the forecast should know about its prior; empty where there is nothing."""
    source = {0: "the default prior", 1: "a prior learned from this firm alone"}.get(
        firms, f"the prior learned from {firms} firms"
    )
    if weeks >= FULL_HISTORY:
        return "" if firms > 1 else f"the forecast rests on {source}"
    leans = f"the forecast leans on {source}"
    if weeks >= SEASON:
        return f"{weeks} weeks of history, fewer than {FULL_HISTORY}: {leans}"
    text = (
        f"{weeks} weeks of history, less than a year: a seasonal peak cannot be told from growth, and {leans}"
    )
    if unknown:
        text += "; nor can old customers be told from new ones, so sales follow their own path and not the drivers'"
    return text
