"""Judged rows of one unit become its orders; what is left over goes to quarantine."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb

from cbmt_core.config import SourceConfig
from cbmt_core.duck import literal, parquet
from cbmt_core.errors import BadFirmData
from cbmt_core.names import Unit
from cbmt_core.timeline import Timeline
from cbmt_core.transactions.intake import Intake

__all__ = ["OUT_OF_WINDOW", "OrderCounts", "make_orders"]

OUT_OF_WINDOW = "out of window"
DUPLICATE = "duplicate"


@dataclass(frozen=True)
class OrderCounts:
    """How one unit's source rows were used. rows_in = rows_used + rows_quarantined."""

    rows_in: int
    rows_used: int
    rows_quarantined: int
    rows_out_of_window: int
    orders: int
    currency: str
    timezone: str
    industry: str | None


def make_orders(
    con: duckdb.DuckDBPyConnection,
    unit: Unit,
    intake: Intake,
    sources: dict[str, SourceConfig],
    design: Timeline,
) -> OrderCounts:
    """Make the temporary tables `transactions` and `quarantine` of one unit on `con`.

    An order is one order id of a customer, or one (customer, time) without ids, or one customer-day
    where the source says so. A row whose order id, customer, time and amount all stood before is a
    duplicate. Without order ids two equal rows of one file are two lines of an order, while a row
    that another file holds as well is a duplicate (exports overlap).
    """
    entries = intake.files_for(unit)
    if not entries:
        raise BadFirmData(unit.name, "no ingested file names it")
    used = [sources[name] for name in sorted({e.source for e in entries}) if name in sources]
    if len(used) < len({e.source for e in entries}):
        gone = ", ".join(sorted({e.source for e in entries} - sources.keys()))
        raise BadFirmData(unit.name, f"its rows came from source {gone}, which the project no longer has")
    currency = _single(unit, "currencies", {s.currency for s in used})
    timezone = _single(unit, "time zones", {s.timezone for s in used})

    if unit.segment is not None and intake.files_for(Unit(unit.name)):
        raise BadFirmData(unit.name, "a segment and a whole firm are both called this; rename the firm")
    cut = "" if unit.segment is None else f" AND segment = {literal(unit.segment)}"
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE judged AS FROM {parquet(map(intake.path, entries))} "
        f"WHERE slug = {literal(Unit(unit.firm).slug)}{cut}"
    )
    by_day = ", ".join(literal(s.name) for s in used if s.order_grain == "day") or "''"
    con.execute(f"""
        CREATE OR REPLACE TEMP VIEW candidates AS
        SELECT source, file, row, customer, ordered_at, amount, order_id AS given_id, CASE
            WHEN source IN ({by_day}) THEN strftime(ordered_at, '%Y-%m-%d')
            ELSE coalesce(order_id, strftime(ordered_at, '%Y-%m-%dT%H:%M:%S.%f')) END AS order_id
        FROM judged WHERE reason IS NULL
            AND CAST(ordered_at AS DATE) BETWEEN DATE '{design.observed_from}' AND DATE '{design.observed_to}'
    """)
    # Duplicates are rare and ranking every row is dear: only rows that share all their values are ranked.
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE duplicates AS
        WITH shared AS (
            SELECT customer, given_id, ordered_at, amount FROM candidates GROUP BY ALL HAVING count(*) > 1
        ), twins AS (
            SELECT c.* FROM candidates c JOIN shared s ON c.customer = s.customer
                AND c.ordered_at = s.ordered_at AND c.amount = s.amount
                AND c.given_id IS NOT DISTINCT FROM s.given_id
        ), counted AS (
            SELECT *, CASE WHEN given_id IS NOT NULL THEN 1 ELSE row_number() OVER (
                PARTITION BY source, file, customer, ordered_at, amount ORDER BY row) END AS line
            FROM twins
        )
        SELECT source, file, row, '{DUPLICATE}' AS reason FROM counted
        QUALIFY row_number() OVER (
            PARTITION BY customer, given_id, ordered_at, amount, line ORDER BY source, file, row) > 1
    """)
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE transactions AS
        SELECT {literal(unit.name)} AS firm, customer, order_id, min(ordered_at) AS ordered_at,
            CAST(min(ordered_at) AS DATE) - CAST(dayofweek(min(ordered_at)) AS INTEGER) AS week,
            CAST(sum(amount) AS DECIMAL(18,4)) AS amount, CAST(count(*) AS INTEGER) AS rows
        FROM candidates ANTI JOIN duplicates USING (source, file, row)
        GROUP BY customer, order_id
    """)
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE quarantine AS
        SELECT {literal(unit.name)} AS firm, source, file, row,
            coalesce(judged.reason, duplicates.reason, '{OUT_OF_WINDOW}') AS reason,
            coalesce(detail, CAST({{'customer': customer, 'order_id': order_id, 'ordered_at': ordered_at,
                'amount': amount}} AS VARCHAR)) AS detail, amount
        FROM judged LEFT JOIN duplicates USING (source, file, row)
        WHERE judged.reason IS NOT NULL OR duplicates.reason IS NOT NULL OR CAST(ordered_at AS DATE)
            NOT BETWEEN DATE '{design.observed_from}' AND DATE '{design.observed_to}'
        ORDER BY source, file, row
    """)
    rows_in, industry = con.execute("SELECT count(*), mode(industry) FROM judged").fetchall()[0]
    orders, rows_used = con.execute("SELECT count(*), coalesce(sum(rows), 0) FROM transactions").fetchall()[0]
    out, kept_out = con.execute(
        f"SELECT count(*) FILTER (reason = '{OUT_OF_WINDOW}'), count(*) FROM quarantine"
    ).fetchall()[0]
    con.execute("DROP TABLE judged; DROP TABLE duplicates; DROP VIEW candidates")
    if rows_in != rows_used + kept_out:
        raise BadFirmData(
            unit.name, f"{rows_in} rows came in, but {rows_used} were used and {kept_out} quarantined"
        )
    return OrderCounts(rows_in, rows_used, kept_out, out, orders, currency, timezone, industry)


def _single(unit: Unit, what: str, values: set[str]) -> str:
    if len(values) > 1:
        raise BadFirmData(unit.name, f"its sources are in several {what}: {', '.join(sorted(values))}")
    return values.pop()
