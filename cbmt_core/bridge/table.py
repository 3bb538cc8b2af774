"""The table `bridge`: endpoints and contributions of every firm, realised and forecast by each model."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import date
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from cbmt_core.arrays import Floats
from cbmt_core.bridge.contributions import CONTRIBUTIONS, BridgeWindows, contributions, ratio, tolerance
from cbmt_core.evaluation.relations import Relations
from cbmt_core.timeline import Purpose, Window

__all__ = ["REALISED", "bridge_table"]


REALISED = "realised"
"""Value of the column `model` for what happened."""
NEAR_ZERO = 1e-12
"""Sums below this share of Σ|x| count as zero."""
LOW_CANCELLATION = 0.95
"""The same limit in the strict sample."""


def bridge_table(
    con: duckdb.DuckDBPyConnection,
    relations: Relations,
    windows: BridgeWindows,
    purpose: Purpose = "study",
    *,
    forecasts: bool = True,
) -> pd.DataFrame:
    """Rows of the table `bridge`: the realised bridge and, with `forecasts`, that of each model's forecast at this
    origin.

    Baseline weeks are observed ones on both sides; target weeks up to the origin, if any, too. Firms whose
    target is not yet observed have no realised row. A row that cannot be used has its reason in the column `reason`.

    Args:
        windows: baseline, target, and the origin of the forecasts.
        purpose: purpose of the forecasts, stored in every row.
        forecasts: whether to add a row for each model.
    """
    parts = [_realised(con, relations, windows)]
    if forecasts:
        parts.append(_predicted(con, relations, windows))
    frame = pd.concat(parts).reset_index(drop=True).assign(purpose=purpose)
    for name, day in (
        ("baseline_first", windows.baseline.first),
        ("baseline_last", windows.baseline.last),
        ("target_first", windows.target.first),
        ("target_last", windows.target.last),
    ):
        frame[name] = day
    q0, s0, q1, s1 = (frame[name].to_numpy(float) for name in _REPEATS)
    initial, new = frame["initial_sales_0"].to_numpy(float), frame["new_sales_1"].to_numpy(float)
    sources = contributions(q0, s0, initial, q1, s1, new)
    frame["repeat_spend_0"], frame["repeat_spend_1"] = ratio(s0, q0), ratio(s1, q1)
    frame["baseline_sales"], frame["target_sales"] = s0 + initial, s1 + new
    frame["sales_change"] = frame["target_sales"] - frame["baseline_sales"]
    for name, values in sources._asdict().items():
        frame[name] = values
    base = frame["baseline_sales"].to_numpy(float)
    for name in CONTRIBUTIONS:
        frame[f"{name}_points"] = 100 * ratio(frame[name].to_numpy(float), base)
    frame["cancellation"] = np.min([frame[f"{name}_kept"] for name in _REPEATS], axis=0)
    frame["discrepancy"] = _discrepancy(frame)
    frame["reason"] = [_reason(row, windows) for row in frame.to_dict("records")]
    frame["eligible"] = frame["reason"].isna()
    frame["strict"] = (
        frame["eligible"]
        & (frame[["repeat_sales_0", "repeat_sales_1"]] > 0).all(axis=1)
        & (frame["cancellation"] >= LOW_CANCELLATION)
    )
    return frame[_COLUMNS].sort_values(["firm", "model"], ignore_index=True)


_REPEATS = ("repeat_orders_0", "repeat_sales_0", "repeat_orders_1", "repeat_sales_1")
_COLUMNS = [
    "firm", "model", "origin", "purpose", "baseline_first", "baseline_last", "target_first", "target_last",
    "repeat_orders_0", "repeat_sales_0", "repeat_spend_0", "initial_sales_0", "baseline_sales",
    "repeat_orders_1", "repeat_sales_1", "repeat_spend_1", "new_sales_1", "target_sales",
    *CONTRIBUTIONS, *(f"{name}_points" for name in CONTRIBUTIONS),
    "cancellation", "discrepancy", "eligible", "strict", "reason",
]  # fmt: skip


def _within(window: Window) -> str:
    return f"week BETWEEN DATE '{window.first}' AND DATE '{window.last}'"


def _observed(relations: Relations, windows: BridgeWindows, last: date) -> str:
    """The SQL relation of each firm's baseline and of its target weeks up to `last`.

    `outer_` sums come from `firm_week`, the others from `cohort_week`, so that each checks the other.
    """
    baseline = _within(windows.baseline)
    target = f"({_within(windows.target)} AND week <= DATE '{last}')"
    existing = f"cohort <= DATE '{windows.cutoff}'"
    return f"""(
        WITH cohorts AS (
            SELECT firm, {_sums("repeat_orders", baseline, "repeat_orders_0")},
                {_sums("repeat_sales", baseline, "repeat_sales_0")},
                {_sums("repeat_orders", f"{target} AND {existing}", "repeat_orders_1")},
                {_sums("repeat_sales", f"{target} AND {existing}", "repeat_sales_1")},
                {_sum("initial_sales", baseline)} AS initial_sales_0,
                {_sum("sales", f"{target} AND NOT {existing}")} AS new_sales_1
            FROM {relations.cohort_week} WHERE {baseline} OR {target} GROUP BY firm
        ), weeks AS (
            SELECT firm, count(*) FILTER ({baseline}) AS weeks_0, count(*) FILTER ({target}) AS weeks_1,
                {_sum("sales", baseline)} AS outer_0, {_sum("sales", target)} AS outer_1
            FROM {relations.firm_week} WHERE {baseline} OR {target} GROUP BY firm
        )
        SELECT * FROM weeks LEFT JOIN cohorts USING (firm))"""


def _sum(column: str, where: str) -> str:
    return f"coalesce(CAST(sum({column}) FILTER ({where}) AS DOUBLE), 0)"


def _sums(column: str, where: str, name: str) -> str:
    """The sum and the sum of absolute values."""
    return f"{_sum(column, where)} AS {name}, {_sum(f'abs({column})', where)} AS {name}_gross"


def _realised(con: duckdb.DuckDBPyConnection, relations: Relations, windows: BridgeWindows) -> pd.DataFrame:
    observed = _observed(relations, windows, windows.target.last)
    frame = con.execute(f"SELECT * FROM {observed} WHERE weeks_1 = {len(windows.target)}").df()
    frame.insert(1, "model", REALISED)
    return _with_shares(frame).assign(origin=windows.target.last, failed=None)


def _predicted(con: duckdb.DuckDBPyConnection, relations: Relations, windows: BridgeWindows) -> pd.DataFrame:
    observed = _observed(relations, windows, min(windows.origin, windows.target.last))
    ahead = (
        f"origin = DATE '{windows.origin}' AND {_within(windows.target)} AND week > DATE '{windows.origin}'"
    )
    existing = f"cohort <= DATE '{windows.cutoff}'"
    orders = "cohort_size * ropc"
    # fsum: no rounding error over thousands of rows.
    frame = con.execute(f"""
        WITH cohorts AS (
            SELECT firm, model, fsum({orders}) FILTER ({existing}) AS q1, fsum(sales) FILTER ({existing}) AS s1,
                fsum(abs({orders})) FILTER ({existing}) AS q1_gross,
                fsum(abs(sales)) FILTER ({existing}) AS s1_gross,
                fsum(sales) FILTER (NOT {existing}) AS g1,
                count(*) FILTER (NOT (isfinite({orders}) AND isfinite(sales))
                    OR {orders} IS NULL OR sales IS NULL) AS unknown
            FROM {relations.forecast_cohort_week} WHERE {ahead} GROUP BY ALL
        ), weeks AS (
            SELECT firm, model, count(*) AS ahead, fsum(sales) AS ahead_sales
            FROM {relations.forecast_week} WHERE {ahead} GROUP BY ALL
        ), fits AS (
            SELECT firm, model, CASE WHEN NOT succeeded THEN coalesce(reason, 'no reason recorded') END AS failed
            FROM {relations.model_fit} WHERE origin = DATE '{windows.origin}'
        )
        SELECT firm, model, f.failed, o.weeks_0, o.weeks_1 + coalesce(ahead, 0) AS weeks_1, o.outer_0,
            o.outer_1 + coalesce(ahead_sales, 0) AS outer_1, o.initial_sales_0,
            o.repeat_orders_0, o.repeat_orders_0_gross, o.repeat_sales_0, o.repeat_sales_0_gross,
            CASE WHEN unknown = 0 THEN o.repeat_orders_1 + coalesce(q1, 0) END AS repeat_orders_1,
            CASE WHEN unknown = 0 THEN o.repeat_orders_1_gross + coalesce(q1_gross, 0) END AS repeat_orders_1_gross,
            CASE WHEN unknown = 0 THEN o.repeat_sales_1 + coalesce(s1, 0) END AS repeat_sales_1,
            CASE WHEN unknown = 0 THEN o.repeat_sales_1_gross + coalesce(s1_gross, 0) END AS repeat_sales_1_gross,
            CASE WHEN unknown = 0 THEN o.new_sales_1 + coalesce(g1, 0) END AS new_sales_1
        FROM fits f FULL JOIN weeks USING (firm, model) LEFT JOIN cohorts USING (firm, model)
        LEFT JOIN {observed} o USING (firm)""").df()
    return _with_shares(frame).assign(origin=windows.origin)


def _with_shares(frame: pd.DataFrame) -> pd.DataFrame:
    """Add the share of each repeat sum that remains after positive and negative amounts cancel, |Σx| / Σ|x|; 1 for an
    empty sum."""
    for name in _REPEATS:
        total, gross = frame[name].to_numpy(float), frame.pop(f"{name}_gross").to_numpy(float)
        frame[f"{name}_kept"] = np.where(gross == 0, 1.0, np.abs(ratio(total, gross)))
    return frame


def _discrepancy(frame: pd.DataFrame) -> Floats:
    """The largest violation of the bridge's accounting identities, in currency."""
    change = frame["target_sales"] - frame["baseline_sales"]
    repeats = frame["order_volume"] + frame["spend_per_order"]
    differences = [
        repeats - (frame["repeat_sales_1"] - frame["repeat_sales_0"]),
        repeats + frame["net_replenishment"] - change,
        frame["baseline_sales"] - frame["outer_0"],
        frame["target_sales"] - frame["outer_1"],
    ]
    return np.asarray(np.max(np.abs(differences), axis=0))


def _reason(row: dict[Hashable, Any], windows: BridgeWindows) -> str | None:
    """Why a row cannot be used, or None (subsection "Endpoint Construction…", primary eligibility)."""

    def number(name: str) -> float:
        value = row[name]
        return float("nan") if value is None else float(value)

    if isinstance(row["failed"], str):
        return f"there is no forecast: {row['failed']}"
    for side, window in (("0", windows.baseline), ("1", windows.target)):
        name = "baseline" if side == "0" else "target"
        held = number(f"weeks_{side}")
        if held != len(window):
            return f"{0 if np.isnan(held) else held:.0f} of the {len(window)} weeks of the {name} are there"
    for side, name in (("0", "baseline"), ("1", "target")):
        if reason := _endpoint_reason(number, side, name):
            return reason
    if not number("baseline_sales") > 0:
        return "baseline sales are not positive"
    off = number("discrepancy")
    if not off <= tolerance(np.asarray(number("baseline_sales") + abs(number("target_sales")))):
        return f"its tables disagree by {off:.3g}: make them again"
    return None


def _endpoint_reason(number: Callable[[str], float], side: str, name: str) -> str | None:
    """Why the repeat orders of the baseline (side 0) or the target (side 1) cannot be used, or None."""
    orders, sales = number(f"repeat_orders_{side}"), number(f"repeat_sales_{side}")
    if not (np.isfinite(orders) and np.isfinite(sales)):
        return f"repeat orders or sales of the {name} are not known for every cohort"
    if orders != 0 and number(f"repeat_orders_{side}_kept") <= NEAR_ZERO:
        return f"repeat orders of the {name} cancel out"
    if orders <= 0:
        return f"no repeat orders of the existing base in the {name}"
    if not np.isfinite(number(f"repeat_spend_{side}")):
        return f"spend per repeat order of the {name} is not finite"
    return None
