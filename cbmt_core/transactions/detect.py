"""Detect a file's encoding, delimiter and header, its columns, and the formats of times and amounts.

Every finding comes with a sentence for the user.
"""

from __future__ import annotations

import csv
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from cbmt_core import duck
from cbmt_core.duck import identifier, literal, path_literal
from cbmt_core.transactions.column_names import (
    HINTS,
    NOT_SALES,
    QUANTITIES,
    STATUS,
    SYNONYMS,
    UNIT_PRICES,
    named_currency,
    plain_name,
    plain_status,
)
from cbmt_core.transactions.csv_file import DELIMITERS
from cbmt_core.transactions.csv_lines import byte_order_mark, decoded, lines_of, open_bytes
from cbmt_core.transactions.detect_values import amounts_look, looks_like_amount, looks_like_time, times_look
from cbmt_core.transactions.spreadsheet import SHEET_SUFFIXES, sheet_names, sheet_rows

__all__ = ["Detected", "detect"]

HEAD_LINES = 20_000
SPREAD_LINES = 20_000
"""Lines looked at: the first ones, and as many spread over the rest of the file."""
NEEDED = frozenset({"customer", "order_time", "amount"})
"""Columns that every source has."""
CROWD = 0.05
"""A customer with a larger share of the rows is mentioned: it may stand for everyone without an account."""


@dataclass
class Detected:
    """Settings of a source detected from its file, with notes on the evidence."""

    settings: dict[str, Any] = field(default_factory=dict)
    columns: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    heading: list[str] = field(default_factory=list)
    currency: str | None = None
    """Currency that a column of the file names, where it names one only."""


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
    """Look through a workbook for the first sheet that has the columns every source needs."""
    titles = sheet_names("", file)
    first = _detect(file, {**stated, "sheet": titles[0]}, columns, name)
    if len(titles) == 1:
        return first
    for title in titles:
        found = first if title == titles[0] else _detect(file, {**stated, "sheet": title}, columns, name)
        if found.columns.keys() >= NEEDED:
            if found is not first:
                found.settings["sheet"] = title
            break
    else:
        found, title = first, titles[0]
    others = ", ".join(repr(other) for other in titles if other != title)
    found.notes.insert(0, f"the sheet read is {title!r}; there are also {others} (--sheet)")
    return found


def _detect(file: Path, stated: Mapping[str, Any], columns: Mapping[str, str], name: str) -> Detected:
    found = Detected(columns=dict(columns))
    lower = file.name.lower()
    if lower.endswith((".parquet", ".duckdb", ".db")):
        heading, rows = _table_sample(file, stated.get("table"))
        in_text = False
    else:
        heading, rows = _text_sample(file, stated, found)
        in_text = True
    found.heading = heading
    table = {title: [row[k] if k < len(row) else "" for row in rows] for k, title in enumerate(heading)}
    _columns(found, table, stated, name)
    if in_text or lower.endswith(".parquet"):
        _values(found, table, stated)
    return found


# -- samples -------------------------------------------------------------------------------------


def _table_sample(file: Path, table: str | None) -> tuple[list[str], list[list[str]]]:
    with duck.connect() as con:
        relation = f"read_parquet({path_literal(file)}, hive_partitioning = false)"
        if table or not file.name.lower().endswith(".parquet"):
            con.execute(f"ATTACH {literal(str(file))} AS _source (READ_ONLY)")
            relation = "_source." + ".".join(identifier(part) for part in (table or "").split("."))
        names = [
            row[0] for row in con.execute(f"SELECT column_name FROM (DESCRIBE FROM {relation})").fetchall()
        ]
        rows = con.execute(
            f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM {relation} LIMIT {HEAD_LINES}"
        ).fetchall()
    return names, [[cell or "" for cell in row] for row in rows]


def _text_sample(file: Path, stated: Mapping[str, Any], found: Detected) -> tuple[list[str], list[list[str]]]:
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
        line = stated.get("header_line") or _header([_split(text, delimiter) for text in lines[:100]]) + 1
        rows = [_split(text, delimiter) for text in lines[:line]] + list(_parsed(lines[line:], delimiter))
    if line > 1 and not stated.get("header_line"):
        found.settings["header_line"] = line
        before = "the line before it is" if line == 2 else f"the {line - 1} before it are"
        found.notes.append(f"line {line} names the columns; {before} passed over")
    heading = (
        [cell.strip().lstrip("\ufeff") or f"column{k}" for k, cell in enumerate(rows[line - 1])]
        if rows
        else []
    )
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


def _split(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter), [])
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


# -- columns -------------------------------------------------------------------------------------


def _columns(found: Detected, table: dict[str, list[str]], stated: Mapping[str, Any], name: str) -> None:
    """Find which column holds what, by title first and then by content; then statuses, grain and currency."""
    _columns_by_title(found, table, stated)
    _columns_by_content(found, table)
    _quantity_of_a_price(found, table)
    named = ", ".join(f"{ours} = {theirs!r}" for ours, theirs in found.columns.items())
    found.notes.append(f"columns: {named or 'none recognised'}")
    if "firm" not in found.columns and not stated.get("firm"):
        found.settings["firm"] = name
        found.notes.append(f"no column names a firm: all rows are of {name!r} (--firm)")
    _other_amounts(found, table)
    if found.columns.keys() >= NEEDED and "order_id" not in found.columns:
        found.notes.append("no column of order ids: rows of one customer at one time are one order")
    if "customer" in found.columns:
        _crowd(found, table[found.columns["customer"]])
    _statuses(found, table, stated)
    _grain(found, table, stated)
    if "currency" in found.columns:
        _currency(found, table[found.columns["currency"]])


def _columns_by_title(found: Detected, table: dict[str, list[str]], stated: Mapping[str, Any]) -> None:
    """Assign the columns whose titles are synonyms of our names and whose cells fit."""
    taken = set(found.columns.values())
    by_name: defaultdict[str, list[str]] = defaultdict(list)
    currency = stated.get("currency")
    for column in sorted(table, key=lambda title: named_currency(title)[1] not in (None, currency)):
        by_name[plain_name(column)].append(column)

    def pick(ours: str) -> str | None:
        columns = (column for synonym in SYNONYMS[ours] for column in by_name.get(synonym, []))
        fitting = (column for column in columns if column not in taken and _fits(ours, table[column]))
        return next(fitting, None)

    for ours in SYNONYMS:
        if ours in found.columns or (ours == "firm" and stated.get("firm")):
            continue
        title: str | None = pick(ours)
        if ours == "quantity" and plain_name(found.columns.get("amount", "")) not in UNIT_PRICES:
            continue
        if ours == "firm" and title and not _constant(table, title, found.columns.get("order_id")):
            title = None
        if title:
            found.columns[ours] = title
            taken.add(title)


def _columns_by_content(found: Detected, table: dict[str, list[str]]) -> None:
    """Assign, for each name still without a column, the one column whose cells can be what it means."""
    taken = set(found.columns.values())
    for ours in HINTS:
        if ours not in found.columns and (title := _by_content(ours, table, taken)):
            found.columns[ours] = title
            taken.add(title)
            found.notes.append(
                f"{ours} is taken to be {title!r}, by its content (--column {ours}=... states another)"
            )


def _quantity_of_a_price(found: Detected, table: Mapping[str, Sequence[str]]) -> None:
    """Where the amount is the price of one unit, find the number of units, or say that there is none."""
    amount = found.columns.get("amount", "")
    if "quantity" in found.columns or plain_name(amount) not in UNIT_PRICES:
        return
    likely = [
        title
        for title in table
        if title not in found.columns.values()
        and any(part in plain_name(title) for part in QUANTITIES)
        and _fits("quantity", table[title])
    ]
    if len(likely) == 1:
        found.columns["quantity"] = likely[0]
    elif plain_name(amount) not in ("price", "preis", "prix", "precio", "prezzo") or likely:
        found.notes.append(
            f"{amount!r} looks like the price of one unit, and no column is surely the number of units: "
            "every row counts as one (--column quantity=... states it)"
        )


def _other_amounts(found: Detected, table: Mapping[str, Sequence[str]]) -> None:
    """Name the other columns that could be the amount: net or gross is the reader's choice."""
    amount = found.columns.get("amount")
    names = set(SYNONYMS["amount"]) - UNIT_PRICES
    others = [
        title
        for title, cells in table.items()
        if title not in found.columns.values() and plain_name(title) in names and _fits("amount", cells)
    ]
    if amount and others:
        listed = ", ".join(map(repr, others))
        found.notes.append(f"the amount is {amount!r}; it could also be {listed} (--column amount=...)")


def _crowd(found: Detected, cells: Sequence[str]) -> None:
    """Mention a customer who has far more rows than the others."""
    counts = Counter(cell.strip() for cell in cells if cell.strip())
    if len(counts) < 20:
        return
    who, rows = counts.most_common(1)[0]
    usual = sorted(counts.values())[len(counts) // 2]
    if rows > CROWD * counts.total() and rows > 20 * usual:
        found.notes.append(
            f"one customer, {who!r}, has {rows / counts.total():.0%} of the rows: if it stands for everyone "
            f"without an account, leave it out (--leave-out {shlex.quote(found.columns['customer'] + '=' + who)})"
        )


def _currency(found: Detected, cells: Sequence[str]) -> None:
    """The currency of all rows, or a note that there are several."""
    codes = Counter(cell.strip().upper() for cell in cells if cell.strip())
    if len(codes) == 1:
        found.currency = next(iter(codes))
    elif codes:
        shares = ", ".join(f"{code} {count:,}" for code, count in codes.most_common(5))
        found.notes.append(f"rows are in several currencies ({shares}); only those of the source's are used")


def _fits(ours: str, cells: Sequence[str]) -> bool:
    filled = [cell.strip() for cell in cells if cell.strip()][:2000]
    if not filled:
        return ours in ("refunded", "parent_id")
    if ours == "order_time":
        return sum(map(looks_like_time, filled)) >= 0.7 * len(filled)
    if ours in ("amount", "quantity", "refunded"):
        return sum(map(looks_like_amount, filled)) >= 0.7 * len(filled)
    if ours == "currency":
        return all(re.fullmatch("[A-Za-z]{3}", cell) for cell in filled)
    if ours == "customer":
        return len(filled) * 2 >= min(len(cells), 2000) and not all(
            re.fullmatch(r"-?\d+[.,]\d+", cell) for cell in filled
        )
    return True


def _by_content(ours: str, table: Mapping[str, Sequence[str]], taken: set[str]) -> str | None:
    """The only column whose cells can be what is sought, or the only one of them whose name hints at it.

    A customer is told from other texts by its name alone, so without a hint there is none.
    """
    able = [title for title in table if title not in taken and _clearly(ours, table[title])]
    hinted = [title for title in able if any(hint in plain_name(title) for hint in HINTS[ours])]
    if len(able) == 1 and ours != "customer":
        return able[0]
    return hinted[0] if len(hinted) == 1 else None


def _clearly(ours: str, cells: Sequence[str]) -> bool:
    """Whether cells are dates written as such, or amounts with decimals: a bare number may be anything."""
    filled = [cell.strip() for cell in cells if cell.strip()][:2000]
    if ours == "order_time":
        written = sum(not re.fullmatch(r"[\d.,]+", cell) and looks_like_time(cell) for cell in filled)
        return bool(filled) and written >= 0.9 * len(filled)
    if ours == "amount":
        decimals = sum(bool(re.search(r"\d[.,]\d{1,2}\D*$", cell)) for cell in filled)
        return _fits(ours, cells) and 2 * decimals >= len(filled)
    return _fits(ours, cells)


def _constant(table: dict[str, list[str]], title: str, order_id: str | None) -> bool:
    """Whether a column has one value in every order: a product's brand has not."""
    if not order_id:
        return True
    values: defaultdict[str, set[str]] = defaultdict(set)
    for order, value in zip(table[order_id], table[title], strict=True):
        if value.strip():
            values[order].add(value.strip())
    return all(len(seen) == 1 for seen in values.values())


def _statuses(found: Detected, table: dict[str, list[str]], stated: Mapping[str, Any]) -> None:
    if stated.get("leave_out"):
        return
    leave_out = {}
    for title, cells in table.items():
        if plain_name(title) in STATUS:
            values = sorted({cell.strip() for cell in cells if plain_status(cell) in NOT_SALES})
            if values:
                leave_out[title] = values
    if leave_out:
        found.settings["leave_out"] = leave_out
        rules = "; ".join(f"{title!r} is {' or '.join(values)}" for title, values in leave_out.items())
        found.notes.append(f"left out as no sales: rows whose {rules}")


def _grain(found: Detected, table: dict[str, list[str]], stated: Mapping[str, Any]) -> None:
    """Whether lines of one order repeat its total."""
    columns = found.columns
    if stated.get("amount_of") or not {"order_id", "amount"} <= columns.keys() or "quantity" in columns:
        return
    amounts: defaultdict[str, list[str]] = defaultdict(list)
    for order, amount in zip(table[columns["order_id"]], table[columns["amount"]], strict=True):
        if order.strip():
            amounts[order.strip()].append(amount.strip())
    several = [values for values in amounts.values() if len(values) > 1]
    if not several:
        return
    same = [values for values in several if len({value for value in values if value}) == 1]
    blanks = any("" in values for values in several)
    if len(same) >= 0.95 * len(several) and (blanks or len(same) >= 3):
        found.settings["amount_of"] = "order"
        how = "leave the amount out but once" if blanks else "repeat the amount of the whole order"
        found.notes.append(f"lines of one order {how}: it is counted once an order")
    else:
        found.notes.append("several lines of one order are added up")


# -- values --------------------------------------------------------------------------------------


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
