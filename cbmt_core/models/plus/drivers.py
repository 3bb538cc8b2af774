"""The four quantities that experts are compared in, and how a forecast is moved in them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

from cbmt_core.models.contract import PrimitiveForecast
from cbmt_core.panel import LEFT_CENSORED, FirmPanel

__all__ = [
    "ANCHOR",
    "DRIVERS",
    "EXPERTS",
    "FLOOR",
    "ORDERS",
    "YEAR",
    "driver_totals",
    "moved",
    "sales_and_unborn",
    "seen_totals",
]

Floats = npt.NDArray[np.float64]

ANCHOR = "cohort_glm"
"""The structural forecast that all others are measured against."""
EXPERTS = ("wg_pnbd_e_pp", "seasonal_naive", "gls_v3")
"""Models that know something else: how customers leave, how the same weeks went last year, how hazards age."""

DRIVERS = ("acquisition", "base", "repeat", "aov")
"""Customers acquired; repeat orders of the left-censored cohort; those of the other cohorts; sales an order."""
ORDERS = ("acquisition", "base", "repeat")
FLOOR = {"acquisition": 0.5, "base": 0.5, "repeat": 0.5, "aov": 1e-3, "sales": 1e-3}
"""Below half an order a week a ratio says nothing."""
YEAR = 52


class Cohorts(Protocol):
    """What of a panel the totals of a forecast rest on."""

    @property
    def size(self) -> Floats: ...

    @property
    def birth(self) -> npt.NDArray[np.int64]: ...


def driver_totals(panel: Cohorts, forecast: PrimitiveForecast) -> dict[str, Floats]:
    """[H] each driver of a forecast from the end of `panel`."""
    repeats, orders = _orders(panel, forecast)
    sales = (orders * np.nan_to_num(forecast.V)).sum(axis=0)
    return _totals(panel, forecast.A, repeats[: len(panel.birth)], orders.sum(axis=0), sales)


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


def seen_totals(panel: FirmPanel, later: FirmPanel, horizon: int) -> dict[str, Floats]:
    """[H] the same of what happened: `later` goes on where `panel` ends."""
    N, ahead = len(panel.birth), slice(panel.n_weeks, panel.n_weeks + horizon)
    repeats = np.nan_to_num(later.size[:N, None] * later.R[:N, ahead])
    return _totals(panel, later.A[ahead], repeats, later.orders[:, ahead].sum(axis=0), later.S[ahead])


def _totals(
    panel: Cohorts, acquired: Floats, repeats: Floats, orders: Floats, sales: Floats
) -> dict[str, Floats]:
    base = panel.birth == LEFT_CENSORED
    return {
        "acquisition": acquired,
        "base": repeats[base].sum(axis=0),
        "repeat": repeats[~base].sum(axis=0),
        "aov": np.divide(sales, orders, out=np.zeros_like(sales), where=orders > 0),
    }


def moved(panel: Cohorts, forecast: PrimitiveForecast, by: Mapping[str, Floats]) -> PrimitiveForecast:
    """The forecast with each driver multiplied by exp(`by`); cohorts yet to be born move with the others."""
    factor = {name: np.exp(by[name]) for name in DRIVERS}
    base = np.zeros(len(forecast.R), bool)
    base[: len(panel.birth)] = panel.birth == LEFT_CENSORED
    repeat = np.where(base[:, None], factor["base"], factor["repeat"])
    return PrimitiveForecast(
        A=forecast.A * factor["acquisition"], R=forecast.R * repeat, V=forecast.V * factor["aov"]
    )
