"""RopcRegression: repeat orders per customer on week or tenure, with or without month dummies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize_scalar, nnls
from scipy.signal import lfilter

from cbmt_core.arrays import Floats, Ints
from cbmt_core.models.cohort_grid import CohortGrid
from cbmt_core.models.diffusion import DISCOUNT, month_effects, tamed
from cbmt_core.models.regression import fit_poisson
from cbmt_core.panel import LEFT_CENSORED, FirmPanel

__all__ = ["RopcRegression"]


TREND_SD = 0.5
"""Prior standard deviation of a year of trend, in log points."""
MONTH_SD = 0.3
TREND_MEMORY = 26.0
"""Weeks over which a trend over calendar weeks fades out after the origin."""
RATE_SD = 0.5
"""Prior standard deviation of the difference between old and new customers' order rates, in shares."""
HALF_LIVES = (2.0, 1000.0)
"""Weeks after which half of a cohort has left, at least and at most."""
NEVER = -30.0
"""Log of a rate that counts as zero."""


@dataclass(frozen=True, eq=False)
class RopcRegression:
    """log R = level + slope x + month, where x is the week, the tenure, or the log of 1 + tenure.

    In the versions by cohort, the left-censored cohort has its own level and weekly slope.
    """

    birth: Ints
    n_weeks: int
    scale: str
    """What x is: week, tenure or log_tenure."""
    young: tuple[float, float]
    """Level and slope of cohorts of known birth."""
    censored: tuple[float, float]
    """Level, and slope a week, of the left-censored cohort."""
    months: Floats
    ceiling: float

    @property
    def attrition(self) -> float:
        """Share of a cohort that leaves each week, where x is the tenure."""
        return float(-np.expm1(self.young[1]))

    @classmethod
    def fit_weekly(cls, panel: FirmPanel, *, months: bool) -> Self:
        """Regress the firm's weekly ROPC on a trend; all cohorts have the same forecast."""
        repeat, customers = _repeat(panel).sum(axis=0), _customers(panel).sum(axis=0)
        seen = customers > 0
        week = np.arange(panel.n_weeks) - (panel.n_weeks - 1.0)
        x = np.column_stack([np.ones(panel.n_weeks), week, _dummies(panel, months)])
        sd = np.array([np.inf, TREND_SD / 52, *[MONTH_SD] * 12])
        beta = fit_poisson(x[seen], tamed(repeat)[seen], customers[seen], sd)
        line = (float(beta[0]), float(beta[1]))
        return cls._made(panel, "week", line, line, beta[2:])

    @classmethod
    def fit_stock(cls, panel: FirmPanel, *, months: bool) -> Self:
        """Regress the firm's weekly repeat orders on the number of customers that a constant retention leaves.

        Repeat orders = m (sum of A_k r^(t - k)) + m0 L r^t, L the left-censored customers: for a given retention r
        the two order rates are linear, so the search is over r alone.
        """
        series, month = tamed(_repeat(panel).sum(axis=0)), panel.calendar().month
        left = float(panel.size[panel.birth == LEFT_CENSORED].sum())
        weight = 1.0 / np.sqrt(np.maximum(series, series.mean() / 10) + 1.0)
        week = np.arange(panel.n_weeks)
        effect = np.zeros(12)
        step = np.abs(np.diff(series)) * weight[1:]
        noise = 1.4826 * float(np.median(step)) / np.sqrt(2.0)
        tie = np.sqrt(DISCOUNT) * max(noise, 1.0) / RATE_SD if left > 0 else 0.0

        def columns(log_r: float) -> Floats:
            stock = lfilter([1.0], [1.0, -np.exp(log_r)], panel.A)
            return (
                np.column_stack([stock, left * np.exp(log_r * (week + 1.0))]) * np.exp(effect[month])[:, None]
            )

        def solve(log_r: float) -> tuple[Floats, float]:
            x = columns(log_r)
            # Totals hardly identify separate order rates of old and new customers, so both are shrunk towards each
            # other.
            near = tie * x.sum() / max(float(series.sum()), 1e-9)
            x = np.vstack([x * weight[:, None], [near, -near]])
            rates, misfit = nnls(x, np.append(series * weight, 0.0))
            return rates, float(misfit)

        def misfit(log_half_life: float) -> float:
            return solve(-np.log(2.0) / np.exp(log_half_life))[1]

        log_r, rates = 0.0, np.zeros(2)
        for _ in range(3 if months else 1):
            grid = np.linspace(np.log(HALF_LIVES[0]), np.log(HALF_LIVES[1]), 15)
            k = int(np.argmin([misfit(g) for g in grid]))
            around = (grid[max(k - 1, 0)], grid[min(k + 1, len(grid) - 1)])
            found = minimize_scalar(misfit, bounds=around, method="bounded", options={"xatol": 1e-3})
            log_r = float(-np.log(2.0) / np.exp(found.x))
            rates = solve(log_r)[0]
            if months:
                plain = columns(log_r) @ rates / np.exp(effect[month])
                effect = month_effects(series, plain, month)
        level, level0 = np.log(np.maximum(rates, np.exp(NEVER)))
        return cls._made(panel, "tenure", (float(level), log_r), (float(level0), log_r), effect)

    @classmethod
    def fit_cells(cls, panel: FirmPanel, *, months: bool, scale: str) -> Self:
        """Regress the ROPC of cohort-weeks on tenure (constant retention) or its log (a power law)."""
        repeat, customers = _repeat(panel), _customers(panel)
        seen = panel.born
        censored = np.broadcast_to((panel.birth == LEFT_CENSORED)[:, None], seen.shape)
        slope = np.log1p(np.maximum(panel.tenure, 0)) if scale == "log_tenure" else panel.tenure
        dummies = np.broadcast_to(_dummies(panel, months), (*seen.shape, 12))
        week = np.broadcast_to(np.arange(panel.n_weeks) + 1.0, seen.shape)
        x = np.concatenate(
            [np.stack([~censored, ~censored * slope, censored, censored * week], axis=-1), dummies], axis=-1
        )[seen].astype(float)
        sd = np.array([10.0, 1.0, 10.0, TREND_SD / 52, *[MONTH_SD] * 12])
        beta = fit_poisson(x, repeat[seen], customers[seen], sd)
        # Retention is at most 1: a rising rate is replaced by a constant one.
        rising = [k for k in (1, 3) if beta[k] > 0]
        if rising:
            sd[rising] = 1e-6
            beta = fit_poisson(x, repeat[seen], customers[seen], sd)
        young, old = (float(beta[0]), min(float(beta[1]), 0.0)), (float(beta[2]), min(float(beta[3]), 0.0))
        if censored.all():
            young = (old[0], young[1])
        return cls._made(panel, scale, young, old, beta[4:])

    @classmethod
    def _made(
        cls,
        panel: FirmPanel,
        scale: str,
        young: tuple[float, float],
        censored: tuple[float, float],
        months: Floats,
    ) -> Self:
        observed = panel.R[panel.born]
        return cls(
            birth=panel.birth.copy(),
            n_weeks=panel.n_weeks,
            scale=scale,
            young=young,
            censored=censored,
            months=months,
            ceiling=2.0 * float(np.max(observed, initial=0.0)),
        )

    def forecast(self, month: Ints) -> Floats:
        """[N + H, H] ROPC in the H weeks after the origin; `month` is the month of each."""
        grid = CohortGrid.after(self.birth, self.n_weeks, len(month))
        if self.scale == "week":
            ahead = np.arange(1, len(month) + 1)
            faded = TREND_MEMORY * -np.expm1(-ahead / TREND_MEMORY)
            log_rate = np.broadcast_to(self.young[0] + self.young[1] * faded, grid.tenure.shape)
        else:
            age = np.maximum(grid.tenure, 0)
            x = np.log1p(age) if self.scale == "log_tenure" else age
            log_rate = np.where(
                grid.censored,
                self.censored[0] + self.censored[1] * (grid.week + 1.0),
                self.young[0] + self.young[1] * x,
            )
        return grid.since_birth(np.minimum(np.exp(log_rate + self.months[month]), self.ceiling))

    def values(self) -> dict[str, Any]:
        return {
            "birth": self.birth.tolist(),
            "n_weeks": self.n_weeks,
            "scale": self.scale,
            "young": list(self.young),
            "censored": list(self.censored),
            "months": self.months.tolist(),
            "ceiling": self.ceiling,
        }

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        return cls(
            birth=np.array(values["birth"], dtype=np.int64),
            n_weeks=values["n_weeks"],
            scale=values["scale"],
            young=(values["young"][0], values["young"][1]),
            censored=(values["censored"][0], values["censored"][1]),
            months=np.array(values["months"]),
            ceiling=values["ceiling"],
        )


def _customers(panel: FirmPanel) -> Floats:
    return np.where(panel.born, panel.size[:, None], 0.0)


def _repeat(panel: FirmPanel) -> Floats:
    return np.asarray(_customers(panel) * np.nan_to_num(panel.R))


def _dummies(panel: FirmPanel, months: bool) -> Floats:
    """[T, 12] month dummies, or none of them set."""
    return np.asarray(np.equal(panel.calendar().month[:, None], np.arange(12)) * float(months))
