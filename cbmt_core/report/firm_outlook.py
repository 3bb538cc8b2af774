"""The opening of a firm's page: the year ahead in words, tiles, bridges and quarters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cbmt_core.arrays import Floats
from cbmt_core.report import charts, plan_words, words
from cbmt_core.report.firm_data import FirmData
from cbmt_core.report.firm_evidence import StudyTest
from cbmt_core.report.numbers import Money, count, day, percent, points, week_end
from cbmt_core.report.plan_page import signals
from cbmt_core.report.planning import Planning
from cbmt_core.report.story import Stories, Story
from cbmt_core.report.track import BANDS, Track
from cbmt_core.report.words import Bridge
from cbmt_core.timeline import MIN_LIVE_WEEKS, SEASON

__all__ = ["Opening", "bridges", "missing", "model_words", "months", "opening", "quarters"]

QUARTER = 13
STEPS = {
    "change": "Sales change",
    "order_volume": "Existing base: repeat orders",
    "spend_per_order": "Existing base: spend per order",
    "net_replenishment": "Net customer-base replenishment",
}


@dataclass(frozen=True)
class Opening:
    """The opening of the page."""

    headline: str
    lead: str
    watch: list[str]
    span: str = ""
    """The range of the year's sales."""
    plan: str = ""
    todo: tuple[str, ...] = ()
    """Advice that follows from the numbers."""
    sources: str = ""
    year_before: str = ""
    tiles: tuple[dict[str, Any], ...] = ()


def opening(
    data: FirmData, stories: Stories, story: Story | None, failed: list[tuple[str, str]], money: Money,
    planning: Planning, hard: str = "",
) -> Opening:  # fmt: skip
    """What the page says first.

    Args:
        story: the firm's live forecast, where it has one.
        failed: model and reason of each live fit that gave no forecast.
        planning: ranges and plan of the forecast.
        hard: sentence for firms that are hard to forecast; otherwise empty.
    """
    watch = data.watch.sentences()
    if story is None:
        title = "There is no forecast of the year ahead yet"
        return Opening(title, f"{missing(stories.weeks, failed)} Its cohorts are shown as observed.", watch)
    late = stories.outdated(story)
    ahead = words.weeks_ahead(story.weeks, story.origin)
    when = f"in {ahead}" if late else f"over the next {words.plural(story.weeks, 'week')}"
    seen = day(week_end(story.origin))
    lead = words.sentence(
        ahead if story.last_sales is None else f"{ahead} against {words.weeks_to(SEASON, story.origin)}"
    )
    lead += f" Forecast by {story.label}, made with data up to {seen}."
    if late and stories.newest is not None:
        lead += f" Forecasts of other firms have data up to {day(week_end(stories.newest))}."
    title = words.headline(story.last_sales, story.sales, money, when)
    year = planning.bands.year()
    span = plan_words.range_sentence(year, story.last_sales, money, planning.bands.borrowed)
    if data.origin is not None and (short := plan_words.short_history(data.origin + 1)):
        span = f"{span} {short}".strip()
    plan = plan_words.plan_sentence(planning.plan_row, story.weeks, money)
    todo = tuple(plan_words.to_do(signals(planning, data, story), year, hard))
    bridge, before = story.forecast, story.realised
    if bridge is None:
        lead += f" The sources of the change cannot be told apart: {story.reason.rstrip('.')}."
        return Opening(title, lead, watch, span, plan, todo, year_before=words.year_before(before))
    loss = words.weakest_source(bridge, before, money)
    return Opening(
        headline=title,
        lead=lead,
        watch=[loss, *watch] if loss else watch,
        span=span,
        plan=plan,
        todo=todo,
        sources=words.sources(bridge, money),
        year_before=words.year_before(before),
        tiles=tuple(
            _tile(name, part, bridge, before, money, planning.whiskers) for part, name in STEPS.items()
        ),
    )


def missing(weeks: int, failed: list[tuple[str, str]], whom: str = "this firm") -> str:
    """Why there is no live forecast of `whom`: too few weeks, failed fits, or none was made."""
    if weeks < MIN_LIVE_WEEKS:
        more = words.plural(MIN_LIVE_WEEKS - weeks, "more week")
        return f"A forecast needs {MIN_LIVE_WEEKS} whole weeks, and the data have {weeks}: {more} to come."
    if failed:
        reasons = "; ".join(f"{name}: {reason.rstrip('.')}" for name, reason in failed)
        return f"No model could be fitted to this firm. {reasons}."
    return f"No live forecast of {whom} has been made."


def _tile(
    name: str, part: str, bridge: Bridge, before: Bridge | None, money: Money, ranges: charts.Whiskers
) -> dict[str, Any]:
    amount = getattr(bridge, part)
    past = None if before is None else getattr(before, part)
    source = "sales_change" if part == "change" else part
    ends = ranges.get(source)
    return {
        "name": name,
        "amount": money.short(amount, plus=True),
        "points": points(bridge.points(amount)),
        "definition": charts.DEFINITIONS[source],
        "range": [money.short(end, plus=True) for end in ends] if ends else [],
        "before": None
        if before is None or past is None
        else f"{money.short(past, plus=True)}, {points(before.points(past))}",
        "side": {1: "up", -1: "down", 0: ""}[bridge.sign(amount)],
    }


def model_words(story: Story | None, track: Track, test: StudyTest) -> dict[str, str] | None:
    """Which model, why, and its past errors; None without a live forecast."""
    if story is None:
        return None
    sure = []
    for purpose in ("live", "backtest"):
        row = track.row(story.model, purpose)
        if row is not None:
            near, far = row["0"], row[str(len(BANDS) - 1)]
            sure.append(words.backtested(story.label, row["origins"], near, far, live=purpose == "live"))
    sure.append(words.year_off(track.year_error, track.years))
    if not any(sure):
        sure.append(test.certainty(story.model) or words.unknown(story.label))
    why = (
        words.sentence(story.reason_chosen)
        or "No choice of a model is on record; this is the first that has a forecast."
    )
    return {
        "name": story.label,
        "why": why,
        "sure": " ".join(text for text in sure if text),
        "note": words.sentence(story.note),
    }


def bridges(story: Story | None, money: Money, ranges: charts.Whiskers) -> dict[str, Any] | None:
    """The waterfall of the year ahead and that of the year before, on one axis."""
    if story is None or story.forecast is None:
        return None
    ahead, before = story.forecast, story.realised
    low, high = charts.waterfall_range([one for one in (ahead, before) if one is not None], ranges)
    title, start = f"Forecast by {story.label}", "sales of the last 52 weeks"
    past = "sales of the 52 weeks before"
    return {
        "forecast": charts.waterfall(title, ahead, low, high, money, start, ranges),
        "when": words.weeks_to(ahead.weeks, ahead.target_last),
        "before": None if before is None else charts.waterfall("Year before", before, low, high, money, past),
        "before_when": "" if before is None else words.weeks_to(before.weeks, before.target_last),
        "ranges": bool(ranges),
    }


def quarters(data: FirmData, story: Story | None, money: Money, planning: Planning) -> list[dict[str, Any]]:
    """The year ahead by 13 weeks, each against the same weeks of the 52 before; the last row is their sum."""
    if story is None or data.origin is None:
        return []
    ahead = data.forecast.iloc[data.origin + 1 :]
    # Weeks one season before those ahead; NaN where not observed.
    past = (
        data.observed["sales"]
        .reindex(pd.DatetimeIndex(ahead.index) - pd.Timedelta(weeks=SEASON))
        .to_numpy(dtype=float)
    )
    spans = [slice(k, min(k + QUARTER, len(ahead))) for k in range(0, len(ahead), QUARTER)]
    ends = planning.bands.of("sales", "quarter")
    rows = [
        _quarter(ahead.iloc[span], past[span], money, _ends(ends, ahead.index[span.start])) for span in spans
    ]
    total = _quarter(ahead, past, money, planning.bands.year()) | {
        "name": words.plural(len(ahead), "week"),
        "total": True,
    }
    return [*rows, total]


def _ends(rows: pd.DataFrame, week: pd.Timestamp) -> tuple[float, float] | None:
    """The range of the period that begins with a week."""
    return (float(rows["low"][week]), float(rows["high"][week])) if week in rows.index else None


def months(data: FirmData, story: Story | None, money: Money, planning: Planning) -> list[dict[str, Any]]:
    """The year ahead by calendar month, each against the same month a year earlier where all of it is observed."""
    spans = planning.bands.of("sales", "month")
    if story is None or data.origin is None:
        return []
    past = _by_month(data.observed["sales"].iloc[: data.origin + 1])
    ahead = {
        name: _by_month(data.forecast[name].iloc[data.origin + 1 :])
        for name in ("sales", "orders", "acquired")
    }
    rows = []
    for month, (sales, days) in ahead["sales"].items():
        before, held = past.get(month - pd.DateOffset(years=1), (np.nan, 0))
        whole = days == month.days_in_month
        compared = whole and held == (month - pd.DateOffset(years=1)).days_in_month and before > 0
        ends = _ends(spans, month)
        rows.append(
            {
                "name": f"{month:%b %Y}" + ("" if whole else f" ({days} days)"),
                "cells": [
                    money.short(sales),
                    f"{money.short(ends[0])} – {money.short(ends[1])}" if ends else "",
                    money.short(before) if compared else "",
                    percent(100 * (sales / before - 1), plus=True) if compared else "",
                    *(count(ahead[name][month][0]) for name in ("orders", "acquired")),
                ],
            }
        )
    return rows


def _by_month(weekly: pd.Series[Any]) -> dict[pd.Timestamp, tuple[float, int]]:
    """Sum and number of days by first day of the month; a week is spread evenly over its days."""
    found: dict[pd.Timestamp, tuple[float, int]] = {}
    for week, amount in weekly.items():
        for k in range(7):
            first = (pd.Timestamp(str(week)) + pd.Timedelta(days=k)).replace(day=1)
            sales, days = found.get(first, (0.0, 0))
            found[first] = (sales + float(amount) / 7, days + 1)
    return found


def _quarter(
    ahead: pd.DataFrame, past: Floats, money: Money, ends: tuple[float, float] | None
) -> dict[str, Any]:
    sales, before = float(ahead["sales"].sum()), float(past.sum())
    first, last = ahead.index[0].date(), week_end(ahead.index[-1].date())
    return {
        "name": f"{day(first)} – {day(last)}",
        "cells": [
            money.short(sales),
            f"{money.short(ends[0])} – {money.short(ends[1])}" if ends else "",
            money.short(before),
            percent(100 * (sales / before - 1), plus=True) if before > 0 else percent(None),
            *(count(ahead[name].sum(min_count=len(ahead))) for name in ("orders", "acquired")),
        ],
        "total": False,
    }
