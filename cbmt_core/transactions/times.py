"""Order times as SQL: local to the source, whatever their format."""

from __future__ import annotations

import re

from cbmt_core.config import SourceConfig
from cbmt_core.duck import literal
from cbmt_core.transactions.month_names import english_sql

__all__ = ["FIRST_YEAR", "LAST_YEAR", "is_time", "time_sql"]

FIRST_YEAR, LAST_YEAR = 1980, 2100
"""Plausible years of orders; others are placeholders (1900, 9999) or misread (19 for 2019)."""
_ZONE = r":\d{2}(\.\d+)?\s*[A-Za-z+-]"
"""A time of day followed by an offset or the name of a zone."""
_PLAIN = "_" * 13 + ":__:__"
"""2020-01-31 10:00:00: nothing follows the seconds, so there is no zone to look for."""
_BAD_OFFSET = r"[+-](1[5-9]|[2-9]\d|\d{2}:?[6-9]\d|\d{3,}:)[\d:]*$"
"""An offset of 15 hours or more, or with 60 minutes or more."""
_SEVERAL_ZONES = "(?i:ACT|AGT|ART|AST|BET|BST|CNT|CTT|ECT|IET|IST|MIT|NET|NST|PLT|PNT|PRT|SST|VST)$"
"""Short names shared by several zones, which DuckDB reads as one that few people mean: BST as Bangladesh, AST as
Alaska."""


def is_time(kind: str) -> bool:
    """Whether a column of this type holds dates or times."""
    return kind == "DATE" or kind.startswith("TIMESTAMP")


def time_sql(source: SourceConfig, column: str, kind: str) -> str:
    """Local order time; a stated offset is honoured, a time without one is local already."""
    zone = literal(source.timezone)
    if kind.startswith("TIMESTAMP") and (kind.endswith("WITH TIME ZONE") or kind.startswith("TIMESTAMPTZ")):
        return f"CAST({column} AS TIMESTAMPTZ) AT TIME ZONE {zone}"
    if is_time(kind):
        return f"CAST({column} AS TIMESTAMP)"
    column = f"CAST({column} AS VARCHAR)"
    formats = source.time_format or "iso"
    formats = (formats,) if isinstance(formats, str) else formats
    read = [_read(column, pattern, zone) for pattern in formats]
    return read[0] if len(read) == 1 else f"coalesce({', '.join(read)})"


def _read(column: str, pattern: str, zone: str) -> str:
    text = f"trim({column})"
    if pattern == "iso":
        # DuckDB reads no offset after a space, and a TIMESTAMP cast would pass over whatever follows the time.
        joined = f"regexp_replace(regexp_replace({text}, 'z$', 'Z'), '\\s+([+-])', '\\1')"
        return (
            f"CASE WHEN {column} LIKE '{_PLAIN}' THEN TRY_CAST({column} AS TIMESTAMP) "
            f"WHEN regexp_matches({text}, '{_ZONE}') THEN CASE "
            f"WHEN NOT regexp_matches({text}, '{_BAD_OFFSET}|{_SEVERAL_ZONES}') "
            f"THEN TRY_CAST({joined} AS TIMESTAMPTZ) AT TIME ZONE {zone} END ELSE TRY_CAST({text} AS TIMESTAMP) END"
        )
    number = f"TRY_CAST({text} AS DOUBLE)"
    if pattern in ("epoch", "epoch_ms"):
        seconds = number if pattern == "epoch" else f"{number} / 1000"
        inside = f"CASE WHEN {seconds} BETWEEN 0 AND 1e10 THEN {seconds} END"
        return f"to_timestamp({inside}) AT TIME ZONE {zone}"
    if pattern == "excel":
        inside = f"CASE WHEN {number} BETWEEN 1 AND 100000 THEN {number} END"
        return f"(TIMESTAMP '1899-12-30' + to_milliseconds(CAST(round({inside} * 86400) * 1000 AS BIGINT)))"
    parsed = f"try_strptime({text}, {literal(pattern)})"
    if "%b" in pattern:
        parsed = f"coalesce({parsed}, try_strptime({english_sql(text)}, {literal(pattern)}))"
    zoned = re.search("(?<!%)(%%)*%[zZ]", pattern)
    return f"CAST({parsed} AS TIMESTAMPTZ) AT TIME ZONE {zone}" if zoned else parsed
