"""Refunds with an id of their own find the order they belong to."""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal

import duckdb

__all__ = ["net_refunds"]

ZERO = Decimal(0)


def net_refunds(con: duckdb.DuckDBPyConnection) -> None:
    """Make the table `netted(refund, target, amount, is_first)` from the tables `placed` and `returned`.

    `placed(place, customer, order_id, ordered_at, amount)` are the orders; `returned(refund, customer, order_id,
    parent_id, ordered_at, amount)` are the refunds, with positive amounts. A refund with a parent id reduces that
    order. Any other reduces the customer's latest earlier order, down to nothing, then the one before it, and so on.
    """
    con.execute(
        "CREATE OR REPLACE TEMP TABLE netted "
        "(refund BIGINT, target BIGINT, amount DECIMAL(18,4), is_first BOOLEAN)"
    )
    # Refunds are rare, so only orders of customers with a refund are processed.
    refunds = con.execute(
        "SELECT refund, customer, parent_id, ordered_at, amount FROM returned "
        "ORDER BY parent_id IS NULL, ordered_at, customer, order_id"
    ).fetchall()
    if not refunds:
        return
    orders = con.execute("""
        SELECT place, customer, order_id, ordered_at, amount FROM placed
        WHERE customer IN (SELECT customer FROM returned)
            OR order_id IN (SELECT parent_id FROM returned WHERE parent_id IS NOT NULL)
        ORDER BY ordered_at, customer, order_id""").fetchall()
    left = {place: amount for place, _, _, _, amount in orders}
    of_customer: defaultdict[str, list[tuple[object, int]]] = defaultdict(list)
    of_id: defaultdict[str, list[tuple[str, int]]] = defaultdict(list)
    for place, customer, order_id, ordered_at, _ in orders:
        of_customer[customer].append((ordered_at, place))
        of_id[order_id].append((customer, place))
    found: list[tuple[int, int, str, bool]] = []
    for refund, customer, parent_id, ordered_at, amount in refunds:
        if parent_id is not None:
            same = [place for owner, place in of_id[parent_id] if owner == customer]
            targets = same or [place for _, place in of_id[parent_id]]
        else:
            targets = [place for moment, place in reversed(of_customer[customer]) if moment <= ordered_at]
        open_amount = amount
        for place in targets:
            taken = min(open_amount, left[place])
            if taken > ZERO:
                found.append((refund, place, str(taken), open_amount == amount))
                left[place] -= taken
                open_amount -= taken
            if open_amount <= ZERO:
                break
    if found:
        import pandas as pd

        con.register("_netted", pd.DataFrame(found, columns=["refund", "target", "amount", "is_first"]))
        con.execute("INSERT INTO netted SELECT * FROM _netted")
        con.unregister("_netted")
