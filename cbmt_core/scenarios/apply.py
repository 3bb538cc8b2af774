"""Applying a scenario: a transformation of the drivers' draws; `compose_draws` does the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cbmt_core.arrays import Floats
from cbmt_core.compose import DriverDraws, RevenueForecast, compose_draws
from cbmt_core.errors import CbmtError
from cbmt_core.scenarios.definition import SCENARIO_DRIVERS, Change, Driver, Scenario

__all__ = ["apply", "centre_only"]


FIELDS: dict[Driver, str] = {
    "acquisition": "acquired",
    "repeat_existing": "repeat_existing",
    "repeat_new": "repeat_new",
    "aov": "order_value",
}
"""Field of DriverDraws that holds each driver."""


def apply(draws: DriverDraws, scenario: Scenario) -> DriverDraws:
    """The draws with the scenario's changes in every one of them.

    Numbers of weeks without a change stay the same to the last bit. Cohorts acquired after the origin follow
    acquisition. Drivers are changed in the order of SCENARIO_DRIVERS, because the level of an average order depends
    on who orders; several changes of one driver multiply.
    """
    if scenario.changes and not draws.centre.has_drivers:
        raise CbmtError(
            f"scenario {scenario.name!r} changes drivers, and the model to plan with forecasts sales alone"
        )
    for driver in SCENARIO_DRIVERS:
        for change in scenario.changes:
            if change.driver == driver:
                draws = _changed(draws, change)
    return draws


def centre_only(centre: RevenueForecast) -> DriverDraws:
    """The forecast itself as the only draw."""
    ones = np.ones((1, len(centre.weeks)))
    return DriverDraws(centre, centre.A[None, :].copy(), ones, ones.copy(), ones.copy())


def _changed(draws: DriverDraws, change: Change) -> DriverDraws:
    field = FIELDS[change.driver]
    before: Floats = getattr(draws, field)
    weight = change.weights(draws.centre.weeks)
    if not weight.any():
        return draws
    if change.factor is not None:
        full = before * change.factor
    else:
        assert change.level is not None
        full = _at_level(draws, change.driver, change.level)
    # A weight of zero, or a change that changes nothing, must leave the last bit as it was.
    after = np.where(weight == 1, full, before + weight * (full - before))
    changed: dict[str, Any] = {field: after}
    return replace(draws, **changed)


def _at_level(draws: DriverDraws, driver: Driver, level: float) -> Floats:
    """The driver's draws when it is `level` in every draw and week."""
    centre = draws.centre
    N = len(centre.size) - draws.horizon
    if driver == "acquisition":
        return np.full_like(draws.acquired, level)
    if driver == "repeat_existing":
        size = centre.size[:N, None]
        rate = (size * centre.R[:N]).sum(axis=0) / size.sum() if N else np.zeros(draws.horizon)
        return _ratio(
            np.full_like(draws.repeat_existing, level), np.broadcast_to(rate, draws.repeat_existing.shape)
        )
    if driver == "repeat_new":
        orders = draws.acquired @ np.nan_to_num(centre.R[N:])
        return _ratio(level * np.cumsum(draws.acquired, axis=1), orders)
    plain = compose_draws(replace(draws, order_value=np.ones_like(draws.order_value)))
    return _ratio(level * plain.orders, plain.sales)


def _ratio(wanted: Floats, unit: Floats) -> Floats:
    """wanted / unit; zero where nothing can be scaled."""
    return np.asarray(np.divide(wanted, unit, out=np.zeros(np.shape(unit)), where=unit > 0))
