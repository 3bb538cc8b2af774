"""Format numbers for readers: money, counts, shares and signs, the same on every page."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, timedelta

__all__ = ["MINUS", "Money", "count", "day", "month", "percent", "points", "short", "value"]

MINUS = "−"
SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹", "KRW": "₩", "BRL": "R$"}
STEPS = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K"))
UNKNOWN = "–"


def _known(number: float | None) -> bool:
    return number is not None and math.isfinite(number)


def _sign(text: str, number: float, plus: bool) -> str:
    """`text` of an absolute number with its sign; a text of zeros only has none."""
    if not any(digit in text for digit in "123456789"):
        return text
    return (MINUS if number < 0 else "+" if plus else "") + text


def short(number: float | None, *, plus: bool = False, prefix: str = "", trim: bool = False) -> str:
    """Three significant digits with K, M, B or T: 171,361 is 171K. Trimmed, 20.0K is 20K."""
    if number is None or not _known(number):
        return UNKNOWN
    size = abs(number)
    # 999,600 has to become 1M, not 1,000K.
    step, suffix = next(((s, c) for s, c in STEPS if size >= s * 0.9995), (1.0, ""))
    scaled = size / step
    digits = 0 if scaled >= 99.95 or step == 1.0 else 1 if scaled >= 9.995 else 2
    if step == 1.0 and 0 < size < 9.995:
        digits = 2
    text = f"{scaled:,.{digits}f}"
    if trim and "." in text:
        text = text.rstrip("0").rstrip(".")
    return _sign(f"{prefix}{text}{suffix}", number, plus)


def count(number: float | None) -> str:
    """A whole number with separators."""
    return UNKNOWN if number is None or not _known(number) else _sign(f"{abs(number):,.0f}", number, False)


def value(number: float | None, digits: int = 1) -> str:
    """A number with this many decimals."""
    if number is None or not _known(number):
        return UNKNOWN
    return _sign(f"{abs(number):,.{digits}f}", number, False)


def percent(number: float | None, *, plus: bool = False, digits: int = 1) -> str:
    """A number of percent, not a share."""
    if number is None or not _known(number):
        return UNKNOWN
    return _sign(f"{abs(number):,.{digits}f}%", number, plus)


def points(number: float | None) -> str:
    """A signed number of percentage points."""
    if number is None or not _known(number):
        return UNKNOWN
    return _sign(f"{abs(number):,.1f}", number, True) + " points"


def day(when: date) -> str:
    return f"{when.day} {when:%b %Y}"


def month(when: date) -> str:
    return f"{when:%b %Y}"


def week_end(sunday: date) -> date:
    """The Saturday that closes the week."""
    return sunday + timedelta(days=6)


@dataclass(frozen=True)
class Money:
    """Amounts in one currency."""

    currency: str

    @property
    def prefix(self) -> str:
        return SYMBOLS.get(self.currency, f"{self.currency}\u00a0")

    def short(self, number: float | None, *, plus: bool = False) -> str:
        return short(number, plus=plus, prefix=self.prefix)

    def axis(self, number: float) -> str:
        """A tick's label."""
        return short(number, prefix=self.prefix, trim=True)

    def size(self, number: float) -> str:
        """Without its sign, for sentences whose verb expresses it."""
        return self.short(abs(number))

    def price(self, number: float | None, digits: int = 2) -> str:
        """To the cent unless stated."""
        if number is None or not _known(number):
            return UNKNOWN
        return _sign(f"{self.prefix}{abs(number):,.{digits}f}", number, False)
