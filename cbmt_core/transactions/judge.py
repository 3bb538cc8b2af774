"""SQL that maps and parses the rows of a file, and gives the reason for each row that cannot be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cbmt_core.config import SourceConfig
from cbmt_core.duck import literal
from cbmt_core.names import MAX_SLUG, SEPARATOR, slug_sql
from cbmt_core.transactions.amounts import amount_sql
from cbmt_core.transactions.reasons import (
    BLANK_ROW,
    LEFT_OUT,
    MISSING_CUSTOMER,
    MISSING_TIME,
    OTHER_CURRENCY,
    STRAY_DATE,
    TOTALS_ROW,
    UNPARSEABLE_TIME,
)
from cbmt_core.transactions.times import FIRST_YEAR, LAST_YEAR, time_sql

__all__ = ["judged_sql"]

_TOTALS = (
    r"^\W*((grand|sub|report|net)[ -]?)?(totals?|summe|gesamt(summe)?|suma|totale|totaux|totaal|sum)\W*$"
)
"""A cell that marks a row of totals."""
_TOTAL_OF = r"^\W*(grand |sub-?|report )?(total|summe|gesamt|zwischensumme|suma|totale|totaal|sum)\b"
"""The start of such a cell, as in "Subtotal 2021-01-04"."""
_NO_VALUE = (
    r"('NULL', 'null', 'Null', '(null)', '<null>', '\N', 'NaN', 'nan', '<NA>', 'N/A', 'n/a', '#N/A', "
    "'None', 'undefined')"
)
"""Texts that programs write for a missing customer; otherwise all guests would be one customer of that name."""


def judged_sql(
    source: SourceConfig,
    label: str,
    relation: str,
    row: str,
    columns: Mapping[str, tuple[str, str]],
    first_column: str,
    tail: str = "0",
) -> str:
    """SQL for every row of `relation`, mapped, parsed, and with a `reason` where it cannot be used.

    `problems` names every wrong column of such a row, not only the first.

    Args:
        label: how the file is called in the tables.
        row: SQL for the number of the row.
        columns: our name of a column -> its SQL and its type. `leave_out_0`, ... are columns to leave rows out by,
            `refund_where_0`, ... those that tell refunds.
        first_column: SQL of the file's first column, where reports write "Total".
        tail: SQL for how many of the row's last columns are empty.
    """

    def text(ours: str) -> str:
        if ours not in columns:
            return "CAST(NULL AS VARCHAR)"
        if columns[ours][1] in ("FLOAT", "DOUBLE"):
            # Identifiers with gaps often arrive as floating point: 17.0 is the 17 of another file.
            return f"nullif(regexp_replace(CAST(f_{ours} AS VARCHAR), '\\.0$', ''), 'nan')"
        return f"nullif(trim(CAST(f_{ours} AS VARCHAR)), '')"

    def customer_text() -> str:
        if columns.get("customer", ("", ""))[1] != "VARCHAR":
            return text("customer")
        return f"CASE WHEN f_customer NOT IN {_NO_VALUE} THEN {text('customer')} END"

    picked = ", ".join(f"{sql} AS f_{ours}" for ours, (sql, _) in columns.items())
    firm = literal(source.firm) if source.firm is not None else f"nfc_normalize({text('firm')})"
    amount = _amount(source, columns)
    refunded = (
        f"abs({_number(source, columns, 'refunded')})"
        if "refunded" in columns
        else "CAST(NULL AS DECIMAL(18,4))"
    )
    fields = ", ".join(
        f"'{ours}': f_{ours}" for ours in columns if not ours.startswith(("leave_out", "refund_where"))
    )
    texts = ", ".join(f"CAST(f_{ours} AS VARCHAR)" for ours in columns)
    conditions = [*_conditions(source, columns, texts)]
    reason = "\n".join(f"WHEN {condition} THEN {literal(why)}" for _, condition, why in conditions)
    titles = {f"leave_out_{k}": title for k, title in enumerate(source.leave_out)}
    problems = ", ".join(
        f"CASE WHEN {condition} THEN {literal(f'{titles.get(ours, ours)}: {why}' if ours else why)}"
        + (f" || coalesce(' ' || nullif(CAST(f_{ours} AS VARCHAR), ''), '')" if ours in columns else "")
        + " END"
        for ours, condition, why in conditions
    )
    kept = "CASE WHEN reason IS NOT NULL THEN"
    return f"""
        WITH raw AS (SELECT {row} AS row, CAST({first_column} AS VARCHAR) AS first_cell, {tail} AS tail, {picked}
            FROM {relation}),
        mapped AS (
            SELECT *, {firm} AS firm, nfc_normalize({text("segment")}) AS segment, {customer_text()} AS customer,
                {text("order_id")} AS order_id, {text("parent_id")} AS parent_id,
                {text("industry")} AS industry,
                {time_sql(source, "f_order_time", columns["order_time"][1])} AS read_time,
                CASE WHEN isfinite(read_time) AND year(read_time) BETWEEN {FIRST_YEAR} AND {LAST_YEAR}
                    THEN read_time END AS ordered_at,
                {amount} AS amount, {refunded} AS refunded
            FROM raw
        ), judged AS (
            SELECT *, {slug_sql("firm")} AS slug, {slug_sql("segment")} AS segment_slug, CASE
                {reason}
            END AS reason FROM mapped
        )
        SELECT {literal(source.name)} AS source, {literal(label)} AS file, row,
            CASE WHEN reason IN ('missing firm', 'bad firm name', '{BLANK_ROW}', '{TOTALS_ROW}') AND
                {"true" if source.firm is None else "false"} THEN NULL ELSE slug END AS slug,
            firm, CASE WHEN reason IS DISTINCT FROM 'bad segment name' THEN segment END AS segment,
            customer, order_id, parent_id, ordered_at, amount, refunded, industry, reason,
            {kept} CAST({{{fields}}} AS VARCHAR) END AS detail, {kept} concat_ws('; ', {problems}) END AS problems,
            tail
        FROM judged"""


def _conditions(
    source: SourceConfig, columns: Mapping[str, tuple[str, str]], texts: str
) -> list[tuple[str, str, str]]:
    """(our column, SQL condition, reason), the first that holds being the row's reason."""
    blank = f"amount IS NULL AND read_time IS NULL AND customer IS NULL AND trim(concat({texts})) = ''"
    amount_text = "nullif(trim(CAST(f_amount AS VARCHAR)), '')"
    may_lack_amount = (
        "order_id IS NOT NULL AND" if source.amount_of == "order" and "order_id" in columns else ""
    )
    missing_amount = f"amount IS NULL AND ({amount_text} IS NULL OR isnan(TRY_CAST(f_amount AS DOUBLE)))"
    if may_lack_amount:
        missing_amount += " AND order_id IS NULL"
    found = [
        ("", blank, BLANK_ROW),
        (
            "",
            f"amount IS NOT NULL AND read_time IS NULL AND (len(list_filter([first_cell, {texts}], lambda c: "
            f"regexp_matches(lower(trim(c)), {literal(_TOTALS)}))) > 0 OR (customer IS NULL AND "
            f"regexp_matches(lower(trim(first_cell)), {literal(_TOTAL_OF)})))",
            TOTALS_ROW,
        ),
    ]
    for k, values in enumerate(source.leave_out.values()):
        found.append((f"leave_out_{k}", _is_one_of(f"leave_out_{k}", values), LEFT_OUT))
    if "currency" in columns:
        found.append(
            (
                "currency",
                f"upper(trim(CAST(f_currency AS VARCHAR))) NOT IN ('', {literal(source.currency)})",
                OTHER_CURRENCY,
            )
        )
    found += [
        ("firm", "firm IS NULL", "missing firm"),
        (
            "firm",
            f"regexp_matches(firm, '[[:cntrl:]]') OR length({slug_sql('firm')}) > {MAX_SLUG}",
            "bad firm name",
        ),
    ]
    if "order_id" in columns:
        found.append(("order_id", "order_id IS NULL", "missing order id"))
    if "segment" in columns:
        found += [
            ("segment", "segment IS NULL", "missing segment"),
            (
                "segment",
                f"contains(segment, '{SEPARATOR}') OR regexp_matches(segment, '[[:cntrl:]]') OR "
                f"length({slug_sql('firm')}) + 1 + length({slug_sql('segment')}) > {MAX_SLUG}",
                "bad segment name",
            ),
        ]
    found += [
        ("amount", missing_amount, "missing amount"),
        ("amount", "amount IS NULL AND isinf(TRY_CAST(f_amount AS DOUBLE))", "infinite amount"),
    ]
    if "quantity" in columns:
        found += [
            ("quantity", "nullif(trim(CAST(f_quantity AS VARCHAR)), '') IS NULL", "missing quantity"),
            ("quantity", f"{_number(source, columns, 'quantity')} IS NULL", "unparseable quantity"),
        ]
    unread = f"amount IS NULL AND {amount_text} IS NOT NULL" if may_lack_amount else "amount IS NULL"
    found.append(("amount", unread, "unparseable amount"))
    if "discount" in columns:
        found.append(
            (
                "discount",
                f"coalesce({_discount(source, columns)} NOT BETWEEN 0 AND 1, true)",
                "no share discounted",
            )
        )
    if "refunded" in columns:
        found.append(
            (
                "refunded",
                "refunded IS NULL AND nullif(trim(CAST(f_refunded AS VARCHAR)), '') IS NOT NULL",
                "unparseable refund",
            )
        )
    return [
        *found,
        ("order_time", "nullif(trim(CAST(f_order_time AS VARCHAR)), '') IS NULL", MISSING_TIME),
        (
            "order_time",
            "(read_time IS NULL OR NOT isfinite(read_time)) AND nullif(trim(CAST(f_order_time AS VARCHAR)), '') "
            "IS NOT NULL",
            UNPARSEABLE_TIME,
        ),
        ("order_time", "read_time IS NOT NULL AND isfinite(read_time) AND ordered_at IS NULL", STRAY_DATE),
        ("customer", "customer IS NULL", MISSING_CUSTOMER),
    ]


def _number(source: SourceConfig, columns: Mapping[str, tuple[str, str]], ours: str) -> str:
    """SQL of a column's number."""
    if columns[ours][1] == "VARCHAR":
        return amount_sql(f"trim(f_{ours})", source.decimal_separator, source.currency)
    return f"TRY_CAST(f_{ours} AS DECIMAL(18,4))"


def _amount(source: SourceConfig, columns: Mapping[str, tuple[str, str]]) -> str:
    """SQL of what a row adds to its order."""
    amount = _number(source, columns, "amount")
    if "quantity" in columns:
        amount = f"TRY_CAST({amount} * {_number(source, columns, 'quantity')} AS DECIMAL(18,4))"
    if "discount" in columns:
        amount = f"TRY_CAST({amount} * (1 - {_discount(source, columns)}) AS DECIMAL(18,4))"
    if source.refund_where:
        back = " OR ".join(
            _is_one_of(f"refund_where_{k}", values) for k, values in enumerate(source.refund_where.values())
        )
        amount = f"CASE WHEN {back} THEN -abs({amount}) ELSE {amount} END"
    return amount


def _is_one_of(ours: str, values: Sequence[str]) -> str:
    """SQL: whether a column holds one of the values, whatever their case."""
    names = ", ".join(literal(value.strip().lower()) for value in values) or "NULL"
    return f"coalesce(lower(trim(CAST(f_{ours} AS VARCHAR))) IN ({names}), false)"


def _discount(source: SourceConfig, columns: Mapping[str, tuple[str, str]]) -> str:
    """SQL of the share taken off: 0.1, 10 % or nothing."""
    if columns["discount"][1] != "VARCHAR":
        return "coalesce(TRY_CAST(f_discount AS DECIMAL(9,6)), 0)"
    bare = f"replace(rtrim(trim(f_discount), ' %'), {literal(source.decimal_separator)}, '.')"
    return (
        f"CASE WHEN coalesce(trim(f_discount), '') = '' THEN 0 ELSE TRY_CAST({bare} AS DECIMAL(9,6)) "
        "/ CASE WHEN contains(f_discount, '%') THEN 100 ELSE 1 END END"
    )
