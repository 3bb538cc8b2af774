"""Seasonal naive: the same week of last year times last year's growth; the benchmark every model should beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from cbmt_core.arrays import Bools, Floats, Ints
from cbmt_core.models.cohort_grid import CohortGrid
from cbmt_core.models.contract import CannotFit, FitRecord, ModelState, PrimitiveForecast
from cbmt_core.panel import LEFT_CENSORED, FirmPanel
from cbmt_core.timeline import SEASON

__all__ = ["FittedSeasonalNaive", "SeasonalNaive"]


NAME = "seasonal_naive"
RECENT = 26
"""Weeks from which cohort levels are taken."""
MIN_WEEKS = 4
MAX_GROWTH = 2.0
PRIOR_ORDERS = 20.0
"""Orders a cohort needs to move half the way from the firm's level to its own."""


@dataclass(frozen=True, eq=False)
class FittedSeasonalNaive:
    """Last season's weekly indices, their growth, a pooled tenure curve, and cohort levels."""

    birth: Ints
    n_weeks: int
    indices: dict[str, Floats]
    """Last season of the weekly series acquisition, left-censored ROPC, ROPC index and AOV."""
    growth: dict[str, float]
    curve: Floats
    """ROPC by tenure, pooled over the cohorts born in the panel."""
    ropc_level: Floats
    """[N + 1] ROPC of each cohort, and of new ones, relative to the curve."""
    aov_level: Floats
    """[N + 2] AOV of each cohort, of new ones, and of birth weeks, relative to the firm's."""
    record: FitRecord

    def forecast(self, horizon: int) -> PrimitiveForecast:
        grid = CohortGrid.after(self.birth, self.n_weeks, horizon)
        n = len(self.birth)
        ropc = np.concatenate([self.ropc_level[:n], np.full(horizon, self.ropc_level[n])])[:, None]
        aov = np.concatenate([self.aov_level[:n], np.full(horizon, self.aov_level[n])])[:, None]
        aov = np.where(grid.tenure == 0, self.aov_level[n + 1], aov)
        curve = self.curve[np.clip(grid.tenure, 0, len(self.curve) - 1)]
        R = np.where(
            grid.censored, self._ahead("censored", horizon), ropc * curve * self._ahead("ropc", horizon)
        )
        return PrimitiveForecast(
            A=self._ahead("acquisition", horizon),
            R=grid.since_birth(R),
            V=grid.since_birth(aov * self._ahead("aov", horizon)),
        )

    def _ahead(self, name: str, horizon: int) -> Floats:
        """Last season repeated over the horizon; every repetition is multiplied by the growth once."""
        season = self.indices[name]
        return season[np.arange(horizon) % len(season)] * self.growth[name]

    def state(self) -> ModelState:
        values = {"n_weeks": self.n_weeks, "growth": self.growth, "record": self.record.values()}
        arrays = {"birth": self.birth, "curve": self.curve, "ropc": self.ropc_level, "aov": self.aov_level}
        return ModelState(values, arrays | {f"index_{k}": v for k, v in self.indices.items()})

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        values, arrays = state.values, state.arrays
        return cls(
            birth=arrays["birth"],
            n_weeks=values["n_weeks"],
            indices={k.removeprefix("index_"): v for k, v in arrays.items() if k.startswith("index_")},
            growth=values["growth"],
            curve=arrays["curve"],
            ropc_level=arrays["ropc"],
            aov_level=arrays["aov"],
            record=FitRecord.from_values(values["record"]),
        )


@dataclass(frozen=True)
class SeasonalNaive:
    def fit(self, panel: FirmPanel, *, seed: int) -> FittedSeasonalNaive:
        if panel.n_weeks < MIN_WEEKS:
            raise CannotFit(NAME, panel.firm, f"{panel.n_weeks} weeks of history; {MIN_WEEKS} are needed")
        orders = panel.orders
        if not orders.any():
            raise CannotFit(NAME, panel.firm, "not a single order was placed")
        repeat = np.where(panel.born, panel.size[:, None] * np.nan_to_num(panel.R), 0.0)
        known = panel.birth != LEFT_CENSORED
        exposure = np.where(panel.born, panel.size[:, None], 0.0)

        curve = _tenure_curve(repeat[known], exposure[known], panel.tenure[known])
        expected = exposure * curve[np.clip(panel.tenure, 0, len(curve) - 1)] * known[:, None]
        index = _ratio(repeat[known].sum(axis=0), expected.sum(axis=0), prior=1.0)
        recent = slice(-RECENT, None)
        ropc_level = _shrunken(repeat[:, recent].sum(axis=1), (expected * index)[:, recent].sum(axis=1))
        young = np.flatnonzero(known)[-RECENT:]
        new = _shrunken(
            np.array([repeat[young, recent].sum()]), np.array([(expected * index)[young, recent].sum()])
        )
        sales = orders * np.nan_to_num(panel.V)
        aov = _weekly_aov(sales.sum(axis=0), orders.sum(axis=0))
        usual = orders * aov
        later = ~panel.is_birth

        def relative(rows: slice | Ints, cells: Bools, axis: int | None) -> Floats:
            own, firm = ((x * cells)[rows].sum(axis=axis) for x in (sales, usual))
            return np.atleast_1d(_shrunken(own, firm, float(aov.mean())))

        aov_level = [
            relative(slice(None), later & (np.arange(panel.n_weeks) >= panel.n_weeks - RECENT), 1),
            relative(young, later, None),
            relative(np.flatnonzero(known), panel.is_birth, None),
        ]
        censored = (repeat[~known] / panel.size[~known, None]).sum(axis=0)
        series = {"acquisition": panel.A, "censored": censored, "ropc": index, "aov": aov}
        return FittedSeasonalNaive(
            birth=panel.birth.copy(),
            n_weeks=panel.n_weeks,
            indices={k: _last_season(v) for k, v in series.items()},
            growth=(growth := {k: _growth(v) for k, v in series.items()}),
            curve=curve,
            ropc_level=np.concatenate([ropc_level, new]),
            aov_level=np.concatenate(aov_level),
            record=FitRecord(
                parameters={"growth": growth},
                diagnosis=""
                if panel.n_weeks >= SEASON
                else f"{panel.n_weeks} weeks of history show no season: recent means are carried forward",
            ),
        )


def _last_season(series: Floats) -> Floats:
    """The last 52 weeks; with less history, the mean of the last quarter."""
    return series[-SEASON:].copy() if len(series) >= SEASON else np.array([series[-13:].mean()])


def _growth(series: Floats) -> float:
    """Sum of the last year over that of the same weeks a year earlier, as far as they are known."""
    overlap = min(len(series) - SEASON, SEASON)
    if overlap < 13:
        return 1.0
    before = float(series[-SEASON - overlap : -SEASON].sum())
    ratio = float(series[-overlap:].sum()) / before if before > 0 else 1.0
    return min(max(ratio, 1 / MAX_GROWTH), MAX_GROWTH)


def _ratio(actual: Floats, expected: Floats, prior: float) -> Floats:
    return (actual + prior) / (expected + prior)


def _shrunken(actual: Floats, expected: Floats, unit: float = 1.0) -> Floats:
    """Actual over expected, shrunk towards 1 with pseudo-orders of value `unit`."""
    return _ratio(actual, expected, PRIOR_ORDERS * unit)


def _tenure_curve(repeat: Floats, exposure: Floats, tenure: Ints) -> Floats:
    """Repeat orders per customer by tenure, smoothed over a window that widens with tenure."""
    length = int(tenure.max(initial=0)) + 1
    at = np.clip(tenure, 0, None).ravel()
    orders = np.bincount(at, repeat.ravel(), length)
    customers = np.bincount(at, exposure.ravel(), length)
    total = np.concatenate([[0.0], np.cumsum(orders)]), np.concatenate([[0.0], np.cumsum(customers)])
    k = np.arange(length)
    low, high = np.maximum(k - k // 4, 0), np.minimum(k + k // 4 + 1, length)
    return np.asarray((total[0][high] - total[0][low]) / np.maximum(total[1][high] - total[1][low], 1.0))


def _weekly_aov(sales: Floats, orders: Floats) -> Floats:
    """AOV of each week; weeks with few orders are shrunk to the mean of all weeks."""
    mean = sales.sum() / orders.sum()
    return np.asarray((sales + PRIOR_ORDERS * mean) / (orders + PRIOR_ORDERS))
