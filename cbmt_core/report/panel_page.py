"""The panel's page: the year ahead of all firms, every firm in a line, and how well models forecast."""

from __future__ import annotations

from functools import partial
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from cbmt_core.report import panel_charts as charts
from cbmt_core.report.firm_evidence import BAND_NAMES, band_rows
from cbmt_core.report.freshness import freshness
from cbmt_core.report.numbers import Money, count, month, short, value, week_end
from cbmt_core.report.panel_outlook import IndexFacts, firm_row, panel_outlook, read_index_facts
from cbmt_core.report.panel_study import study_comparison
from cbmt_core.report.rows import query, records
from cbmt_core.report.story import Stories, label
from cbmt_core.report.svg import shades
from cbmt_core.report.track import panel_track

__all__ = ["panel_context"]

MOST_FAILURES = 40
ORDER_SHADES = 9


def panel_context(con: duckdb.DuckDBPyConnection, firms: pd.DataFrame, stories: Stories) -> dict[str, Any]:
    """The context of the template of the panel's page; `firms` is the table `firm`."""
    whole = firms[firms["segment"].isna()]
    failed = query(
        con,
        "SELECT purpose, model, reason, count(DISTINCT firm) AS firms, count(*) AS fits, "
        "min(firm) AS example FROM model_fit "
        "WHERE NOT succeeded GROUP BY ALL ORDER BY firms DESC, purpose, model, reason",
    )
    facts = read_index_facts(con)
    made = query(con, "SELECT * FROM diagnostic.status WHERE made")
    return {
        "facts": _facts(whole),
        "fresh": freshness(con),
        "outlook": panel_outlook(whole, stories, facts.ranges),
        "firms": [firm_row(row, stories, facts) for row in records(firms)],
        "has": _has(facts) | {"diagnostics": bool(len(made))},
        "track": {"bands": BAND_NAMES, "rows": band_rows(panel_track(con), None)},
        "study": study_comparison(con),
        "scatter": _scatter(firms),
        "mixed": len(set(whole["currency"])) > 1,
        "failed": [
            (
                label(row["model"]), row["purpose"], row["reason"] or "no reason was given",
                count(row["firms"]), row["example"],
            )
            for row in records(failed.head(MOST_FAILURES))
        ],
        "failed_more": max(0, len(failed) - MOST_FAILURES),
        "failed_fits": int(failed["fits"].sum()) if len(failed) else 0,
    }  # fmt: skip


def _has(facts: IndexFacts) -> dict[str, bool]:
    """Which columns of the list are not empty."""
    return {name: bool(getattr(facts, name)) for name in ("ranges", "plans", "bands", "errors")}


def _facts(firms: pd.DataFrame) -> list[tuple[str, str]]:
    sales = firms.assign(sales=firms["sales"].astype(float)).groupby("currency")["sales"].sum()
    facts = [
        ("Firms", count(len(firms))),
        ("Customers", count(firms["customers"].sum())),
        ("Orders", count(firms["orders"].sum())),
        ("Sales", " + ".join(Money(str(code)).short(float(amount)) for code, amount in sales.items()) or "–"),
    ]
    if len(whole := firms.dropna(subset=["first_week", "last_week"])):
        first, last = (
            pd.Timestamp(end).date() for end in (whole["first_week"].min(), whole["last_week"].max())
        )
        facts.append(("Observed", f"{month(week_end(first))} – {month(week_end(last))}"))
    return facts


def _scatter(firms: pd.DataFrame) -> dict[str, Any] | None:
    """Customers on the horizontal axis, sales on the vertical one; the colour is the average order value."""
    rows = [
        (k, row, float(row["sales"]) / row["orders"])
        for k, row in enumerate(records(firms))
        if row["segment"] is None and row["customers"] > 0 and row["sales"] > 0
    ]
    if not rows:
        return None
    orders = np.log([order for _, _, order in rows])
    spread = float(np.ptp(orders))
    ramp = shades(ORDER_SHADES)
    place = np.rint((orders - orders.min()) / (spread or 1.0) * (ORDER_SHADES - 1)).astype(int)
    marks = [
        charts.Mark(float(row["customers"]), float(row["sales"]), row["firm"], k, ramp[at])
        for (k, row, _), at in zip(rows, place, strict=True)
    ]
    codes = list(firms["currency"].unique())
    one = Money(codes[0]) if len(codes) == 1 else None
    ends = [float(np.exp(end)) for end in (orders.min(), orders.max())]
    return {
        "chart": charts.scatter(
            "Firms by customers and sales",
            marks,
            "customers",
            "sales",
            one.axis if one else partial(short, trim=True),
        ),
        "ramp": ramp,
        "ends": [one.price(end) if one else value(end, 2) for end in ends],
    }
