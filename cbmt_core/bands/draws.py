"""Draws of the drivers: joint paths of acquisition, repeat orders and order value around one forecast."""

from __future__ import annotations

import hashlib
from datetime import date

import numpy as np

from cbmt_core.arrays import Floats
from cbmt_core.bands.errors import HALF, ORDER_VARIANCE, SALES_FLOOR
from cbmt_core.bands.factors import SHIPPED, BandFactors
from cbmt_core.compose import DrawnForecast, DriverDraws, RevenueForecast, compose
from cbmt_core.errors import CbmtError
from cbmt_core.models.contract import FittedForecaster, KnowsItsErrors
from cbmt_core.panel import FirmPanel
from cbmt_core.uncertainty import Deviations

__all__ = ["DRAWS", "draw_drivers", "draw_sales", "draws_of", "generator"]


DRAWS = 500
"""Joint paths of a firm, model and origin, unless stated otherwise."""
TAIL_FREEDOM = 6
"""Degrees of freedom of weekly errors: Student's t, whose tails are heavier than the normal distribution's."""


def generator(seed: int, firm: str, model: str, origin: date) -> np.random.Generator:
    """Random numbers of one forecast: they do not depend on which other forecasts are made, or when."""
    key = hashlib.sha256(f"{seed}/{firm}/{model}/{origin}".encode()).digest()
    return np.random.default_rng(np.frombuffer(key, np.uint32))


def draw_drivers(
    centre: RevenueForecast,
    deviations: Deviations,
    factors: BandFactors,
    rng: np.random.Generator,
    *,
    counting: bool = True,
) -> DriverDraws:
    """Joint paths of the drivers: the forecast, calibrated deviations from it, and Poisson noise of counts.

    Customers acquired and repeat orders are whole numbers with the drawn rates as their expectations (Poisson). The
    numbers are rounded to what a single-precision float holds, so that stored draws compose to the same sales.

    Args:
        centre: the forecast that the draws lie around.
        deviations: of the logs of the drivers.
        factors: by which the deviations are multiplied.
        rng: see `generator`.
        counting: add Poisson noise; realised errors contain it already.
    """
    weekly = (
        deviations.weekly * factors.weekly[:, None] * _tails(len(deviations.weekly), len(centre.weeks), rng)
    )
    logs = deviations.lasting * factors.lasting[:, None] + weekly
    H, N = logs.shape[2], len(centre.size) - logs.shape[2]
    rate = np.maximum((centre.A + HALF) * np.exp(logs[:, 0]) - HALF, 0.0)
    repeat, value = np.exp(logs[:, 1]), np.exp(logs[:, 2])
    acquired = rate
    if counting:
        acquired = rng.poisson(rate).astype(float)
        R = np.nan_to_num(centre.R)
        expected = repeat * ((centre.size[:N, None] * R[:N]).sum(axis=0) + acquired @ R[N:])
        orders = rng.poisson(expected).astype(float)
        repeat *= np.divide(orders, expected, out=np.ones_like(expected), where=expected > 0)
        spread = np.sqrt(ORDER_VARIANCE / (orders + acquired + HALF))
        value *= np.exp(spread * rng.standard_normal((len(value), H)))
    acquired, repeat, value = (x.astype(np.float32).astype(float) for x in (acquired, repeat, value))
    return DriverDraws(
        centre=centre, acquired=acquired, repeat_existing=repeat, repeat_new=repeat, order_value=value
    )


def draw_sales(centre: RevenueForecast, deviations: Floats) -> DrawnForecast:
    """Draws around a forecast of sales alone; everything but sales is unknown.

    Args:
        centre: the forecast.
        deviations: [K, H] of the logs of sales.
    """
    least = SALES_FLOOR * centre.S.mean()
    sales = np.maximum((centre.S + least) * np.exp(deviations) - least, 0.0)
    unknown = np.full_like(sales, np.nan)
    return DrawnForecast(centre.weeks, unknown, unknown, unknown, unknown, unknown, sales)


def _tails(draws: int, horizon: int, rng: np.random.Generator) -> Floats:
    """[K, 1, H] scale of each draw's week, common to the drivers: normal variates times it are t of equal variance."""
    return np.asarray(np.sqrt((TAIL_FREEDOM - 2) / rng.chisquare(TAIL_FREEDOM, (draws, 1, horizon))))


def draws_of(
    panel: FirmPanel,
    fitted: FittedForecaster,
    horizon: int,
    *,
    seed: int,
    model: str = "",
    factors: BandFactors = SHIPPED,
    draws: int = DRAWS,
) -> DriverDraws:
    """Joint draws of a fitted model that has a distribution of its own.

    Args:
        panel: the one it was fitted on.
        fitted: the model.
        horizon: weeks ahead.
        seed: of the random numbers, together with firm, model and origin.
        model: its name.
        factors: calibration; the shipped ones unless stated.
        draws: how many.
    """
    if not isinstance(fitted, KnowsItsErrors):
        raise CbmtError(f"{model or type(fitted).__name__} has no distribution of its own to draw from")
    forecast = fitted.forecast(horizon)
    rng = generator(seed, panel.firm, model, panel.origin)
    deviations = fitted.uncertainty(horizon).draw(draws, rng)
    history = panel.since_first_order().n_weeks
    return draw_drivers(compose(panel, forecast), deviations, factors.at(history), rng)
