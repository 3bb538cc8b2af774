"""Lines of a CSV file, whatever its encoding and compression, and its records read one by one.

DuckDB reads clean files. This module reads the others: it knows the physical lines of each record, so that a broken
line affects no other.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from cbmt_core.errors import UnreadableSource

__all__ = [
    "MAX_LINE",
    "Record",
    "byte_order_mark",
    "decoded",
    "heading_lines",
    "is_gzip",
    "lines_of",
    "open_bytes",
    "records",
]

MAX_LINE = 10_000_000
"""Characters of the longest line that is read."""
MAX_SPAN = 1000
"""Physical lines of the longest record: a quote that stays open for longer is taken for a stray character."""
MAX_HEADING = 20
"""Further lines that the names of the columns may go over."""
BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
csv.field_size_limit(MAX_LINE)


def is_gzip(file: Path) -> bool:
    return file.name.lower().endswith(".gz")


def open_bytes(file: Path) -> IO[bytes]:
    """The file's content, decompressed. The checksum of a gzip file is checked when its end is reached."""
    return gzip.open(file, "rb") if is_gzip(file) else file.open("rb")  # type: ignore[return-value]


def byte_order_mark(start: bytes) -> str | None:
    """The encoding that a file's first bytes state."""
    return next((name for mark, name in BOMS if start.startswith(mark)), None)


def lines_of(file: Path, encoding: str) -> Iterator[str]:
    """Physical lines with their ends. A byte that the encoding does not know becomes a lone surrogate.

    A line longer than MAX_LINE is cut there, which makes it longer than any that is used.
    """
    with open_bytes(file) as raw:
        stated = byte_order_mark(raw.read(4))
        raw.seek(0)
        name = stated or encoding
        name = "utf-8-sig" if name == "utf-8" else name
        text = io.TextIOWrapper(raw, encoding=name, errors=_errors(name), newline="")
        while line := text.readline(MAX_LINE):
            if len(line) == MAX_LINE and not line.endswith(("\n", "\r")):
                while (rest := text.readline(MAX_LINE)) and not rest.endswith(("\n", "\r")):
                    pass
            yield line


def _errors(encoding: str) -> str:
    return "surrogateescape" if encoding.startswith("utf-8") or not encoding.startswith("utf-") else "strict"


def heading_lines(lines: Iterator[str], header_line: int) -> list[str]:
    """Lines up to the end of the one that names the columns: a quoted name may go over several."""
    head = list(islice(lines, header_line))
    while len(head) >= header_line and "".join(head[header_line - 1 :]).count('"') % 2:
        line = next(lines, None)
        if line is None or len(head) >= header_line + MAX_HEADING:
            return head[:header_line]
        head.append(line)
    return head


def one_line(name: str) -> str:
    """A column's name without the breaks of its lines."""
    return re.sub(r"\s*[\r\n]+\s*", " ", name).strip()


def decoded(source: str, file: Path, lines: Iterator[str]) -> Iterator[str]:
    """The lines; errors of reading them are raised as UnreadableSource."""
    try:
        yield from lines
    except (OSError, EOFError, zlib.error, UnicodeError) as error:
        raise UnreadableSource(f"source {source!r}: {file} cannot be read: {error}") from error


@dataclass(frozen=True)
class Record:
    """A record of the file, or a line that is not a record, with the reason."""

    fields: list[str]
    wrong: str = ""

    @property
    def detail(self) -> str:
        """What is wrong and the line itself, printable."""
        text = ",".join(self.fields)[:1000].rstrip("\r\n")
        return f"{self.wrong}: {text}".encode("utf-8", "replace").decode()


def records(lines: Iterator[str], delimiter: str, width: int) -> Iterator[Record]:
    """Every physical line, as part of a record of `width` fields or as a wrong one. Blank lines are skipped.

    Where the first record has one empty field too many, every line of the file may.
    """
    feed = _Feed(lines)
    spare = False
    first = True
    reader = csv.reader(feed, delimiter=delimiter, strict=True)
    while True:
        feed.taken.clear()
        wrong = ""
        fields: list[str] = []
        try:
            fields = next(reader)
        except StopIteration:
            if not feed.taken:
                return
        except csv.Error as error:
            wrong = "quote never closed" if "end of data" in str(error) else f"malformed quotes ({error})"
        taken = feed.taken
        if not wrong:
            count = len(fields)
            if count == width + 1 and not fields[-1] and (spare or first):
                spare, count = True, width
            if count == width and len(taken) == 1 and taken[0].isascii() and "\0" not in taken[0]:
                first = False
                yield Record(fields)
                continue
            if len(taken) == 1 and _is_blank(fields, width):
                continue
            wrong = "" if count == width else "missing columns" if count < width else "too many columns"
        first = False
        wrong = _unusable(taken) or wrong
        if not wrong:
            yield Record(fields)
            continue
        # Only the first line of the record is rejected; the lines after it are read again.
        yield Record([taken[0]], wrong)
        feed.again.extendleft(reversed(taken[1:]))
        reader = csv.reader(feed, delimiter=delimiter, strict=True)


def _is_blank(fields: list[str], width: int) -> bool:
    return not fields or (len(fields) < 2 and not fields[0].strip() and width > 1)


def _unusable(lines: list[str]) -> str:
    for line in lines:
        if len(line) >= MAX_LINE:
            return "line too long"
        if "\0" in line:
            return "zero byte"
        if not line.isascii():
            try:
                line.encode()
            except UnicodeEncodeError:
                return "invalid unicode"
    return ""


class _Feed:
    """Lines for a csv.reader, remembered until the record they belong to is complete."""

    def __init__(self, lines: Iterator[str]) -> None:
        self.lines = lines
        self.again: deque[str] = deque()
        self.taken: list[str] = []

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        if len(self.taken) >= MAX_SPAN:
            raise StopIteration
        line = self.again.popleft() if self.again else next(self.lines)
        self.taken.append(line)
        return line
