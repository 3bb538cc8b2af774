"""The four quantities that forecasts are compared in, and how a forecast is moved in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from cbmt_core.models.contract import PrimitiveForecast
from cbmt_core.panel import LEFT_CENSORED

__all__ = [
    "DRIVERS",
    "ORDERS",
    "REACH",
    "driver_totals",
    "log_ratio",
    "moved",
    "sales_and_unborn",
]

Floats = npt.NDArray[np.float64]

DRIVERS = ("acquisition", "base", "repeat", "aov")
"""Customers acquired; repeat orders of the left-censored cohort; those of the other cohorts; sales an order."""
ORDERS = ("acquisition", "base", "repeat")
FLOOR = {"acquisition": 0.5, "base": 0.5, "repeat": 0.5, "aov": 1e-3, "sales": 1e-3}
"""Below half an order a week a ratio says nothing."""
REACH = 1.0
"""Log ratios are held within a factor e either way."""


class Cohorts(Protocol):
    """What of a panel the totals of a forecast rest on."""

    @property
    def size(self) -> Floats: ...

    @property
    def birth(self) -> npt.NDArray[np.int64]: ...


def driver_totals(panel: Cohorts, forecast: PrimitiveForecast) -> dict[str, Floats]:
    """[H] each driver of a forecast from the end of `panel`."""
    all_repeats, all_orders = _orders(panel, forecast)
    repeats, orders = all_repeats[: len(panel.birth)], all_orders.sum(axis=0)
    sales = (all_orders * np.nan_to_num(forecast.V)).sum(axis=0)
    base = panel.birth == LEFT_CENSORED
    return {
        "acquisition": forecast.A,
        "base": repeats[base].sum(axis=0),
        "repeat": repeats[~base].sum(axis=0),
        "aov": np.divide(sales, orders, out=np.zeros_like(sales), where=orders > 0),
    }


def sales_and_unborn(panel: Cohorts, forecast: PrimitiveForecast) -> tuple[Floats, Floats]:
    """[H] sales of a forecast, and the share of them that cohorts yet to be born place as repeat orders."""
    repeats, orders = _orders(panel, forecast)
    value = np.nan_to_num(forecast.V)
    sales = (orders * value).sum(axis=0)
    unborn = (repeats * value)[len(panel.birth) :].sum(axis=0)
    return sales, np.divide(unborn, sales, out=np.zeros_like(sales), where=sales > 0)


def _orders(panel: Cohorts, forecast: PrimitiveForecast) -> tuple[Floats, Floats]:
    """[M, H] repeat orders, and all orders, of old and new cohorts."""
    N, H = len(panel.birth), forecast.horizon
    size = np.concatenate([panel.size, forecast.A])[:, None]
    repeats = np.nan_to_num(size * forecast.R)
    orders = repeats.copy()
    orders[N + np.arange(H), np.arange(H)] += forecast.A
    return repeats, orders


def moved(panel: Cohorts, forecast: PrimitiveForecast, by: Mapping[str, Floats]) -> PrimitiveForecast:
    """The forecast with each driver multiplied by exp(`by`); cohorts yet to be born move with the others."""
    factor = {name: np.exp(by[name]) for name in DRIVERS}
    base = np.zeros(len(forecast.R), bool)
    base[: len(panel.birth)] = panel.birth == LEFT_CENSORED
    repeat = np.where(base[:, None], factor["base"], factor["repeat"])
    return PrimitiveForecast(
        A=forecast.A * factor["acquisition"], R=forecast.R * repeat, V=forecast.V * factor["aov"]
    )


def log_ratio(value: Floats, other: Floats, driver: str) -> Floats:
    floor = FLOOR[driver]
    ratio = np.log(np.maximum(value, floor) / np.maximum(other, floor))
    return np.asarray(np.clip(ratio, -REACH, REACH))
