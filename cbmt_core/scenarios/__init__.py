"""Scenarios (changed drivers on the same draws as the forecast), plans and targets."""

from cbmt_core.scenarios.apply import apply, centre_only
from cbmt_core.scenarios.definition import SCENARIO_DRIVERS, Change, Scenario, parse_change, parse_day
from cbmt_core.scenarios.outcome import Baseline, ScenarioOutcome, baseline_of, outcome_of, tornado
from cbmt_core.scenarios.plan import SalesPlan, probability, weekly_plan
from cbmt_core.scenarios.target import Move, moves_needed

__all__ = [
    "SCENARIO_DRIVERS",
    "Baseline",
    "Change",
    "Move",
    "SalesPlan",
    "Scenario",
    "ScenarioOutcome",
    "apply",
    "baseline_of",
    "centre_only",
    "moves_needed",
    "outcome_of",
    "parse_change",
    "parse_day",
    "probability",
    "tornado",
    "weekly_plan",
]
