"""The sentences of the report, each made from numbers alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from cbmt_core.report.numbers import Money, count, day, percent, points, week_end

__all__ = [
    "Bridge",
    "acquisition_trend",
    "certainty",
    "cohort_quality",
    "headline",
    "left_censored",
    "listed",
    "one_line",
    "outcome",
    "plural",
    "sources",
    "weakest_source",
]

FLAT = 0.5
"""Changes below this, in points or percent, are told as no change."""
HEAVY_CENSORED = 0.25
"""Share of sales from customers of unknown age above which forecasts rest much on them."""


@dataclass(frozen=True)
class Bridge:
    """A change in sales and its three sources, in currency; points are percent of the baseline."""

    baseline_sales: float
    target_sales: float
    order_volume: float
    spend_per_order: float
    net_replenishment: float
    orders: tuple[float, float]
    """Repeat orders of the existing base in the baseline and in the target."""
    spend: tuple[float, float]
    """What was spent on each of them."""
    target_first: date
    target_last: date
    weeks: int

    @property
    def change(self) -> float:
        return self.target_sales - self.baseline_sales

    def points(self, amount: float) -> float:
        return 100 * amount / self.baseline_sales

    @property
    def existing_base(self) -> float:
        return self.order_volume + self.spend_per_order

    def sign(self, amount: float) -> int:
        """1 or -1, or 0 for an amount too small to speak of."""
        return 0 if abs(self.points(amount)) < FLAT else int(math.copysign(1, amount))


def plural(number: int, noun: str) -> str:
    many = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{count(number)} {noun if number == 1 else many}"


def listed(names: Sequence[str]) -> str:
    """a, b and c"""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def headline(bridge: Bridge, money: Money) -> str:
    before, after = money.short(bridge.baseline_sales), money.short(bridge.target_sales)
    moved = percent(abs(bridge.points(bridge.change)))
    match bridge.sign(bridge.change):
        case 1:
            return f"Sales are forecast to rise {moved}, from {before} to {after}"
        case -1:
            return f"Sales are forecast to fall {moved}, from {before} to {after}"
        case _:
            return f"Sales are forecast to stay about level, at {after}"


def period(bridge: Bridge) -> str:
    """The windows compared, as a clause."""
    last = day(week_end(bridge.target_last))
    weeks = plural(bridge.weeks, "week")
    return f"the {weeks} from {day(bridge.target_first)} to {last}, against the same weeks a year earlier"


def outcome(forecast: Bridge, realised: Bridge | None) -> str:
    """What happened in the target, next to what was forecast."""
    if realised is None:
        return ""
    moved = percent(abs(realised.points(realised.change)))
    said = {1: f"rose {moved}", -1: f"fell {moved}", 0: "stayed about level"}[realised.sign(realised.change)]
    gap = forecast.points(forecast.change) - realised.points(realised.change)
    if abs(gap) < FLAT:
        return f"In the event sales {said}: the forecast was right to within half a point."
    side = "high" if gap > 0 else "low"
    return f"In the event sales {said}: the forecast was {points(abs(gap)).lstrip('+')} too {side}."


def sources(bridge: Bridge, money: Money) -> str:
    """Where the change comes from: the existing base, then new customers and whether they make up for it."""
    volume = _part(bridge, money, bridge.order_volume, "more repeat orders add", "fewer repeat orders cost",
                   "the number of repeat orders changes little")  # fmt: skip
    spend = _part(bridge, money, bridge.spend_per_order, "higher spend per order adds",
                  "lower spend per order costs", "spend per order changes little")  # fmt: skip
    same = bridge.sign(bridge.order_volume) * bridge.sign(bridge.spend_per_order)
    first = f"In the existing base, {volume}, {'but' if same < 0 else 'and'} {spend}."
    size, share = money.size(bridge.net_replenishment), points(bridge.points(bridge.net_replenishment))
    match bridge.sign(bridge.net_replenishment):
        case 1:
            second = f"New customers bring {size} more than first orders did in the baseline ({share})"
        case -1:
            second = f"New customers bring {size} less than first orders did in the baseline ({share})"
        case _:
            second = f"New customers bring about as much as first orders did in the baseline ({share})"
    return f"{first} {second}{_balance(bridge)}."


def _part(bridge: Bridge, money: Money, amount: float, up: str, down: str, flat: str) -> str:
    share = points(bridge.points(amount))
    sign = bridge.sign(amount)
    return f"{flat} ({share})" if sign == 0 else f"{up if sign > 0 else down} {money.size(amount)} ({share})"


def _balance(bridge: Bridge) -> str:
    base, new = bridge.sign(bridge.existing_base), bridge.sign(bridge.net_replenishment)
    if base * new >= 0:
        return ""
    total = bridge.sign(bridge.change)
    if base < 0:
        return {1: ", which more than makes up for the loss", 0: ", which just makes up for the loss",
                -1: ", which does not make up for the loss"}[total]  # fmt: skip
    return {1: ", which takes back part of the gain", 0: ", which takes back the gain",
            -1: ", which takes back more than the gain"}[total]  # fmt: skip


def one_line(forecast: Bridge, realised: Bridge | None = None) -> str:
    """The whole story in one line of a list."""
    change = percent(forecast.points(forecast.change), plus=True)
    known = "" if realised is None else f" (realised {percent(realised.points(realised.change), plus=True)})"
    return f"{change} forecast{known}: {_pattern(forecast)}"


def _pattern(bridge: Bridge) -> str:
    base, new, total = map(bridge.sign, (bridge.existing_base, bridge.net_replenishment, bridge.change))
    match base, new:
        case (1, 1):
            return "both the existing base and new customers add"
        case (-1, -1):
            return "both the existing base and new customers bring less"
        case (-1, 1):
            verb = {1: "more than make up", 0: "just make up", -1: "do not make up"}[total]
            return f"new customers {verb} for a shrinking base"
        case (1, -1):
            return "the existing base grows while new customers bring less"
        case (1, 0):
            return "the existing base grows"
        case (-1, 0):
            return "the existing base shrinks"
        case (0, 1):
            return "new customers add to a steady base"
        case (0, -1):
            return "new customers bring less beside a steady base"
        case _:
            return "neither the existing base nor new customers move much"


def certainty(label: str, smape: float | None, weeks: int, rank: int | None, models: int) -> str:
    """How far the model was off when it could be checked on this firm."""
    if smape is None or not math.isfinite(smape):
        return f"How far {label} is off on this firm is not yet known: no forecast of it has weeks observed since."
    text = (
        f"When checked on this firm, {label} was off by {percent(smape)} in an average week "
        f"(SMAPE of sales over {plural(weeks, 'week')})"
    )
    if rank is not None and models > 1:
        place = "the smallest error" if rank == 1 else f"number {rank}"
        text += f", {place} of {models} models"
    return text + "."


def weakest_source(bridge: Bridge, money: Money) -> str:
    """The largest loss among the sources; empty without any."""
    amount, name = min(
        (bridge.order_volume, "orders"), (bridge.spend_per_order, "spend"), (bridge.net_replenishment, "new")
    )
    if bridge.sign(amount) >= 0:
        return ""
    if name == "new":
        less = f"{money.size(amount)} less than first orders did in the baseline"
        return f"Largest loss: new customers bring {less} ({points(bridge.points(amount))})."
    cost = f"{money.size(amount)} ({points(bridge.points(amount))})"
    before, after = bridge.orders if name == "orders" else bridge.spend
    fall = percent(100 * (1 - after / before)) if before > 0 else ""
    told = count if name == "orders" else money.price
    what = "repeat orders of the existing base" if name == "orders" else "spend per repeat order"
    return f"Largest loss: {what} {_verb(name)} {fall}, from {told(before)} to {told(after)}, which costs {cost}."


def _verb(name: str) -> str:
    return "fall" if name == "orders" else "falls"


def left_censored(share: float | None) -> str:
    """What part of the last year's sales came from customers whose age is unknown; empty when none did."""
    if share is None or not math.isfinite(share) or share <= 0:
        return ""
    part = percent(100 * share, digits=0)
    if share >= HEAVY_CENSORED:
        return (
            f"Old customers: {part} of the last year's sales came from customers who were there before the study. "
            "Their age is unknown, and the forecast leans on how they carry on."
        )
    return f"Old customers: only {part} of the last year's sales came from customers who were there before the study."


def cohort_quality(change: float | None, weeks: int) -> str:
    """Percent change in early repeat orders per customer of the latest year's cohorts; empty when unknown."""
    if change is None or not math.isfinite(change):
        return ""
    span = f"in their first {weeks} weeks"
    if abs(change) < 5 * FLAT:
        return f"Cohort quality: the last year's new customers reorder {span} about as often as the year before's."
    often = f"{percent(abs(change), digits=0)} {'more' if change > 0 else 'less'} often"
    return f"Cohort quality: the last year's new customers reorder {often} {span} than the year before's."


def acquisition_trend(recent: float, before: float) -> str:
    """New customers of the last year against the year before; empty when there is no year before."""
    if not before > 0:
        return ""
    change = 100 * (recent / before - 1)
    told = f"{count(recent)} new customers in the last year"
    if abs(change) < 5 * FLAT:
        return f"Acquisition: {told}, about as many as in the year before ({count(before)})."
    side = "more" if change > 0 else "fewer"
    return f"Acquisition: {told}, {percent(abs(change), digits=0)} {side} than in the year before ({count(before)})."
