"""Workbooks (.xlsx and similar) as rows of text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from pathlib import Path

from cbmt_core.errors import UnreadableSource

__all__ = ["SHEET_SUFFIXES", "sheet_names", "sheet_rows"]

SHEET_SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")


def sheet_names(source: str, file: Path) -> list[str]:
    """Titles of a workbook's sheets, in their order."""
    from python_calamine import CalamineWorkbook

    with _readable(source, file):
        return CalamineWorkbook.from_path(str(file)).sheet_names


def sheet_rows(source: str, file: Path, sheet: str | None) -> Iterator[list[str]]:
    """Rows of one sheet, each cell as text: times in ISO 8601, numbers as they would be typed."""
    from python_calamine import CalamineWorkbook

    with _readable(source, file):
        book = CalamineWorkbook.from_path(str(file))
        if sheet is not None and sheet not in book.sheet_names:
            names = ", ".join(map(repr, book.sheet_names))
            raise UnreadableSource(f"source {source!r}: {file} has no sheet {sheet!r}; it has {names}")
        rows = book.get_sheet_by_name(sheet or book.sheet_names[0]).iter_rows()
        for row in rows:
            yield [_text(cell) for cell in row]


@contextmanager
def _readable(source: str, file: Path) -> Iterator[None]:
    """Raise UnreadableSource for any error of reading a workbook."""
    from python_calamine import CalamineError, PasswordError

    try:
        yield
    except PasswordError as error:
        raise UnreadableSource(f"source {source!r}: {file} is protected by a password") from error
    except (CalamineError, OSError, IndexError, ValueError) as error:
        raise UnreadableSource(f"source {source!r}: {file} cannot be read as a workbook: {error}") from error


def _text(cell: object) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 1e15 else repr(cell)
    if isinstance(cell, datetime):
        return cell.isoformat(sep=" ")
    if isinstance(cell, date | time):
        return cell.isoformat()
    if isinstance(cell, timedelta):
        return str(cell)
    return str(cell)
