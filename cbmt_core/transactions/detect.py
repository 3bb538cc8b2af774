"""Detect a file's encoding, delimiter and header, its columns, and the formats of times and amounts.

Every finding comes with a sentence for the user.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cbmt_core.errors import UnreadableSource
from cbmt_core.transactions.detect_columns import NEEDED, find_columns
from cbmt_core.transactions.detect_format import Detected, table_sample, text_sample
from cbmt_core.transactions.detect_values import amounts_look, times_look
from cbmt_core.transactions.reader import DUCKDB, SUFFIXES
from cbmt_core.transactions.spreadsheet import SHEET_SUFFIXES, sheet_names

__all__ = ["Detected", "detect"]


def detect(file: Path, stated: Mapping[str, Any], columns: Mapping[str, str], name: str) -> Detected:
    """Detect the settings and columns that are not stated.

    Args:
        stated: settings of the source that the user gave.
        columns: columns that the user gave.
        name: name of the source, which is the firm's where no column names one.
    """
    if file.name.lower().endswith(SHEET_SUFFIXES) and not stated.get("sheet"):
        return _detect_sheet(file, stated, columns, name)
    return _detect(file, stated, columns, name)


def _detect_sheet(file: Path, stated: Mapping[str, Any], columns: Mapping[str, str], name: str) -> Detected:
    """Look through a workbook for the sheet with most rows of those that have the columns every source needs."""
    titles = sheet_names("", file)
    sheets = {title: _detect(file, {**stated, "sheet": title}, columns, name) for title in titles}
    if len(titles) == 1:
        return sheets[titles[0]]
    able = [
        title
        for title, found in sheets.items()
        if all(found.columns.get(ours) in found.heading for ours in NEEDED)
    ]
    title = max(able or titles[:1], key=lambda title: sheets[title].rows)
    found = sheets[title]
    if title != titles[0]:
        found.settings["sheet"] = title
    others = ", ".join(repr(other) for other in titles if other != title)
    found.notes.insert(0, f"the sheet read is {title!r}; there are also {others} (--sheet)")
    return found


def _detect(file: Path, stated: Mapping[str, Any], columns: Mapping[str, str], name: str) -> Detected:
    found = Detected(columns=dict(columns))
    lower = file.name.lower()
    if not lower.endswith(SUFFIXES + DUCKDB):
        raise UnreadableSource(f"source {name!r}: {file} is none of {', '.join(SUFFIXES + DUCKDB)}")
    if lower.endswith((".parquet", ".duckdb", ".db")):
        heading, rows = table_sample(file, stated.get("table"))
        in_text = False
    else:
        heading, rows = text_sample(file, stated, found)
        in_text = True
    found.heading, found.rows = heading, len(rows)
    table = {title: [row[k] if k < len(row) else "" for row in rows] for k, title in enumerate(heading)}
    find_columns(found, table, stated, name)
    if in_text or lower.endswith(".parquet"):
        _values(found, table, stated)
    return found


def _values(found: Detected, table: dict[str, list[str]], stated: Mapping[str, Any]) -> None:
    columns = found.columns
    if columns.get("amount") in table and not stated.get("decimal_separator"):
        separator, notes = amounts_look(table[columns["amount"]])
        found.notes += notes
        if separator == ",":
            found.settings["decimal_separator"] = ","
    if columns.get("order_time") in table and not stated.get("time_format"):
        american = str(stated.get("timezone") or "").startswith(("America", "US/"))
        formats, notes = times_look(table[columns["order_time"]], month_first=american)
        found.notes += notes
        if formats and formats != ["iso"]:
            found.settings["time_format"] = formats[0] if len(formats) == 1 else formats
