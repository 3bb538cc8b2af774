"""CSV files as DuckDB reads them here: nothing guessed but the delimiter, no line lost."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Collection
from pathlib import Path

import duckdb

from cbmt_core.config import SourceConfig
from cbmt_core.duck import literal, path_literal
from cbmt_core.errors import UnreadableSource

__all__ = ["CSV_SUFFIXES", "csv_scan", "rejected_lines"]

CSV_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")
DELIMITERS = (",", "\t", ";", "|")
MAX_LINE = 10_000_000


def csv_scan(source: SourceConfig, file: Path, wanted: Collection[str], *, strict: bool = True) -> str:
    """SQL for the file's records as text. Lines that are no records are set apart for `rejected_lines`.

    DuckDB's own detection looks at a sample and may take a quote mark or the first rows for something
    else, so the dialect is fixed and only the delimiter is chosen: the one that gives the wanted columns.
    """
    delimiter, names = _heading(source, file, wanted)
    columns = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in names)
    options = [
        "auto_detect=false, header=true, quote='\"', escape='\"', comment=''",
        f"delim={literal(delimiter)}, columns={{{columns}}}, encoding={literal(source.encoding)}",
        f"compression='{'gzip' if file.name.lower().endswith('.gz') else 'none'}'",
        "store_rejects=true, rejects_table='_rejects', rejects_scan='_reject_scans', rejects_limit=0",
        f"max_line_size={MAX_LINE}, strict_mode={strict}, hive_partitioning=false",
    ]
    return f"read_csv({path_literal(file)}, {', '.join(options)})"


def _heading(source: SourceConfig, file: Path, wanted: Collection[str]) -> tuple[str, list[str]]:
    """The delimiter and the names of the columns, made unique."""
    opener = gzip.open if file.name.lower().endswith(".gz") else open
    encoding = "utf-8-sig" if source.encoding == "utf-8" else source.encoding
    try:
        with opener(file, "rt", encoding=encoding, errors="replace", newline="") as handle:
            first = handle.readline(MAX_LINE)
    except (OSError, EOFError, LookupError) as error:
        raise UnreadableSource(f"source {source.name!r}: {file} cannot be read: {error}") from error
    if not first.strip():
        raise UnreadableSource(f"source {source.name!r}: {file} does not start with a line of column names")
    choices = [source.delimiter] if source.delimiter else DELIMITERS
    headings = {mark: next(csv.reader([first], delimiter=mark)) for mark in choices}
    best = max(headings, key=lambda mark: (len(set(wanted) & set(headings[mark])), len(headings[mark])))
    names: list[str] = []
    for place, given in enumerate(headings[best]):
        name = given.strip() or f"column{place}"
        names.append(name if name.lower() not in {n.lower() for n in names} else f"{name}_{place}")
    return best, names


def rejected_lines(con: duckdb.DuckDBPyConnection) -> int:
    """Make the tables `rejected(row, detail)` and `gap(row, shift)` of the lines set apart; count them.

    A quote mark that is never closed swallows the lines after it into one record: each of them counts. With
    CRLF line ends DuckDB gives a line with the end of the one before it.
    A record numbered `row` or higher among the good ones stands `shift` further down in the file.
    """
    made = con.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = '_rejects'").fetchall()
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE records AS
        WITH once AS (
            SELECT CAST(line AS BIGINT) - 1 AS record, lower(min(CAST(error_type AS VARCHAR))) AS kind,
                regexp_split_to_array(trim(any_value(csv_line), chr(13) || chr(10)), '\r\n|\n|\r') AS lines
            FROM {"_rejects" if made[0][0] else "(SELECT 0 AS line, '' AS error_type, '' AS csv_line LIMIT 0)"}
            GROUP BY line
        )
        SELECT *, record - row_number() OVER (ORDER BY record) + 1 AS row,
            CAST(sum(len(lines)) OVER (ORDER BY record) AS BIGINT) AS shift FROM once""")
    con.execute("""
        CREATE OR REPLACE TEMP TABLE gap AS SELECT row, max(shift) AS shift FROM records GROUP BY row;
        CREATE OR REPLACE TEMP TABLE rejected AS
        SELECT row - 1 + shift - len(lines) + unnest(range(1, len(lines) + 1)) AS row,
            kind || ': ' || unnest(lines) AS detail FROM records""")
    return int(con.execute("SELECT count(*) FROM rejected").fetchall()[0][0])
