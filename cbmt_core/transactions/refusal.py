"""Refuse a file most of whose rows cannot be used: its settings are probably wrong."""

from __future__ import annotations

import duckdb

from cbmt_core.duck import literal
from cbmt_core.errors import UnreadableSource
from cbmt_core.transactions.reasons import NOT_BAD

__all__ = ["not_bad_sql", "refuse_unusable"]

SAMPLES = 5


def not_bad_sql() -> str:
    """SQL list of the reasons that do not count as bad."""
    return f"({', '.join(literal(reason) for reason in sorted(NOT_BAD))})"


def refuse_unusable(
    con: duckdb.DuckDBPyConnection, rows: str, source: str, file: str, max_share: float
) -> None:
    """Raise UnreadableSource, with samples, where more than `max_share` of the rows are bad, or none is left to use."""
    total, bad, used = con.execute(
        f"SELECT count(*), count(*) FILTER (reason NOT IN {not_bad_sql()}), count(*) FILTER (reason IS NULL) "
        f"FROM {rows}"
    ).fetchall()[0]
    share = bad / total if total else 0.0
    if not total or (share <= max_share and (used or max_share >= 1)):
        return
    reasons = con.execute(
        f"SELECT reason, count(*) FROM {rows} WHERE reason IS NOT NULL GROUP BY reason ORDER BY 2 DESC, 1 LIMIT 5"
    ).fetchall()
    samples = con.execute(
        f"SELECT row, coalesce(nullif(problems, ''), detail) FROM {rows} WHERE reason NOT IN {not_bad_sql()} "
        f"QUALIFY row_number() OVER (PARTITION BY reason ORDER BY row) <= 3 ORDER BY row LIMIT {SAMPLES}"
    ).fetchall()
    counts = ", ".join(f"{reason} {count:,}" for reason, count in reasons)
    shown = "".join(f"\n  row {row}: {text[:300]}" for row, text in samples)
    value = min(1.0, -(-share * 1000 // 1) / 1000)
    setting = (
        f". If they are, set max_unusable_share = {value:g} or more under [quality] in cbmt.toml (now {max_share:g})"
        if used
        else ""
    )
    raise UnreadableSource(
        f"source {source!r}: {bad or total:,} of the {total:,} rows of {file} cannot be used ({counts}), so it was not "
        f"read: are its columns, formats and encoding as stated? `cbmt ingest {file} --preview` shows what is detected"
        f"{setting}{shown}"
    )
