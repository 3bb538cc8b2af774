"""Read timelines and panels from DuckDB relations: a published file, or tables of the lake."""

from __future__ import annotations

import duckdb

from cbmt_core.customers import customer_history
from cbmt_core.duck import literal
from cbmt_core.names import UnknownFirm
from cbmt_core.panel import FirmPanel
from cbmt_core.schema import TIMELINE
from cbmt_core.timeline import Timeline

__all__ = ["read_panel", "read_timeline"]


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
