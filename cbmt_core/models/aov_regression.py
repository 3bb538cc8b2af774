"""AovRegression: shrunken log-linear regression of average order value on month, trend and tenure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Self

import numpy as np

from cbmt_core.arrays import Floats, Ints
from cbmt_core.calendar import calendar_of
from cbmt_core.models.contract import CannotFit
from cbmt_core.models.month_effects import month_spread
from cbmt_core.panel import LEFT_CENSORED, FirmPanel

__all__ = ["AovRegression"]


# Standard deviations of the normal priors, in log points: what is plausible before any data are seen.
MONTH_SD = 0.10
"""Initial value; the spread of months is then estimated from the data."""
TREND_SD = 0.10
"""For one year of trend."""
TENURE_SD = 0.10
"""For tenure longer by a factor e."""
BIRTH_SD = 0.30
CENSORED_SD = 0.50
COHORT_SD = 0.10

TREND_MEMORY = 8.0
"""Weeks over which the trend fades out after the origin."""
RECENT_COHORTS = 26
"""Cohorts whose levels a new cohort inherits."""


@dataclass(frozen=True, eq=False)
class AovRegression:
    """A fitted regression of AOV, made by `fit_weekly` or `fit_cohorts`.

    log E[V] = level + month + trend (+ log tenure + birth week + left-censored + cohort level). The coefficients are
    penalised maximum likelihood estimates of a gamma regression, which fits the mean of V and not of log V; normal
    priors keep them near zero where there are few data. The trend fades after the origin, and forecasts stay within a
    factor of the observed weekly AOVs.
    """

    first_week: date
    country: str
    n_weeks: int
    birth: Ints
    by_cohort: bool
    coefficients: Floats
    cohort_level: Floats
    """[N] log level of each cohort, shrunken; zero in the weekly regression."""
    new_level: float
    """Log level of cohorts not yet born."""
    bounds: tuple[float, float]

    @classmethod
    def fit_weekly(cls, panel: FirmPanel, *, months: bool = True) -> Self:
        """Regress the firm's weekly AOV; all cohorts have the same forecast."""
        orders = panel.orders.sum(axis=0)
        sales = np.where(orders > 0, panel.S, 0.0)
        return cls._fit(panel, orders[None], sales[None], months=months, by_cohort=False)

    @classmethod
    def fit_cohorts(cls, panel: FirmPanel, *, months: bool = True) -> Self:
        """Regress the AOV of cohort-weeks."""
        sales = np.nan_to_num(panel.orders * np.nan_to_num(panel.V))
        return cls._fit(panel, panel.orders, sales, months=months, by_cohort=True)

    @classmethod
    def _fit(cls, panel: FirmPanel, orders: Floats, sales: Floats, *, months: bool, by_cohort: bool) -> Self:
        seen = orders > 0
        if sales[seen].sum() <= 0:
            raise CannotFit("aov_regression", panel.firm, "no order has a value")
        row, week = np.nonzero(seen)
        n = orders[seen]
        value = _winsorised(sales[seen] / n, n)
        # Orders of one week share its shock: a week counts for at most one observation, and a week
        # with few orders for less.
        per_week = orders.sum(axis=0)
        weight = n / (per_week[week] + per_week[per_week > 0].mean())
        weight *= len(np.unique(week)) / weight.sum()

        month = panel.calendar().month
        birth = panel.birth[row] if by_cohort else np.full(len(row), LEFT_CENSORED)
        x = _features(month[week], (week - (panel.n_weeks - 1)) / 52.0, week - birth, birth, by_cohort)
        if not months:
            x[:, 1:13] = 0.0
        coefficients, mean = _gamma_regression(x, value, weight, week, _prior_sd(by_cohort))

        level, new_level = np.zeros(panel.n_cohorts), 0.0
        if by_cohort:
            level = _cohort_levels(row, n, value, mean, panel.n_cohorts)
            recent = level[panel.birth != LEFT_CENSORED][-RECENT_COHORTS:]
            new_level = float(recent.mean()) if len(recent) else 0.0
        return cls(
            first_week=panel.first_week,
            country=panel.design.country,
            n_weeks=panel.n_weeks,
            birth=panel.birth.copy(),
            by_cohort=by_cohort,
            coefficients=coefficients,
            cohort_level=level,
            new_level=new_level,
            bounds=(0.5 * float(value.min()), 2.0 * float(value.max())),
        )

    def forecast(self, horizon: int) -> Floats:
        """[N + H, H] AOV of the known cohorts and of one cohort born in each week; NaN before birth."""
        ahead = np.arange(horizon)
        week = self.n_weeks + ahead
        month = calendar_of(self.first_week, self.n_weeks + horizon, self.country).month[week]
        trend = TREND_MEMORY * -np.expm1(-(ahead + 1.0) / TREND_MEMORY) / 52.0
        birth = np.concatenate([self.birth, week])
        level = np.concatenate([self.cohort_level, np.full(horizon, self.new_level)])
        b, w = np.broadcast_arrays(birth[:, None], week)
        x = _features(
            np.broadcast_to(month, w.shape).ravel(),
            np.broadcast_to(trend, w.shape).ravel(),
            (w - b).ravel(),
            b.ravel(),
            self.by_cohort,
        )
        log_value = (x @ self.coefficients).reshape(w.shape) + level[:, None]
        value = np.exp(np.clip(log_value, *np.log(self.bounds)))
        return np.where(w >= b, value, np.nan)

    def values(self) -> dict[str, Any]:
        """The fitted regression as JSON-ready values."""
        return {
            "first_week": self.first_week.isoformat(),
            "country": self.country,
            "n_weeks": self.n_weeks,
            "birth": self.birth.tolist(),
            "by_cohort": self.by_cohort,
            "coefficients": self.coefficients.tolist(),
            "cohort_level": self.cohort_level.tolist(),
            "new_level": self.new_level,
            "bounds": list(self.bounds),
        }

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        return cls(
            first_week=date.fromisoformat(values["first_week"]),
            country=values["country"],
            n_weeks=values["n_weeks"],
            birth=np.asarray(values["birth"], dtype=np.int64),
            by_cohort=values["by_cohort"],
            coefficients=np.asarray(values["coefficients"], dtype=float),
            cohort_level=np.asarray(values["cohort_level"], dtype=float),
            new_level=values["new_level"],
            bounds=(values["bounds"][0], values["bounds"][1]),
        )


def _features(month: Ints, trend: Floats, tenure: Ints, birth: Ints, by_cohort: bool) -> Floats:
    """Columns: level, 12 months, trend, and for cohort-weeks log tenure, birth week, left-censored."""
    columns = [np.ones(len(month)), *(month == m for m in range(12)), trend]
    if by_cohort:
        censored = birth == LEFT_CENSORED
        columns += [np.where(censored, 0.0, np.log1p(np.maximum(tenure, 0))), tenure == 0, censored]
    return np.column_stack(columns).astype(float)


def _prior_sd(by_cohort: bool) -> Floats:
    own = [TENURE_SD, BIRTH_SD, CENSORED_SD] if by_cohort else []
    return np.array([np.inf, *[MONTH_SD] * 12, TREND_SD, *own])


def _winsorised(value: Floats, orders: Floats) -> Floats:
    """Clip values to within five robust standard deviations of log AOV, so that a single odd order does not set the
    level."""
    log_value = np.log(np.maximum(value, 1e-9 * value.max()))
    order = np.argsort(log_value)
    share = np.cumsum(orders[order]) / orders.sum()
    centre = log_value[order][np.searchsorted(share, 0.5)]
    spread = np.abs(log_value - centre)
    order = np.argsort(spread)
    mad = spread[order][np.searchsorted(np.cumsum(orders[order]) / orders.sum(), 0.5)]
    reach = max(5.0 * 1.4826 * float(mad), 0.5)
    return np.asarray(np.exp(np.clip(log_value, centre - reach, centre + reach)))


def _cohort_levels(row: Ints, orders: Floats, value: Floats, mean: Floats, cohorts: int) -> Floats:
    """Empirical Bayes: each cohort's log ratio of actual to fitted AOV, shrunken by its precision.

    The variance between cohorts is the variance of the ratios minus their sampling variance.
    """
    actual, fitted, count = (np.bincount(row, w, cohorts) for w in (orders * value, orders * mean, orders))
    ratio = np.log(np.divide(actual, fitted, out=np.ones(cohorts), where=actual > 0))
    noise = float(np.mean(orders * (value / mean - 1.0) ** 2)) / np.maximum(count, 1e-9)
    between = float(np.average(ratio**2 - np.minimum(noise, 1.0), weights=1.0 / (noise + COHORT_SD**2)))
    between = min(max(between, 0.0), COHORT_SD**2)
    return ratio * between / (between + noise + 1e-12)


def _gamma_regression(
    x: Floats, value: Floats, weight: Floats, week: Ints, sd: Floats
) -> tuple[Floats, Floats]:
    """Penalised gamma regression with log link by iteratively reweighted least squares.

    The gamma's working weights are constant, so all iterations use one matrix. The dispersion that weighs data
    against priors is that of the weekly means; the spread of the months is re-estimated in each iteration.
    """
    sd = sd.copy()
    beta = np.zeros(x.shape[1])
    beta[0] = np.log(np.average(value, weights=weight))
    gram = x.T @ (weight[:, None] * x)
    per_week = np.bincount(week, weight)
    mean = np.exp(x @ beta)
    for round_ in range(50):
        residual = value / mean - 1.0
        dispersion = max(float(np.sum(np.bincount(week, weight * residual) ** 2) / np.sum(per_week**2)), 1e-6)
        if round_:
            sd[1:13] = month_spread(beta[1:13], np.diag(gram)[1:13] / dispersion, float(sd[1]))
        penalty = dispersion / sd**2
        gradient = x.T @ (weight * residual) - penalty * beta
        step = np.linalg.solve(gram + np.diag(penalty + 1e-9), gradient)
        beta = beta + np.clip(step, -1.0, 1.0)
        mean = np.exp(x @ beta)
        if np.abs(step).max() < 1e-6:
            break
    return beta, mean
