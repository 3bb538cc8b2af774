"""Which rows of a file are no sales, give money back or stand for guests, and whether an order's lines add up."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from cbmt_core.transactions.column_names import (
    GUESTS,
    KIND,
    KINDS_NOT_SALES,
    NOT_SALES,
    PARTS_OF_SALES,
    REFUND_KINDS,
    REFUNDED_STATES,
    SALE_KINDS,
    STATUS,
    SYNONYMS,
    plain_name,
    plain_status,
)
from cbmt_core.transactions.detect_format import Detected

__all__ = ["find_rows", "guests_by_email"]

CROWD = 0.05
"""A customer with a larger share of the rows is mentioned: it may stand for everyone without an account."""
GUEST_ADDRESSES = 3
"""A customer's number that comes with so many e-mail addresses stands for guests."""

Table = Mapping[str, Sequence[str]]


def find_rows(found: Detected, table: Table, stated: Mapping[str, Any]) -> None:
    """Find rows to leave out and refunds, mention a customer of many, and say how the lines of an order add up."""
    columns = found.columns
    if columns.get("customer") in table:
        _crowd(found, table[columns["customer"]])
    if not stated.get("leave_out"):
        _leave_out(found, table)
    if not stated.get("refund_where") and columns.get("amount") in table:
        _refund_where(found, table)
    _grain(found, table, {**found.settings, **stated})
    if columns.get("currency") in table:
        _currency(found, table[columns["currency"]])


def guests_by_email(found: Detected, table: Table) -> None:
    """Tell customers apart by e-mail address where one customer number (0, usually) stands for all guests."""
    numbers = found.columns.get("customer")
    if not numbers or numbers not in table or _is_email(table[numbers]):
        return
    emails = next(
        (
            title
            for title, cells in table.items()
            if title not in found.columns.values()
            and plain_name(title) in SYNONYMS["customer"]
            and _is_email(cells)
        ),
        None,
    )
    if not emails:
        return
    addresses: defaultdict[str, set[str]] = defaultdict(set)
    rows: Counter[str] = Counter()
    for number, email in zip(table[numbers], table[emails], strict=True):
        if number.strip() and email.strip():
            addresses[number.strip()].add(email.strip().casefold())
            rows[number.strip()] += 1
    several = [number for number, seen in addresses.items() if len(seen) > 1]
    if len(several) == 1 and len(addresses[several[0]]) >= GUEST_ADDRESSES and len(addresses) > 1:
        (guest,) = several
        found.columns["customer"] = emails
        found.notes.append(
            f"customers are told apart by {emails!r}: in {numbers!r}, {guest!r} stands for "
            f"{len(addresses[guest]):,} e-mail addresses ({rows[guest]:,} rows of the sample)"
        )


def _is_email(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell.strip()]
    return bool(filled) and 2 * sum("@" in cell for cell in filled) > len(filled)


def _crowd(found: Detected, cells: Sequence[str]) -> None:
    """Mention a customer who has far more rows than the others, or is called like someone without an account."""
    counts = Counter(cell.strip() for cell in cells if cell.strip())
    if len(counts) < 20:
        return
    usual = sorted(counts.values())[len(counts) // 2]
    who, rows = counts.most_common(1)[0]
    if not (rows > CROWD * counts.total() and rows > 20 * usual):
        who, rows = max(
            ((who, rows) for who, rows in counts.items() if plain_name(who) in GUESTS),
            key=lambda item: item[1],
            default=("", 0),
        )
    if rows > 2 * usual:
        found.notes.append(
            f"one customer, {who!r}, has {rows / counts.total():.0%} of the rows: if it stands for everyone "
            f"without an account, leave it out (--leave-out {shlex.quote(found.columns['customer'] + '=' + who)})"
        )


def _leave_out(found: Detected, table: Table) -> None:
    """Leave out orders that were not paid, or were paid back where no column says how much, and moves of money."""
    amounts = table.get(found.columns.get("amount", ""), ())
    given_back = (
        REFUNDED_STATES if "refunded" not in found.columns and not any(map(_negative, amounts)) else ()
    )
    leave_out = {}
    for title, cells in table.items():
        name = plain_name(title)
        unwanted = NOT_SALES.union(given_back) if name in STATUS else frozenset()
        if name in KIND:
            kinds = set(map(plain_name, cells))
            unwanted = KINDS_NOT_SALES | (PARTS_OF_SALES if kinds & SALE_KINDS else frozenset())
        elif name in STATUS and not given_back and "refunded" not in found.columns:
            _paid_back(found, title, cells)
        if values := sorted({cell.strip() for cell in cells if plain_status(cell) in unwanted}):
            leave_out[title] = values
    if leave_out:
        found.settings["leave_out"] = leave_out
        rules = "; ".join(f"{title!r} is {' or '.join(values)}" for title, values in leave_out.items())
        found.notes.append(f"left out as no sales: rows whose {rules}")


def _paid_back(found: Detected, title: str, cells: Sequence[str]) -> None:
    """Mention orders that were paid back, in a file whose refunds are rows with negative amounts."""
    for value in sorted({cell.strip() for cell in cells if plain_status(cell) in REFUNDED_STATES}):
        found.notes.append(
            f"rows whose {title!r} is {value} count as sales, and negative amounts as the refunds "
            f"(--leave-out {shlex.quote(f'{title}={value}')})"
        )


def _refund_where(found: Detected, table: Table) -> None:
    """Rows that another column calls refunds, where their amounts have no minus."""
    amounts = table[found.columns["amount"]]
    units = table.get(found.columns.get("quantity", ""), [""] * len(amounts))
    refund_where = {}
    for title, cells in table.items():
        if plain_name(title) not in KIND:
            continue
        values = {cell.strip() for cell in cells if plain_name(cell) in REFUND_KINDS}
        positive = any(
            cell.strip() in values and amount.strip(" 0.,") and not _negative(amount) and not _negative(unit)
            for cell, amount, unit in zip(cells, amounts, units, strict=True)
        )
        if positive and len(values) < len({cell.strip() for cell in cells}):
            refund_where[title] = sorted(values)
    if refund_where:
        found.settings["refund_where"] = refund_where
        rules = "; ".join(f"{title!r} is {' or '.join(values)}" for title, values in refund_where.items())
        found.notes.append(f"amounts without a minus that give money back: rows whose {rules}")


def _negative(cell: str) -> bool:
    text = cell.strip()
    return text.startswith(("-", "(", "\u2212")) or text.endswith("-") or "-" in text[:4]


def _grain(found: Detected, table: Table, settings: Mapping[str, Any]) -> None:
    """Whether lines of one order repeat its total."""
    columns = found.columns
    orders, totals = table.get(columns.get("order_id", "")), table.get(columns.get("amount", ""))
    if settings.get("amount_of") or orders is None or totals is None or "quantity" in columns:
        return
    refunds = {place for title, values in (settings.get("refund_where") or {}).items()
               for place, cell in enumerate(table.get(title, ())) if cell.strip() in values}  # fmt: skip
    amounts: defaultdict[str, list[str]] = defaultdict(list)
    for place, (order, amount) in enumerate(zip(orders, totals, strict=True)):
        if order.strip() and place not in refunds:
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


def _currency(found: Detected, cells: Sequence[str]) -> None:
    """The currency of all rows, or a note that there are several."""
    codes = Counter(cell.strip().upper() for cell in cells if cell.strip())
    if len(codes) == 1:
        found.currency = next(iter(codes))
    elif codes:
        shares = ", ".join(f"{code} {count:,}" for code, count in codes.most_common(5))
        found.usual_currency = codes.most_common(1)[0][0]
        found.notes.append(f"rows are in several currencies ({shares}); only those of the source's are used")
