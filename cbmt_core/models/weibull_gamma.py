"""Weibull-Gamma acquisition: times to adoption in a market, with month effects on the hazard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize

from cbmt_core.arrays import Floats, Ints
from cbmt_core.calendar import calendar_of
from cbmt_core.models.contract import CannotFit
from cbmt_core.models.month_effects import month_spread
from cbmt_core.panel import LEFT_CENSORED, FirmPanel

__all__ = ["WeibullGamma", "adopted_share"]


MIN_WEEKS = 13
MARKETS = (1.3, 2.0, 4.0, 10.0, 40.0)
"""Market sizes tried, as multiples of the customers already won."""
YEARS_BEFORE = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
"""Starts of operations tried, in years before the first week."""
CANDIDATES = 4
"""Best pairs of market and start, without covariates, that are fitted again with them."""
SHAPE_SD, SPREAD_SD, MONTH_SD, BASE_SD = 0.25, 1.0, 0.15, 0.25
"""Priors on log c and log r (around 1), month effects (a start; the data then decide their spread), and
the log shortfall of earlier customers."""
MAX_GROWTH = 3.0
"""Forecasts stay below this multiple of the highest observed week."""


def adopted_share(B: Floats, r: float, alpha: float) -> Floats:
    """F = 1 - (alpha / (alpha + B))^r; B = t^c without covariates (Weibull mixed by a gamma).

    With covariates, B adds up the hazard's weekly steps, each times exp(beta'x)
    (Fader & Hardie's notes on time-varying covariates; Bachmann et al. 2021).
    """
    return np.asarray(-np.expm1(-r * np.log1p(B / alpha)))


@dataclass(frozen=True, eq=False)
class WeibullGamma:
    """A fitted acquisition process; `fit` chooses market and start of operations by grid search."""

    first_week: date
    country: str
    n_weeks: int
    market: float
    before: int
    """Weeks from the start of operations to the first week; negative when operations start later."""
    theta: Floats
    """log c, log r, log alpha, 12 months."""
    ceiling: float
    converged: bool
    diagnosis: str

    @classmethod
    def fit(cls, panel: FirmPanel, *, months: bool) -> Self:
        won = np.minimum(panel.A, _local_ceiling(panel.A))
        n = panel.n_weeks
        lead = int(np.argmax(won > 0))
        censored = panel.birth[0] == LEFT_CENSORED if panel.n_cohorts else False
        base = float(panel.size[0]) if censored else 0.0
        first = 0 if censored else lead
        if n - lead < MIN_WEEKS or won.sum() <= 0:
            raise CannotFit(
                "weibull_gamma",
                panel.firm,
                f"{max(n - lead, 0) if won.sum() > 0 else 0} weeks since the first acquisition; "
                f"{MIN_WEEKS} are needed",
            )
        starts = [round(52 * y) for y in YEARS_BEFORE]
        befores = starts if censored else [-first, *(b for b in starts if first == 0)]
        markets = [(base + won.sum()) * m for m in MARKETS]
        data = _Weeks(won[first:], base, _dispersion(won[first:]))
        tried = []
        theta = None
        for market in markets:
            for before in befores:
                problem = _Problem(data, market, before + first, None)
                tried.append((*problem.solve(theta), market, before))
                theta = tried[-1][1]
        tried.sort(key=lambda t: t[0])
        if months:
            again: list[tuple[float, Floats, bool, float, int]] = []
            spread = MONTH_SD
            for _, theta, _, market, before in tried[:CANDIDATES]:
                month = _months(panel.first_week, before, n, panel.design.country)
                problem = _Problem(data, market, before + first, month, spread)
                if not again:  # the spread of months is estimated with the best pair
                    problem, theta = problem.with_learned_spread(theta)
                    spread = problem.month_sd
                again.append((*problem.solve(theta), market, before))
            tried = sorted(again, key=lambda t: t[0])
        _, best, converged, market, before = tried[0]
        return cls(
            first_week=panel.first_week,
            country=panel.design.country,
            n_weeks=n,
            market=market,
            before=before,
            theta=best,
            ceiling=MAX_GROWTH * float(won.max()),
            converged=converged,
            diagnosis="" if converged else "acquisition likelihood did not converge",
        )

    def expected(self, weeks: int) -> Floats:
        """Expected customers acquired in each of `weeks` weeks from the panel's first."""
        late = max(-self.before, 0)
        month = _months(self.first_week, self.before, weeks, self.country)
        B = _exposure(self.theta, len(month), month)[0]
        won = self.market * np.diff(adopted_share(B, *np.exp(self.theta[1:3])))
        return np.concatenate([np.zeros(late), won[max(self.before, 0) :]])[:weeks]

    def forecast(self, horizon: int) -> Floats:
        """[H] customers acquired in the weeks after the origin."""
        return np.clip(self.expected(self.n_weeks + horizon)[self.n_weeks :], 0.0, self.ceiling)

    def parameters(self) -> dict[str, Any]:
        c, r, alpha = np.exp(self.theta[:3]).tolist()
        return {"c": c, "r": r, "alpha": alpha, "market": self.market, "weeks_before": self.before}

    def values(self) -> dict[str, Any]:
        """The fitted process as JSON-ready values."""
        return {
            "first_week": self.first_week.isoformat(),
            "country": self.country,
            "n_weeks": self.n_weeks,
            "market": self.market,
            "before": self.before,
            "theta": self.theta.tolist(),
            "ceiling": self.ceiling,
            "converged": self.converged,
            "diagnosis": self.diagnosis,
        }

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        first, theta = date.fromisoformat(values["first_week"]), np.asarray(values["theta"], dtype=float)
        return cls(**{**values, "first_week": first, "theta": theta})


@dataclass(frozen=True, eq=False)
class _Weeks:
    won: Floats
    base: float
    """Customers won before the first week and seen in the washout."""
    dispersion: float


@dataclass(frozen=True, eq=False)
class _Problem:
    """The penalised quasi-likelihood of weekly acquisitions, given a market and a start."""

    data: _Weeks
    market: float
    before: int
    month: Ints | None
    """Month of each week since the start of operations, or None without covariates."""
    month_sd: float = MONTH_SD

    def with_learned_spread(self, theta: Floats) -> tuple[_Problem, Floats]:
        """The problem with the spread of month effects that its own solution shows."""
        problem = self
        assert self.month is not None
        information = np.bincount(self.month[self.before :], self.data.won, 12) / self.data.dispersion
        for _ in range(6):
            theta = problem.solve(theta)[1]
            spread = month_spread(theta[3:], information, problem.month_sd)
            done = abs(np.log(spread / problem.month_sd)) < 0.1
            problem = replace(problem, month_sd=spread)
            if done:
                break
        return problem, theta

    def solve(self, start: Floats | None) -> tuple[float, Floats, bool]:
        """Objective, log parameters, converged."""
        weeks = len(self.data.won)
        plain = np.zeros(15)
        plain[2] = np.log(self.market * weeks / max(self.data.won.sum(), 1.0))
        best: tuple[float, Floats, bool] | None = None
        for theta in (plain,) if start is None else (start, plain):
            result = minimize(
                self.objective, theta, method="L-BFGS-B", jac=True, options={"maxiter": 200, "ftol": 1e-9}
            )
            if best is None or result.fun < best[0]:
                best = float(result.fun), result.x, bool(result.success)
            if result.success and start is not None:
                break
        assert best is not None
        return best

    def objective(self, theta: Floats) -> tuple[float, Floats]:
        theta = np.clip(theta, -30.0, 60.0)
        data, p = self.data, self.before
        r, alpha = np.exp(theta[1:3])
        B, by = _exposure(theta, p + len(data.won), self.month, gradient=True)
        log_alive = -r * np.log1p(B / alpha)
        alive = np.exp(log_alive)
        # Derivatives of the share not yet adopted, by log c, log r, log alpha and months.
        by_B = -r / (alpha + B) * alive
        slope = np.zeros((len(B), 15))
        slope[:, 0] = by_B * by[:, 0]
        slope[:, 1] = log_alive * alive
        slope[:, 2] = -by_B * B
        slope[:, 3:] = by_B[:, None] * by[:, 1:]
        mean = np.maximum(self.market * -np.diff(alive)[p:], 1e-9)
        mean_slope = self.market * -np.diff(slope, axis=0)[p:]
        distance = np.concatenate([theta[:2] / [SHAPE_SD, SPREAD_SD], [0.0], theta[3:] / self.month_sd])
        value = float(mean.sum() - data.won @ np.log(mean)) / data.dispersion + 0.5 * float(
            distance @ distance
        )
        gradient = (1.0 - data.won / mean) @ mean_slope / data.dispersion
        gradient += distance / np.array([SHAPE_SD, SPREAD_SD, 1.0, *[self.month_sd] * 12])
        earlier = self.market * -np.expm1(log_alive[p])
        if 0 < earlier < data.base:  # those seen in the washout were won before the first week
            short = np.log(data.base / earlier) / BASE_SD
            value += 0.5 * float(short**2)
            gradient += short / BASE_SD * self.market * slope[p] / earlier
        scale = data.dispersion / max(data.won.sum(), 1.0)
        return scale * value, scale * gradient


def _exposure(theta: Floats, weeks: int, month: Ints | None, gradient: bool = False) -> tuple[Floats, Floats]:
    """B at the end of week 0, 1, ..., and its derivatives by log c and the months."""
    c = float(np.exp(np.clip(theta[0], -3.0, 3.0)))
    k = np.arange(weeks + 1.0)
    power = k**c
    speed = np.ones(weeks) if month is None else np.exp(theta[3:][month])
    B = np.concatenate([[0.0], np.cumsum(np.diff(power) * speed)])
    if not gradient:
        return B, np.zeros((0, 0))
    by = np.zeros((weeks + 1, 13))
    log_k = np.log(np.maximum(k, 1.0))
    by[1:, 0] = np.cumsum(np.diff(c * power * log_k) * speed)
    if month is not None:
        steps = np.zeros((weeks, 12))
        steps[np.arange(weeks), month] = np.diff(power) * speed
        by[1:, 1:] = np.cumsum(steps, axis=0)
    return B, by


def _months(first_week: date, before: int, weeks: int, country: str) -> Ints:
    """Months of the weeks from the start of operations to `weeks` weeks after `first_week`."""
    return calendar_of(first_week - timedelta(weeks=before), before + weeks, country).month


def _local_ceiling(won: Floats) -> Floats:
    """Five times the median of half a year around each week; values above are outliers."""
    padded = np.pad(won, 13, mode="reflect") if len(won) > 13 else np.pad(won, 13, mode="edge")
    local = np.median(np.lib.stride_tricks.sliding_window_view(padded, 27), axis=1)
    return np.maximum(5.0 * local, np.median(won[won > 0]) if (won > 0).any() else 0.0)


def _dispersion(won: Floats) -> float:
    """Variance of weeks around their local mean, in Poisson variances."""
    window = min(25, 2 * (len(won) // 2) - 1)
    padded = np.pad(won, window // 2, mode="edge")
    smooth = np.lib.stride_tricks.sliding_window_view(padded, window).mean(axis=1)
    return max(1.0, float(np.sum((won - smooth) ** 2) / max(smooth.sum(), 1e-9)))
