"""How times and amounts are written, from samples of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

__all__ = ["amounts_look", "looks_like_amount", "looks_like_time", "times_look"]

_CLOCK = (
    r"(?:(?P<gap>, |,| at |[T ]+)(?P<hour>\d{1,2}):\d{2}(?P<second>:\d{2})?(?P<fraction>\.\d+)?"
    r"(?P<space> ?)(?P<half>[AaPp]\.?[Mm]\.?)?(?P<zone> ?(?:[+-]\d{2}:?\d{2}|UTC|GMT|[Zz]))?)?$"
)
_ISO = re.compile(
    r"\d{4}[-/]\d{1,2}[-/]\d{1,2}(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?\s*"
    r"(?:Z|z|UTC|GMT|[+-]\d{2}(?::?\d{2})?|[A-Z][A-Za-z]+/\w+)?)?$"
)
_NUMERIC = re.compile(r"(?P<a>\d{1,2})(?P<sep>[./-])(?P<b>\d{1,2})(?P=sep)(?P<year>\d{4}|\d{2})" + _CLOCK)
_DAY_NAME = re.compile(
    r"(?P<day>\d{1,2})(?P<sep>[ -])(?P<month>[A-Za-z]{3,9})(?P<sep2>,? |-)(?P<year>\d{4}|\d{2})" + _CLOCK
)
_NAME_DAY = re.compile(
    r"(?P<month>[A-Za-z]{3,9})(?P<gap2>[ -])(?P<day>\d{1,2})(?P<sep>,? |-)(?P<year>\d{4}|\d{2})" + _CLOCK
)
_POINTS = re.compile(r"\d{4}\.\d{2}\.\d{2}" + _CLOCK)
_COMPACT = re.compile(r"(19|20)\d{2}(0\d|1[0-2])([0-2]\d|3[01])$")
_MONTHS = {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
_SIGN = r"(?:[^\d\s(),.'-]{1,4}\.?)"
_AMOUNT = re.compile(
    rf"^\(?\s*[-+\u2212]?\s*(?:{_SIGN}\s*)?[-+\u2212]?\s*\d[\d.,'’\s\u00a0\u202f]*"
    rf"(?:[Ee][+-]?\d+)?\s*{_SIGN}?\s*\)?-?$"
)


def looks_like_amount(text: str) -> bool:
    return bool(_AMOUNT.match(text)) and not looks_like_written_time(text)


def looks_like_written_time(text: str) -> bool:
    return bool(_ISO.match(text) or _NUMERIC.match(text) or _POINTS.match(text))


def looks_like_time(text: str) -> bool:
    return _kind(text) is not None


def _kind(text: str) -> tuple[str, str] | None:
    """(kind, format with %1 and %2 for day and month in whichever order), or None."""
    if _ISO.match(text):
        return "known", "iso"
    if found := _NUMERIC.match(text):
        year = "%Y" if len(found["year"]) == 4 else "%y"
        return "numeric", f"%1{found['sep']}%2{found['sep']}{year}{_clock(found)}"
    if (found := _DAY_NAME.match(text)) and found["month"][:3].lower() in _MONTHS:
        month = "%b" if len(found["month"]) == 3 else "%B"
        year = "%Y" if len(found["year"]) == 4 else "%y"
        return "known", f"%d{found['sep']}{month}{found['sep2']}{year}{_clock(found)}"
    if (found := _NAME_DAY.match(text)) and found["month"][:3].lower() in _MONTHS:
        month = "%b" if len(found["month"]) == 3 else "%B"
        year = "%Y" if len(found["year"]) == 4 else "%y"
        return "known", f"{month}{found['gap2']}%d{found['sep']}{year}{_clock(found)}"
    if found := _POINTS.match(text):
        return "known", f"%Y.%m.%d{_clock(found)}"
    if _COMPACT.match(text):
        return "known", "%Y%m%d"
    if re.fullmatch(r"1\d{9}", text):
        return "known", "epoch"
    if re.fullmatch(r"1\d{12}", text):
        return "known", "epoch_ms"
    if re.fullmatch(r"[34]\d{4}(\.\d+)?", text):
        return "known", "excel"
    return None


def _clock(found: re.Match[str]) -> str:
    if not found["hour"]:
        return ""
    text = f"{found['gap']}{'%I' if found['half'] else '%H'}:%M"
    text += ":%S" if found["second"] else ""
    text += ".%f" if found["fraction"] else ""
    text += found["space"] + "%p" if found["half"] else ""
    if zone := found["zone"]:
        space = " " if zone.startswith(" ") or (found["space"] and not found["half"]) else ""
        text += space + ("%z" if zone.strip()[0] in "+-" else zone.strip())
    return text


def times_look(cells: Sequence[str], *, month_first: bool) -> tuple[list[str], list[str]]:
    """Formats of the times, the most frequent first, and sentences about them.

    Args:
        month_first: how 03/04/2020 is read if no value shows which comes first.
    """
    shapes: Counter[str] = Counter()
    firsts: dict[str, list[tuple[int, int]]] = {}
    samples: dict[str, str] = {}
    for text, count in Counter(cell.strip() for cell in cells if cell.strip()).items():
        kind = _kind(text)
        if kind is None:
            continue
        shapes[kind[1]] += count
        samples.setdefault(kind[1], text)
        if kind[0] == "numeric" and (found := _NUMERIC.match(text)):
            firsts.setdefault(found["sep"], []).append((int(found["a"]), int(found["b"])))
    formats, notes = [], []
    for shape, count in shapes.most_common():
        if "%1" not in shape:
            chosen = shape
        else:
            chosen, doubts = _day_or_month_first(shape, samples[shape], firsts[shape[2]], month_first)
            notes += doubts
        if chosen not in formats:
            formats.append(chosen)
            if chosen != "iso" or len(shapes) > 1:
                notes.append(
                    f"times such as {samples[shape]!r} are read as {chosen} ({count:,} in the sample)"
                )
    if len(formats) > 1:
        notes.append(f"times are written in {len(formats)} formats; the first that fits is used")
    return formats, notes


def _day_or_month_first(
    shape: str, sample: str, pairs: list[tuple[int, int]], month_first: bool
) -> tuple[str, list[str]]:
    """The format with day and month in the order that the values show, and notes where they do not show it."""
    first, second = sum(a > 12 for a, _ in pairs), sum(b > 12 for _, b in pairs)
    day_first = first > second or (first == second and (shape[2] == "." or not month_first))
    chosen = shape.replace("%1", "%d" if day_first else "%m").replace("%2", "%m" if day_first else "%d")
    if not first and not second:
        order = "day" if day_first else "month"
        return chosen, [f"no value shows whether {sample!r} starts with the day or the month: the {order}"]
    if first and second:
        return chosen, [
            f"dates such as {sample!r} start with the day in some rows and with the month in others: read as {chosen}"
        ]
    return chosen, []


def amounts_look(cells: Sequence[str]) -> tuple[str, list[str]]:
    """The decimal separator of the amounts, and sentences about them."""
    points = commas = brackets = signs = thousands = 0
    for cell in cells:
        text = cell.strip()
        if not re.search(r"\d", text):
            continue
        brackets += text.startswith("(")
        signs += bool(re.search(r"[^\d\s().,'’+\-\u2212\u00a0\u202f]", text))
        digits = re.sub(r"[^\d.,]", "", text)
        if re.search(r",\d{1,2}$", digits) or re.search(r"\.\d{3},", digits):
            commas += 1
        elif (
            re.search(r"\.\d{1,2}$", digits)
            or re.search(r",\d{3}\.", digits)
            or re.search(r"\.\d{4,}$", digits)
        ):
            points += 1
        thousands += bool(re.search(r"\d[.,'’\s\u00a0\u202f]\d{3}([.,]|$)", text))
    separator = "," if commas > points else "."
    notes = []
    if separator == ",":
        notes.append("amounts have a decimal comma")
    if commas and points:
        notes.append(
            f"{min(commas, points):,} amounts of the sample have the other decimal sign and cannot be read"
        )
    if signs:
        notes.append("amounts carry signs of a currency")
    if brackets:
        notes.append("amounts in brackets are negative")
    if thousands:
        notes.append("amounts have dividers of thousands")
    return separator, notes
