"""Latent states of a firm's market, and the driver paths that follow from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cbmt_core.arrays import Floats
from cbmt_core.calendar import Calendar
from cbmt_core.simulate.industries import INDUSTRIES, Industry
from cbmt_core.simulate.parameters import FirmParameters
from cbmt_core.simulate.timeline import SimulatedTimeline

__all__ = ["LOADINGS", "SIMULATED_DRIVERS", "DriverPaths", "driver_paths"]


SIMULATED_DRIVERS = ("acquisition", "repeat_rate", "order_value")
BURN_IN = 26
"""Weeks simulated before the first one, for the after-effects of earlier events and for lags."""

LOADINGS: dict[str, tuple[float, float, float]] = {
    "season": (1.0, 0.8, 0.25),
    "demand": (1.0, 0.55, 0.20),
    "promotion": (1.0, 0.55, -0.20),
    "launch": (1.0, 0.60, 0.30),
    "price": (-0.8, -0.6, 1.0),
    "competitor": (-1.0, -0.45, -0.10),
    "regime": (1.0, 0.30, 0.15),
}
"""Effect of one unit of a state on the log of acquisition, rate and value."""


@dataclass(frozen=True, eq=False)
class DriverPaths:
    """Paths over the timeline, in logs around zero."""

    acquisition: Floats
    repeat_rate: Floats
    order_value: Floats
    states: dict[str, Floats]
    """The shared states by name."""


def _ar1(rng: np.random.Generator, weeks: int, persistence: float, spread: float) -> Floats:
    """A stationary first-order autoregression."""
    shocks = rng.normal(0, spread * np.sqrt(1 - persistence**2), weeks)
    path = np.empty(weeks)
    level = rng.normal(0, spread)
    for t in range(weeks):
        level = persistence * level + shocks[t]
        path[t] = level
    return path


def _events(rng: np.random.Generator, weeks: int, yearly: float) -> Floats:
    """Sizes of events that come at random, gamma distributed with mean 1."""
    counts = rng.poisson(yearly / 52, weeks)
    return np.where(counts > 0, rng.gamma(4.0, 0.25, weeks), 0.0)


def _echo(events: Floats, kernel: Floats) -> Floats:
    return np.convolve(events, kernel)[: len(events)]


def _decay(weeks: int, constant: float) -> Floats:
    return np.exp(-np.arange(weeks) / constant)


def _state_makers(volatility: float) -> dict[str, Callable[[np.random.Generator, int], Floats]]:
    # A promotion pulls some later orders forward, hence the dip after it.
    promotion = np.array([1.0, 0.65, 0.25, -0.10, -0.12, -0.06])
    return {
        "demand": lambda rng, n: volatility * _ar1(rng, n, 0.96, 0.09),
        "promotion": lambda rng, n: volatility * 0.28 * _echo(_events(rng, n, 5.0), promotion),
        "launch": lambda rng, n: volatility * 0.16 * _echo(_events(rng, n, 0.9), _decay(n, 9.0)),
        # More prices rise than fall.
        "price": lambda rng, n: 0.03 * np.cumsum(_events(rng, n, 0.9) * rng.choice([1, 1, -1], n)),
        "competitor": lambda rng, n: volatility * 0.18 * _echo(_events(rng, n, 0.35), _decay(n, 26.0)),
        "regime": lambda rng, n: (
            volatility * 0.16 * np.cumsum(_events(rng, n, 0.4) * rng.choice([-1.0, 1.0], n))
        ),
    }


def _wave(calendar: Calendar, amplitude: float, peak: float) -> Floats:
    return amplitude * np.cos(2 * np.pi * (calendar.week_of_year - peak) / 52)


def _industry_season(industry: Industry, calendar: Calendar, rng: np.random.Generator) -> Floats:
    """The industry's season for this firm: somewhat earlier, stronger or weaker."""
    season = _wave(
        calendar, industry.season * np.exp(rng.normal(0, 0.3)), industry.peak_week + rng.normal(0, 1.5)
    )
    for name, lift in industry.holidays.items():
        if name in calendar.holiday_names:
            day = calendar.holiday[:, calendar.holiday_names.index(name)]
            approach = np.append(day[1:], 0.0)  # shopping starts the week before
            season = season + lift * np.exp(rng.normal(0, 0.35)) * (day + 0.35 * approach)
    return season


def _own_season(season: Floats, calendar: Calendar, rng: np.random.Generator) -> Floats:
    """The part of a driver's season that it does not share: half the industry's season, and random waves of its
    own."""
    own = 0.5 * np.exp(rng.normal(0, 0.5)) * season
    for harmonic in (1, 2):
        own = own + _wave(calendar, rng.gamma(2.0, 0.02) / harmonic, rng.uniform(0, 52))
    return np.asarray(own)


def driver_paths(
    industry: str, parameters: FirmParameters, timeline: SimulatedTimeline, rng: np.random.Generator
) -> DriverPaths:
    """x_d(t) = Σ_s load_sd (√κ z_s(t - lag_d) + √(1-κ) z_sd(t)) + trend_d(t) + noise_d(t).

    z_s are states shared by the drivers, z_sd the driver's own of the same kind and size, κ the
    co-movement strength: it moves variance from own to shared states without changing the total.
    """
    p, weeks = parameters, len(timeline)
    shared, own = np.sqrt(p.comovement), np.sqrt(1 - p.comovement)
    kind = next(i for i in INDUSTRIES if i.name == industry)
    paths = np.zeros((3, weeks))
    states = {}

    season = _industry_season(kind, timeline.calendar, rng)
    states["season"] = season - season.mean()
    for d, load in enumerate(LOADINGS["season"]):
        mine = _own_season(season, timeline.calendar, rng)
        # Seasons have no lag, because holidays have fixed dates.
        paths[d] += load * (shared * states["season"] + own * (mine - mine.mean()))

    for name, make in _state_makers(p.volatility).items():
        common = make(rng, weeks + BURN_IN)
        common -= common[BURN_IN:].mean()
        states[name] = common[BURN_IN:]
        for d, load in enumerate(LOADINGS[name]):
            mine = make(rng, weeks + BURN_IN)[BURN_IN:]
            lagged = common[BURN_IN - p.lag[d] : BURN_IN - p.lag[d] + weeks]
            paths[d] += load * (shared * lagged + own * (mine - mine.mean()))

    years = (np.arange(weeks) - weeks / 2) / 52
    for d, slope in enumerate((-p.saturation, p.rate_trend, p.value_trend)):
        noise = 0.6 * _ar1(rng, weeks, 0.6, p.noise[d]) + 0.8 * rng.normal(0, p.noise[d], weeks)
        paths[d] += slope * years + noise
    return DriverPaths(paths[0], paths[1], paths[2], states)
