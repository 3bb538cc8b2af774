"""`cbmt forecast FIRM`: next year by quarter, with the last year beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table

from cbmt_core.errors import CbmtError
from cbmt_core.names import UnknownFirm
from cbmt_pipeline.progress import console
from cbmt_pipeline.project import Project

if TYPE_CHECKING:
    import duckdb

__all__ = ["forecast"]

WIDTH = 130
"""Columns of the table: numbers are never cut off, whatever the terminal."""
SOURCES = {
    "order_volume": "repeat orders of the existing base",
    "spend_per_order": "spend per order",
    "net_replenishment": "net customer-base replenishment",
}
QUARTERS = """
    WITH ahead AS (SELECT (horizon - 1) // 13 AS quarter, min(week) AS first, max(week) + 6 AS last,
            count(*) AS weeks, sum(sales) AS sales, sum(orders) AS orders, sum(acquired) AS acquired
        FROM forecast WHERE firm = $firm GROUP BY quarter),
    weeks AS (SELECT w.*, (51 - (o.origin - w.week) // 7) // 13 AS quarter
        FROM firm_week AS w, (SELECT max(origin) AS origin FROM forecast WHERE firm = $firm) AS o
        WHERE firm = $firm AND week <= o.origin AND week > o.origin - 364),
    before AS (SELECT quarter, count(*) AS weeks, CAST(sum(sales) AS DOUBLE) AS sales, sum(orders) AS orders,
            sum(acquired) AS acquired FROM weeks GROUP BY quarter)
    SELECT a.first, a.last, a.sales, b.sales, a.orders, b.orders, a.acquired, b.acquired, b.weeks
    FROM ahead AS a LEFT JOIN before AS b USING (quarter) ORDER BY quarter"""


@dataclass(frozen=True)
class Published:
    """What the published file holds of a firm's live forecast."""

    firm: str
    currency: str
    model: str
    origin: date
    why: str
    """Why this model was chosen."""
    quarters: list[Any]
    """Rows of QUARTERS."""
    sources: list[Any]
    """The bridge's sources of the change in sales."""
    ranges: list[Any]
    """80 % ranges: outcome (sales, the change, its sources), period (quarter, year), first day, ends, and where they
    come from."""
    notes: list[Any]
    """What the model says about its fit."""
    weeks: int
    """Weeks observed up to the origin."""


@click.command()
@click.argument("firm")
@click.pass_obj
def forecast(project: Project, firm: str) -> None:
    """Print a firm's next year by quarter, with the last year beside it, and where the change comes from.

    FIRM is its name. Reads what `cbmt run` published.
    """
    import duckdb

    from cbmt_core.report.plan_words import short_history
    from cbmt_core.report.words import weeks_ahead
    from cbmt_core.timeline import SEASON

    if not project.warehouse.exists():
        raise CbmtError(f"nothing was published in {project.data} yet; run `cbmt run` first")
    with duckdb.connect(str(project.warehouse), read_only=True) as con:
        found = _published(con, firm)
    ahead = weeks_ahead(SEASON, found.origin)
    console.print(f"{found.firm}: {ahead}, by {found.model} ({found.why})", markup=False)
    Console(width=max(console.width, WIDTH), highlight=False).print(_table(found))
    years = {outcome: ends for outcome, period, _, *ends in found.ranges if period == "year"}
    if "sales" in years:
        low, high, source = years["sales"]
        borrowed = "; the range is borrowed, not calibrated on your data" if source == "borrowed" else ""
        console.print(f"four years in five end between {low:,.0f} and {high:,.0f}{borrowed}")
    if found.sources and found.sources[0][5] is None:
        base, change, *sources, _ = found.sources[0]
        parts = ", ".join(
            f"{name} {value:+,.0f}" for name, value in zip(SOURCES.values(), sources, strict=True)
        )
        console.print(f"change {change:+,.0f} ({100 * change / base:+.1f} %): {parts}")
        between = [
            f"{name} {years[outcome][0]:+,.0f} to {years[outcome][1]:+,.0f}"
            for outcome, name in {"sales_change": "change", **SOURCES}.items()
            if outcome in years
        ]
        if between:
            console.print(f"in four years of five: {', '.join(between)}")
    elif found.sources:
        console.print(f"its sources cannot be told apart: {found.sources[0][5]}", markup=False)
    if short := short_history(found.weeks):
        console.print(short)
    for (note,) in found.notes:
        console.print(f"note: {note}", markup=False)


def _published(con: duckdb.DuckDBPyConnection, firm: str) -> Published:
    """Read a firm's live forecast, by its name or partition key."""
    known = con.execute("SELECT firm, slug, currency FROM firm ORDER BY firm").fetchall()
    found = [row for row in known if firm in row[:2]]
    if not found:
        raise UnknownFirm(firm, [row[0] for row in known])
    name, _, currency = found[0]
    quarters = con.execute(QUARTERS, {"firm": name}).fetchall()
    if not quarters:
        reasons = con.execute(
            "SELECT model, reason FROM model_fit WHERE firm = ? AND purpose = 'live' AND NOT succeeded",
            [name],
        ).fetchall()
        why = "; ".join(f"{model}: {reason}" for model, reason in reasons) or "run `cbmt run`"
        raise CbmtError(f"{name} has no live forecast: {why}")
    ((model, origin, why),) = con.execute(
        "SELECT model, origin, why FROM forecast_choice WHERE firm = ? AND purpose = 'live' "
        "ORDER BY origin DESC LIMIT 1",
        [name],
    ).fetchall()
    sources = con.execute(
        "SELECT baseline_sales, sales_change, order_volume, spend_per_order, net_replenishment, reason "
        "FROM bridge WHERE firm = ? AND model = ? AND origin = ? AND purpose = 'live'",
        [name, model, origin],
    ).fetchall()
    ranges = con.execute(
        "SELECT outcome, period, week, low, high, source FROM forecast_band WHERE firm = ? AND model = ? "
        "AND origin = ? AND purpose = 'live' AND level = 80 AND (period = 'year' OR period = 'quarter' "
        "AND outcome = 'sales')",
        [name, model, origin],
    ).fetchall()
    notes = con.execute(
        "SELECT diagnosis FROM model_fit WHERE firm = ? AND model = ? AND origin = ? AND purpose = 'live' "
        "AND diagnosis <> ''",
        [name, model, origin],
    ).fetchall()
    ((weeks,),) = con.execute(
        "SELECT count(*) FROM firm_week WHERE firm = ? AND week <= ?", [name, origin]
    ).fetchall()
    return Published(name, currency, model, origin, why, quarters, sources, ranges, notes, weeks)


def _table(found: Published) -> Table:
    """Quarters and their sum; the last year only where all its weeks are there."""
    table = Table("from", "to", f"sales, {found.currency}", "four in five between", "last year", "change", "orders",
                  "last year", "new customers", "last year", box=None, pad_edge=False)  # fmt: skip
    for column in table.columns[2:]:
        column.justify = "right"
    ranges = {
        (period, week): f"{low:,.0f} - {high:,.0f}"
        for outcome, period, week, low, high, _ in found.ranges
        if outcome == "sales"
    }
    total = [0.0] * 6
    for first, last, *numbers, weeks in found.quarters:
        numbers = [float(value) if value is not None and (k % 2 == 0 or weeks == 13) else None
                   for k, value in enumerate(numbers)]  # fmt: skip
        total = [a + (b or 0.0) for a, b in zip(total, numbers, strict=True)]
        table.add_row(str(first), str(last), *_cells(numbers, ranges.get(("quarter", first), "-")))
    complete = all(row[8] == 13 for row in found.quarters)
    year = [value if complete or k % 2 == 0 else None for k, value in enumerate(total)]
    of_year = next((ends for (period, _), ends in ranges.items() if period == "year"), "-")
    table.add_row("year", "", *_cells(year, of_year), style="bold")
    return table


def _cells(numbers: Sequence[float | None], between: str) -> list[str]:
    sales, before, orders, orders_before, acquired, acquired_before = numbers

    def text(value: float | None) -> str:
        return "-" if value is None else f"{value:,.0f}"

    change = f"{100 * (sales / before - 1):+.1f} %" if sales is not None and before else "-"
    return [
        text(sales),
        between,
        text(before),
        change,
        text(orders),
        text(orders_before),
        text(acquired),
        text(acquired_before),
    ]
