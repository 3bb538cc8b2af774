"""SalesPlan: planned sales by week of the forecast, and the probability of reaching them."""

from __future__ import annotations

import calendar
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import numpy.typing as npt

from cbmt_core.arrays import Bools, Floats

__all__ = ["SalesPlan", "probability", "spread_year", "weekly_plan"]


@dataclass(frozen=True, eq=False)
class SalesPlan:
    """Planned sales by week of the forecast."""

    sales: Floats
    """[H] NaN in weeks the plan does not cover entirely."""
    how: str
    """How yearly or monthly numbers were spread over weeks, in words."""

    @property
    def covered(self) -> Bools:
        return np.isfinite(self.sales)

    @property
    def total(self) -> float:
        """Of the weeks it covers."""
        return float(np.nansum(self.sales))


def spread_year(total: float, shape: Floats, what: str) -> SalesPlan:
    """A number for the whole horizon, spread over its weeks as `shape` is.

    Args:
        shape: [H] sales with the seasonal pattern to use.
        what: what the shape is, in words.
    """
    known = np.where(np.isfinite(shape), shape, 0.0)
    if known.sum() <= 0:
        return SalesPlan(np.full(len(shape), total / len(shape)), "spread evenly over the weeks")
    return SalesPlan(total * known / known.sum(), f"spread over the weeks as {what}")


def weekly_plan(months: Mapping[date, float], weeks: npt.NDArray[np.datetime64]) -> SalesPlan:
    """A number a month, spread evenly over its days.

    Args:
        months: first day of the month -> sales.
        weeks: Sundays of the forecast's weeks.
    """
    daily = {day: sales / calendar.monthrange(day.year, day.month)[1] for day, sales in months.items()}
    sales = []
    for week in weeks.astype("datetime64[D]").astype(object):
        days = [daily.get((week + timedelta(days=k)).replace(day=1), float("nan")) for k in range(7)]
        sales.append(sum(days))
    return SalesPlan(np.array(sales), "months spread evenly over their days")


def probability(totals: Floats, wanted: float) -> float:
    """Share of the draws whose sales are at least `wanted`."""
    return float(np.mean(totals >= wanted))
