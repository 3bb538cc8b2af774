"""A firm's page: the year ahead, the cohorts behind it, and how earlier forecasts did."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pandas as pd
from markupsafe import Markup

from cbmt_core.report import charts, plan_charts, plan_words
from cbmt_core.report.cohorted_panel import cohorted_panel
from cbmt_core.report.firm_data import EARLIER, FirmData, read_firm
from cbmt_core.report.firm_evidence import read_study, study_context, track_context
from cbmt_core.report.firm_outlook import bridges, model_words, months, opening, quarters
from cbmt_core.report.freshness import firm_note
from cbmt_core.report.numbers import Money, count, day, month, percent, value, week_end
from cbmt_core.report.plan_page import fan_context, scenario_context, value_context
from cbmt_core.report.planning import LEVEL, held_weeks, read_planning
from cbmt_core.report.rows import query, records
from cbmt_core.report.story import Stories, label
from cbmt_core.report.svg import shades
from cbmt_core.report.track import read_track

__all__ = ["OUTCOME_NAMES", "firm_context"]

OUTCOME_NAMES = {
    "acquisition": "Acquisition",
    "ropc": "ROPC",
    "aov": "AOV",
    "cohort_sales": "Cohort sales",
    "total_sales": "Total sales",
}


def firm_context(
    con: duckdb.DuckDBPyConnection, firm: Mapping[str, Any], stories: Stories, *, alone: bool = False
) -> dict[str, Any]:
    """The context of the template of a firm's page.

    Args:
        firm: a row of the table `firm`.
        alone: whether it is the only firm, and its page the whole report.
    """
    name = firm["firm"]
    live, study = stories.live.get(name), stories.study.get(name)
    data, test = read_firm(con, name, live), read_study(con, name, study)
    model = live.model if live else study.model if study else None
    track = read_track(con, name, model)
    money = Money(firm["currency"])
    failed = _failed(con, name)
    sales = data.observed["sales"].dropna()
    planning = read_planning(con, live)
    ranges = planning.whiskers
    difficulty, hard = _difficulty(con, name)
    return {
        "alone": alone,
        "firm": firm,
        "state_note": firm_note(con, name),
        "facts": [*_facts(firm, money), *difficulty],
        "story": opening(data, stories, live, failed.get("live", []), money, planning, hard),
        "model": model_words(live, track, test),
        "held": plan_words.held_so_far(*held_weeks(con, name, model), LEVEL),
        "quarters": quarters(data, live, money, planning),
        "months": months(data, live, money, planning),
        "fan": fan_context(planning, data, live, money),
        "scenarios": scenario_context(planning, live, money),
        "value": value_context(planning, money),
        "layers": _layers(data, money),
        "layer_colours": shades(sum(not layer.censored for layer in data.layers)),
        "layer_names": [layer.name.removeprefix("acquired ") for layer in data.layers if not layer.censored],
        "censored": next((charts.CENSORED for layer in data.layers if layer.censored), None),
        "first_week": day(data.weeks[0]),
        "overtaken": data.origin is not None and bool(len(sales) > data.origin + 1),
        "drivers": _drivers(data, money),
        "tenure": charts.tenure_curves(data.cohorts, data.tenure, data.tenure_step) if data.cohorts else None,
        "tenure_names": data.cohorts,
        "cumulative": plan_charts.value_curves(*data.spent, money) if data.spent[0] else None,
        "tenure_colours": shades(len(data.cohorts)),
        "bridges": bridges(live, money, ranges),
        "track": track_context(track, model, sales, money),
        "study": study_context(con, study, test, sales, money),
        "triangle": _triangle(data, money),
        "part_periods": bool(data.part_periods),
        "panel": cohorted_panel(con, name, money),
        "outcomes": OUTCOME_NAMES,
        "failed": [(purpose, model, reason) for purpose, rows in failed.items() for model, reason in rows],
        "quality": _quality(firm, money),
        "quarantined": [
            (str(row["reason"]).replace("_", " "), count(row["rows"]), money.short(row["amount"]))
            for row in records(data.quarantined)
        ],
    }


def _failed(con: duckdb.DuckDBPyConnection, firm: str) -> dict[str, list[tuple[str, str]]]:
    """Model and reason of each newest fit without a forecast, by purpose. Backtests are many and left out."""
    rows = query(
        con,
        "SELECT purpose, model, reason FROM model_fit WHERE firm = ? AND purpose IN ('live', 'study') "
        "QUALIFY NOT succeeded AND origin = max(origin) OVER (PARTITION BY purpose, model) ORDER BY purpose, model",
        firm,
    )
    failed: dict[str, list[tuple[str, str]]] = {}
    for row in records(rows):
        reason = row["reason"] or "no reason was given"
        failed.setdefault(row["purpose"], []).append((label(row["model"]), reason))
    return failed


def _facts(firm: Mapping[str, Any], money: Money) -> list[tuple[str, str]]:
    first, last = (month(week_end(pd.Timestamp(firm[name]).date())) for name in ("first_week", "last_week"))
    return [
        ("Customers", count(firm["customers"])),
        ("Orders", count(firm["orders"])),
        ("Sales", money.short(float(firm["sales"]))),
        ("Observed", f"{first} – {last}"),
    ]


def _difficulty(con: duckdb.DuckDBPyConnection, firm: str) -> tuple[list[tuple[str, str]], str]:
    """The firm's predicted error, where there is one, and words for firms that are hard to forecast."""
    rows = con.execute(
        "SELECT phe, band FROM diagnostic.predicted_error WHERE firm = ? AND phe IS NOT NULL", [firm]
    ).fetchall()
    facts = [("Predicted error of cohort sales", f"{percent(phe, digits=0)}, {band}") for phe, band in rows]
    hard = any(str(band).lower() in ("high", "hard") for _, band in rows)
    return facts, "this firm is among the harder ones to forecast" if hard else ""


def _layers(data: FirmData, money: Money) -> Markup:
    actual, forecast = (frame["sales"].to_numpy(dtype=float) for frame in (data.observed, data.forecast))
    return charts.layers(data.weeks, data.layers, actual, forecast, data.origin, money)


def _drivers(data: FirmData, money: Money) -> list[tuple[str, str, Markup]]:
    rate = pd.concat([data.observed["ropc"], data.forecast["ropc"]]).max()
    digits = charts.decimals(float(rate)) if rate == rate else 2
    kinds = (
        ("acquired", "Acquisition", "new customers a week", count, "", 0),
        ("ropc", "Repeat orders per customer", "a week", partial(value, digits=digits), "", digits + 2),
        ("aov", "Average order value", f"{money.currency} an order", money.axis, money.prefix, 2),
    )
    return [
        (
            name,
            unit,
            charts.time_lines(
                name, data.weeks, data.observed[column].to_numpy(dtype=float),
                data.forecast[column].to_numpy(dtype=float), data.origin, label, prefix, places,
            ),
        )
        for column, name, unit, label, prefix, places in kinds
    ]  # fmt: skip


def _triangle(data: FirmData, money: Money) -> Markup | None:
    frame = data.triangle
    if frame.empty:
        return None
    rows = sorted(set(frame["cohort"]), key=lambda name: (name != EARLIER, name))
    at_row, at_column = {n: k for k, n in enumerate(rows)}, {n: k for k, n in enumerate(data.periods)}
    values = np.full((len(rows), len(data.periods)), np.nan)
    tips = [[""] * len(data.periods) for _ in rows]
    for cell in records(frame):
        r, c = at_row[cell["cohort"]], at_column[cell["period"]]
        values[r, c] = cell["sales"]
        who = (
            f"Acquired before {day(data.weeks[0])}"
            if cell["cohort"] == EARLIER
            else f"Acquired {cell['cohort']}"
        )
        tips[r][c] = (
            f"{who}, in {cell['period']}\nSales\t{money.short(cell['sales'])}\n"
            f"Repeat orders per customer and week\t{value(cell['ropc'], 4)}\n"
            f"Weeks observed\t{count(cell['weeks'])}"
        )
    title = "Sales by time of acquisition and calendar time"
    return charts.heat_map(title, rows, data.periods, values, tips, money.short, data.part_periods)


def _quality(firm: Mapping[str, Any], money: Money) -> list[tuple[str, str]]:
    def orders(part: str) -> str:
        return f"{count(firm[f'{part}_orders'])} ({money.short(float(firm[f'{part}_sales']))})"

    given = int(firm["rows_in"])
    used = f" ({percent(100 * firm['rows_used'] / given)})" if given else ""
    share = firm["left_censored_share"]
    rows = [
        ("Source rows", count(given)),
        ("Rows used", f"{count(firm['rows_used'])}{used}"),
        ("Rows set aside", count(firm["rows_quarantined"])),
        ("Orders before the first week shown", orders("washout")),
        ("Orders after the last whole week", orders("unfinished")),
        ("Customers acquired before the first week", count(firm["left_censored_customers"])),
    ]  # fmt: skip
    if pd.notna(firm["guest_rows"]):  # Tables of an earlier version lack these columns.
        refunds = f"{count(firm['refund_rows'])} rows ({money.short(float(firm['refunds']))})"
        rows[3:3] = [
            ("Rows without a customer", count(firm["guest_rows"])),
            ("Refunds taken off orders", refunds),
        ]
    if share is not None:
        rows.append(("Their share of sales", percent(100 * float(share))))
    return [*rows, ("Currency and time zone", f"{firm['currency']}, {firm['timezone']}")]
