"""Amounts of money in text, as SQL: signs of currencies, thousands, negative numbers in brackets."""

from __future__ import annotations

import re

from cbmt_core.duck import literal

__all__ = ["CURRENCY_SIGNS", "NO_CURRENCY", "amount_sql", "is_number"]

NO_CURRENCY = "XXX"
"""ISO 4217 for no currency, where none is stated: in previews and notebooks. Any currency sign is then accepted."""
_DOLLARS = ("USD", "CAD", "AUD", "NZD", "SGD", "HKD", "MXN", "TWD", "ARS", "CLP", "COP")
CURRENCY_SIGNS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_DOLLARS, ("$",)),
    "USD": ("US$", "$"), "CAD": ("CA$", "C$", "$"), "AUD": ("AU$", "A$", "$"), "NZD": ("NZ$", "$"),
    "SGD": ("S$", "$"), "HKD": ("HK$", "$"), "MXN": ("MX$", "$"), "TWD": ("NT$", "$"), "BRL": ("R$",),
    "GBP": ("£",), "EUR": ("€",), "JPY": ("¥", "￥", "円"), "CNY": ("¥", "￥", "元"), "INR": ("₹", "Rs.", "Rs"),
    "CHF": ("SFr.", "Fr."), "SEK": ("kr",), "NOK": ("kr",), "DKK": ("kr.", "kr"), "PLN": ("zł",), "CZK": ("Kč",),
    "HUF": ("Ft",), "KRW": ("₩",), "ILS": ("₪",), "TRY": ("₺", "TL"), "RUB": ("₽",), "UAH": ("₴",), "THB": ("฿",),
    "VND": ("₫",), "PHP": ("₱",), "NGN": ("₦",), "ZAR": ("R",), "RON": ("lei",), "AED": ("AED",),
}  # fmt: skip
"""Signs that may stand beside an amount of a currency, besides its ISO code."""
_MINUS = "\u2212\u2013"
"""Minus signs other than the hyphen."""
_SPACES = " \u00a0\u202f\u2009"
_NUMBER = {
    ".": rf"^[+-]?(\d+|\d{{1,3}}([,'’{_SPACES}]\d{{3}})+|\d{{1,2}}(,\d{{2}})+,\d{{3}})?(\.\d*)?$",
    ",": rf"^[+-]?(\d+|\d{{1,3}}([.'’{_SPACES}]\d{{3}})+)?(,\d*)?$",
}
"""Decimal separator -> pattern of a number with or without thousands separators (Indian ones too)."""


def is_number(kind: str) -> bool:
    """Whether a column of this type holds numbers."""
    return kind.split("(")[0] in {
        "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT",
        "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL", "BIGNUM",
    }  # fmt: skip


def amount_sql(text: str, decimal_separator: str, currency: str) -> str:
    """SQL for the DECIMAL(18,4) that the text holds; NULL where it is no number, or one of another currency.

    12.50, 1,234.50, £505.30, USD 7, (12.00), 12.00- and, with a decimal comma, 1.234,50 are read. A comma that can
    only be a decimal comma is not taken for a thousands separator, nor the other way round.
    """
    signs = [*CURRENCY_SIGNS.get(currency, ()), currency]
    if currency == NO_CURRENCY:
        signs = sorted({sign for each in CURRENCY_SIGNS.values() for sign in each} | set(CURRENCY_SIGNS))
    known = "|".join(re.escape(sign) for sign in sorted(signs, key=len, reverse=True))
    bare = f"trim(translate({text}, '{_MINUS}', '--'), ' \t {_SPACES}')"
    # A currency sign is removed before or after the number only: removed between digits (5€50), it would make
    # another number of them.
    bare = f"regexp_replace({bare}, {literal(f'(?i)^([(+-]*)[{_SPACES}]*({known})[{_SPACES}]*')}, '\\1')"
    bare = f"regexp_replace({bare}, {literal(f'(?i)[{_SPACES}]*({known})[{_SPACES}]*([)-]*)$')}, '\\2')"
    bare = f"regexp_replace({bare}, '^\\((.*)\\)$', '-\\1')"
    bare = f"regexp_replace({bare}, '^([^-]+)-$', '-\\1')"
    dividers = f",''’{_SPACES}" if decimal_separator == "." else f".''’{_SPACES}"
    # Named once: DuckDB would work out an expression that stands twice for every row, plain amounts included.
    digits = f"translate(regexp_extract({bare}, {literal(_NUMBER[decimal_separator])}), '{dividers}', '')"
    if decimal_separator == ",":
        digits = f"replace({digits}, ',', '.')"
    read = f"TRY_CAST({digits} AS DECIMAL(18,4))"
    if decimal_separator == ",":
        return read
    # Nearly all amounts are plain numbers; the expensive expression is evaluated only for the others.
    return f"coalesce(CASE WHEN NOT contains({text}, '_') THEN TRY_CAST({text} AS DECIMAL(18,4)) END, {read})"
