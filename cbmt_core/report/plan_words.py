"""Sentences for planners: the range, the plan, and what to check."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cbmt_core.report.numbers import Money, day, percent
from cbmt_core.report.words import plural
from cbmt_core.scenarios import definition
from cbmt_core.timeline import SEASON

__all__ = [
    "DRIVER_LABELS",
    "Signal",
    "changes_in_words",
    "held_so_far",
    "needed",
    "plan_sentence",
    "range_sentence",
    "short_history",
    "to_do",
]

WIDE_RANGE = 40.0
"""Width of the 80 % range, in percent of its middle, from which a forecast is called wide."""
MOVED = 2.0
"""Change in percent from which on a driver is said to rise or fall."""
DRIVER_LABELS = {driver: name[:1].upper() + name[1:] for driver, name in definition.DRIVER_LABELS.items()}


def range_sentence(
    ends: tuple[float, float] | None, before: float | None, money: Money, borrowed: bool = False
) -> str:
    """The 80 % range of the year's sales; empty without a range.

    Args:
        borrowed: whether the range was calibrated on other data.
    """
    if ends is None or not all(math.isfinite(end) for end in ends):
        return ""
    text = (
        f"With a probability of 80% they will lie between {money.short(ends[0])} and {money.short(ends[1])}"
    )
    if before is not None and before > 0:
        moves = [percent(100 * (end / before - 1), plus=True) for end in ends]
        text += f" ({moves[0]} to {moves[1]})"
    if borrowed:
        text += "; its width is borrowed from other firms' forecasts, not yet learned from these data"
    return text + "."


def short_history(weeks: int) -> str:
    """What cannot be known from so short a history; empty from a year on."""
    if weeks >= SEASON:
        return ""
    return (
        f"Only {plural(weeks, 'week')} are known, less than a year: a seasonal peak cannot be told from growth. "
        "The year may end far from the forecast, also outside its range."
    )


def plan_sentence(row: dict[str, float] | None, total_weeks: int, money: Money) -> str:
    """How likely the plan is; empty without one."""
    if row is None:
        return ""
    over = "" if row["weeks"] == total_weeks else f" for the {plural(int(row['weeks']), 'week')} it covers"
    return (
        f"The plan of {money.short(row['sales'])}{over} is reached with a probability of "
        f"{chance(row['probability'])} as things stand."
    )


def chance(share: float, unit: str = "%") -> str:
    """A probability; the ends are not certainties."""
    if share < 0.01:
        return f"less than 1{unit}"
    if share > 0.99:
        return f"more than 99{unit}"
    return f"{100 * share:.0f}{unit}"


def changes_in_words(changes: str) -> str:
    """A scenario's changes as a reader says them, from the text that the table `scenario` holds."""
    found = [
        one
        for part in changes.split(", ")
        for one in definition.parse_change(*part.split(" ", 1))  # A driver, then its change.
    ]
    return "; ".join(map(_change_in_words, found))


def _change_in_words(one: definition.Change) -> str:
    size = (
        " " + percent(100 * ((one.factor or 0.0) - 1), plus=True).replace(".0%", "%")
        if one.level is None
        else f": {one.level:,g} {definition.UNITS[one.driver]}"
    )
    start = f" from {day(one.first)}" if one.first else ""
    end = f" to {day(one.last)}" if one.last else ""
    ramp = f", growing over {plural(one.ramp, 'week')}" if one.ramp else ""
    return f"{definition.DRIVER_NAMES[one.driver]}{size}{start}{end}{ramp}"


def needed(change: float | None) -> str:
    """How far a driver must move."""
    if change is None or not math.isfinite(change):
        return "not reached even at ten times its forecast"
    if change <= -99.95:
        return "reached even without it"
    text = percent(change, plus=True)
    return f"{text} against its forecast" if change > 0 else f"reached with {text} to spare"


@dataclass(frozen=True)
class Signal:
    """How a driver changes from the last 52 weeks to the next."""

    driver: str
    """acquisition, reorders or value"""
    change: float | None
    """Percent, or points of sales for reorders; None where not known."""
    low: float | None = None
    high: float | None = None
    """Ends of the 80 % range."""
    beside: str = ""
    """What it is compared with, in words."""

    @property
    def falls(self) -> bool:
        return self.change is not None and self.change <= -MOVED

    @property
    def surely(self) -> bool:
        """Whether the whole range lies below no change."""
        return self.high is not None and self.high < 0


WATCHED = {
    "acquisition": (
        "fewer new customers are forecast",
        "look at the budget, the channels and the timing of acquisition",
    ),
    "reorders": (
        "existing customers are forecast to reorder less than a year earlier",
        "look at retention and at how new customers are taken on",
    ),
    "value": (
        "a lower average order is forecast",
        "look at prices, promotions and what is sold",
    ),
}


NOUNS = {
    "acquisition": "new customers",
    "reorders": "repeat orders of existing customers",
    "value": "order value",
}


def to_do(signals: Sequence[Signal], year: tuple[float, float] | None, hard: str = "") -> list[str]:
    """Advice on what to check; it follows from the drivers, because causes are not known.

    Args:
        year: 80 % range of the year's sales.
        hard: sentence for firms that are hard to forecast.
    """
    found = []
    falling = [signal for signal in signals if signal.falls]
    for signal in falling:
        what, look = WATCHED[signal.driver]
        unit = " points" if signal.driver == "reorders" else "%"
        size = f"−{abs(signal.change or 0.0):,.1f}{unit}"
        span = ""
        if signal.low is not None and signal.high is not None:
            ends = [f"{'+' if end >= 0 else '−'}{abs(end):,.1f}" for end in (signal.low, signal.high)]
            span = f"; 80% range {ends[0]} to {ends[1]}"
        sure = (
            ""
            if signal.high is None
            else (" The whole range is a fall." if signal.surely else " A rise lies within the range too.")
        )
        found.append(f"{what.capitalize()} ({size}{signal.beside}{span}): {look}.{sure}")
    if len(falling) == len(WATCHED):
        found.append(
            "All three drivers weaken: compare scenarios before committing to spending that the baseline pays for."
        )
    judged = {signal.driver for signal in signals if signal.change is not None}
    if judged == set(WATCHED) and not falling:
        found.append(
            "No driver is forecast to fall by more than 2%: nothing in the forecast calls for a change of course."
        )
    elif judged and judged != set(WATCHED):
        found.append(_not_judged(judged, falling=bool(falling)))
    wide = year is not None and sum(year) > 0 and 200 * (year[1] - year[0]) / sum(year) >= WIDE_RANGE
    if wide or hard:
        why = " and ".join(part for part in (hard, "the range is wide" if wide else "") if part)
        found.append(
            f"{why[:1].upper()}{why[1:]}: plan for both ends of the range, and look again whenever new weeks are in."
        )
    return found


def _not_judged(judged: set[str], *, falling: bool) -> str:
    """Which drivers cannot be compared with a year before, and that the others do not fall, where none does."""
    said = " and ".join(NOUNS[driver] for driver in NOUNS if driver in judged)
    left = " and ".join(NOUNS[driver] for driver in NOUNS if driver not in judged)
    text = f"{left} cannot be judged"
    text = (
        text[:1].upper() + text[1:] if falling else f"No fall of more than 2% is forecast for {said}; {text}"
    )
    if "reorders" in judged:
        return f"{text}."
    return f"{text}: an existing base usually reorders less as it ages, and there is no earlier year to compare with."


def held_so_far(inside: int, seen: int, level: int) -> str:
    """How often earlier ranges held what happened; empty where none has passed."""
    if not seen:
        return ""
    share = percent(100 * inside / seen, digits=0)
    return f"So far {share} of {plural(seen, 'week')} of earlier forecasts lay within their {level}% range."
