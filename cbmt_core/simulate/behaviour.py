"""Behaviour: expected behaviour of a firm's customers, the input of both samplers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cbmt_core.arrays import Floats
from cbmt_core.simulate.economy import Economy, FirmSpec, Stream
from cbmt_core.simulate.parameters import FirmParameters
from cbmt_core.simulate.states import DriverPaths, driver_paths
from cbmt_core.simulate.timeline import SimulatedTimeline, simulated_timeline

__all__ = ["Behaviour", "behaviour_of", "silent"]


OLDEST = 520
"""Earliest acquisition of customers of the base, in weeks before the start."""


def silent(orders: Floats | float, shape: float) -> Floats:
    """P(no order) of a customer whose expected orders are `orders` times a gamma(shape) of mean 1."""
    return np.asarray((1 + np.asarray(orders) / shape) ** -shape)


@dataclass(frozen=True, eq=False)
class Behaviour:
    """Rows 0 ... T-1 are the customers acquired in that week, row T the base: customers alive when the
    timeline starts. A live customer j of row c places Poisson(λ_j rate[c, t]) repeat orders in week t,
    λ_j ~ gamma(rate_shape) of mean 1, for as long as it lives. Lifetimes do not depend on λ.

    The base are the customers that order during the washout: both samplers drop members without an order in it. A
    customer who returns after such a long silence looks like a new one in order data, and is part of the acquisition
    path.
    """

    parameters: FirmParameters
    timeline: SimulatedTimeline
    paths: DriverPaths
    acquisition: Floats
    """[T] expected new customers, `scale` applied."""
    base: float
    """Expected live customers of the base, `scale` applied; 0 without a washout."""
    alive: Floats
    """[T+1, T] P(alive in week t); 0 before the row's first week, 1 in it."""
    rate: Floats
    """[T+1, T] expected repeat orders of a live customer; 0 before birth, half a week's in the birth week."""
    value: Floats
    """[T+1, T] expected value of a repeat order."""
    first_value: Floats
    """[T] expected value of a first order."""

    @property
    def weeks(self) -> int:
        return len(self.timeline)

    @property
    def base_washout_orders(self) -> float:
        """Expected washout orders of a base customer who lives through the washout."""
        return float(self.rate[-1, : self.timeline.study_start].sum())

    @property
    def base_revealed(self) -> float:
        """P(a base customer orders in the washout), over its lifetime."""
        start = self.timeline.study_start
        if start == 0:
            return 0.0
        alive = np.append(self.alive[-1, :start], 0.0)
        orders = np.cumsum(self.rate[-1, :start])
        # P(last live week is t) for t in the washout, and P(lives on) for its last week.
        last = alive[:-1] - alive[1:]
        return float(last @ (1 - silent(orders, self.parameters.rate_shape)))


def _retention(p: FirmParameters, core: Floats, weeks: int) -> Floats:
    """[len(core), weeks] P(alive) by tenure."""
    tenure = np.arange(weeks)
    leaving = (p.dropout_scale / (p.dropout_scale + tenure)) ** p.dropout_shape
    staying = np.exp(-p.core_churn * tenure)
    return np.asarray(core[:, None] * staying + (1 - core[:, None]) * leaving)


def behaviour_of(economy: Economy, spec: FirmSpec) -> Behaviour:
    p, timeline = spec.parameters, simulated_timeline(economy.design)
    rng = economy.stream(spec.index, Stream.PATHS)
    paths = driver_paths(spec.industry, p, timeline, rng)
    T = len(timeline)
    exposure = timeline.exposure
    years = (np.arange(T) - T / 2) / 52
    # Customers won by a promotion are worth less later; neighbouring cohorts differ for no known reason.
    bargain = np.clip(paths.states["promotion"], 0, None)
    quality = p.quality_drift * years - 0.25 * bargain + rng.normal(0, p.quality_spread, T)
    core_logit = np.log(p.core / (1 - p.core)) + 2 * p.quality_drift * years + rng.normal(0, p.core_spread, T)
    core = 1 / (1 + np.exp(-core_logit))
    cohort_value = rng.normal(0, 0.5 * p.quality_spread, T) - 0.1 * bargain

    tenure = np.arange(T)[None, :] - np.arange(T)[:, None]
    born = tenure >= 0
    age = np.where(born, tenure, 0)
    novelty = 1 + p.novelty * np.exp(-np.arange(T) / p.novelty_weeks)
    loyalty = p.loyal_value * (1 - np.exp(-np.arange(T) / 26))
    by_tenure = _retention(p, core, T)

    alive = np.zeros((T + 1, T))
    alive[:T] = np.where(born, np.take_along_axis(by_tenure, age, axis=1), 0.0)
    past = _retention(p, np.array([p.core]), T + OLDEST)[0]
    remaining = np.cumsum(past[::-1])[::-1]  # Σ over ages >= u
    # Steady inflow over OLDEST weeks: the share of its survivors that is alive t weeks later.
    survivors = remaining[1 : T + 1] - np.append(remaining, 0.0)[OLDEST + 1 : OLDEST + T + 1]
    alive[T] = survivors / survivors[0]

    rate = np.zeros((T + 1, T))
    season = p.repeat_rate * np.exp(paths.repeat_rate) * exposure
    rate[:T] = np.where(born, np.exp(quality)[:, None] * novelty[age] * season, 0.0)
    rate[np.arange(T), np.arange(T)] *= 0.5  # on average half the week is left after the first order
    rate[T] = season * np.exp(-p.quality_drift * T / 104)

    level = p.order_value * np.exp(paths.order_value)
    value = np.empty((T + 1, T))
    value[:T] = level * np.exp(cohort_value[:, None] + loyalty[age])
    value[T] = level * np.exp(p.loyal_value)
    return Behaviour(
        parameters=p,
        timeline=timeline,
        paths=paths,
        acquisition=economy.scale * p.acquisition * np.exp(paths.acquisition) * exposure,
        base=economy.scale * p.acquisition * p.base if timeline.washout else 0.0,
        alive=alive,
        rate=rate,
        value=value,
        first_value=p.first_order * np.diagonal(value[:T]).copy(),
    )
