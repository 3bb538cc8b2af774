"""One source file as a DuckDB relation of mapped, parsed and judged rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import duckdb

from cbmt_core.config import SourceConfig
from cbmt_core.duck import identifier, literal
from cbmt_core.errors import UnreadableSource
from cbmt_core.names import MAX_SLUG, SEPARATOR, slug_sql

__all__ = ["SUFFIXES", "files_of", "judged_rows", "rejected_lines"]

CSV = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")
PARQUET = (".parquet",)
DUCKDB = (".duckdb", ".db")
SUFFIXES = CSV + PARQUET

OFFSET = r"(?i)\d{2}:\d{2}.*(Z|[+-]\d{2}(:?\d{2})?)$"


def files_of(source: SourceConfig, root: Path) -> list[Path]:
    """The files a source names, sorted: one file, a folder (searched through), or a glob."""
    path = Path(source.path)
    path = path if path.is_absolute() else root / path
    if path.is_file():
        return [path]
    found: Iterable[Path]
    if path.is_dir():
        found = (p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
    else:
        fixed = Path(*path.parts[: next((k for k, part in enumerate(path.parts) if _globs(part)), -1)])
        found = fixed.glob(str(path.relative_to(fixed))) if path != fixed else ()
    files = sorted(p for p in found if p.name.lower().endswith(SUFFIXES))
    if not files:
        raise UnreadableSource(
            f"source {source.name!r}: there is no file at {source.path} "
            f"(a file, a folder or a glob of {', '.join(SUFFIXES)}, or a DuckDB file and its table)"
        )
    return files


def _globs(part: str) -> bool:
    return any(mark in part for mark in "*?[")


def _scan(con: duckdb.DuckDBPyConnection, source: SourceConfig, file: Path) -> str:
    """SQL for the file's rows, each with its number `_row`; CSV lines that are no rows are set apart."""
    name = file.name.lower()
    if name.endswith(CSV):
        options = ["all_varchar=true", "header=true", f"encoding={literal(source.encoding)}"]
        options += ["store_rejects=true", "rejects_table='_rejects'", "rejects_scan='_reject_scans'"]
        options += ["rejects_limit=0", "max_line_size=10000000"]
        if source.delimiter:
            options.append(f"delim={literal(source.delimiter)}")
        scan = f"read_csv({literal(str(file))}, {', '.join(options)})"
        return f"SELECT *, row_number() OVER () AS _row FROM {scan}"
    if name.endswith(PARQUET):
        scan = f"read_parquet({literal(str(file))}, file_row_number=true)"
        return f"SELECT *, file_row_number + 1 AS _row FROM {scan}"
    if name.endswith(DUCKDB):
        if not source.table:
            raise UnreadableSource(f"source {source.name!r}: say which table of {file} to read (table = ...)")
        con.execute(f"ATTACH {literal(str(file))} AS _source (READ_ONLY)")
        table = ".".join(identifier(part) for part in source.table.split("."))
        return f"SELECT *, row_number() OVER () AS _row FROM _source.{table}"
    raise UnreadableSource(f"source {source.name!r}: {file} is none of {', '.join(SUFFIXES + DUCKDB)}")


def _time_sql(source: SourceConfig, column: str, kind: str) -> str:
    """Local order time; a stated offset is honoured, a time without one is local already."""
    zone = literal(source.timezone)
    if kind == "TIMESTAMP WITH TIME ZONE":
        return f"{column} AT TIME ZONE {zone}"
    if kind == "DATE" or kind.startswith("TIMESTAMP"):
        return f"CAST({column} AS TIMESTAMP)"
    text = f"trim(CAST({column} AS VARCHAR))"
    if source.time_format:
        return f"try_strptime({text}, {literal(source.time_format)})"
    return (
        f"CASE WHEN regexp_matches({text}, '{OFFSET}') "
        f"THEN TRY_CAST({text} AS TIMESTAMPTZ) AT TIME ZONE {zone} ELSE TRY_CAST({text} AS TIMESTAMP) END"
    )


def judged_rows(con: duckdb.DuckDBPyConnection, source: SourceConfig, file: Path, label: str) -> str:
    """SQL for every row of `file`, mapped, parsed, and with a `reason` where it cannot be used.

    CSV lines that do not have the file's columns are no rows: DuckDB sets them apart while the others
    are read, and `rejected_lines` gives them afterwards.
    """
    scan = _scan(con, source, file)
    types = dict(con.execute(f"SELECT column_name, column_type FROM (DESCRIBE {scan})").fetchall())
    columns = source.columns.model_dump()
    if source.firm is not None:
        columns["firm"] = None
    missing = [f"{ours} = {theirs!r}" for ours, theirs in columns.items() if theirs and theirs not in types]
    if missing:
        there = ", ".join(repr(name) for name in types if name != "_row")
        raise UnreadableSource(
            f"source {source.name!r}: {file} has no column for {', '.join(missing)}; it has {there}. "
            "Say in [sources.columns] which column is which"
        )

    def text(ours: str) -> str:
        theirs = columns[ours]
        return (
            f"nullif(trim(CAST({identifier(theirs)} AS VARCHAR)), '')" if theirs else "CAST(NULL AS VARCHAR)"
        )

    firm = literal(source.firm) if source.firm is not None else text("firm")
    time = identifier(columns["order_time"])
    amount = identifier(columns["amount"])
    number = f"trim(CAST({amount} AS VARCHAR))" if types[columns["amount"]] == "VARCHAR" else amount
    if source.decimal_separator == ",":
        number = f"replace(replace(CAST({number} AS VARCHAR), '.', ''), ',', '.')"
    no_order_id = "order_id IS NULL" if columns["order_id"] else "false"
    no_segment = "segment IS NULL" if columns["segment"] else "false"
    tilde = (
        f"contains(firm, '{SEPARATOR}') OR contains(segment, '{SEPARATOR}')"
        if columns["segment"]
        else "false"
    )
    fields = ", ".join(f"'{ours}': {identifier(theirs)}" for ours, theirs in columns.items() if theirs)
    slug = slug_sql("firm")
    return f"""
        WITH mapped AS (
            SELECT _row AS row, {firm} AS firm, {text("segment")} AS segment, {text("customer")} AS customer,
                {text("order_id")} AS order_id, {text("industry")} AS industry,
                {_time_sql(source, time, types[columns["order_time"]])} AS ordered_at,
                nullif(trim(CAST({amount} AS VARCHAR)), '') AS amount_text,
                TRY_CAST({number} AS DOUBLE) AS amount_float,
                TRY_CAST({number} AS DECIMAL(18,4)) AS amount,
                {{{fields}}} AS fields
            FROM ({scan})
        ), judged AS (
            SELECT *, {slug} AS slug, CASE
                WHEN firm IS NULL THEN 'missing firm'
                WHEN regexp_matches(firm, '[[:cntrl:]]') OR {tilde} OR length({slug}) > {MAX_SLUG}
                    THEN 'bad firm name'
                WHEN customer IS NULL THEN 'missing customer'
                WHEN {no_order_id} THEN 'missing order id'
                WHEN {no_segment} THEN 'missing segment'
                WHEN amount_text IS NULL OR isnan(amount_float) THEN 'missing amount'
                WHEN isinf(amount_float) THEN 'infinite amount'
                WHEN amount IS NULL THEN 'unparseable amount'
                WHEN amount <= 0 THEN 'non-positive amount'
                WHEN ordered_at IS NULL THEN 'unparseable time'
            END AS reason FROM mapped
        )
        SELECT {literal(source.name)} AS source, {literal(label)} AS file, row,
            CASE WHEN reason IN ('missing firm', 'bad firm name') THEN NULL ELSE slug END AS slug,
            firm, segment, customer, order_id, ordered_at, amount, industry, reason,
            CASE WHEN reason IS NOT NULL THEN CAST(fields AS VARCHAR) END AS detail
        FROM judged"""


def rejected_lines(con: duckdb.DuckDBPyConnection, source: SourceConfig, label: str) -> int:
    """Make the table `rejected`, shaped like the judged rows, of the CSV lines set apart; count them."""
    made = con.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = '_rejects'").fetchone()
    lines = "_rejects" if made and made[0] else "(SELECT 0 AS line, '' AS csv_line, '' AS error_type LIMIT 0)"
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE rejected AS
        SELECT {literal(source.name)} AS source, {literal(label)} AS file, line - 1 AS row,
            CAST(NULL AS VARCHAR) AS slug, CAST(NULL AS VARCHAR) AS firm, CAST(NULL AS VARCHAR) AS segment,
            CAST(NULL AS VARCHAR) AS customer, CAST(NULL AS VARCHAR) AS order_id,
            CAST(NULL AS TIMESTAMP) AS ordered_at, CAST(NULL AS DECIMAL(18,4)) AS amount,
            CAST(NULL AS VARCHAR) AS industry, 'unparseable line' AS reason,
            lower(any_value(CAST(error_type AS VARCHAR))) || ': ' || any_value(csv_line) AS detail
        FROM {lines} GROUP BY line""")
    return int(con.execute("SELECT count(*) FROM rejected").fetchall()[0][0])
