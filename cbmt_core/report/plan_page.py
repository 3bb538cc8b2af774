"""The planners' part of a firm's page: fan, quarters and months, scenarios, plan, value and retention."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from cbmt_core.report import plan_charts, plan_words
from cbmt_core.report.firm_data import FirmData
from cbmt_core.report.numbers import Money, count, percent, value
from cbmt_core.report.plan_charts import DriverBar, FanLevel
from cbmt_core.report.planning import Planning
from cbmt_core.report.rows import records
from cbmt_core.report.story import Story
from cbmt_core.timeline import SEASON

__all__ = ["fan_context", "scenario_context", "signals", "value_context"]

LEVELS = (50, 80, 95)
QUARTER = 13
WHOLE = 100.0
"""Amount from which on a table leaves out cents."""


def fan_context(
    planning: Planning, data: FirmData, story: Story | None, money: Money
) -> dict[str, Any] | None:
    """The last year, the fan of the year ahead, and the plan; None without a forecast."""
    if story is None or data.origin is None:
        return None
    first = max(0, data.origin + 1 - SEASON)
    weeks = data.weeks[first:]
    index = pd.DatetimeIndex(weeks)
    levels = []
    for level in LEVELS:
        rows = planning.bands.of("sales", "week", level).reindex(index)
        if rows["low"].notna().any():
            levels.append(FanLevel(level, rows["low"].to_numpy(float), rows["high"].to_numpy(float)))
    plan = np.full(len(weeks), np.nan)
    if len(planning.plan):
        plan = planning.plan.set_index("week")["sales"].reindex(index).to_numpy(dtype=float)
    actual, ahead = (frame["sales"].to_numpy(dtype=float)[first:] for frame in (data.observed, data.forecast))
    return {
        "chart": plan_charts.fan(weeks, actual, ahead, levels, plan, data.origin - first, money),
        "levels": [level.percent for level in levels],
        "plan": "" if planning.plan.empty else str(planning.plan["how"].iloc[0]),
        "sources": _sources(data, story, money),
    }


def _sources(data: FirmData, story: Story, money: Money) -> dict[str, Any] | None:
    """Sales by 13 weeks from customers acquired by the origin, and from those not yet acquired."""
    if data.origin is None or not data.new_sales.any():
        return None
    last = data.origin + 1
    first = last - min(last // QUARTER * QUARTER, SEASON)
    ends = [*range(first, last, QUARTER), *range(last, len(data.weeks), QUARTER)]
    spans = [slice(k, k + QUARTER) for k in ends]
    total = np.where(
        np.arange(len(data.weeks)) < last, data.observed["sales"], data.forecast["sales"]
    ).astype(float)
    both = np.array([np.nansum(total[span]) for span in spans])
    new = np.array([np.nansum(data.new_sales[span]) for span in spans])
    names = [f"{data.weeks[k]:%b %y}" for k in ends]
    ahead = float(new[[k >= last for k in ends]].sum())
    return {
        "chart": plan_charts.sources_by_quarter(
            names, [str(data.weeks[k]) for k in ends], both - new, new, sum(k < last for k in ends), money
        ),
        "share": percent(100 * ahead / story.sales, digits=0) if story.sales > 0 else "",
        "new": money.short(ahead),
        "existing": money.short(story.sales - ahead),
        "whole": data.origin + 1 >= SEASON,
    }


def scenario_context(planning: Planning, story: Story | None, money: Money) -> dict[str, Any] | None:
    """Tornado, scenarios side by side, and what the plan needs; None without draws."""
    if story is None or planning.scenarios.empty:
        return None
    moved = planning.scenario("tornado")
    bars = []
    for driver, name in plan_words.DRIVER_LABELS.items():
        rows = moved[moved["scenario"].str.startswith(f"{driver} ")].sort_values("difference")
        if len(rows) == 2:
            down, up = (float(v) for v in rows["difference"])
            bars.append(DriverBar(_two_lines(name), down, up))
    bars.sort(key=lambda bar: -(bar.up - bar.down))
    plan = planning.plan_row
    shown = pd.concat([planning.scenario("baseline"), planning.scenario("named")])
    whole = plan is not None and int(plan["weeks"]) == story.weeks
    return {
        "tornado": plan_charts.tornado("Which driver matters most", bars, money, "10%") if bars else None,
        "largest": bars[0].name.replace("\n", " ") if bars else "",
        "spans": plan_charts.spans(
            "Scenarios side by side",
            [
                (str(row["scenario"]), row["sales_low"], row["sales"], row["sales_high"])
                for row in records(shown)
            ],
            plan["sales"] if plan and whole else None,
            money,
        )
        if len(shown) > 1
        else None,
        "rows": [_scenario_row(row, planning, money) for row in records(shown)],
        "named": len(shown) > 1,
        "plan": plan_words.plan_sentence(plan, story.weeks, money),
        "example": _months_ahead(story),
        "wanted": "" if plan is None else percent(100 * plan["wanted"], digits=0),
        "targets": [
            (plan_words.DRIVER_LABELS[row["driver"]], plan_words.needed(row["change"]))
            for row in sorted(
                records(planning.targets), key=lambda one: list(plan_words.DRIVER_LABELS).index(one["driver"])
            )
        ],
    }


def _months_ahead(story: Story) -> str:
    """The third to the fifth month of a forecast, as a scenario's dates are written."""
    first = pd.Timestamp(story.origin) + pd.DateOffset(months=3)
    return f"from {first:%Y-%m} to {first + pd.DateOffset(months=2):%Y-%m}"


def _two_lines(name: str) -> str:
    words = name.split(" ")
    half = len(words) // 2
    return name if len(name) < 20 else " ".join(words[:half]) + "\n" + " ".join(words[half:])


def _scenario_row(row: dict[str, Any], planning: Planning, money: Money) -> dict[str, Any]:
    bridge = planning.bridge[planning.bridge["scenario"] == row["scenario"]].set_index("source")["amount"]
    names = ("order_volume", "spend_per_order", "net_replenishment")
    base = row["kind"] == "baseline"
    return {
        "name": row["scenario"],
        "changes": "" if base else plan_words.changes_in_words(row["changes"]),
        "passed": not base and not row["weeks_changed"],
        "cells": [
            money.short(row["sales"]),
            f"{money.short(row['sales_low'])} – {money.short(row['sales_high'])}",
            "" if base else money.short(row["difference"], plus=True),
            ""
            if base
            else f"{money.short(row['difference_low'], plus=True)} to {money.short(row['difference_high'], plus=True)}",
            *(money.short(bridge.get(name), plus=True) for name in names),
            "" if row["plan_probability"] is None else plan_words.chance(row["plan_probability"]),
        ],
    }


def value_context(planning: Planning, money: Money) -> dict[str, Any] | None:
    """Value of the base, of customers to come and per customer; None without draws."""
    if planning.base.empty:
        return None
    base = {row["part"]: row for row in records(planning.base)}
    terms = base["total"]
    margin = float(terms["margin"])
    return {
        "margin": "" if margin == 1 else percent(100 * margin, digits=0),
        "is_sales": margin == 1,
        "rate": percent(100 * float(terms["discount_rate"]), digits=0),
        "weeks": count(terms["horizon_weeks"]),
        "tail_years": count(terms["tail_years"]),
        "no_tail": (
            f"a horizon of {count(terms['horizon_weeks'])} weeks is less than a year"
            if terms["horizon_weeks"] < SEASON
            else "two whole years have not been observed"
        ),
        "tiles": [_value_tile(name, base[part], money) for part, name in VALUE_PARTS.items()],
        "tail": _value_tile("Beyond the horizon", base["tail"], money) if base["tail"]["value"] is not None else None,
        "ages": _ages(planning.ages, money),
        "retention": _retention(planning.retention),
        "cost": [
            {
                "name": _quarter(row["acquired_in"]),
                "cells": [
                    count(row["customers"]),
                    money.short(row["spend"]),
                    money.price(row["cac"]),
                    money.price(row["ltv"]),
                    value(row["ltv_cac"], 2),
                    count(row["payback_weeks"]) if row["payback_weeks"] is not None else "not yet",
                ],
                "forecast": row["source"] == "forecast",
            }
            for row in records(planning.cost)
        ],
    }  # fmt: skip


VALUE_PARTS = {"existing": "Customers of today", "to_come": "Customers to come", "total": "Together"}


def _value_tile(name: str, row: dict[str, Any], money: Money) -> dict[str, str]:
    each = row["value"] / row["customers"] if row["customers"] else None
    return {
        "name": name,
        "amount": money.short(row["value"]),
        "range": f"{money.short(row['value_low'])} – {money.short(row['value_high'])}",
        "each": f"{money.price(each)} for each of {count(row['customers'])}",
        "sales": f"from sales of {money.short(row['sales'])}",
    }


def _quarter(first: Any) -> str:
    moment = pd.Timestamp(first)
    return f"{moment.year} Q{moment.quarter}"


def _ages(ages: pd.DataFrame, money: Money) -> dict[str, Any] | None:
    if ages.empty:
        return None
    days = sorted(int(one) for one in ages["age_days"].unique())
    digits = 0 if ages["value_per_customer"].min() >= WHOLE else 2
    rows = []
    for quarter, held in ages.groupby("acquired_in"):
        cells = {int(row["age_days"]): row for row in records(held)}
        shares = [
            ("", False)
            if one not in cells
            else (money.price(cells[one]["value_per_customer"], digits), cells[one]["source"] == "forecast")
            for one in days
        ]
        rows.append(
            (_quarter(quarter), count(cells[days[0]]["customers"]) if days[0] in cells else "", shares)
        )
    return {"days": days, "rows": rows}


def _retention(frame: pd.DataFrame) -> dict[str, Any] | None:
    if frame.empty:
        return None
    periods = sorted(int(one) for one in frame["period"].unique())[:12]
    rows = []
    for quarter, held in frame.groupby("acquired_in"):
        shares = dict(zip(held["period"].astype(int), held["share"].astype(float), strict=True))
        cells = [
            (percent(shares[k], digits=0), round(min(1.0, shares[k] / 60), 2)) if k in shares else ("", 0.0)
            for k in periods
        ]
        rows.append((_quarter(quarter), count(held["customers"].iloc[0]), cells))
    return {"names": [f"{k * QUARTER + 1}–{(k + 1) * QUARTER}" for k in periods], "rows": rows}


def signals(planning: Planning, data: FirmData, story: Story) -> list[plan_words.Signal]:
    """How each driver changes from the last 52 weeks to the next, with its range."""
    found = []
    if data.origin is not None and data.origin + 1 >= SEASON and story.forecast is not None:
        past = data.observed.iloc[data.origin + 1 - SEASON : data.origin + 1]
        ahead = data.forecast.iloc[data.origin + 1 :]
        for driver, column in (("acquisition", "acquired"), ("value", "aov")):
            before, after = _driver(past, column), _driver(ahead, column)
            if not before > 0 or not np.isfinite(after):
                continue
            ends = planning.bands.year(column)
            low, high = ((100 * (end / before - 1)) for end in ends) if ends else (None, None)
            found.append(plan_words.Signal(driver, 100 * (after / before - 1), low, high))
        if story.realised is not None:
            beside = story.realised.points(story.realised.order_volume)
            ends = planning.bands.year("order_volume")
            low, high = (story.forecast.points(end) - beside for end in ends) if ends else (None, None)
            change = story.forecast.points(story.forecast.order_volume) - beside
            found.insert(1, plan_words.Signal("reorders", change, low, high, " of last year's sales"))
    return found


def _driver(weeks: pd.DataFrame, column: str) -> float:
    if column == "aov":
        orders = float(weeks["orders"].sum(min_count=len(weeks)))
        return float(weeks["sales"].sum()) / orders if orders > 0 else float("nan")
    return float(weeks[column].sum(min_count=len(weeks)))
