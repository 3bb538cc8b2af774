"""CSV files and workbooks as DuckDB relations: every physical line is used, set apart, or refuses the file.

A clean file is read by DuckDB alone. Afterwards its lines are counted; where the count differs from the records, or
DuckDB meets an error, the file is read again line by line (`csv_lines`) and its good records are handed to DuckDB.
"""

from __future__ import annotations

import csv
import shutil
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import duckdb

from cbmt_core.config import SourceConfig
from cbmt_core.duck import literal, path_literal
from cbmt_core.errors import UnreadableSource
from cbmt_core.transactions.csv_lines import (
    MAX_LINE,
    Record,
    byte_order_mark,
    decoded,
    heading_lines,
    is_gzip,
    lines_of,
    one_line,
    open_bytes,
    records,
)
from cbmt_core.transactions.spreadsheet import SHEET_SUFFIXES, sheet_rows

__all__ = ["CSV_SUFFIXES", "DELIMITERS", "TRAILING", "CsvFile", "open_csv"]

CSV_SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz")
DELIMITERS = (",", "\t", ";", "|")
MANY_COLUMNS = 500
"""With more columns than this, only the wanted ones are passed to DuckDB, whose time grows with their number."""
NO_TEXT = {
    b"\x1f\x8b": "compressed (.csv.gz)",
    b"PK\x03\x04": "a workbook (.xlsx) or a zip archive, which must be unpacked",
    b"PAR1": "Parquet (.parquet)",
    b"\xd0\xcf\x11\xe0": "a workbook (.xls)",
}
"""First bytes of files that are sometimes called .csv -> what they are."""
TRAILING = 4
"""DuckDB accepts a line with an extra delimiter at its end; lines that end with up to this many empty columns are
counted."""


@dataclass(frozen=True)
class CsvFile:
    """A text file whose columns are known."""

    source: SourceConfig
    file: Path
    names: list[str]
    """Names of the columns, made unique."""
    delimiter: str
    encoding: str
    head: tuple[str, ...]
    """Lines through the names of the columns, without their ends."""
    scratch: Path
    """Folder for copies, removed by the caller."""

    @property
    def is_sheet(self) -> bool:
        return self.file.name.lower().endswith(SHEET_SUFFIXES)

    # -- the fast way ----------------------------------------------------------------------------

    def can_be_scanned(self) -> bool:
        """Whether DuckDB may try: a text of not too many columns."""
        return not self.is_sheet and len(self.names) <= MANY_COLUMNS

    def scan(self) -> str:
        """SQL for the records as DuckDB reads them; columns are called c0, c1, ... An odd line is an error."""
        columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(self.names)))
        options = [
            "auto_detect=false, header=true, quote='\"', escape='\"', comment='', allow_quoted_nulls=false",
            f"delim={literal(self.delimiter)}, columns={{{columns}}}, skip={self.source.header_line - 1}",
            f"max_line_size={MAX_LINE}, strict_mode=true, hive_partitioning=false",
        ]
        return f"read_csv({path_literal(self._plain())}, {', '.join(options)})"

    def _plain(self) -> Path:
        """The file, or a copy of it that is neither compressed nor in another encoding."""
        if not is_gzip(self.file) and self.encoding == "utf-8":
            return self.file
        copy = self.scratch / "plain.csv"
        if not copy.exists():
            try:
                if self.encoding == "utf-8":
                    with open_bytes(self.file) as packed, copy.open("wb") as target:
                        shutil.copyfileobj(packed, target, 1 << 20)
                else:
                    with copy.open("w", encoding="utf-8", errors="surrogateescape", newline="") as text:
                        text.writelines(lines_of(self.file, self.encoding))
            except (OSError, EOFError, zlib.error, UnicodeError) as error:
                copy.unlink(missing_ok=True)
                raise UnreadableSource(
                    f"source {self.source.name!r}: {self.file} cannot be read: {error}"
                ) from error
        return copy

    def agrees(self, rows: int, trailing: Sequence[int]) -> bool:
        """Whether the file's lines are as many as the records that DuckDB found.

        Args:
            rows: records found.
            trailing: how many of them end with at least 1, 2, ... empty columns.
        """
        file = self._plain()
        if not file.stat().st_size:
            return rows == 0
        mark = self.delimiter.encode()
        ends = [mark * level + end for level in range(1, len(trailing) + 1) for end in (b"\n", b"\r\n")]
        counts, last = _counts(file, [b"\n", b"\r", b"\r\n", b"\0", *ends])
        lines, returns, both = counts[b"\n"], counts[b"\r"], counts[b"\r\n"]
        if lines + (not last.endswith(b"\n")) != rows + len(self.head) or returns not in (0, lines):
            return False
        if returns != both or counts[b"\0"]:
            return False
        for level, expected in enumerate(trailing, start=1):
            found = (
                counts[mark * level + b"\n"] + counts[mark * level + b"\r\n"] + last.endswith(mark * level)
            )
            if found != expected + sum(line.endswith(self.delimiter * level) for line in self.head):
                return False
        return True

    def tail(self) -> str:
        """SQL for how many of a record's last columns are empty, at most TRAILING, for `agrees`."""
        last = len(self.names) - 1
        cases = [f"WHEN c{last - k} IS NOT NULL THEN {k}" for k in range(min(TRAILING, last + 1))]
        return f"CASE {' '.join(cases)} ELSE {len(cases)} END"

    # -- the slow way ----------------------------------------------------------------------------

    def rewrite(self, con: duckdb.DuckDBPyConnection, wanted: Collection[int]) -> str:
        """SQL for the good records, read one by one: `row` and the wanted columns c0, c1, ...

        Makes the table `rejected(row, detail)` of the lines that are no records.
        """
        places = sorted(wanted)
        target, apart = self.scratch / "records.csv", self.scratch / "rejected.csv"
        row = 0
        with (
            target.open("w", encoding="utf-8", newline="") as good,
            apart.open("w", encoding="utf-8", newline="") as bad,
        ):
            write, reject = csv.writer(good), csv.writer(bad)
            for row, record in enumerate(self._records(), start=1):
                if record.wrong:
                    reject.writerow([row, record.detail])
                else:
                    fields = record.fields
                    write.writerow([row, *[fields[place] for place in places]])
        columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in places)
        dialect = (
            f"auto_detect=false, header=false, quote='\"', escape='\"', comment='', delim=',', "
            f"max_line_size={4 * MAX_LINE}, parallel=false, new_line='\\r\\n'"
        )
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE rejected AS FROM read_csv({literal(str(apart))}, {dialect}, "
            "columns={'row': 'BIGINT', 'detail': 'VARCHAR'})"
        )
        return f"read_csv({literal(str(target))}, {dialect}, columns={{'row': 'BIGINT', {columns}}})"

    def _records(self) -> Iterator[Record]:
        width = len(self.names)
        if self.is_sheet:
            rows = sheet_rows(self.source.name, self.file, self.source.sheet)
            for row in islice(rows, self.source.header_line, None):
                if any(cell.strip() for cell in row):
                    yield Record((row + [""] * width)[:width])
            return
        lines = decoded(self.source.name, self.file, lines_of(self.file, self.encoding))
        yield from records(islice(lines, len(self.head), None), self.delimiter, width)


def _counts(file: Path, patterns: Sequence[bytes]) -> tuple[dict[bytes, int], bytes]:
    """How often each pattern stands in a file, and its last bytes."""
    counts = dict.fromkeys(patterns, 0)
    before = b""
    with file.open("rb") as handle:
        while piece := handle.read(1 << 18):
            here: dict[bytes, int] = {}
            for pattern in patterns:
                if here.get(pattern[1:]) == 0:
                    here[pattern] = 0  # Without its end, the pattern cannot occur.
                    continue
                seam = before[len(before) - len(pattern) + 1 :] if len(pattern) > 1 else b""
                here[pattern] = piece.count(pattern) + (seam + piece[: len(pattern) - 1]).count(pattern)
                counts[pattern] += here[pattern]
            before = (before + piece)[-16:]
    return counts, before


def open_csv(source: SourceConfig, file: Path, wanted: Iterable[str], scratch: Path) -> CsvFile:
    """Find out the file's delimiter and the names of its columns: the delimiter that gives the wanted ones."""
    known = {name.casefold() for name in wanted}
    if file.name.lower().endswith(SHEET_SUFFIXES):
        rows = sheet_rows(source.name, file, source.sheet)
        heading = next(islice(rows, source.header_line - 1, None), [])
        if not any(cell.strip() for cell in heading):
            raise UnreadableSource(
                f"source {source.name!r}: row {source.header_line} of {file} does not name columns"
            )
        return CsvFile(source, file, _unique(source, file, heading, known), ",", "utf-8", (), scratch)
    try:
        with open_bytes(file) as raw:
            start = raw.read(4)
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableSource(f"source {source.name!r}: {file} cannot be read: {error}") from error
    if kind := next((kind for mark, kind in NO_TEXT.items() if start.startswith(mark)), None):
        raise UnreadableSource(
            f"source {source.name!r}: {file} is no text but {kind}: give its name the suffix of its kind"
        )
    encoding = byte_order_mark(start) or source.encoding
    lines = decoded(source.name, file, lines_of(file, encoding))
    head = heading_lines(lines, source.header_line)
    heading = head[source.header_line - 1 :]
    first = "".join(heading).rstrip("\r\n")
    if "\0" in first:
        raise UnreadableSource(
            f"source {source.name!r}: {file} holds zero bytes; is its encoding utf-16-le or utf-16-be?"
        )
    if not first.strip() or len(first) >= MAX_LINE:
        raise UnreadableSource(f"source {source.name!r}: {file} does not start with a line of column names")
    marks = [source.delimiter] if source.delimiter else DELIMITERS
    headings = {}
    for mark in marks:
        try:
            headings[mark] = next(csv.reader(heading, delimiter=mark))
        except csv.Error as error:
            raise UnreadableSource(
                f"source {source.name!r}: the column names of {file} cannot be read: {error}"
            ) from error
    best = max(
        headings,
        key=lambda mark: (
            len(known & {one_line(name).casefold() for name in headings[mark]}),
            len(headings[mark]),
        ),
    )
    names = [name.encode("utf-8", "replace").decode() for name in headings[best]]
    return CsvFile(source, file, _unique(source, file, names, known), best, encoding,
                   tuple(line.rstrip("\r\n") for line in head), scratch)  # fmt: skip


def _unique(source: SourceConfig, file: Path, heading: Sequence[str], wanted: Iterable[str]) -> list[str]:
    """The names of the columns, each a name of its own. Of those that are wanted there must be no two."""
    given = [one_line(name) for name in heading]
    if twice := sorted({name for name in given if name.casefold() in wanted and given.count(name) > 1}):
        raise UnreadableSource(
            f"source {source.name!r}: {file} has more than one column called {', '.join(map(repr, twice))}; "
            "give them different names"
        )
    names: list[str] = []
    seen: set[str] = set()
    for place, name in enumerate(given):
        name = name or f"column{place}"
        names.append(f"{name}_{place}" if name in seen else name)
        seen.add(name)
    return names
