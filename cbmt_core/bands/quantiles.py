"""Bands: quantiles of the same draws for every outcome and period, so that they agree with one another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from cbmt_core.arrays import Floats
from cbmt_core.bridge.contributions import contributions
from cbmt_core.compose import DrawnForecast
from cbmt_core.timeline import SEASON

__all__ = ["LEVELS", "QUARTER", "BridgeBaseline", "bands", "bridge_draws", "period_draws", "whole_period"]


LEVELS = (50, 80, 95)
"""Nominal coverage of the bands, in percent."""
QUARTER = 13


class BridgeBaseline(NamedTuple):
    """What the bridge compares next year with: sums over the baseline's weeks."""

    repeat_orders: float
    repeat_sales: float
    initial_sales: float


def whole_period(weeks: int) -> str:
    """Name of the period that spans a whole forecast of `weeks` weeks."""
    return "year" if weeks == SEASON else "horizon"


def period_draws(drawn: DrawnForecast, customers: float, first: int, last: int) -> dict[str, Floats]:
    """[K] each outcome over the weeks `first` to `last` (exclusive), of every draw.

    Args:
        drawn: composed draws.
        customers: acquired up to the origin.
        first: index of the period's first week.
        last: index of the week after it.
    """
    sales = drawn.sales[:, first:last].sum(axis=1)
    if not drawn.has_drivers:
        return {"sales": sales}
    acquired, orders = (x[:, first:last].sum(axis=1) for x in (drawn.acquired, drawn.orders))
    so_far = customers + drawn.acquired[:, :last].sum(axis=1)
    repeats = orders - acquired
    return {
        "sales": sales,
        "acquired": acquired,
        "orders": orders,
        "ropc": np.divide(repeats, so_far, out=np.zeros_like(repeats), where=so_far > 0),
        "aov": np.divide(sales, orders, out=np.full_like(sales, np.nan), where=orders > 0),
    }


def bridge_draws(drawn: DrawnForecast, baseline: BridgeBaseline) -> dict[str, Floats]:
    """[K] the change in sales from the baseline to the weeks ahead, and its three contributions, of every draw.

    Draws without a repeat order of the existing base have no spend per order, and are unknown (NaN).
    """
    orders, sales, new = (x.sum(axis=1) for x in (drawn.base_orders, drawn.base_sales, drawn.new_sales))
    Q0, S0, I0 = (np.full(len(orders), value) for value in baseline)
    parts = contributions(Q0, S0, I0, orders, sales, new)
    return {"sales_change": sales + new - baseline.repeat_sales - baseline.initial_sales, **parts._asdict()}


def bands(
    drawn: DrawnForecast, customers: float, baseline: BridgeBaseline | None, *, every_period: bool = True
) -> pd.DataFrame:
    """Rows of the table `forecast_band` without its keys: a row for each outcome, period and level.

    Args:
        drawn: composed draws.
        customers: acquired up to the origin.
        baseline: of the bridge; without one the contributions have no bands.
        every_period: also months, quarters, sales to date, and drivers by week; else sales by week, and the year.
    """
    H = drawn.sales.shape[1]
    frames = []
    for period, first, last in _periods(H, every_period):
        found = period_draws(drawn, customers, first, last)
        if period == "to_date" or (period == "week" and not every_period):
            found = {"sales": found["sales"]}
        if first == 0 and last == H and period != "to_date" and baseline is not None and drawn.has_drivers:
            found |= bridge_draws(drawn, baseline)
        for outcome, values in found.items():
            frames.append((outcome, period, drawn.weeks[first], last - first, values))
    if every_period:
        for month, weight in _months(drawn.weeks):
            sums = {"sales": drawn.sales @ weight}
            if drawn.has_drivers:
                sums |= {"acquired": drawn.acquired @ weight, "orders": drawn.orders @ weight}
            touched = int((weight > 0).sum())
            frames += [(outcome, "month", month, touched, values) for outcome, values in sums.items()]
    rows = [row for frame in frames for row in _levels(*frame)]
    return pd.DataFrame(
        rows, columns=["outcome", "period", "week", "weeks", "level", "low", "high", "median", "mean"]
    )


def _periods(H: int, every_period: bool) -> Iterator[tuple[str, int, int]]:
    yield from (("week", t, t + 1) for t in range(H))
    if every_period:
        yield from (("to_date", 0, t + 1) for t in range(H))
        yield from (("quarter", t, min(t + QUARTER, H)) for t in range(0, H, QUARTER))
    yield (whole_period(H), 0, H)


def _months(weeks: npt.NDArray[np.datetime64]) -> Iterator[tuple[np.datetime64, Floats]]:
    """First day of each calendar month, and the share of every week's days that lies in it."""
    days = weeks.astype("datetime64[D]")[:, None] + np.arange(7)
    months = days.astype("datetime64[M]")
    for month in np.unique(months):
        yield month.astype("datetime64[D]"), (months == month).mean(axis=1)


def _levels(
    outcome: str, period: str, week: np.datetime64, weeks: int, values: Floats
) -> Iterator[tuple[object, ...]]:
    known = values[np.isfinite(values)]
    if not len(known):
        return
    ends = [end for level in LEVELS for end in (0.5 - level / 200, 0.5 + level / 200)]
    *quantiles, median = np.quantile(known, [*ends, 0.5])
    for k, level in enumerate(LEVELS):
        low, high = quantiles[2 * k : 2 * k + 2]
        yield outcome, period, week, weeks, level, low, high, median, float(known.mean())
