"""The contextual features computed from a panel, one function each.

The panel must end at the forecast origin. Averages over cohorts are weighted by
cohort size (Web App. "Explaining Prediction Performance with Meta-Model Analysis"). NaN where a panel is too
short or too empty for a feature.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cbmt_core.arrays import Bools, Floats, Ints
from cbmt_core.diagnostics.difficulty import series
from cbmt_core.panel import CustomerHistory, FirmPanel
from cbmt_core.timeline import SEASON

__all__ = [
    "acceleration",
    "acquisition_intensity",
    "active_decay",
    "annual_growth",
    "cohort_aov_fit",
    "cohort_orders_fit",
    "cohort_orders_hhi",
    "cohort_sales_cv",
    "cohort_size_gini",
    "orders_fit",
    "orders_per_active",
    "weekly_orders",
]


QUARTER = 13
"""Minimum number of observed weeks of a cohort or a change of growth: in shorter ones a statistic mostly reflects
their length."""
MONTH = 4
"""Whole weeks of a cohort's first month; its twelfth is weeks 48 to 51."""


def weekly_orders(panel: FirmPanel) -> Floats:
    return np.asarray(panel.orders.sum(axis=0))


def cohort_orders_hhi(panel: FirmPanel) -> float:
    orders = panel.orders
    return _over_cohorts(panel, QUARTER, lambda i, t: series.herfindahl(orders[i, t]))


def cohort_sales_cv(panel: FirmPanel) -> float:
    return _over_cohorts(panel, QUARTER, lambda i, t: series.variation(panel.Y[i, t]))


def annual_growth(x: Floats) -> float:
    """Annual log growth from the first to the last twelve months, whose centres lie T - 52 weeks apart."""
    return _growth(x, 0, len(x) - SEASON)


def acceleration(x: Floats) -> float:
    """Growth from the middle to the last twelve months minus growth from the first to the middle twelve months."""
    last = len(x) - SEASON
    return _growth(x, last // 2, last) - _growth(x, 0, last // 2) if last >= QUARTER else float("nan")


def acquisition_intensity(panel: FirmPanel) -> float:
    """Share of the last twelve months' sales that came from cohorts in their first month."""
    if panel.n_weeks < SEASON:
        return float("nan")
    young = panel.born & (panel.tenure < MONTH) & (panel.birth >= 0)[:, None]
    sales = np.where(young, panel.Y, 0.0)[:, -SEASON:].sum()
    total = panel.S[-SEASON:].sum()
    return float(sales / total) if total > 0 else float("nan")


def active_decay(panel: FirmPanel) -> float:
    """Share of customers with an order in their twelfth month, over cohorts at least a year old."""
    history = panel.customers
    old = (panel.birth >= 0) & (panel.birth + SEASON <= panel.n_weeks)
    if history is None or not old.any():
        return float("nan")
    # A week index that no order has, for customers of younger cohorts.
    twelfth = np.where(old, panel.birth + SEASON - MONTH, panel.n_weeks)[history.cohort]
    age = history.week - np.repeat(twelfth.astype(np.int16), np.diff(history.start))
    return _customers_with(history, (age >= 0) & (age < MONTH)) / float(panel.size[old].sum())


def orders_per_active(panel: FirmPanel) -> float:
    """Orders of the last twelve months per customer who placed one."""
    history = panel.customers
    if history is None or panel.n_weeks < SEASON:
        return float("nan")
    recent = history.week >= panel.n_weeks - SEASON
    return int(recent.sum()) / _customers_with(history, recent) if recent.any() else float("nan")


def orders_fit(panel: FirmPanel) -> float:
    t = np.arange(panel.n_weeks)
    month = panel.calendar().month
    return series.fit_r2(weekly_orders(panel), t, 3, month) if len(t) >= SEASON else float("nan")


def cohort_orders_fit(panel: FirmPanel) -> float:
    orders = panel.orders
    return _over_cohorts(panel, QUARTER, lambda i, t: series.fit_r2(orders[i, t], t, 3))


def cohort_aov_fit(panel: FirmPanel) -> float:
    """Only cohorts with orders in at least 52 weeks: with fewer, month effects cannot be estimated."""
    month = panel.calendar().month

    def fit(i: int, t: Ints) -> float:
        t = t[~np.isnan(panel.V[i, t])]
        return series.fit_r2(panel.V[i, t], t, 1, month[t]) if len(t) >= SEASON else float("nan")

    return _over_cohorts(panel, SEASON, fit)


def cohort_size_gini(panel: FirmPanel) -> float:
    """Without the left-censored cohort, whose customers did not arrive in one week."""
    return series.gini(panel.size[panel.birth >= 0])


def _over_cohorts(panel: FirmPanel, weeks: int, statistic: Callable[[int, Ints], float]) -> float:
    """Size-weighted mean of a statistic of (cohort, its weeks since birth) over cohorts observed long enough."""
    first = np.maximum(panel.birth, 0)
    old = np.flatnonzero(panel.n_weeks - first >= weeks)
    values = np.array([statistic(int(i), np.arange(first[i], panel.n_weeks)) for i in old])
    known = np.isfinite(values)
    weight = panel.size[old][known]
    return float(np.average(values[known], weights=weight)) if weight.sum() > 0 else float("nan")


def _customers_with(history: CustomerHistory, order: Bools) -> int:
    """Number of customers with at least one of these orders."""
    before = np.concatenate([[0], np.cumsum(order)])
    return int((before[history.start[1:]] > before[history.start[:-1]]).sum())


def _growth(x: Floats, start: int, end: int) -> float:
    """Annual log growth between the twelve months that begin at `start` and at `end`."""
    if len(x) - SEASON < QUARTER:
        return float("nan")
    before, after = x[start : start + SEASON].sum(), x[end : end + SEASON].sum()
    return float(np.log(after / before) * SEASON / (end - start)) if min(before, after) > 0 else float("nan")
