"""The sentences of the report, each made from numbers alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from cbmt_core.report.numbers import Money, count, day, percent, points, week_end

__all__ = [
    "SOURCES",
    "Bridge",
    "backtested",
    "headline",
    "largest_shift",
    "listed",
    "main_reason",
    "outcome",
    "plural",
    "sentence",
    "sources",
    "tested",
    "unknown",
    "weakest_source",
    "weeks_ahead",
    "weeks_to",
    "year_before",
    "year_off",
]

FLAT = 0.5
"""Changes below this, in points or percent, are described as no change."""
SOURCES = {
    "order_volume": "repeat orders of the existing base",
    "spend_per_order": "spend per repeat order",
    "net_replenishment": "new customers",
}


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


def weeks_to(weeks: int, sunday: date) -> str:
    """The weeks that end with the week of `sunday`."""
    return f"the {plural(weeks, 'week')} to {day(week_end(sunday))}"


def weeks_ahead(weeks: int, origin: date) -> str:
    """The weeks that follow the week of `origin`."""
    return weeks_to(weeks, origin + timedelta(weeks=weeks))


def headline(before: float | None, after: float, money: Money, when: str) -> str:
    """Sales as forecast, against those of the year before where they are known."""
    if before is None or not before > 0:
        return f"Sales of {money.short(after)} are forecast {when}"
    change = 100 * (after / before - 1)
    if abs(change) < FLAT:
        return f"Sales are forecast to stay about level {when}, at {money.short(after)}"
    side = "rise" if change > 0 else "fall"
    span = f"from {money.short(before)} to {money.short(after)}"
    return f"Sales are forecast to {side} {percent(abs(change))} {when}, {span}"


def outcome(forecast: Bridge, realised: Bridge | None) -> str:
    """A past forecast of its weeks, next to the actual sales."""
    claim = _past(forecast, "would rise", "would fall", "would stay about level")
    if realised is None:
        return f"It said sales {claim} against the same weeks a year earlier."
    happened = _past(realised, "rose", "fell", "stayed about level")
    gap = forecast.points(forecast.change) - realised.points(realised.change)
    off = f"{points(abs(gap)).lstrip('+')} too {'high' if gap > 0 else 'low'}"
    off = "right to within half a point" if abs(gap) < FLAT else off
    return f"It said sales {claim} against the same weeks a year earlier; they {happened}: the forecast was {off}."


def _past(bridge: Bridge, up: str, down: str, flat: str) -> str:
    sign = bridge.sign(bridge.change)
    return flat if sign == 0 else f"{up if sign > 0 else down} {percent(abs(bridge.points(bridge.change)))}"


def year_before(before: Bridge | None) -> str:
    """The realised bridge of the year before; empty where there is none."""
    if before is None:
        return ""
    said = _past(before, "rose", "fell", "stayed about level")
    parts = [points(before.points(getattr(before, name))) for name in SOURCES]
    return (
        f"For comparison, in {weeks_to(before.weeks, before.target_last)} sales {said}: repeat orders of the then "
        f"existing base made {parts[0]}, spend per order {parts[1]} and new customers {parts[2]}. Part of every base "
        "stops ordering, so set a loss against the year before's and not against zero."
    )


def largest_shift(bridge: Bridge, before: Bridge | None) -> str:
    """The source that differs most from the year before; empty where that is not known or small."""
    if before is None:
        return ""
    moved = {n: bridge.points(getattr(bridge, n)) - before.points(getattr(before, n)) for n in SOURCES}
    name = max(moved, key=lambda one: abs(moved[one]))
    return "" if abs(moved[name]) < FLAT else f"{SOURCES[name]} {points(moved[name])} against the year before"


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
            second = f"New customers bring {size} more than first orders did in the 52 weeks before ({share})"
        case -1:
            second = f"New customers bring {size} less than first orders did in the 52 weeks before ({share})"
        case _:
            second = f"New customers bring about as much as first orders did in the 52 weeks before ({share})"
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


def main_reason(bridge: Bridge) -> str:
    """How the existing base and new customers make the change, as a clause."""
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


def backtested(label: str, origins: int, near: float | None, far: float | None, live: bool = False) -> str:
    """The model's errors in earlier forecasts; `near` and `far` are SMAPE 1 to 4 and 27 to 52 weeks ahead."""
    if not _known(near):
        return ""
    made = "live forecast" if live else "backtest"
    off = f"{label} was off by {percent(near)} in an average week 1 to 4 weeks ahead"
    return f"In {plural(origins, made)} of this firm, {off}" + (
        f", and by {percent(far)} 27 to 52 weeks ahead." if _known(far) else "."
    )


def year_off(error: float | None, years: int) -> str:
    """Errors of yearly totals; empty if no year has passed."""
    if not _known(error):
        return ""
    return f"The total of 52 weeks was off by {percent(error)} on average ({plural(years, 'forecast')})."


def unknown(label: str) -> str:
    return (
        f"How far {label} is off on this firm is not yet known: no forecast of it has weeks observed since."
    )


def tested(label: str, smape: float | None, weeks: int, rank: int | None, models: int) -> str:
    """The model's error in the study's holdout; empty if it was not tested."""
    if not _known(smape):
        return ""
    text = (
        f"In the test on past weeks, {label} was off by {percent(smape)} in an average week "
        f"(SMAPE of sales over {plural(weeks, 'week')})"
    )
    if rank is not None and models > 1:
        place = "the smallest error" if rank == 1 else f"number {rank}"
        text += f", {place} of {models} models"
    return text + "."


def _known(number: float | None) -> bool:
    return number is not None and math.isfinite(number)


def weakest_source(bridge: Bridge, before: Bridge | None, money: Money) -> str:
    """The largest loss among the sources, beside the year before's; empty without any."""
    name = min(SOURCES, key=lambda one: float(getattr(bridge, one)))
    amount = getattr(bridge, name)
    if bridge.sign(amount) >= 0:
        return ""
    share = points(bridge.points(amount))
    if before is not None:
        share += f"; {points(before.points(getattr(before, name)))} in the year before"
    opening = f"Largest loss in {weeks_to(bridge.weeks, bridge.target_last)}:"
    if name == "net_replenishment":
        less = f"{money.size(amount)} less than first orders did in the 52 weeks before"
        return f"{opening} new customers bring {less} ({share})."
    cost = f"{money.size(amount)} ({share})"
    if name == "order_volume":
        fall, ends = _fall(*bridge.orders), [count(number) for number in bridge.orders]
        what = f"repeat orders of the existing base fall{fall}"
    else:
        fall, ends = _fall(*bridge.spend), [money.price(number) for number in bridge.spend]
        what = f"spend per repeat order falls{fall}"
    return f"{opening} {what}, from {ends[0]} to {ends[1]}, which costs {cost}."


def _fall(before: float, after: float) -> str:
    return f" {percent(100 * (1 - after / before))}" if before > 0 else ""


def sentence(text: str) -> str:
    """A clause as a sentence: a capital first, a full stop last."""
    return text[:1].upper() + text[1:].rstrip(".") + "." if text else ""
