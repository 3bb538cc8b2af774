"""Make one unit's orders from its checked rows; other rows go to quarantine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

import duckdb

from cbmt_core.config import SourceConfig
from cbmt_core.duck import literal, path_literal
from cbmt_core.errors import BadFirmData, CbmtError
from cbmt_core.names import Unit
from cbmt_core.timeline import Timeline, week_sql
from cbmt_core.transactions.intake import Intake
from cbmt_core.transactions.reasons import (
    DUPLICATE,
    LEFT_OUT,
    MISSING_CUSTOMER,
    MISSING_TIME,
    NON_POSITIVE,
    NOT_BAD,
    OUT_OF_WINDOW,
    REFUND_IGNORED,
    REFUND_WITHOUT_ORDER,
    REFUNDED_IN_FULL,
    SEVERAL_AMOUNTS,
    STRAY_DATE,
)
from cbmt_core.transactions.refunds import net_refunds
from cbmt_core.transactions.span import STRAY_GAP

__all__ = ["OUT_OF_WINDOW", "OrderCounts", "make_orders"]

NEAR = 7 * STRAY_GAP
"""Days: a row this close to the data's span is not a stray date; its week may just have begun."""


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
    rows_bad: int = 0
    """Of the rows in quarantine, those that count as bad data."""
    bad_reasons: str = ""
    """Their reasons, with counts."""
    guest_rows: int = 0
    """Of the rows in quarantine, those without a customer."""
    refund_rows: int = 0
    """Rows that give money back, netted or not."""
    refunds: Decimal = Decimal(0)
    """Money given back that was taken off orders."""
    refunds_unmatched: Decimal = Decimal(0)
    """Money given back that found no order, or more than its order was worth."""


def make_orders(
    con: duckdb.DuckDBPyConnection,
    unit: Unit,
    intake: Intake,
    sources: dict[str, SourceConfig],
    design: Timeline,
) -> OrderCounts:
    """Make the temporary tables `transactions` and `quarantine` of one unit on `con`.

    An order is one order id of a customer, or one (customer, time) without ids, or one customer-day where the source
    says so. Its lines are added up, negative ones included; two equal lines of one file are two lines, while a line
    that another file holds as well is a duplicate (exports overlap). A negative sum is a refund and is taken off
    the order it belongs to.
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
    paths = ", ".join(path_literal(intake.path(entry)) for entry in entries)
    # Deleted files may have been read by an earlier version, which knew fewer columns.
    con.execute(
        "CREATE OR REPLACE TEMP TABLE judged AS SELECT CAST(NULL AS VARCHAR) AS parent_id, "
        "CAST(NULL AS DECIMAL(18,4)) AS refunded WHERE false UNION ALL BY NAME "
        f"SELECT * FROM read_parquet([{paths}], hive_partitioning = false, union_by_name = true) "
        f"WHERE slug = {literal(Unit(unit.firm).slug)}{cut}"
    )
    _complete_lines(con)
    _leave_out_whole_orders(con)
    _candidates(con, used, design)
    _mark_duplicates(con)
    refunds = _group(con, unit, used)
    try:
        span = intake.span()
    except CbmtError:
        span = None
    reasons = _quarantine(con, unit, span, design)
    rows_in, industry = con.execute("SELECT count(*), mode(industry) FROM judged").fetchall()[0]
    orders, rows_used = con.execute("SELECT count(*), coalesce(sum(rows), 0) FROM transactions").fetchall()[0]
    kept_out = sum(reasons.values())
    bad = {reason: count for reason, count in reasons.items() if reason not in NOT_BAD}
    con.execute("DROP VIEW candidates; DROP TABLE judged; DROP TABLE set_aside")
    if rows_in != rows_used + kept_out:
        raise BadFirmData(
            unit.name, f"{rows_in} rows came in, but {rows_used} were used and {kept_out} quarantined"
        )
    return OrderCounts(
        rows_in,
        rows_used,
        kept_out,
        reasons.get(OUT_OF_WINDOW, 0),
        orders,
        currency,
        timezone,
        industry,
        rows_bad=sum(bad.values()),
        bad_reasons=", ".join(f"{reason} {count:,}" for reason, count in bad.items()) or "none",
        guest_rows=reasons.get(MISSING_CUSTOMER, 0),
        refund_rows=refunds.rows + reasons.get(REFUND_IGNORED, 0),
        refunds=refunds.netted,
        refunds_unmatched=refunds.unmatched,
    )


def _names(sources: list[SourceConfig]) -> str:
    return ", ".join(literal(source.name) for source in sources) or "''"


def _complete_lines(con: duckdb.DuckDBPyConnection) -> None:
    """Fill in a missing customer or time from the other lines of the order."""
    order = "coalesce(judged.parent_id, judged.order_id)"
    wanting = f"judged.reason IN ('{MISSING_CUSTOMER}', '{MISSING_TIME}') AND {order} IS NOT NULL"
    if not con.execute(f"SELECT count(*) FROM judged WHERE {wanting}").fetchall()[0][0]:
        return
    con.execute(f"""
        UPDATE judged SET customer = coalesce(judged.customer, heads.customer),
            ordered_at = coalesce(judged.ordered_at, heads.ordered_at), detail = NULL,
            reason = CASE WHEN coalesce(judged.customer, heads.customer) IS NULL THEN '{MISSING_CUSTOMER}' END
        FROM (
            SELECT source, order_id, min(customer) AS customer, min(ordered_at) AS ordered_at FROM judged
            WHERE order_id IS NOT NULL AND ordered_at IS NOT NULL AND customer IS NOT NULL
            GROUP BY ALL HAVING count(DISTINCT customer) = 1
        ) heads
        WHERE heads.source = judged.source AND heads.order_id = {order} AND {wanting}""")


def _leave_out_whole_orders(con: duckdb.DuckDBPyConnection) -> None:
    """Leave out the lines without an amount of an order whose first line, which alone states it, is left out."""
    first = (
        f"SELECT DISTINCT source, order_id FROM judged WHERE reason = '{LEFT_OUT}' AND order_id IS NOT NULL"
    )
    con.execute(f"""
        UPDATE judged SET reason = '{LEFT_OUT}' FROM ({first}) AS gone
        WHERE judged.reason IS NULL AND judged.amount IS NULL
            AND gone.source = judged.source AND gone.order_id = judged.order_id""")


def _candidates(con: duckdb.DuckDBPyConnection, used: list[SourceConfig], design: Timeline) -> None:
    """Make the view `candidates`: good rows in the project's dates, each with the id of its order."""
    by_day = _names([s for s in used if s.order_grain == "day"])
    con.execute(f"""
        CREATE OR REPLACE TEMP VIEW candidates AS
        SELECT source, file, row, customer, ordered_at, amount, refunded, parent_id, order_id AS given_id, CASE
            WHEN source IN ({by_day}) THEN strftime(ordered_at, '%Y-%m-%d')
            ELSE coalesce(order_id, strftime(ordered_at, '%Y-%m-%dT%H:%M:%S.%f')) END AS order_id
        FROM judged WHERE reason IS NULL
            AND CAST(ordered_at AS DATE) BETWEEN DATE '{design.observed_from}' AND DATE '{design.observed_to}'
    """)


def _mark_duplicates(con: duckdb.DuckDBPyConnection) -> None:
    """Make the table `set_aside(source, file, row, reason)` of rows that another file holds as well.

    The k-th of equal lines in one file stands for the k-th in another.
    """
    con.execute(
        "CREATE OR REPLACE TEMP TABLE set_aside (source VARCHAR, file VARCHAR, row BIGINT, reason VARCHAR)"
    )
    ((files,),) = con.execute("SELECT count(DISTINCT (source, file)) FROM judged").fetchall()
    if files < 2:
        return
    # Duplicates are rare and ranking every row is expensive: only rows that share all their values are ranked.
    con.execute(f"""
        INSERT INTO set_aside
        WITH shared AS (
            SELECT customer, given_id, ordered_at, amount FROM candidates GROUP BY ALL HAVING count(*) > 1
        ), twins AS (
            SELECT c.* FROM candidates c JOIN shared s ON c.customer = s.customer
                AND c.ordered_at = s.ordered_at AND c.amount IS NOT DISTINCT FROM s.amount
                AND c.given_id IS NOT DISTINCT FROM s.given_id
        ), counted AS (
            SELECT *, row_number() OVER (
                PARTITION BY source, file, customer, given_id, ordered_at, amount ORDER BY row) AS line
            FROM twins
        )
        SELECT source, file, row, '{DUPLICATE}' FROM counted
        QUALIFY row_number() OVER (
            PARTITION BY customer, given_id, ordered_at, amount, line ORDER BY source, file, row) > 1
    """)


def _group(con: duckdb.DuckDBPyConnection, unit: Unit, used: list[SourceConfig]) -> _Refunds:
    """Make the table `transactions`, and set aside the rows that are part of no order."""
    whole = _names([s for s in used if s.amount_of == "order"])
    gross = _names([s for s in used if s.refunds == "ignore"])
    lines = "FROM candidates ANTI JOIN set_aside USING (source, file, row)"
    if gross != "''":
        # Negative lines later than the order's own day give money back; on that day they are discounts.
        con.execute(f"""
            INSERT INTO set_aside SELECT source, file, row, '{REFUND_IGNORED}' FROM (
                SELECT source, file, row, amount, sum(amount) OVER same AS total,
                    CAST(ordered_at AS DATE) > CAST(min(ordered_at) FILTER (amount > 0) OVER same AS DATE) AS late
                {lines} WINDOW same AS (PARTITION BY customer, order_id)
            ) WHERE source IN ({gross}) AND amount < 0 AND (late OR total < 0)""")
    added, given_back, several = "sum(amount)", "coalesce(sum(refunded), 0)", "false"
    if whole != "''":
        # Lines that repeat the amount of the whole order, or leave it out but once.
        repeated = f"min(source) IN ({whole})"
        once = "coalesce(max(amount) FILTER (amount > 0), 0) + coalesce(min(amount) FILTER (amount < 0), 0)"
        added = f"CASE WHEN {repeated} THEN {once} ELSE {added} END"
        given_back = f"CASE WHEN {repeated} THEN coalesce(max(refunded), 0) ELSE {given_back} END"
        several = f"{repeated} AND min(amount) FILTER (amount > 0) < max(amount) FILTER (amount > 0)"
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE groups AS
        SELECT customer, order_id, min(ordered_at) AS ordered_at, CAST({added} AS DECIMAL(18,4)) AS amount,
            CASE WHEN min(source) IN ({gross}) THEN 0 ELSE {given_back} END AS refunded, count(*) AS rows,
            min(amount) < 0 AS has_negative, max(parent_id) AS parent_id, {several} AS several,
            row_number() OVER () AS place
        {lines} GROUP BY customer, order_id
    """)
    plain = "amount > 0 AND refunded = 0 AND NOT several"
    ((odd,),) = con.execute(f"SELECT count(*) FROM groups WHERE NOT ({plain}) OR has_negative").fetchall()
    refunds = _net(con) if odd else _Refunds()
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE transactions AS
        SELECT {literal(unit.name)} AS firm, customer, order_id, ordered_at,
            {week_sql("CAST(ordered_at AS DATE)")} AS week,
            CAST({"coalesce(net.amount, groups.amount)" if odd else "amount"} AS DECIMAL(18,4)) AS amount,
            CAST({"coalesce(net.rows, groups.rows)" if odd else "rows"} AS INTEGER) AS rows
        FROM groups {"LEFT JOIN net USING (place) ANTI JOIN closed USING (place)" if odd else ""}
    """)
    con.execute("DROP TABLE groups")
    return refunds


@dataclass(frozen=True)
class _Refunds:
    rows: int = 0
    netted: Decimal = Decimal(0)
    unmatched: Decimal = Decimal(0)


def _net(con: duckdb.DuckDBPyConnection) -> _Refunds:
    """Take refunds off their orders: make the tables `net(place, amount, rows)` of the orders they change and
    `closed(place, reason)` of the groups that are no orders, whose rows are set aside where there is a reason."""
    con.execute("""
        CREATE OR REPLACE TEMP TABLE placed AS
        SELECT place, customer, order_id, ordered_at, greatest(amount - refunded, 0) AS amount
        FROM groups WHERE amount > 0 AND NOT several;
        CREATE OR REPLACE TEMP TABLE returned AS
        SELECT place AS refund, customer, order_id, parent_id, ordered_at, -amount AS amount FROM groups
        WHERE amount < 0
    """)
    net_refunds(con)
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE net AS
        SELECT g.place, greatest(any_value(g.amount) - any_value(g.refunded), 0) - coalesce(sum(n.amount), 0)
                AS amount,
            any_value(g.rows) + coalesce(sum(r.rows) FILTER (n.is_first), 0) AS rows
        FROM groups g LEFT JOIN netted n ON n.target = g.place LEFT JOIN groups r ON r.place = n.refund
        WHERE g.amount > 0 AND NOT g.several AND (n.refund IS NOT NULL OR g.refunded > 0) GROUP BY g.place;
        CREATE OR REPLACE TEMP TABLE closed AS
        SELECT place, CASE WHEN several THEN '{SEVERAL_AMOUNTS}'
            WHEN has_negative THEN '{REFUNDED_IN_FULL}' ELSE '{NON_POSITIVE}' END AS reason
        FROM groups WHERE several OR amount = 0
        UNION ALL SELECT place, '{REFUNDED_IN_FULL}' FROM net WHERE amount <= 0
        UNION ALL SELECT refund, CASE WHEN target IS NULL THEN '{REFUND_WITHOUT_ORDER}'
                WHEN target IN (SELECT place FROM net WHERE amount <= 0) THEN '{REFUNDED_IN_FULL}' END
            FROM returned LEFT JOIN (FROM netted WHERE is_first) USING (refund);
        INSERT INTO set_aside SELECT source, file, row, closed.reason
        FROM (FROM candidates ANTI JOIN set_aside USING (source, file, row))
        JOIN groups USING (customer, order_id) JOIN closed USING (place) WHERE closed.reason IS NOT NULL
    """)
    late, late_amount = con.execute("""
        WITH mine AS (
            SELECT c.ordered_at, c.amount, g.place,
                min(c.ordered_at) FILTER (c.amount > 0) OVER (PARTITION BY g.place) AS sold_at
            FROM candidates c JOIN groups g USING (customer, order_id) WHERE g.has_negative AND g.amount >= 0
        )
        SELECT count(*), coalesce(sum(-amount), 0) FROM mine
        WHERE amount < 0 AND CAST(ordered_at AS DATE) > CAST(sold_at AS DATE)""").fetchall()[0]
    own, own_amount, own_left = con.execute("""
        SELECT count(*), coalesce(sum(least(refunded, amount)), 0), coalesce(sum(greatest(refunded - amount, 0)), 0)
        FROM groups WHERE refunded > 0 AND amount > 0 AND NOT several""").fetchall()[0]
    rows, returned, netted = con.execute("""
        SELECT coalesce(sum(rows), 0), coalesce(-sum(amount), 0), (SELECT coalesce(sum(amount), 0) FROM netted)
        FROM groups WHERE amount < 0""").fetchall()[0]
    con.execute("DROP TABLE placed; DROP TABLE returned; DROP TABLE netted")
    return _Refunds(int(late + own + rows), late_amount + own_amount + netted, returned - netted + own_left)


def _quarantine(
    con: duckdb.DuckDBPyConnection, unit: Unit, span: tuple[date, date] | None, design: Timeline
) -> dict[str, int]:
    """Make the table `quarantine`, and return its reasons with counts."""
    inside = f"BETWEEN DATE '{design.observed_from}' AND DATE '{design.observed_to}'"
    outside = f"'{OUT_OF_WINDOW}'"
    if span:
        outside = (
            f"CASE WHEN CAST(ordered_at AS DATE) BETWEEN DATE '{span[0]}' - {NEAR} AND DATE '{span[1]}' + {NEAR} "
            f"THEN '{OUT_OF_WINDOW}' ELSE '{STRAY_DATE}' END"
        )
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE quarantine AS
        SELECT {literal(unit.name)} AS firm, source, file, row,
            coalesce(judged.reason, set_aside.reason, {outside}) AS reason,
            coalesce(detail, CAST({{'customer': customer, 'order_id': order_id, 'ordered_at': ordered_at,
                'amount': amount}} AS VARCHAR)) AS detail, amount
        FROM judged LEFT JOIN set_aside USING (source, file, row)
        WHERE judged.reason IS NOT NULL OR set_aside.reason IS NOT NULL OR CAST(ordered_at AS DATE) NOT {inside}
        ORDER BY source, file, row
    """)
    return dict(
        con.execute("SELECT reason, count(*) FROM quarantine GROUP BY reason ORDER BY 2 DESC, 1").fetchall()
    )


def _single(unit: Unit, what: str, values: set[str]) -> str:
    if len(values) > 1:
        raise BadFirmData(unit.name, f"its sources are in several {what}: {', '.join(sorted(values))}")
    return values.pop()
