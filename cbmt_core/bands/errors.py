"""Log errors of backtests in the drivers, with the standard deviations that the model expected."""

from __future__ import annotations

from datetime import date

import duckdb
import numpy as np
import pandas as pd

from cbmt_core.evaluation.relations import Relations
from cbmt_core.uncertainty import DRIVERS

__all__ = ["HALF", "ORDER_VARIANCE", "SALES_FLOOR", "realised_errors", "sales_errors"]

HALF = 0.5
"""Half a customer or order is added before logs are taken."""
ORDER_VARIANCE = 0.5
"""Variance of the log value of a single order, roughly; it matters only where a week has few orders."""
SALES_FLOOR = 0.01
"""Share of a forecast's mean weekly sales that is added to sales before logs are taken."""


def realised_errors(
    con: duckdb.DuckDBPyConnection, relations: Relations, week: date, model: str
) -> pd.DataFrame:
    """One row for each firm, backtest and week of it that was observed by `week`.

    For each driver: `_error` (log of actual over forecast), `_count` (its variance by counting few orders), `_lasting`
    and `_weekly` (standard deviations that the model expected; NaN where it has no distribution), and all of them with
    `_mean` at the end: of the mean over the weeks up to this one. Repeat orders and order values are those of the
    customers acquired up to the origin, so that errors of acquisition are not in them.
    """
    spreads = ", ".join(
        f"s.{driver}_{part}" for driver in DRIVERS for part in _PARTS for part in (part, f"{part}_mean")
    )
    rows = con.execute(
        f"""
        WITH s AS (SELECT * FROM {relations.forecast_spread}
            WHERE purpose = 'backtest' AND origin < $week AND week <= $week AND model = $model),
        base AS (SELECT o.firm, o.origin, c.week, CAST(sum(c.repeat_orders) AS DOUBLE) AS orders,
                CAST(sum(c.repeat_sales) AS DOUBLE) AS sales
            FROM (SELECT firm, origin, max(week) AS last FROM s GROUP BY ALL) AS o
            JOIN {relations.cohort_week} AS c
                ON c.firm = o.firm AND c.cohort <= o.origin AND c.week > o.origin AND c.week <= o.last
            GROUP BY ALL)
        SELECT s.firm, s.origin, s.horizon, s.history, s.acquired, s.existing_orders, s.existing_sales,
            w.acquired AS actual_acquired, coalesce(base.orders, 0) AS actual_orders,
            coalesce(base.sales, 0) AS actual_sales, {spreads},
            date_diff('day', s.week, $week) // 91 AS age
        FROM s JOIN {relations.firm_week} AS w USING (firm, week)
        LEFT JOIN base ON base.firm = s.firm AND base.origin = s.origin AND base.week = s.week
        ORDER BY s.firm, s.origin, s.horizon
        """,
        {"week": week, "model": model},
    ).df()
    rows["quarter"] = -rows.pop("age")
    return _with_errors(rows)


def sales_errors(
    con: duckdb.DuckDBPyConnection, relations: Relations, week: date, model: str
) -> pd.DataFrame:
    """Errors of total sales: a row for each firm, backtest and week of it that was observed by `week`.

    `sales_error` is the log of actual over forecast sales.
    """
    return con.execute(
        f"""
        WITH f AS (SELECT firm, origin, week, horizon, sales,
                {SALES_FLOOR} * avg(sales) OVER (PARTITION BY firm, origin) AS least
            FROM {relations.forecast_week}
            WHERE purpose = 'backtest' AND origin < $week AND model = $model)
        SELECT f.firm, f.origin, f.horizon, ln((CAST(w.sales AS DOUBLE) + least) / (f.sales + least)) AS sales_error
        FROM f JOIN {relations.firm_week} AS w USING (firm, week)
        WHERE f.week <= $week AND least > 0 AND w.sales + least > 0
        ORDER BY f.firm, f.origin, f.horizon
        """,
        {"week": week, "model": model},
    ).df()


_PARTS = ("lasting", "weekly")


def _with_errors(rows: pd.DataFrame) -> pd.DataFrame:
    orders, actual = rows["existing_orders"] + HALF, rows["actual_orders"] + HALF
    value = rows["existing_sales"] / rows["existing_orders"].where(rows["existing_orders"] > 0)
    actual_value = rows["actual_sales"] / rows["actual_orders"].where(rows["actual_orders"] > 0)
    ratio = {
        "acquisition": (rows["actual_acquired"] + HALF) / (rows["acquired"] + HALF),
        "repeat": actual / orders,
        "order_value": (actual_value / value).where(lambda x: x > 0),
    }
    counts = {
        "acquisition": 1 / (rows["acquired"] + HALF),
        "repeat": 1 / orders,
        "order_value": ORDER_VARIANCE / orders,
    }
    forecast = [rows["firm"], rows["origin"]]
    for driver in DRIVERS:
        rows[f"{driver}_error"] = np.log(ratio[driver])
        rows[f"{driver}_count"] = counts[driver]
        known = rows[f"{driver}_error"].fillna(0.0)
        rows[f"{driver}_error_mean"] = known.groupby(forecast).cumsum() / rows["horizon"]
        rows[f"{driver}_count_mean"] = counts[driver].groupby(forecast).cumsum() / rows["horizon"] ** 2
    return rows
