"""Tables of a firm's newest cohorts by week: customers, repeat orders and order values, and the sales they make."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import pandas as pd

from cbmt_core.report.numbers import Money, count, value
from cbmt_core.report.rows import query

__all__ = ["PanelTable", "cohorted_panel"]

COHORTS = 4
"""Cohorts, and weeks, that are shown."""


@dataclass(frozen=True)
class PanelTable:
    """One quantity of each cohort (row) and week (column); empty before a cohort's birth."""

    name: str
    weeks: list[str]
    rows: list[tuple[str, list[str]]]


def cohorted_panel(con: duckdb.DuckDBPyConnection, firm: str, money: Money) -> list[PanelTable]:
    """Acquired, repeat orders per customer and order value, then the orders and sales they make."""
    cells = query(
        con,
        "SELECT cohort, week, cohort_size, initial_orders, ropc, aov, orders, CAST(sales AS DOUBLE) AS sales FROM "
        "(SELECT *, dense_rank() OVER (ORDER BY cohort DESC) AS nth, max(week) OVER () AS last FROM cohort_week "
        " WHERE firm = ? AND NOT left_censored) "
        "WHERE nth <= ? AND week > last - 7 * ? ORDER BY cohort, week",
        firm, COHORTS, COHORTS,
    )  # fmt: skip
    if cells.empty:
        return []
    cells["acquired"] = cells["cohort_size"].where(cells["initial_orders"] > 0)
    written = {
        "acquired": ("Customers acquired", count),
        "ropc": ("Repeat orders per customer", lambda number: value(number, 4)),
        "aov": ("Average order value", lambda number: money.short(number)),
        "orders": ("Orders: acquired + repeat", count),
        "sales": ("Sales: orders × value", lambda number: money.short(number)),
    }
    weeks = sorted(cells["week"].unique())
    tables = []
    for column, (name, label) in written.items():
        grid = cells.pivot_table(index="cohort", columns="week", values=column, dropna=False)
        rows = [
            (_day(cohort), ["" if pd.isna(cell) else label(cell) for cell in grid.loc[cohort].reindex(weeks)])
            for cohort in grid.index
        ]
        tables.append(PanelTable(name, [_day(week) for week in weeks], rows))
    return tables


def _day(week: pd.Timestamp) -> str:
    moment = pd.Timestamp(week)
    return f"{moment.day}\u00a0{moment:%b}"
