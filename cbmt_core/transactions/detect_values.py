"""How times and amounts are written, from samples of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from cbmt_core.transactions.month_names import english_month

__all__ = ["amounts_look", "looks_like_amount", "looks_like_time", "times_look"]

_CLOCK = (
    r"(?:(?P<gap>, |,| at |[T ]+)(?P<hour>\d{1,2})(?P<colon>[:.])\d{2}(?P<second>(?P=colon)\d{2})?(?P<fraction>\.\d+)?"
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
_YEAR_FIRST = re.compile(r"\d{4}(?P<sep>[-/.])\d{1,2}(?P=sep)\d{1,2}" + _CLOCK)
_WEEKDAY = re.compile(
    r"(?P<name>(?:mon|tue|tues|wed|wednes|thu|thurs|fri|sat|satur|sun)(?:day)?)(?P<gap>,? )(?=\w)", re.I
)
_COMPACT = re.compile(
    r"(19|20)\d{2}(0\d|1[0-2])([0-2]\d|3[01])(?P<gap>[T ]?)(?P<clock>([01]\d|2[0-3])[0-5]\d[0-5]\d)?$"
)
_OTHER_DAY_NAME = re.compile(
    r"(?P<day>\d{1,2})(?:(?P<dash>-)|\.? (?:de )?)(?P<month>[^\W\d_]{3,10})\.?"
    r"(?(dash)-|,? (?:del? )?)(?P<year>\d{4}|\d{2})" + _CLOCK
)
_ENGLISH = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_MONTHS = {*_ENGLISH, *(month[:3] for month in _ENGLISH)}
_SIGN = r"(?:[^\d\s(),.'-]{1,4}\.?)"
_AMOUNT = re.compile(
    rf"^\(?\s*[-+\u2212]?\s*(?:{_SIGN}\s*)?[-+\u2212]?\s*\d[\d.,'’\s\u00a0\u202f]*"
    rf"(?:[Ee][+-]?\d+)?\s*{_SIGN}?\s*\)?-?$"
)


def looks_like_amount(text: str) -> bool:
    return bool(_AMOUNT.match(text)) and not looks_like_written_time(text)


def looks_like_written_time(text: str) -> bool:
    return bool(_ISO.match(text) or _NUMERIC.match(text) or _YEAR_FIRST.match(text))


def looks_like_time(text: str) -> bool:
    return _kind(text) is not None


def _kind(text: str) -> tuple[str, str] | None:
    """(kind, format with %1 and %2 for day and month in whichever order), or None."""
    if _ISO.match(text):
        return "known", "iso"
    if found := _NUMERIC.match(text):
        return "numeric", f"%1{found['sep']}%2{found['sep']}{_year(found)}{_clock(found)}"
    if pattern := _with_month_name(text) or _digits(text):
        return "known", pattern
    if found := _YEAR_FIRST.match(text):
        return "known", f"%Y{found['sep']}%m{found['sep']}%d{_clock(found)}"
    if (day := _WEEKDAY.match(text)) and (kind := _kind(text[day.end() :])) and kind[0] == "known":
        return "known", f"{'%a' if len(day['name']) == 3 else '%A'}{day['gap']}{kind[1]}"
    return None


def _with_month_name(text: str) -> str | None:
    found = _DAY_NAME.match(text) or _NAME_DAY.match(text)
    if not found or found["month"].lower() not in _MONTHS:
        found = _OTHER_DAY_NAME.match(text)
        if not found or not english_month(found["month"]):
            return None
        dash = found["dash"] or " "
        return f"%d{dash}%b{dash}{_year(found)}{_clock(found)}"
    month = "%b" if len(found["month"]) == 3 else "%B"
    if found.re is _DAY_NAME:
        return f"%d{found['sep']}{month}{found['sep2']}{_year(found)}{_clock(found)}"
    return f"{month}{found['gap2']}%d{found['sep']}{_year(found)}{_clock(found)}"


def _digits(text: str) -> str | None:
    """The format of a time without signs between its parts."""
    if found := _COMPACT.match(text):
        return "%Y%m%d" + (f"{found['gap']}%H%M%S" if found["clock"] else "")
    known = {"epoch": r"1\d{9}", "epoch_ms": r"1\d{12}", "excel": r"[34]\d{4}(\.\d+)?"}
    return next((name for name, pattern in known.items() if re.fullmatch(pattern, text)), None)


def _year(found: re.Match[str]) -> str:
    return "%Y" if len(found["year"]) == 4 else "%y"


def _clock(found: re.Match[str]) -> str:
    if not found["hour"]:
        return ""
    text = f"{found['gap']}{'%I' if found['half'] else '%H'}{found['colon']}%M"
    text += f"{found['colon']}%S" if found["second"] else ""
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
    texts = [cell.strip() for cell in cells if re.search(r"\d", cell)]
    numbers = [re.sub(r"[^\d.,]", "", text) for text in texts]
    commas = sum(bool(re.search(r",\d{1,2}$|\.\d{3},", number)) for number in numbers)
    points = sum(bool(re.search(r"\.(\d{1,2}|\d{4,})$|,\d{3}\.|^0\.", number)) for number in numbers)
    notes = ["amounts have a decimal comma"] if commas > points else []
    separator = "," if commas > points else "."
    if commas and points:
        notes.append(
            f"{min(commas, points):,} amounts of the sample have the other decimal sign and cannot be read"
        )
    if not (commas or points):
        separator, notes = _points_of_whole_amounts(numbers)
    if any(re.search(r"[^\d\s().,'’+\-\u2212\u00a0\u202f]", text) for text in texts):
        notes.append("amounts carry signs of a currency")
    if any(text.startswith("(") for text in texts):
        notes.append("amounts in brackets are negative")
    dividers = {
        sign for text in texts for sign in re.findall(r"\d([.,'’\s\u00a0\u202f])\d{3}(?=[.,]|$)", text)
    }
    if dividers - {separator}:
        notes.append("amounts have dividers of thousands")
    return separator, notes


def _points_of_whole_amounts(numbers: Sequence[str]) -> tuple[str, list[str]]:
    """Whether points divide thousands, where each has three digits after it: beside 450, 1.234 has no decimals."""
    grouped = [number for number in numbers if re.fullmatch(r"[1-9]\d{0,2}(\.\d{3})+", number)]
    if not grouped:
        return ".", []
    if any(number.count(".") > 1 for number in grouped) or any(
        number.isdigit() and len(number) <= 3 for number in numbers
    ):
        return ",", [f"amounts are whole, with points between thousands, such as {max(grouped, key=len)!r}"]
    return ".", [
        f"amounts such as {grouped[0]!r} are read with three decimals (--decimal-separator , if the point divides "
        "thousands)"
    ]
