"""Stored bands beside what happened, for every week and whole forecast that has been observed since."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import duckdb
import numpy as np
import pandas as pd

from cbmt_core.bands.quantiles import LEVELS, whole_period
from cbmt_core.bridge.contributions import contributions
from cbmt_core.evaluation.relations import Relations
from cbmt_core.timeline import SEASON, Purpose

__all__ = ["AHEAD", "judged_bands"]

AHEAD = {"1-4": (1, 4), "5-13": (5, 13), "14-26": (14, 26), "27-52": (27, 52)}
"""Groups of weeks ahead."""
SEASON_DAYS = 7 * SEASON
KEYS = ["firm", "model", "origin", "purpose", "outcome", "period", "week"]


def judged_bands(
    con: duckdb.DuckDBPyConnection,
    relations: Relations,
    week: date,
    purposes: Sequence[Purpose] = ("backtest", "live"),
    horizon_weeks: int = SEASON,
) -> pd.DataFrame:
    """Every band of weekly sales and of whole forecasts whose weeks had been observed by `week`, with the actual
    values.

    One row for each forecast, outcome and period, with the ends of all levels side by side (`low80`, `high80`, ...),
    `source`, `actual`, `scale` (actual sales of the period) and `ahead`: a group of weeks ahead, or the period that
    the whole forecast is (year; horizon where it is shorter).

    Args:
        week: last week that counts as observed.
        purposes: of the forecasts that are judged.
        horizon_weeks: how long they are.
    """
    weeks = _bands(con, relations, week, purposes, "period = 'week' AND outcome = 'sales'")
    observed = con.execute(
        f"SELECT firm, week, CAST(sales AS DOUBLE) AS actual FROM {relations.firm_week} WHERE week <= $week",
        {"week": week},
    ).df()
    weeks = weeks.merge(observed, on=["firm", "week"])
    horizon = (weeks["week"] - weeks["origin"]).dt.days // 7
    groups = [horizon.between(*ends) for ends in AHEAD.values()]
    weeks = weeks.assign(scale=weeks["actual"], ahead=np.select(groups, list(AHEAD), default="later"))
    whole = whole_period(horizon_weeks)
    sums = _bands(con, relations, week, purposes, f"period = '{whole}' AND weeks = {horizon_weeks}")
    happened = _actual_sums(con, relations, sums, horizon_weeks)
    sums = sums.merge(happened, on=["firm", "origin", "outcome"]).assign(ahead=whole)
    both = pd.concat([weeks, sums], ignore_index=True)
    return both[both["actual"].notna()].sort_values(KEYS, ignore_index=True)


def _bands(
    con: duckdb.DuckDBPyConnection, relations: Relations, week: date, purposes: Sequence[Purpose], which: str
) -> pd.DataFrame:
    ends = ", ".join(
        f"max({end}) FILTER (level = {level}) AS {end}{level}" for level in LEVELS for end in ("low", "high")
    )
    return con.execute(
        f"""
        SELECT {", ".join(KEYS)}, {ends}, any_value(median) AS median,
            any_value(source) AS source
        FROM {relations.forecast_band}
        WHERE origin < $week AND list_contains($purposes, purpose) AND week + 7 * (weeks - 1) <= $week AND {which}
        GROUP BY ALL
        """,
        {"week": week, "purposes": list(purposes)},
    ).df()


def _actual_sums(
    con: duckdb.DuckDBPyConnection, relations: Relations, forecasts: pd.DataFrame, horizon_weeks: int
) -> pd.DataFrame:
    """What happened in the weeks after each origin, a row for each outcome; the bridge by its one formula.

    The bridge's baseline are the same weeks a season earlier, its existing base the cohorts up to their last one.
    """
    con.register("judged_forecasts", forecasts[["firm", "origin"]].drop_duplicates())
    days = 7 * horizon_weeks
    cutoff = f"y.origin - {SEASON_DAYS - days}"
    sums = con.execute(
        f"""
        WITH y AS (SELECT firm, CAST(origin AS DATE) AS origin FROM judged_forecasts),
        base AS (SELECT y.firm, y.origin,
                sum(c.repeat_orders) FILTER (c.week <= {cutoff}) AS q0,
                sum(c.repeat_sales) FILTER (c.week <= {cutoff}) AS s0,
                sum(c.initial_sales) FILTER (c.week <= {cutoff}) AS i0,
                sum(c.repeat_orders) FILTER (c.week > y.origin AND c.cohort <= {cutoff}) AS q1,
                sum(c.repeat_sales) FILTER (c.week > y.origin AND c.cohort <= {cutoff}) AS s1,
                sum(c.sales) FILTER (c.week > y.origin AND c.cohort > {cutoff}) AS g1
            FROM y JOIN {relations.cohort_week} AS c
            ON c.firm = y.firm AND c.week > y.origin - {SEASON_DAYS} AND c.week <= y.origin + {days}
            GROUP BY ALL),
        ahead AS (SELECT y.firm, y.origin, sum(w.sales) AS sales, sum(w.acquired) AS acquired,
                sum(w.orders) AS orders, sum(w.repeat_orders) AS repeats, max(w.cumulative_customers) AS customers
            FROM y JOIN {relations.firm_week} AS w
            ON w.firm = y.firm AND w.week > y.origin AND w.week <= y.origin + {days}
            GROUP BY ALL)
        SELECT * FROM ahead JOIN base USING (firm, origin)
        """
    ).df()
    con.unregister("judged_forecasts")
    keys = sums[["firm", "origin"]].assign(origin=pd.to_datetime(sums["origin"]))
    number = {name: sums[name].fillna(0).to_numpy(float) for name in sums.columns[2:]}
    bridge = contributions(*(number[name] for name in ("q0", "s0", "i0", "q1", "s1", "g1")))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = {
            "sales": number["sales"],
            "acquired": number["acquired"],
            "orders": number["orders"],
            "ropc": number["repeats"] / number["customers"],
            "aov": number["sales"] / number["orders"],
            "sales_change": number["s1"] + number["g1"] - number["s0"] - number["i0"],
            **bridge._asdict(),
        }
    return pd.concat(
        [keys.assign(outcome=name, actual=values, scale=number["sales"]) for name, values in found.items()],
        ignore_index=True,
    )
