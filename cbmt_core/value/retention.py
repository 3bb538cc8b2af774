"""How many of a quarter's new customers still order, by weeks since their first order."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cbmt_core.panel import LEFT_CENSORED, FirmPanel
from cbmt_core.value.ages import quarter_of

__all__ = ["BLOCK", "COLUMNS", "retention"]

BLOCK = 13
"""Weeks of a period of a customer's life."""
COLUMNS = ["acquired_in", "period", "customers", "active", "share"]


def retention(panel: FirmPanel) -> pd.DataFrame:
    """Rows by quarter of acquisition and period of 13 weeks since the first order: customers who ordered in it.

    Period 0 begins with the first order and counts repeat orders alone. A period is included once it is over for
    every customer of the quarter. Needs a panel with its customers.
    """
    history = panel.customers
    if history is None or not len(history.week):
        return pd.DataFrame(columns=COLUMNS)
    customer = np.repeat(np.arange(len(history.cohort)), np.diff(history.start))
    born = panel.birth[history.cohort]
    known = born != LEFT_CENSORED
    first = np.zeros(len(customer), bool)
    first[history.start[:-1]] = True
    age = history.week - born[customer]
    counted = known[customer] & ~first
    pairs = np.unique(np.stack([customer[counted], age[counted] // BLOCK]), axis=1)
    quarter = quarter_of(panel.weeks)
    rows = []
    for one in np.unique(quarter):
        weeks = np.flatnonzero(quarter == one)
        members = known & (born >= weeks[0]) & (born <= weeks[-1])
        customers = int(members.sum())
        if not customers:
            continue
        inside = members[pairs[0]]
        whole = (panel.n_weeks - int(born[members].max())) // BLOCK
        active = np.bincount(pairs[1][inside], minlength=max(whole, 1))
        rows += [
            {
                "acquired_in": one,
                "period": k,
                "customers": customers,
                "active": int(active[k]),
                "share": 100 * active[k] / customers,
            }
            for k in range(whole)
        ]
    return pd.DataFrame(rows, columns=COLUMNS)
