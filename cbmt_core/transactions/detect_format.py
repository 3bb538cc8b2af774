"""The format of a file, with its first rows as text: encoding, delimiter, and which line names the columns."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import duckdb

from cbmt_core import duck
from cbmt_core.duck import identifier, literal, path_literal
from cbmt_core.errors import UnreadableSource
from cbmt_core.transactions.csv_file import DELIMITERS
from cbmt_core.transactions.csv_lines import (
    byte_order_mark,
    decoded,
    heading_lines,
    lines_of,
    one_line,
    open_bytes,
)
from cbmt_core.transactions.detect_values import looks_like_amount, looks_like_time
from cbmt_core.transactions.spreadsheet import SHEET_SUFFIXES, sheet_rows

__all__ = ["Detected", "table_sample", "text_sample"]

HEAD_LINES = 20_000
SPREAD_LINES = 20_000
"""Lines looked at: the first ones, and as many spread over the rest of the file."""


@dataclass
class Detected:
    """Settings of a source detected from its file, with notes on the evidence."""

    settings: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    heading: list[str] = field(default_factory=list)
    rows: int = 0
    """Rows of the sample."""
    currency: str | None = None
    """Currency that a column of the file names, where it names one only."""
    usual_currency: str | None = None
    """Of several currencies, the one of most rows."""


def table_sample(file: Path, table: str | None) -> tuple[list[str], list[list[str]]]:
    """Column names and the first rows of a Parquet file or of a table in a DuckDB file."""
    with duck.connect() as con:
        relation = f"read_parquet({path_literal(file)}, hive_partitioning = false)"
        if not file.name.lower().endswith(".parquet"):
            relation = _relation_of(con, file, table)
        names = [
            row[0] for row in con.execute(f"SELECT column_name FROM (DESCRIBE FROM {relation})").fetchall()
        ]
        rows = con.execute(
            f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {relation} LIMIT {HEAD_LINES}"
        ).fetchall()
    return names, [[cell or "" for cell in row] for row in rows]


def _relation_of(con: duckdb.DuckDBPyConnection, file: Path, table: str | None) -> str:
    """A table or view of a DuckDB file, attached."""
    try:
        con.execute(f"ATTACH {literal(str(file))} AS _source (READ_ONLY, TYPE duckdb)")
    except duckdb.Error as error:
        raise UnreadableSource(f"{file} cannot be read as a DuckDB file: {error}") from error
    found = con.execute(
        "SELECT CASE schema WHEN 'main' THEN name ELSE concat(schema, '.', name) END FROM (SHOW ALL TABLES) "
        "WHERE database = '_source' ORDER BY ALL"
    ).fetchall()
    names = [name for (name,) in found]
    if table is None or table.removeprefix("main.").casefold() not in {name.casefold() for name in names}:
        which = "say which table to read" if table is None else f"there is no table {table!r}"
        raise UnreadableSource(f"{file}: {which}; it has {', '.join(names) or 'none'} (--table)")
    return "_source." + ".".join(identifier(part) for part in table.split("."))


def text_sample(file: Path, stated: Mapping[str, Any], found: Detected) -> tuple[list[str], list[list[str]]]:
    """Column names and sampled rows of a CSV file or sheet; what its format is goes into `found`."""
    if file.name.lower().endswith(SHEET_SUFFIXES):
        rows = list(islice(sheet_rows("", file, stated.get("sheet")), HEAD_LINES))
        line = stated.get("header_line") or _header(rows) + 1
    else:
        encoding = stated.get("encoding") or _encoding(file, found)
        lines = list(islice(decoded("", file, lines_of(file, encoding)), HEAD_LINES))
        lines += _spread(file, encoding)
        delimiter = stated.get("delimiter") or _delimiter(lines)
        if delimiter != "," and not stated.get("delimiter"):
            found.settings["delimiter"] = delimiter
            found.notes.append(f"columns are divided by {'tabs' if delimiter == chr(9) else repr(delimiter)}")
        first_lines = [
            _split("".join(heading_lines(iter(lines[k:100]), 1)), delimiter) for k in range(len(lines[:100]))
        ]
        line = stated.get("header_line") or _header(first_lines) + 1
        head = heading_lines(iter(lines), line)
        rows = [_split(text, delimiter) for text in lines[: line - 1]]
        rows += [*islice(_parsed(head[line - 1 :], delimiter), 1), *_parsed(lines[len(head) :], delimiter)]
    if line > 1 and not stated.get("header_line"):
        found.settings["header_line"] = line
        before = "the line before it is" if line == 2 else f"the {line - 1} before it are"
        found.notes.append(f"line {line} names the columns; {before} passed over")
    if len(rows) < line or not any(cell.strip() for cell in rows[line - 1]):
        raise UnreadableSource(
            f"{file} has no names of columns in line {line}" if rows else f"{file} is empty"
        )
    heading = [one_line(cell.lstrip("\ufeff")) or f"column{k}" for k, cell in enumerate(rows[line - 1])]
    return heading, [row for row in rows[line:] if any(cell.strip() for cell in row)]


def _encoding(file: Path, found: Detected) -> str:
    with open_bytes(file) as raw:
        start = raw.read(1 << 25)
    encoding = byte_order_mark(start)
    if encoding is None:
        even, odd = start[0:4000:2].count(0), start[1:4000:2].count(0)
        if max(even, odd) > len(start[:4000]) // 5:
            encoding = "utf-16-le" if odd > even else "utf-16-be"
    if encoding is None:
        encoding = "utf-8"
        try:
            start[: start.rfind(b"\n") + 1 or None].decode("utf-8")
        except UnicodeDecodeError:
            undefined = any(byte in start for byte in (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d"))
            encoding = "latin-1" if undefined else "cp1252"
    elif encoding == "utf-8":
        return encoding
    if encoding != "utf-8":
        found.settings["encoding"] = encoding
        found.notes.append(f"the text is in {encoding}")
    return encoding


def _spread(file: Path, encoding: str) -> list[str]:
    """Lines from all over a large file that is not compressed."""
    size = file.stat().st_size
    if file.name.lower().endswith(".gz") or encoding.startswith("utf-16") or size < 4_000_000:
        return []
    lines: list[str] = []
    with file.open("rb") as handle:
        for k in range(1, 21):
            handle.seek(size * k // 21)
            handle.readline()
            lines += [line.decode(encoding, "replace") for line in islice(handle, SPREAD_LINES // 20)]
    return lines


def _split(text: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader(text.splitlines(keepends=True), delimiter=delimiter), [])
    except csv.Error:
        return []


def _parsed(lines: Sequence[str], delimiter: str) -> Iterator[list[str]]:
    reader = csv.reader(iter(lines), delimiter=delimiter)
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error:
            continue


def _delimiter(lines: Sequence[str]) -> str:
    """The one that gives most lines the same number of columns, more than one."""

    def score(mark: str) -> tuple[float, int]:
        widths = Counter(len(row) for row in _parsed(lines[:500], mark) if row)
        width, count = max(widths.items(), key=lambda item: (item[0] > 1, item[1]), default=(1, 0))
        return (count / max(1, sum(widths.values())) if width > 1 else 0.0, width)

    return max(DELIMITERS, key=score)


def _header(rows: Sequence[Sequence[str]]) -> int:
    """Place of the row that names the columns: the first as wide as most, whose cells are words."""
    widths = Counter(len(row) for row in rows if len(row) > 1)
    width = widths.most_common(1)[0][0] if widths else 1
    for place, row in enumerate(rows[:50]):
        cells = [cell.strip() for cell in row]
        filled = [cell for cell in cells if cell]
        if (
            len(row) >= width
            and len(filled) * 10 >= 6 * width
            and not any(looks_like_time(cell) or looks_like_amount(cell) for cell in filled)
        ):
            return place
    return 0
