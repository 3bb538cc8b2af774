"""A firm's page: its story in words, then the charts and tables it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pandas as pd
from markupsafe import Markup

from cbmt_core.metrics import OUTCOMES
from cbmt_core.report import charts, words
from cbmt_core.report.cohorted_panel import cohorted_panel
from cbmt_core.report.firm_data import EARLIER, EARLY_WEEKS, FirmData, read_firm
from cbmt_core.report.numbers import Money, count, day, month, percent, points, value, week_end
from cbmt_core.report.rows import records, table_rows
from cbmt_core.report.story import Story, label
from cbmt_core.report.svg import shades

__all__ = ["OUTCOME_NAMES", "firm_context"]

OUTCOME_NAMES = {
    "acquisition": "Acquisition",
    "ropc": "ROPC",
    "aov": "AOV",
    "cohort_sales": "Cohort sales",
    "total_sales": "Total sales",
}


def firm_context(
    con: duckdb.DuckDBPyConnection, firm: Mapping[str, Any], story: Story | None
) -> dict[str, Any]:
    """What the template of a firm's page is filled with; `firm` is a row of the table `firm`."""
    data = read_firm(con, firm["firm"], story)
    money = Money(firm["currency"])
    return {
        "firm": firm,
        "facts": [*_facts(firm, money), *_difficulty(con, firm["firm"])],
        "story": _words(firm, data, story, money),
        "layers": _layers(data, money),
        "layer_colours": shades(sum(not layer.censored for layer in data.layers)),
        "layer_names": [layer.name.removeprefix("acquired ") for layer in data.layers if not layer.censored],
        "censored": next((charts.CENSORED for layer in data.layers if layer.censored), None),
        "drivers": _drivers(data, money),
        "tenure": charts.tenure_curves(data.cohorts, data.tenure, data.tenure_step) if data.cohorts else None,
        "tenure_names": data.cohorts,
        "tenure_colours": shades(len(data.cohorts)),
        "bridges": _bridges(story, money),
        "triangle": _triangle(data, money),
        "panel": cohorted_panel(con, firm["firm"], money),
        "outcomes": OUTCOME_NAMES,
        "errors": table_rows(data.errors, OUTCOMES, 1, story.model if story else None),
        "checked_weeks": data.checked_weeks,
        "failed": [(label(row["model"]), row["reason"] or "no reason was given") for row in records(data.failed)],
        "quality": _quality(firm, money),
        "quarantined": [
            (str(row["reason"]).replace("_", " "), count(row["rows"]), money.short(row["amount"]))
            for row in records(data.quarantined)
        ],
    }  # fmt: skip


def _facts(firm: Mapping[str, Any], money: Money) -> list[tuple[str, str]]:
    first, last = (month(week_end(pd.Timestamp(firm[name]).date())) for name in ("first_week", "last_week"))
    return [
        ("Customers", count(firm["customers"])),
        ("Orders", count(firm["orders"])),
        ("Sales", money.short(float(firm["sales"]))),
        ("Observed", f"{first} – {last}"),
    ]


def _difficulty(con: duckdb.DuckDBPyConnection, firm: str) -> list[tuple[str, str]]:
    """How hard the firm looked at the origin, where that could be told."""
    rows = con.execute(
        "SELECT phe, band FROM predicted_error WHERE firm = ? AND phe IS NOT NULL", [firm]
    ).fetchall()
    return [("Predicted error of cohort sales", f"{percent(phe, digits=0)}, {band}") for phe, band in rows]


@dataclass(frozen=True)
class Told:
    """The page's opening words."""

    headline: str
    lead: str
    watch: list[str]
    outcome: str = ""
    sources: str = ""
    sure: str = ""
    tiles: tuple[dict[str, Any], ...] = ()


STEPS = {
    "change": "Sales change",
    "order_volume": "Existing base: repeat orders",
    "spend_per_order": "Existing base: spend per order",
    "net_replenishment": "Net customer-base replenishment",
}


def _words(firm: Mapping[str, Any], data: FirmData, story: Story | None, money: Money) -> Told:
    watch = [
        words.left_censored(data.old_share),
        words.cohort_quality(data.early_change, EARLY_WEEKS),
        words.acquisition_trend(*data.acquired),
    ]
    if story is None:
        failed = words.plural(len(data.failed), "model")
        why = f" {failed} could not be fitted; the reasons are below." if len(data.failed) else ""
        lead = f"Its cohorts are shown as observed.{why}"
        return Told("There is no forecast of this firm yet", lead, [text for text in watch if text])
    sure = _certainty(data, story)
    if story.forecast is None:
        lead = f"{_sentence(story.reason)} The forecast by {story.label} is shown below."
        title = "The sources of the forecast change cannot be told apart"
        return Told(title, lead, [text for text in watch if text], sure=sure)
    bridge, realised = story.forecast, story.realised
    seen = day(week_end(story.origin))
    tiles = tuple(
        {
            "name": name,
            "amount": money.short(getattr(bridge, part), plus=True),
            "points": points(bridge.points(getattr(bridge, part))),
            "realised": None if realised is None else points(realised.points(getattr(realised, part))),
            "side": {1: "up", -1: "down", 0: ""}[bridge.sign(getattr(bridge, part))],
        }
        for part, name in STEPS.items()
    )
    return Told(
        headline=words.headline(bridge, money),
        lead=f"This is the forecast by {story.label}, made with data up to {seen}, for {words.period(bridge)}.",
        watch=[text for text in (words.weakest_source(bridge, money), *watch) if text],
        outcome=words.outcome(bridge, realised),
        sources=words.sources(bridge, money),
        sure=sure,
        tiles=tiles,
    )


def _certainty(data: FirmData, story: Story) -> str:
    own = {str(row["model"]): row for row in records(data.errors.reset_index())}.get(story.model)
    models = int(data.errors["total_sales"].notna().sum())
    if own is None or own["total_sales"] is None:
        return words.certainty(story.label, None, 0, None, models)
    return words.certainty(story.label, own["total_sales"], data.checked_weeks, int(own["rank"]), models)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


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
                data.forecast[column].to_numpy(dtype=float), data.origin, told, prefix, places,
            ),
        )
        for column, name, unit, told, prefix, places in kinds
    ]  # fmt: skip


def _bridges(story: Story | None, money: Money) -> dict[str, Any] | None:
    if story is None or story.forecast is None:
        return None
    shown = [bridge for bridge in (story.realised, story.forecast) if bridge is not None]
    low, high = charts.waterfall_range(shown)
    forecast = charts.waterfall(f"Forecast by {story.label}", story.forecast, low, high, money)
    realised = story.realised
    return {
        "forecast": forecast,
        "realised": None if realised is None else charts.waterfall("Realised", realised, low, high, money),
        "label": story.label,
        "start": money.short(low) if low > 0 else None,
    }


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
        who = "There before the study" if cell["cohort"] == EARLIER else f"Acquired {cell['cohort']}"
        tips[r][c] = (
            f"{who}, in {cell['period']}\nSales\t{money.short(cell['sales'])}\n"
            f"Repeat orders per customer and week\t{value(cell['ropc'], 4)}\n"
            f"Weeks observed\t{count(cell['weeks'])}"
        )
    title = "Sales by time of acquisition and calendar time"
    return charts.heat_map(title, rows, data.periods, values, tips, money.short)


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
        ("Orders before the study's first week", orders("washout")),
        ("Orders after its last whole week", orders("unfinished")),
        ("Customers there before the study", count(firm["left_censored_customers"])),
    ]  # fmt: skip
    if share is not None:
        rows.append(("Their share of sales", percent(100 * float(share))))
    return [*rows, ("Currency and time zone", f"{firm['currency']}, {firm['timezone']}")]
