"""One source file as a DuckDB relation of mapped, parsed and judged rows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

import duckdb

from cbmt_core.config import SourceConfig
from cbmt_core.duck import identifier, literal, path_literal
from cbmt_core.errors import UnreadableSource
from cbmt_core.names import MAX_SLUG, SEPARATOR, slug_sql
from cbmt_core.transactions.csv_file import CSV_SUFFIXES, csv_scan

__all__ = ["SUFFIXES", "files_of", "judged_rows"]

PARQUET = (".parquet",)
DUCKDB = (".duckdb", ".db")
SUFFIXES = CSV_SUFFIXES + PARQUET

ZONE = r":\d{2}(\.\d+)?\s*[A-Za-z+-]"
"""A time of day with something after it: an offset or the name of a zone."""
THOUSANDS = r"^[+-]?\d{1,3}(\.\d{3})+(,\d*)?$"


def files_of(source: SourceConfig, root: Path) -> list[Path]:
    """The files a source names, sorted: one file, a folder (searched through), or a glob."""
    path = Path(source.path)
    path = path if path.is_absolute() else root / path
    if path.is_file():
        return [path]
    found: Iterable[Path]
    if path.is_dir():
        base, found = path, path.rglob("*")
    else:
        base = Path(*path.parts[: next((k for k, part in enumerate(path.parts) if _globs(part)), -1)])
        found = base.glob(str(path.relative_to(base))) if path != base else ()
    suffixes = SUFFIXES + DUCKDB if source.table else SUFFIXES
    files = sorted(
        p
        for p in found
        if p.name.lower().endswith(suffixes)
        and p.is_file()
        and not any(part.startswith(".") for part in p.relative_to(base).parts)
    )
    if not files:
        raise UnreadableSource(
            f"source {source.name!r}: there is no file at {source.path} "
            f"(a file, a folder or a glob of {', '.join(SUFFIXES)}, or a DuckDB file and its table)"
        )
    return files


def _globs(part: str) -> bool:
    return any(mark in part for mark in "*?[")


def _scan(
    con: duckdb.DuckDBPyConnection, source: SourceConfig, file: Path, wanted: Iterable[str], strict: bool
) -> str:
    """SQL for the file's rows, each with its number `_row`; CSV lines that are no rows are set apart."""
    name = file.name.lower()
    if name.endswith(CSV_SUFFIXES):
        scan = csv_scan(source, file, frozenset(wanted), strict=strict)
        return f"SELECT *, row_number() OVER () AS _row FROM {scan}"
    if name.endswith(PARQUET):
        scan = f"read_parquet({path_literal(file)}, file_row_number=true, hive_partitioning=false)"
        return f"SELECT *, file_row_number + 1 AS _row FROM {scan}"
    if name.endswith(DUCKDB):
        if not source.table:
            raise UnreadableSource(f"source {source.name!r}: say which table of {file} to read (table = ...)")
        con.execute(f"ATTACH IF NOT EXISTS {literal(str(file))} AS _source (READ_ONLY)")
        table = ".".join(identifier(part) for part in source.table.split("."))
        return f"SELECT *, row_number() OVER () AS _row FROM _source.{table}"
    raise UnreadableSource(f"source {source.name!r}: {file} is none of {', '.join(SUFFIXES + DUCKDB)}")


def _folder_values(file: Path) -> dict[str, str]:
    """What folder names such as `firm=ACME` say of the file's rows."""
    pairs = (part.split("=", 1) for part in file.parent.parts if "=" in part)
    return {key: unquote(value) for key, value in pairs}


def _time_sql(source: SourceConfig, column: str, kind: str) -> str:
    """Local order time; a stated offset is honoured, a time without one is local already."""
    zone = literal(source.timezone)
    if kind == "TIMESTAMP WITH TIME ZONE":
        return f"{column} AT TIME ZONE {zone}"
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        return f"CAST({column} AS TIMESTAMP)"
    text = f"trim(CAST({column} AS VARCHAR))"
    if source.time_format:
        parsed = f"try_strptime({text}, {literal(source.time_format)})"
        zoned = re.search("(?<!%)(%%)*%[zZ]", source.time_format)
        return f"CAST({parsed} AS TIMESTAMPTZ) AT TIME ZONE {zone}" if zoned else parsed
    # DuckDB reads no offset after a space, and a TIMESTAMP cast would pass over whatever follows the time.
    joined = f"regexp_replace({text}, '\\s+([+-])', '\\1')"
    return (
        f"CASE WHEN regexp_matches({text}, '{ZONE}') "
        f"THEN TRY_CAST({joined} AS TIMESTAMPTZ) AT TIME ZONE {zone} ELSE TRY_CAST({text} AS TIMESTAMP) END"
    )


def judged_rows(
    con: duckdb.DuckDBPyConnection, source: SourceConfig, file: Path, label: str, *, strict: bool = True
) -> str:
    """SQL for every row of `file`, mapped, parsed, and with a `reason` where it cannot be used.

    CSV lines that do not have the file's columns are no rows: DuckDB sets them apart while the others
    are read, and `csv_file.rejected_lines` gives them afterwards.
    """
    columns = source.columns.model_dump()
    if source.firm is not None:
        columns["firm"] = None
    scan = _scan(con, source, file, filter(None, columns.values()), strict)
    types = dict(con.execute(f"SELECT column_name, column_type FROM (DESCRIBE {scan})").fetchall())
    for key, value in _folder_values(file).items():
        if key not in types and key in columns.values():
            scan = f"SELECT *, {literal(value)} AS {identifier(key)} FROM ({scan})"
            types[key] = "VARCHAR"
    missing = [f"{ours} = {theirs!r}" for ours, theirs in columns.items() if theirs and theirs not in types]
    if missing:
        there = ", ".join(repr(name) for name in types if name != "_row")
        raise UnreadableSource(
            f"source {source.name!r}: {file} has no column for {', '.join(missing)}; it has {there}. "
            "Say in [sources.columns] which column is which"
        )

    def text(ours: str) -> str:
        theirs = columns[ours]
        if not theirs:
            return "CAST(NULL AS VARCHAR)"
        if types[theirs] in ("FLOAT", "DOUBLE"):
            # Identifiers with gaps often arrive as floating point: 17.0 is the 17 of another file.
            return f"nullif(regexp_replace(CAST({identifier(theirs)} AS VARCHAR), '\\.0$', ''), 'nan')"
        return f"nullif(trim(CAST({identifier(theirs)} AS VARCHAR)), '')"

    firm = literal(source.firm) if source.firm is not None else text("firm")
    time = identifier(columns["order_time"])
    amount = identifier(columns["amount"])
    number = amount
    if types[columns["amount"]] == "VARCHAR":
        number = f"trim({amount})"
        if source.decimal_separator == ",":
            # A point that divides no thousands is a decimal one after all: 12.50 must not be read as 1250.
            number = (
                f"CASE WHEN NOT contains({number}, '.') OR regexp_matches({number}, '{THOUSANDS}') "
                f"THEN replace(replace({number}, '.', ''), ',', '.') END"
            )
    no_order_id = "order_id IS NULL" if columns["order_id"] else "false"
    no_segment = "segment IS NULL" if columns["segment"] else "false"
    fields = ", ".join(f"'{ours}': {identifier(theirs)}" for ours, theirs in columns.items() if theirs)
    slug = slug_sql("firm")
    segment_slug = slug_sql("segment")
    return f"""
        WITH mapped AS (
            SELECT _row AS row, {firm} AS firm, {text("segment")} AS segment, {text("customer")} AS customer,
                {text("order_id")} AS order_id, {text("industry")} AS industry,
                {_time_sql(source, time, types[columns["order_time"]])} AS read_time,
                CASE WHEN isfinite(read_time) AND year(read_time) BETWEEN 1 AND 9999 THEN read_time END
                    AS ordered_at,
                nullif(trim(CAST({amount} AS VARCHAR)), '') AS amount_text,
                TRY_CAST({number} AS DOUBLE) AS amount_float,
                TRY_CAST({number} AS DECIMAL(18,4)) AS amount,
                {{{fields}}} AS fields
            FROM ({scan})
        ), judged AS (
            SELECT *, {slug} AS slug, CASE
                WHEN firm IS NULL THEN 'missing firm'
                WHEN regexp_matches(firm, '[[:cntrl:]]') OR length({slug}) > {MAX_SLUG}
                    THEN 'bad firm name'
                WHEN customer IS NULL THEN 'missing customer'
                WHEN {no_order_id} THEN 'missing order id'
                WHEN {no_segment} THEN 'missing segment'
                WHEN contains(segment, '{SEPARATOR}') OR regexp_matches(segment, '[[:cntrl:]]')
                    OR length({slug}) + 1 + length({segment_slug}) > {MAX_SLUG} THEN 'bad segment name'
                WHEN amount_text IS NULL OR isnan(amount_float) THEN 'missing amount'
                WHEN isinf(amount_float) THEN 'infinite amount'
                WHEN amount IS NULL THEN 'unparseable amount'
                WHEN amount <= 0 THEN 'non-positive amount'
                WHEN ordered_at IS NULL THEN 'unparseable time'
            END AS reason FROM mapped
        )
        SELECT {literal(source.name)} AS source, {literal(label)} AS file, row,
            CASE WHEN reason IN ('missing firm', 'bad firm name') THEN NULL ELSE slug END AS slug,
            firm, CASE WHEN reason IS DISTINCT FROM 'bad segment name' THEN segment END AS segment,
            customer, order_id, ordered_at, amount, industry, reason,
            CASE WHEN reason IS NOT NULL THEN CAST(fields AS VARCHAR) END AS detail
        FROM judged"""
