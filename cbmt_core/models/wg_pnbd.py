"""WG-PNBD: Weibull-Gamma acquisition, Pareto/NBD repeat buying and regression AOV."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cbmt_core.arrays import Floats, Ints
from cbmt_core.calendar import calendar_of
from cbmt_core.models.aov_regression import AovRegression
from cbmt_core.models.contract import CannotFit, FitRecord, ModelState, PrimitiveForecast
from cbmt_core.models.pareto_nbd import (
    CustomerRows,
    customer_rows,
    fit_customers,
    survived_weeks,
    tenure_span,
)
from cbmt_core.models.pareto_nbd_counts import COHORT_SD, CohortCounts, CountFit, fit_counts
from cbmt_core.models.weibull_gamma import WeibullGamma
from cbmt_core.panel import LEFT_CENSORED, FirmPanel

__all__ = ["FittedWgPnbd", "RepeatBuying", "WgPnbd", "acquisition_groups"]


YOUNGEST_WEEKS = 52
"""The last group of cohorts reaches back to the quarter of the week this many weeks before the origin."""
MIN_CUSTOMERS, MIN_REPEATS = 100, 50
"""Below either number, a group of cohorts is merged with the next younger one."""
NUMBER_MEMORY = 26.0
"""Weeks over which the effect of cohort number fades out after the last observed cohort."""
LEVEL_SD = 0.3
"""Largest spread of cohort levels, in log points."""
LEVEL_MEMORY = 26.0
"""Weeks after which an observation counts 1/e in a cohort's level."""


def acquisition_groups(panel: FirmPanel, *, pooled: bool) -> list[Ints]:
    """Cohorts that share a repeat model (Web App. "Variants of Probabilistic Benchmark Models").

    The left-censored cohort stands alone. Fully pooled, the others are one group; partially
    pooled, they are cut by quarter of acquisition, and the last group takes all from the quarter
    that began about a year before the origin.
    """
    cohorts = np.arange(panel.n_cohorts)
    alone = [cohorts[panel.birth == LEFT_CENSORED]]
    young = cohorts[panel.birth != LEFT_CENSORED]
    if pooled or not len(young):
        return [g for g in (*alone, young) if len(g)]
    quarter = (panel.weeks + 3).astype("datetime64[M]").astype(int) // 3
    last = quarter[max(panel.n_weeks - 1 - YOUNGEST_WEEKS, 0)]
    label = np.minimum(quarter[panel.birth[young]], last)
    repeats = np.nansum(panel.size[:, None] * panel.R, axis=1)
    groups: list[Ints] = []
    waiting = young[:0]
    for q in np.unique(label):
        waiting = np.concatenate([waiting, young[label == q]])
        if panel.size[waiting].sum() >= MIN_CUSTOMERS and repeats[waiting].sum() >= MIN_REPEATS:
            groups.append(waiting)
            waiting = young[:0]
    if len(waiting):
        groups = [*groups[:-1], np.concatenate([*groups[-1:], waiting])]
    return [g for g in (*alone, *groups) if len(g)]


@dataclass(frozen=True, eq=False)
class RepeatBuying:
    """Fitted repeat buying: R = level exp(month) times the survived part of the week.

    One row for each cohort of the panel, and a last one for cohorts not yet born.
    """

    birth: Ints
    log_level: Floats
    s: Floats
    beta: Floats
    month: Floats
    """[N + 1, 12] effects of calendar months, zero without covariates."""
    slope: float
    """Effect of a year of cohort number on the log level of new cohorts."""

    def forecast(self, n_weeks: int, month: Ints) -> Floats:
        """[N + H, H] repeat orders per customer in the H = len(month) weeks after the origin."""
        horizon = len(month)
        ahead = np.arange(horizon)
        week = n_weeks + ahead
        birth = np.concatenate([self.birth, week])
        row = np.concatenate([np.arange(len(self.birth)), np.full(horizon, len(self.birth))])
        number = NUMBER_MEMORY * -np.expm1(-(ahead + 1.0) / NUMBER_MEMORY) / 52.0
        log_level = self.log_level[row] + self.slope * np.concatenate([np.zeros(len(self.birth)), number])
        tenure = np.maximum(week - birth[:, None], 0)
        lo, hi = tenure_span(tenure, np.less(birth, 0)[:, None])
        survived = survived_weeks(self.s[row, None], self.beta[row, None], lo, hi)
        R = np.exp(log_level[:, None] + self.month[row][:, month]) * survived
        return np.where(week >= birth[:, None], R, np.nan)


@dataclass(frozen=True, eq=False)
class _Group:
    """The fit of cohorts that share a repeat model."""

    cohorts: Ints
    log_level: Floats
    """One for each of the cohorts."""
    new_level: float
    slope: float
    s: float
    beta: float
    month: Floats
    how: str
    converged: bool
    diagnosis: str

    def parameters(self, panel: FirmPanel) -> dict[str, Any]:
        first = panel.birth[self.cohorts[0]]
        name = "left-censored" if first == LEFT_CENSORED else str(panel.weeks[first])
        return {
            "first_cohort": name,
            "cohorts": len(self.cohorts),
            "by": self.how,
            "rate": float(np.exp(self.new_level)),
            "s": self.s,
            "beta": self.beta,
            "cohort_slope": self.slope,
        }


def _by_customers(rows: CustomerRows, counts: CohortCounts, *, numbered: bool) -> _Group:
    """Pareto/NBD fitted to single customers; a cohort's forecast is the conditional expectation of its members.

    Given (x, tx, T), a customer's expected orders are the rate just after T times the survival from T on, so a cohort
    has one level: the mean of its members' rates (Fader & Hardie 2005, eq. 41).
    """
    model, diagnosis = fit_customers(rows)
    cohorts, position = np.unique(rows.cohort, return_inverse=True)
    number = counts.number[np.searchsorted(counts.cohort, cohorts)]
    number = number - np.average(number, weights=np.bincount(position, rows.weight))
    slope = 0.0
    if numbered:
        actual, expected = (
            np.bincount(np.searchsorted(cohorts, counts.cohort), w).astype(float)
            for w in (counts.orders, counts.size * model.expected(counts.lo, counts.hi))
        )
        slope = _number_slope(number, actual, expected)
    # A covariate that multiplies a gamma distributed rate divides alpha.
    alpha = model.alpha * np.exp(-slope * number)
    rate = model.alive_rate(rows.x, rows.tx, rows.T, alpha[position])
    mean = np.bincount(position, rows.weight * rate) / np.bincount(position, rows.weight)
    age = np.bincount(position, rows.weight * rows.T) / np.bincount(position, rows.weight)
    return _Group(
        cohorts=cohorts,
        log_level=np.log(np.maximum(mean, 1e-300)) + model.s * np.log1p(age / model.beta),
        new_level=float(np.log(model.r / model.alpha) + slope * number[-1]),
        slope=slope,
        s=model.s,
        beta=model.beta,
        month=np.zeros(12),
        how="customers",
        converged=not diagnosis,
        diagnosis=diagnosis,
    )


def _number_slope(number: Floats, actual: Floats, expected: Floats) -> float:
    """Poisson slope of actual over expected orders on cohort number, shrunk towards zero."""
    level, slope, dispersion = 0.0, 0.0, 1.0
    for _ in range(20):
        mean = expected * np.exp(np.clip(level + slope * number, -5, 5))
        dispersion = max(1.0, float(np.mean((actual - mean) ** 2 / np.maximum(mean, 1e-9))))
        penalty = dispersion / COHORT_SD**2
        x = np.stack([np.ones_like(number), number])
        gram = (x * mean) @ x.T + np.diag([1e-9, penalty])
        step = np.linalg.solve(gram, x @ (actual - mean) - np.array([0.0, penalty * slope]))
        level, slope = level + step[0], slope + step[1]
    return float(slope)


def _by_counts(counts: CohortCounts, fit: CountFit) -> _Group:
    cohorts = np.unique(counts.cohort)
    number = counts.number[np.searchsorted(counts.cohort, cohorts)]
    level, slope = float(fit.theta[0]), float(fit.theta[3])
    return _Group(
        cohorts=cohorts,
        log_level=level + slope * number + np.log(_cohort_ratios(counts, fit)),
        new_level=level,
        slope=slope,
        s=fit.s,
        beta=fit.beta,
        month=fit.theta[4:],
        how="counts",
        converged=fit.converged,
        diagnosis=fit.diagnosis,
    )


def _cohort_ratios(counts: CohortCounts, fit: CountFit) -> Floats:
    """Actual over expected orders of each cohort, recent weeks first, shrunk by their precision."""
    mean = fit.expected(counts)
    weight = np.exp(-(counts.week.max() - counts.week) / LEVEL_MEMORY)
    position = np.unique(counts.cohort, return_inverse=True)[1]
    actual, expected, variance = (
        np.bincount(position, w) for w in (weight * counts.orders, weight * mean, weight**2 * mean)
    )
    expected = np.maximum(expected, 1e-12)
    cell = float(np.sum((counts.orders - mean) ** 2) / max(mean.sum(), 1e-12))
    noise = max(cell, 1.0) * variance / expected**2
    off = actual / expected - 1.0
    between = float(np.average(off**2 - noise, weights=1.0 / (noise + LEVEL_SD**2)))
    between = min(max(between, 0.0), LEVEL_SD**2) if len(off) > 1 else LEVEL_SD**2
    return 1.0 + off * between / (between + noise)


def _fit_groups(panel: FirmPanel, *, pooled: bool, covariates: bool) -> list[_Group]:
    """Fit by customers where they are known and there are no month effects, otherwise by counts."""
    rows = customer_rows(panel) if panel.customers is not None and not covariates else None
    young = np.flatnonzero(panel.birth != LEFT_CENSORED)
    whole = None
    fits = []
    for cohorts in acquisition_groups(panel, pooled=pooled):
        counts = CohortCounts.of(panel, cohorts)
        censored = bool(panel.birth[cohorts[0]] == LEFT_CENSORED)
        if rows is not None and counts.orders.sum() >= MIN_REPEATS:
            fits.append(_by_customers(rows.of(cohorts), counts, numbered=pooled and not censored))
            continue
        whole = whole or fit_counts(CohortCounts.of(panel, young), months=covariates, cohort=True)
        if pooled and not censored:
            fit = whole
        else:
            # The age of the left-censored cohort is unknown: it shares the firm's months, not its curve.
            fit = fit_counts(counts, months=covariates, cohort=False, around=whole, own_curve=censored)
        fits.append(_by_counts(counts, fit))
    return fits


@dataclass(frozen=True, eq=False)
class FittedWgPnbd:
    """A fitted WG-PNBD model."""

    acquisition: WeibullGamma
    repeat: RepeatBuying
    value: AovRegression
    record: FitRecord

    def forecast(self, horizon: int) -> PrimitiveForecast:
        a = self.acquisition
        month = calendar_of(a.first_week, a.n_weeks + horizon, a.country).month[a.n_weeks :]
        return PrimitiveForecast(
            A=a.forecast(horizon), R=self.repeat.forecast(a.n_weeks, month), V=self.value.forecast(horizon)
        )

    def state(self) -> ModelState:
        r = self.repeat
        values = {
            "acquisition": self.acquisition.values(),
            "value": self.value.values(),
            "slope": r.slope,
            "record": self.record.values(),
        }
        names = ("birth", "log_level", "s", "beta", "month")
        return ModelState(values, {name: getattr(r, name) for name in names})

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        v = state.values
        return cls(
            acquisition=WeibullGamma.from_values(v["acquisition"]),
            repeat=RepeatBuying(slope=v["slope"], **state.arrays),
            value=AovRegression.from_values(v["value"]),
            record=FitRecord.from_values(v["record"]),
        )


@dataclass(frozen=True)
class WgPnbd:
    """McCarthy & Fader's processes on cohort panels; `pooled` and `covariates` select one of the four versions."""

    pooled: bool
    covariates: bool

    @property
    def name(self) -> str:
        return f"wg_pnbd{'_e' if self.covariates else ''}_{'fp' if self.pooled else 'pp'}"

    def fit(self, panel: FirmPanel, *, seed: int) -> FittedWgPnbd:
        """Fit the three processes; nothing is random, so `seed` is not used."""
        try:
            acquisition = WeibullGamma.fit(panel, months=self.covariates)
            value = AovRegression.fit_cohorts(panel)
        except CannotFit as error:
            raise CannotFit(self.name, panel.firm, error.reason) from error
        groups = _fit_groups(panel, pooled=self.pooled, covariates=self.covariates)
        notes = [acquisition.diagnosis, *(g.diagnosis for g in groups)]
        record = FitRecord(
            parameters={
                "acquisition": acquisition.parameters(),
                "repeat": [g.parameters(panel) for g in groups],
            },
            converged=acquisition.converged and all(g.converged for g in groups),
            diagnosis="; ".join(sorted({n for n in notes if n})),
        )
        return FittedWgPnbd(acquisition, _assembled(panel, groups), value, record)


def _assembled(panel: FirmPanel, groups: list[_Group]) -> RepeatBuying:
    """One row a cohort; cohorts not yet born belong to the last group."""
    n, last = panel.n_cohorts, groups[-1]
    log_level, s, beta, month = np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1), np.zeros((n + 1, 12))
    for g in groups:
        log_level[g.cohorts], s[g.cohorts], beta[g.cohorts], month[g.cohorts] = (
            g.log_level,
            g.s,
            g.beta,
            g.month,
        )
    log_level[n], s[n], beta[n], month[n] = last.new_level, last.s, last.beta, last.month
    return RepeatBuying(panel.birth.copy(), log_level, s, beta, month, last.slope)
