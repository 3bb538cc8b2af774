"""A firm with a forecast and draws around it that no model made, for tests of scenarios and value."""

from __future__ import annotations

import numpy as np

from cbmt_core.compose import DriverDraws, RevenueForecast, compose
from cbmt_core.models.contract import PrimitiveForecast
from cbmt_core.panel import FirmPanel
from helpers.panels import simulate

__all__ = ["drawn", "firm", "forecast_of", "lognormal_draws"]

HORIZON = 52


def firm(weeks: int = 130, seed: int = 3) -> FirmPanel:
    return simulate(seed, weeks=weeks, holdout=0)


def forecast_of(panel: FirmPanel, horizon: int = HORIZON) -> RevenueForecast:
    """Repeat rates that fade with age, order values that rise slowly, acquisition with a season."""
    birth = np.r_[panel.birth - panel.n_weeks, np.arange(horizon)]
    t = np.arange(horizon)
    born = t >= birth[:, None]
    age = t - birth[:, None]
    R = np.where(born, 0.08 * np.exp(-np.maximum(age, 0) / 80.0), np.nan)
    V = np.where(born, 40 + 0.1 * t, np.nan)
    return compose(panel, PrimitiveForecast(15 + 4 * np.sin(t / 8.0), R, V))


def drawn(panel: FirmPanel, draws: int = 400, seed: int = 1, horizon: int = HORIZON) -> DriverDraws:
    return lognormal_draws(forecast_of(panel, horizon), draws, seed)


def lognormal_draws(centre: RevenueForecast, draws: int = 400, seed: int = 1) -> DriverDraws:
    """Paths around a forecast with a lasting error and weekly noise."""
    rng = np.random.default_rng(seed)

    def paths(lasting: float, weekly: float) -> np.ndarray:
        whole = lasting * rng.normal(size=(draws, 1)) + weekly * rng.normal(size=(draws, len(centre.weeks)))
        return np.exp(whole)

    repeat = paths(0.1, 0.05)
    return DriverDraws(centre, centre.A * paths(0.15, 0.1), repeat, repeat, paths(0.05, 0.02))
