"""Which column of a file holds what, by title first and then by content."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from cbmt_core.transactions.column_names import (
    DISCOUNTS,
    HINTS,
    QUANTITIES,
    SYNONYMS,
    UNIT_PRICES,
    named_currency,
    plain_name,
)
from cbmt_core.transactions.detect_format import Detected
from cbmt_core.transactions.detect_rows import find_rows, guests_by_email
from cbmt_core.transactions.detect_values import looks_like_amount, looks_like_time

__all__ = ["NEEDED", "find_columns"]

NEEDED = frozenset({"customer", "order_time", "amount"})
"""Columns that every source has."""
_SHARE = re.compile(r"0|0?[.,]\d+|\d{1,2}([.,]\d+)?\s*%")


def find_columns(found: Detected, table: dict[str, list[str]], stated: Mapping[str, Any], name: str) -> None:
    """Find which column holds what, by title first and then by content; then what kinds of rows there are."""
    given = set(found.columns)
    _columns_by_title(found, table, stated)
    _columns_by_content(found, table)
    _quantity_of_a_price(found, table)
    if "customer" not in given:
        guests_by_email(found, table)
    _discounts(found, table)
    named = ", ".join(f"{ours} = {theirs!r}" for ours, theirs in found.columns.items())
    found.notes.append(f"columns: {named or 'none recognised'}")
    if "firm" not in found.columns and not stated.get("firm"):
        found.settings["firm"] = name
        found.notes.append(f"no column names a firm: all rows are of {name!r} (--firm)")
    _other_amounts(found, table)
    _misfits(found, table)
    if found.columns.keys() >= NEEDED and "order_id" not in found.columns:
        found.notes.append("no column of order ids: rows of one customer at one time are one order")
    find_rows(found, table, stated)


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
    """Name the other columns that could be the amount, so that the user can choose, say, net or gross."""
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


def _discounts(found: Detected, table: Mapping[str, Sequence[str]]) -> None:
    """Take the share that is discounted off unit prices, or mention a column of discounts that is not taken off."""
    amount = plain_name(found.columns.get("amount", ""))
    if amount not in UNIT_PRICES | {"grosssales"}:
        return
    for title, cells in table.items():
        name = plain_name(title)
        discount = any(part in name for part in DISCOUNTS) and _fits("amount", cells)
        if not discount or not any(cell.strip(" 0.,%$€£-") for cell in cells):
            continue
        filled = [cell.strip() for cell in cells if cell.strip()]
        if "discount" not in found.columns and all(map(_SHARE.fullmatch, filled)):
            found.columns["discount"] = title
            found.notes.append(f"amounts are reduced by the share in {title!r}")
        elif title != found.columns.get("discount"):
            found.notes.append(
                f"{title!r} is not taken off: amounts are before discount "
                "(--column amount=... names a column of amounts after it)"
            )


def _misfits(found: Detected, table: Mapping[str, Sequence[str]]) -> None:
    """Say why a column with a fitting name was not taken, where none was found at all."""
    for ours in sorted(NEEDED - found.columns.keys()):
        for title, cells in table.items():
            fitting = plain_name(title) in SYNONYMS[ours] and title not in found.columns.values()
            if fitting and any(cell.strip() for cell in cells):
                odd = _odd_cells(ours, cells)
                which = f"cells such as {', '.join(map(repr, odd))}" if odd else "most of its cells"
                what = (
                    "no times that are known (--time-format states one)"
                    if ours == "order_time"
                    else f"no {ours}"
                )
                found.notes.append(f"{title!r} is not taken for the {ours}: {which} are {what}")


def _odd_cells(ours: str, cells: Sequence[str]) -> list[str]:
    looks = {"order_time": looks_like_time, "amount": looks_like_amount}.get(ours)
    filled = dict.fromkeys(cell.strip() for cell in cells if cell.strip())
    return [cell for cell in filled if looks and not looks(cell)][:3]


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

    Only a column's name distinguishes customers from other texts, so without a hint there is none.
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
        written = sum(not re.fullmatch(r"\d+([.,]\d+)?", cell) and looks_like_time(cell) for cell in filled)
        return bool(filled) and written >= 0.9 * len(filled)
    if ours == "amount":
        decimals = sum(bool(re.search(r"\d[.,]\d{1,2}\D*$", cell)) for cell in filled)
        return _fits(ours, cells) and 2 * decimals >= len(filled)
    return _fits(ours, cells)


def _constant(table: dict[str, list[str]], title: str, order_id: str | None) -> bool:
    """Whether a column has a single value in each order, unlike, say, a product's brand."""
    if not order_id:
        return True
    values: defaultdict[str, set[str]] = defaultdict(set)
    for order, value in zip(table[order_id], table[title], strict=True):
        if value.strip():
            values[order].add(value.strip())
    return all(len(seen) == 1 for seen in values.values())
