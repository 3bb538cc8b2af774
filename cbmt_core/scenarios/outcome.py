"""Outcome of a scenario: sales by week, their total and the bridge, each compared with the baseline in the same
draw."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cbmt_core.arrays import Floats
from cbmt_core.bridge.contributions import contributions
from cbmt_core.compose import DrawnForecast, DriverDraws, compose_draws
from cbmt_core.scenarios.apply import apply, centre_only
from cbmt_core.scenarios.definition import SCENARIO_DRIVERS, Change, Scenario

__all__ = [
    "BASELINE",
    "LEVEL",
    "STEP",
    "Baseline",
    "Past",
    "ScenarioOutcome",
    "baseline_of",
    "interval",
    "outcome_of",
    "tornado",
]


BASELINE = "baseline"
"""Name of the scenario without changes."""
LEVEL = 0.8
"""Share of draws between low and high."""
STEP = 0.1
"""How far each driver moves for the tornado."""


@dataclass(frozen=True)
class Past:
    """What happened in the 52 weeks before the forecast: the baseline of the bridge."""

    repeat_orders: float
    repeat_sales: float
    initial_sales: float

    @property
    def sales(self) -> float:
        return self.repeat_sales + self.initial_sales


@dataclass(frozen=True, eq=False)
class ScenarioOutcome:
    """One scenario: the forecast itself (`centre`, one draw) and every draw."""

    scenario: Scenario
    centre: DrawnForecast
    draws: DrawnForecast

    @property
    def totals(self) -> Floats:
        """[K] sales over the horizon."""
        return np.asarray(self.draws.sales.sum(axis=1))

    @property
    def total(self) -> float:
        """Of the forecast itself."""
        return float(self.centre.sales.sum())

    def bridge(self, past: Past) -> dict[str, tuple[float, Floats]]:
        """Contribution -> its amount in the forecast itself, and in every draw [K]."""
        single, many = (_bridge(part, past) for part in (self.centre, self.draws))
        return {name: (float(single[name][0]), many[name]) for name in single}


@dataclass(frozen=True, eq=False)
class Baseline:
    """Draws of a forecast, and their outcome without a change."""

    draws: DriverDraws
    outcome: ScenarioOutcome


def baseline_of(draws: DriverDraws) -> Baseline:
    return Baseline(draws, _outcome(draws, Scenario(BASELINE)))


def outcome_of(baseline: Baseline, scenario: Scenario) -> ScenarioOutcome:
    """The scenario on the baseline's own draws, so that the difference between the two is not noise."""
    return _outcome(baseline.draws, scenario)


def tornado(baseline: Baseline, step: float = STEP) -> Iterator[ScenarioOutcome]:
    """Each driver alone lower and higher by `step` from the first week on."""
    for driver in SCENARIO_DRIVERS:
        for factor in (1 - step, 1 + step):
            change = Change(driver, factor=factor)
            yield _outcome(baseline.draws, Scenario(f"{driver} {change.description}", (change,)))


def interval(values: Floats, level: float = LEVEL) -> tuple[Floats, Floats]:
    """Ends of the middle `level` of the draws; draws are the first axis."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.asarray(low), np.asarray(high)


def _outcome(draws: DriverDraws, scenario: Scenario) -> ScenarioOutcome:
    if not draws.centre.has_drivers:
        raise ValueError("scenarios need a forecast of the drivers")
    centre = centre_only(draws.centre)
    return ScenarioOutcome(
        scenario, compose_draws(apply(centre, scenario)), compose_draws(apply(draws, scenario))
    )


def _bridge(forecast: DrawnForecast, past: Past) -> dict[str, Floats]:
    q1, s1, g1 = (
        part.sum(axis=1) for part in (forecast.base_orders, forecast.base_sales, forecast.new_sales)
    )
    q0, s0, i0 = (
        np.full(len(q1), value) for value in (past.repeat_orders, past.repeat_sales, past.initial_sales)
    )
    parts = contributions(q0, s0, i0, q1, s1, g1)
    return {"sales_change": s1 + g1 - s0 - i0, **parts._asdict()}
