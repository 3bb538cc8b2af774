"""Scenarios, plan and targets of one firm as rows of the tables `scenario*`, `plan_week` and `target`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from cbmt_core.compose import DriverDraws
from cbmt_core.panel import FirmPanel
from cbmt_core.scenarios.definition import Scenario
from cbmt_core.scenarios.outcome import Past, ScenarioOutcome, baseline_of, interval, outcome_of, tornado
from cbmt_core.scenarios.plan import SalesPlan, probability
from cbmt_core.scenarios.target import moves_needed
from cbmt_core.schema import TABLES
from cbmt_core.timeline import SEASON, WEEK

__all__ = ["PLAN_TABLES", "last_year", "past_year", "scenario_tables"]

PLAN_TABLES = ("scenario", "scenario_week", "scenario_bridge", "plan_week", "target")


def past_year(con: duckdb.DuckDBPyConnection, cohort_week: str, firm: str, origin: date) -> Past | None:
    """The 52 weeks up to the origin, or None where fewer are observed.

    Args:
        cohort_week: SQL relation of that table.
    """
    ((weeks, orders, repeat, initial),) = con.execute(
        f"SELECT count(DISTINCT week), CAST(sum(repeat_orders) AS DOUBLE), CAST(sum(repeat_sales) AS DOUBLE), "
        f"CAST(sum(initial_sales) AS DOUBLE) FROM {cohort_week} WHERE firm = ? AND week <= ? AND week > ?",
        [firm, origin, origin - SEASON * WEEK],
    ).fetchall()
    return Past(orders, repeat, initial) if weeks == SEASON else None


def last_year(panel: FirmPanel, horizon: int = SEASON) -> np.ndarray:
    """[horizon] sales one season before each week ahead; NaN where not observed."""
    past = np.full(max(0, SEASON - panel.n_weeks), np.nan)
    return np.asarray(np.r_[past, panel.S[-SEASON:]][:horizon])


def scenario_tables(
    draws: DriverDraws,
    scenarios: Iterable[Scenario],
    plan: SalesPlan | None = None,
    wanted: float = 0.8,
    keys: Mapping[str, Any] | None = None,
    past: Past | None = None,
) -> dict[str, pd.DataFrame]:
    """Rows of `PLAN_TABLES`: the baseline, the scenarios, the tornado, the plan, and the changes needed to reach
    it.

    Args:
        draws: of the forecast to plan with.
        wanted: probability with which the plan should be reached.
        keys: firm, model and origin, stored in every row.
        past: the 52 weeks before; without them there is no bridge.
    """
    baseline = baseline_of(draws)
    named = [("baseline", baseline.outcome), *(("named", outcome_of(baseline, one)) for one in scenarios)]
    every = [*named, *(("tornado", one) for one in tornado(baseline))]
    frames = {"scenario": pd.DataFrame([_summary(kind, one, baseline.outcome, plan) for kind, one in every])}
    bridges = [] if past is None else [_bridge(one, baseline.outcome, past) for _, one in every]
    frames["scenario_bridge"] = pd.DataFrame([row for rows in bridges for row in rows])
    frames["scenario_week"] = pd.concat(
        [_weeks(one, baseline.outcome) for _, one in named], ignore_index=True
    )
    frames["plan_week"] = pd.DataFrame(
        {} if plan is None else {"week": draws.centre.weeks, "sales": plan.sales, "how": plan.how}
    )
    frames["target"] = pd.DataFrame([] if plan is None else _targets(draws, baseline.outcome, plan, wanted))
    return {
        name: frame.assign(**(keys or {})).reindex(columns=TABLES[name].column_names)
        for name, frame in frames.items()
    }


def _summary(
    kind: str, one: ScenarioOutcome, before: ScenarioOutcome, plan: SalesPlan | None
) -> dict[str, object]:
    low, high = interval(one.totals)
    less, more = interval(one.totals - before.totals)
    reached = None
    if plan is not None and plan.covered.any():
        reached = probability(one.draws.sales[:, plan.covered].sum(axis=1), plan.total)
    return {
        "scenario": one.scenario.name,
        "kind": kind,
        "changes": one.scenario.description,
        "weeks_changed": one.scenario.weeks_changed(one.draws.weeks),
        "sales": one.total,
        "sales_low": float(low),
        "sales_high": float(high),
        "difference": one.total - before.total,
        "difference_low": float(less),
        "difference_high": float(more),
        "plan_probability": reached,
    }


def _weeks(one: ScenarioOutcome, before: ScenarioOutcome) -> pd.DataFrame:
    low, high = interval(one.draws.sales)
    less, more = interval(one.draws.sales - before.draws.sales)
    return pd.DataFrame(
        {
            "scenario": one.scenario.name,
            "week": one.draws.weeks,
            "horizon": np.arange(1, len(one.draws.weeks) + 1),
            "acquired": one.centre.acquired[0],
            "orders": one.centre.orders[0],
            "sales": one.centre.sales[0],
            "sales_low": low,
            "sales_high": high,
            "difference": one.centre.sales[0] - before.centre.sales[0],
            "difference_low": less,
            "difference_high": more,
        }
    )


def _bridge(one: ScenarioOutcome, before: ScenarioOutcome, past: Past) -> list[dict[str, object]]:
    baseline = before.bridge(past)
    rows: list[dict[str, object]] = []
    for source, (amount, draws) in one.bridge(past).items():
        if not np.isfinite(amount) or not np.isfinite(draws).all():
            return []  # Without a spend per order the parts cannot be separated.
        low, high = interval(draws)
        rows.append(
            {
                "scenario": one.scenario.name,
                "source": source,
                "amount": amount,
                "amount_low": float(low),
                "amount_high": float(high),
                "points": 100 * amount / past.sales if past.sales > 0 else 0.0,
                "difference": amount - baseline[source][0],
            }
        )
    return rows


def _targets(
    draws: DriverDraws, before: ScenarioOutcome, plan: SalesPlan, wanted: float
) -> list[dict[str, object]]:
    if not plan.covered.any():
        return []
    held = {
        "weeks": int(plan.covered.sum()),
        "sales": plan.total,
        "forecast": float(before.centre.sales[0, plan.covered].sum()),
        "probability": probability(before.draws.sales[:, plan.covered].sum(axis=1), plan.total),
        "wanted": wanted,
    }
    moves = moves_needed(draws, plan.total, wanted, covered=plan.covered)
    return [{"driver": move.driver, "change": move.change, **held} for move in moves]
