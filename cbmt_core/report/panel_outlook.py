"""The year ahead on the panel's page: totals by currency, and a line for each firm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import duckdb
import pandas as pd

from cbmt_core.report import words
from cbmt_core.report.firm_outlook import missing
from cbmt_core.report.numbers import Money, count, day, percent, week_end
from cbmt_core.report.plan_words import chance
from cbmt_core.report.story import Stories, Story
from cbmt_core.timeline import HORIZON, SEASON, WEEK

__all__ = ["IndexFacts", "firm_row", "link", "panel_outlook", "read_index_facts", "total_ranges"]

HARDNESS = {"low": 1, "medium": 2, "high": 3}
"""Order of the bands of predicted error."""

MOST_NAMED = 5
"""Maximum number of firms named in a sentence."""
MOST_CURRENCIES = 3
"""Maximum number of currencies in the headline."""


def link(slug: str) -> str:
    """Address of a firm's page from the panel's."""
    return f"firms/{quote(slug)}.html"


def panel_outlook(
    firms: pd.DataFrame, stories: Stories, ranges: Mapping[str, tuple[float, float]]
) -> dict[str, Any]:
    """Headline, sentences and totals of the year ahead.

    Args:
        firms: rows of the table `firm`, segments left out.
        ranges: firm -> 80 % range of the year's sales.
    """
    live = [stories.live[name] for name in firms["firm"] if name in stories.live]
    if not live or stories.newest is None:
        return {
            "headline": "There is no forecast of the year ahead yet",
            "lead": [missing(stories.weeks, [], "any firm")],
            "totals": [],
            "ranged": False,
        }
    currency = dict(zip(firms["firm"], firms["currency"], strict=True))
    # The newest forecast may be that of a segment.
    current = [story for story in live if not stories.outdated(story)] or live
    counted = [story for story in current if story.last_sales is not None]
    # If no firm has a full year of history, there is only the year ahead to report.
    shown = counted or current
    by_currency = {
        code: [story for story in shown if currency[story.firm] == code]
        for code in sorted({currency[story.firm] for story in shown})
    }
    return {
        "headline": _headline(by_currency),
        "lead": [text for text in _lead(firms, stories, live, current, counted) if text],
        "totals": [_total(code, rows, ranges) for code, rows in by_currency.items()],
        "ranged": bool(ranges),
    }


def _headline(by_currency: Mapping[str, Sequence[Story]]) -> str:
    ahead = f"over the next {words.plural(HORIZON, 'week')}"
    sums = {code: _sums(rows) for code, rows in by_currency.items()}
    if len(sums) == 1:
        [(code, (last, sales))] = sums.items()
        return words.headline(last, sales, Money(code), ahead)
    if any(last is None for last, _ in sums.values()):
        amounts = [Money(code).short(sales) for code, (_, sales) in sums.items()]
        return f"Sales of {words.listed(amounts)} are forecast {ahead}"
    if len(sums) <= MOST_CURRENCIES:
        moves = [f"{_move(last or 0.0, sales)} in {code}" for code, (last, sales) in sums.items()]
        return f"Sales are forecast to {words.listed(moves)} {ahead}"
    stories = [story for rows in by_currency.values() for story in rows]
    rising = sum((story.change or 0.0) >= words.FLAT for story in stories)
    return f"Sales of {count(rising)} of {words.plural(len(stories), 'firm')} are forecast to rise {ahead}"


def _move(before: float, after: float) -> str:
    change = 100 * (after / before - 1) if before > 0 else 0.0
    if abs(change) < words.FLAT:
        return "stay about level"
    return f"{'rise' if change > 0 else 'fall'} {percent(abs(change))}"


def _sums(rows: Sequence[Story]) -> tuple[float | None, float]:
    """Sales of the last 52 weeks, None where a firm has fewer, and of the next."""
    known = [story.last_sales for story in rows if story.last_sales is not None]
    return sum(known) if len(known) == len(rows) else None, sum(story.sales for story in rows)


def _lead(
    firms: pd.DataFrame,
    stories: Stories,
    live: Sequence[Story],
    current: Sequence[Story],
    counted: Sequence[Story],
) -> list[str]:
    assert stories.newest is not None
    seen = day(week_end(stories.newest))
    end = words.weeks_to(HORIZON, stories.newest + HORIZON * WEEK)
    changes = [story.change for story in counted if story.change is not None]
    up, down = (sum(side * change >= words.FLAT for change in changes) for side in (1, -1))
    against = f" against {words.weeks_to(SEASON, stories.newest)}" if counted else ""
    text = f"{words.sentence(end + against)} Forecast with data up to {seen}."
    if len(changes) > 1:
        text += (
            f" Of {words.plural(len(changes), 'firm')}, {count(up)} are forecast to grow, {count(down)} to shrink and "
            f"{count(len(changes) - up - down)} to stay about level."
        )
    young = len(current) - len(counted)
    late = [
        f"{story.firm} (data up to {day(week_end(story.origin))})"
        for story in live
        if stories.outdated(story)
    ]
    none = [str(name) for name in firms["firm"] if name not in stories.live]
    return [
        text,
        _young(young, bool(counted)),
        f"The newest forecast of {_named(late)} is older than the others' and not in the total." if late else "",
        f"There is no forecast of {_named(none)}." if none else "",
    ]  # fmt: skip


def _young(number: int, others: bool) -> str:
    """Firms without a year to compare with; `others` says whether some have one."""
    if number == 0:
        return ""
    if not others:
        return f"No firm has {SEASON} observed weeks yet, so there is no change to report."
    are = "is" if number == 1 else "are"
    return f"{words.plural(number, 'firm')} with fewer than {SEASON} observed weeks {are} not in the total."


def _named(names: Sequence[str]) -> str:
    if len(names) <= MOST_NAMED:
        return words.listed(names)
    return words.listed([*names[: MOST_NAMED - 1], f"{count(len(names) - MOST_NAMED + 1)} more firms"])


def _total(
    code: str, rows: Sequence[Story], ranges: Mapping[str, tuple[float, float]]
) -> tuple[str, list[str]]:
    """One currency: firms, sales of the last and the next 52 weeks, ranges, the change, and that of the year before."""
    money, (last, ahead) = Money(code), _sums(rows)
    past = [story.realised.baseline_sales for story in rows if story.realised is not None]
    before = sum(past) if len(past) == len(rows) else 0.0
    return code, [
        count(len(rows)),
        money.short(last),
        money.short(ahead),
        *([_span(ends, money) for ends in total_ranges(rows, ranges)] if ranges else []),
        _change(last, ahead),
        _change(before, last),
    ]


def total_ranges(
    rows: Sequence[Story], ranges: Mapping[str, tuple[float, float]]
) -> tuple[tuple[float, float] | None, tuple[float, float] | None]:
    """80 % range of the firms' sum if they err independently (half widths add as squares), and if all err alike.

    The correlation of firms' errors is not known: backtests of a panel cover few years that do not overlap. None
    where a firm has no range.
    """
    if not rows or any(story.firm not in ranges for story in rows):
        return None, None
    total = sum(story.sales for story in rows)
    below = [story.sales - ranges[story.firm][0] for story in rows]
    above = [ranges[story.firm][1] - story.sales for story in rows]
    return (total - math.hypot(*below), total + math.hypot(*above)), (total - sum(below), total + sum(above))


def _span(ends: tuple[float, float] | None, money: Money) -> str:
    return f"{money.short(ends[0])} – {money.short(ends[1])}" if ends else ""


def _change(before: float | None, after: float | None) -> str:
    if before is None or after is None or not before > 0:
        return percent(None)
    return percent(100 * (after / before - 1), plus=True)


@dataclass(frozen=True, eq=False)
class IndexFacts:
    """Facts shown with each forecast in the list of firms, by firm."""

    ranges: Mapping[str, tuple[float, float]]
    """80 % range of the year's sales."""
    plans: Mapping[str, float]
    """Probability of the plan."""
    bands: Mapping[str, str]
    """How hard the firm is."""
    errors: Mapping[str, float]
    """Mean SMAPE of earlier forecasts by the model to plan with."""


def read_index_facts(con: duckdb.DuckDBPyConnection) -> IndexFacts:
    """Needs `gather_track`. One query for each column: a thousand firms take no longer than a few."""
    newest = "origin = (SELECT max(origin) FROM forecast_choice WHERE purpose = 'live')"

    def pairs(sql: str) -> dict[str, Any]:
        return {row[0]: row[1] if len(row) == 2 else row[1:] for row in con.execute(sql).fetchall()}

    choice = f"(SELECT firm, model, origin FROM forecast_choice WHERE purpose = 'live' AND {newest})"
    tracked = f"report_track JOIN (SELECT firm, model FROM {choice}) USING (firm, model)"
    return IndexFacts(
        ranges=pairs(
            f"SELECT firm, low, high FROM forecast_band JOIN {choice} USING (firm, model, origin) "
            "WHERE purpose = 'live' AND outcome = 'sales' AND period = 'year' AND level = 80"
        ),
        plans=pairs(f"SELECT firm, any_value(probability) FROM target WHERE {newest} GROUP BY firm"),
        bands=pairs("SELECT firm, band FROM diagnostic.predicted_error WHERE phe IS NOT NULL"),
        errors=pairs(
            f"SELECT firm, sum(smape ORDER BY purpose, origin, band) / sum(weeks) FROM {tracked} GROUP BY firm"
        ),
    )


def firm_row(firm: Mapping[str, Any], stories: Stories, facts: IndexFacts) -> dict[str, Any]:
    """A firm's line of the list: its year ahead with range, the main reason, the plan, and how sure that is.

    Cells come with the number they are sorted by.
    """
    name = firm["firm"]
    story, money = stories.live.get(name), Money(firm["currency"])
    last, ahead, change = (
        (None, None, None) if story is None else (story.last_sales, story.sales, story.change)
    )
    ends = facts.ranges.get(name) if story else None
    moved = None
    if ends and last:
        moved = " to ".join(percent(100 * (end / last - 1), plus=True, digits=0) for end in ends)
    plan, error = facts.plans.get(name), facts.errors.get(name)
    return {
        "name": firm["firm"],
        "link": link(firm["slug"]),
        "industry": firm["industry"] or "",
        "cells": [
            (money.short(last), last),
            (money.short(ahead), ahead),
            (percent(change, plus=True), change),
            *([(moved or "", ends[0] / last - 1 if ends and last else None)] if facts.ranges else []),
        ],
        "reason": _reason(story, stories),
        "sure": [
            *([("" if plan is None else chance(plan), plan)] if facts.plans else []),
            *([(facts.bands.get(name, ""), HARDNESS.get(facts.bands.get(name, "")))] if facts.bands else []),
            *([("" if error is None else percent(error, digits=0), error)] if facts.errors else []),
        ],
        "model": "" if story is None else story.label,
    }


def _reason(story: Story | None, stories: Stories) -> str:
    if story is None:
        return "no forecast yet"
    text = f"its sources cannot be told apart: {story.reason.rstrip('.')}"
    if story.forecast is not None:
        shift = words.largest_shift(story.forecast, story.realised)
        text = "; ".join(part for part in (words.main_reason(story.forecast), shift) if part)
    return text + (f" (older: data up to {day(week_end(story.origin))})" if stories.outdated(story) else "")
