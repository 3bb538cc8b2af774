"""Why a source row is not part of an order."""

from __future__ import annotations

__all__ = [
    "BLANK_ROW",
    "DUPLICATE",
    "LEFT_OUT",
    "MISSING_CUSTOMER",
    "MISSING_TIME",
    "NON_POSITIVE",
    "NOT_BAD",
    "OTHER_CURRENCY",
    "OUT_OF_WINDOW",
    "REFUNDED_IN_FULL",
    "REFUND_IGNORED",
    "REFUND_WITHOUT_ORDER",
    "SEVERAL_AMOUNTS",
    "STRAY_DATE",
    "TOTALS_ROW",
    "UNPARSEABLE_TIME",
]

BLANK_ROW = "blank row"
TOTALS_ROW = "totals row"
LEFT_OUT = "left out"
OTHER_CURRENCY = "other currency"
MISSING_CUSTOMER = "missing customer"
MISSING_TIME = "missing time"
UNPARSEABLE_TIME = "unparseable time"
STRAY_DATE = "stray date"
OUT_OF_WINDOW = "out of window"
DUPLICATE = "duplicate"
NON_POSITIVE = "non-positive amount"
SEVERAL_AMOUNTS = "several amounts for one order"
REFUND_WITHOUT_ORDER = "refund without an order"
REFUND_IGNORED = "refund ignored"
REFUNDED_IN_FULL = "refunded in full"

NOT_BAD = frozenset(
    {
        BLANK_ROW,
        TOTALS_ROW,
        LEFT_OUT,
        OTHER_CURRENCY,
        MISSING_CUSTOMER,
        OUT_OF_WINDOW,
        DUPLICATE,
        REFUND_WITHOUT_ORDER,
        REFUND_IGNORED,
        REFUNDED_IN_FULL,
    }
)
"""Rows that every export has: they are counted and shown, but do not count as bad."""
