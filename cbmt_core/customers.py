"""Read panels from DuckDB relations: a firm's drivers and, on request, its single customers."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np

from cbmt_core.duck import literal
from cbmt_core.errors import CbmtError
from cbmt_core.names import UnknownFirm
from cbmt_core.panel import CustomerHistory, FirmPanel
from cbmt_core.schema import TIMELINE
from cbmt_core.timeline import Timeline

__all__ = ["customer_history", "read_panel", "read_timeline"]


def read_timeline(con: duckdb.DuckDBPyConnection, timeline: str = "timeline") -> Timeline:
    """The timeline of a published file."""
    names = TIMELINE.column_names
    (values,) = con.execute(f"SELECT {', '.join(names)} FROM {timeline}").fetchall()
    return Timeline(**dict(zip(names, values, strict=True)))


def read_panel(
    con: duckdb.DuckDBPyConnection,
    firm: str,
    design: Timeline | None = None,
    *,
    cohort_week: str = "cohort_week",
    orders: str | None = None,
) -> FirmPanel:
    """A firm's panel from the relation `cohort_week`, with its customers where `orders` is given.

    A published file holds its timeline too: `read_panel(duckdb.connect("cbmt.duckdb"), "ACME")`.

    Args:
        con: connection with the relations.
        firm: name, as in the column `firm`.
        design: weeks of the panel; by default those stored in the published file.
        cohort_week: name or SQL of the relation.
        orders: name or SQL of the relation `transactions`; without it the panel has no single customers.
    """
    design = design or read_timeline(con)
    frame = con.execute(
        "SELECT cohort, week, left_censored, cohort_size, ropc, aov, CAST(sales AS DOUBLE) AS sales "
        f"FROM {cohort_week} WHERE firm = {literal(firm)}"
    ).df()
    if frame.empty and (known := con.execute(f"SELECT DISTINCT firm FROM {cohort_week}").fetchall()):
        raise UnknownFirm(firm, [name for (name,) in known])
    if len(frame):
        # The tables of a late firm end with the last week it has delivered.
        design = design.until(frame["week"].max().date())
    history = None
    if orders is not None:
        mine = f"(SELECT customer, week FROM {orders} WHERE firm = {literal(firm)})"
        cohorts = f"(SELECT * FROM {cohort_week} WHERE firm = {literal(firm)})"
        history = customer_history(con, mine, cohorts, design)
    return FirmPanel.from_cohort_week(firm, frame, design, history)


def customer_history(
    con: duckdb.DuckDBPyConnection, orders: str, cohort_week: str, design: Timeline
) -> CustomerHistory:
    """Order weeks of every customer of one firm, from its relations `orders` and `cohort_week`.

    Customers are sorted by cohort as in the panel, and within a cohort by their order weeks, whatever the order of
    the rows. Raises an error if cohort sizes differ from `cohort_week`, because then the cohorts were made from
    other orders.

    Args:
        orders: SQL relation of the firm's orders: customer and week.
        cohort_week: SQL relation of the firm's rows of that table.
        design: weeks of the panel.
    """
    first, last = design.panel.first, design.panel.last
    cohort = f"greatest(min(week), DATE '{design.left_censored_cohort or first}')"
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE _members AS
        SELECT {cohort} AS cohort, coalesce(list_sort(list(CAST((week - DATE '{first}') // 7 AS SMALLINT))
            FILTER (week >= DATE '{first}')), []) AS weeks
        FROM {orders} WHERE week <= DATE '{last}' GROUP BY customer""")
    wrong = con.execute(f"""
        SELECT cohort, m.size, c.size FROM (SELECT cohort, count(*) AS size FROM _members GROUP BY cohort) m
        FULL JOIN (SELECT cohort, max(cohort_size) AS size FROM {cohort_week} GROUP BY cohort) c USING (cohort)
        WHERE m.size IS DISTINCT FROM c.size ORDER BY cohort LIMIT 1""").fetchall()
    if wrong:
        week, found, said = wrong[0]
        raise CbmtError(
            f"the orders hold {found or 0} customers of cohort {week}, cohort_week says {said or 0}: "
            "they do not belong together; make and publish the tables again"
        )
    packed: Any = con.sql("""
        WITH numbered AS (SELECT weeks, dense_rank() OVER (ORDER BY cohort) - 1 AS cohort FROM _members)
        SELECT CAST(cohort AS INTEGER) AS cohort, weeks FROM numbered WHERE len(weeks) > 0
        ORDER BY cohort, weeks""").to_arrow_table()
    con.execute("DROP TABLE _members")
    weeks = packed["weeks"].combine_chunks()
    return CustomerHistory(
        cohort=packed["cohort"].to_numpy().astype(np.int32),
        start=weeks.offsets.to_numpy().astype(np.int64),
        week=weeks.values.to_numpy().astype(np.int16),
    )
