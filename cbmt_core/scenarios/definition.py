"""A scenario: changes of single drivers, each from a date on, up to a date, at once or by a ramp."""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from cbmt_core.arrays import Floats
from cbmt_core.errors import ConfigError

__all__ = [
    "ALL_DRIVERS",
    "BOTH_REPEATS",
    "DRIVER_LABELS",
    "DRIVER_NAMES",
    "SCENARIO_DRIVERS",
    "UNITS",
    "Change",
    "Driver",
    "Scenario",
    "parse_change",
    "parse_day",
]

Driver = Literal["acquisition", "repeat_existing", "repeat_new", "aov"]
SCENARIO_DRIVERS: tuple[Driver, ...] = get_args(Driver)
DRIVER_NAMES: dict[str, str] = {
    "acquisition": "customers acquired",
    "repeat_existing": "repeat orders of existing customers",
    "repeat_new": "repeat orders of new customers",
    "aov": "order value",
}
ALL_DRIVERS = "all"
"""In targets: every driver changed by the same percentage."""
DRIVER_LABELS: dict[str, str] = {**DRIVER_NAMES, ALL_DRIVERS: "all of them together"}
"""Names of the drivers that a target can move."""
BOTH_REPEATS = "repeat"
"""Shorthand for the repeat orders of existing and of new customers."""
UNITS: dict[str, str] = {
    "acquisition": "customers a week",
    "repeat_existing": "repeat orders per customer and week",
    "repeat_new": "repeat orders per customer and week",
    "aov": "an order",
}
SYNTAX = "write -10%, +3%, x1.2 or =120, and where needed `from 2020-06`, `to 2020-09` and `over 8 weeks`"

_CHANGE = re.compile(
    r"(?P<size>[-+−]\s*\d+(?:\.\d+)?\s*%|0(?:\.0+)?\s*%|[x*]\s*\d+(?:\.\d+)?|=\s*\d+(?:\.\d+)?)"
    r"(?:\s+from\s+(?P<first>\S+))?(?:\s+to\s+(?P<last>\S+))?(?:\s+over\s+(?P<ramp>\d+)\s+weeks?)?\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Change:
    """One driver multiplied by a factor or replaced by a level.

    Exactly one of `factor` and `level` is given. A change applies to weeks that begin from `first` to `last`.
    """

    driver: Driver
    factor: float | None = None
    level: float | None = None
    """In the unit of the driver, see UNITS."""
    first: date | None = None
    """None: from the first week of the forecast."""
    last: date | None = None
    """None: to the end."""
    ramp: int = 0
    """Weeks over which the change grows, in equal steps, to its full size."""

    def __post_init__(self) -> None:
        if (self.factor is None) == (self.level is None):
            raise ConfigError(f"a change of {self.driver} takes a factor or a level, one of them")
        size = self.factor if self.level is None else self.level
        if size is None or not math.isfinite(size) or size < 0:
            raise ConfigError(f"{DRIVER_NAMES[self.driver]} cannot fall below zero: {self.description}")
        if self.first and self.last and self.last < self.first:
            raise ConfigError(f"the change of {self.driver} ends {self.last}, before it begins {self.first}")

    @property
    def description(self) -> str:
        """As `parse_change` reads it."""
        size = f"{100 * ((self.factor or 0.0) - 1):+.10g}%"
        text = size if self.level is None else f"={self.level:g}"
        if self.first:
            text += f" from {self.first}"
        if self.last:
            text += f" to {self.last}"
        return text + (f" over {self.ramp} weeks" if self.ramp else "")

    def weights(self, weeks: npt.NDArray[np.datetime64]) -> Floats:
        """[H] share of the change that applies in each week, from 0 to 1."""
        days = weeks.astype("datetime64[D]")
        on = np.ones(len(days), bool)
        since = np.arange(1, len(days) + 1)
        if self.first:
            start = np.datetime64(self.first, "D")
            on &= days >= start
            # A ramp that began before the forecast has already grown.
            since = (days - start).astype(int) // 7 + 1
        if self.last:
            on &= days <= np.datetime64(self.last, "D")
        grown = np.minimum(1.0, since / self.ramp) if self.ramp else np.ones(len(days))
        return np.where(on, grown, 0.0)


@dataclass(frozen=True)
class Scenario:
    """Several changes at once under a name."""

    name: str
    changes: tuple[Change, ...] = ()

    @classmethod
    def of(
        cls,
        name: str = "scenario",
        changes: Mapping[str, str | Sequence[str]] | None = None,
        *,
        first: str | date | None = None,
        last: str | date | None = None,
        ramp: int = 0,
        **drivers: str | Sequence[str],
    ) -> Scenario:
        """A scenario from texts: `Scenario.of(acquisition="-10% from 2020-06", aov="+3%")`.

        Args:
            changes: driver -> one text or several; as keywords too. `repeat` stands for both kinds of repeat orders.
            first: start of changes that do not state one: a day or a month.
            last: where they end.
            ramp: weeks they grow over.
        """
        default = (
            parse_day(first) if isinstance(first, str) else first,
            parse_day(last, end=True) if isinstance(last, str) else last,
        )
        found = [
            replace(one, first=one.first or default[0], last=one.last or default[1], ramp=one.ramp or ramp)
            for driver, texts in {**(changes or {}), **drivers}.items()
            for text in ([texts] if isinstance(texts, str) else texts)
            for one in parse_change(driver, text)
        ]
        return cls(name, tuple(found))

    @property
    def description(self) -> str:
        """The changes in words that `parse_change` understands."""
        return ", ".join(f"{change.driver} {change.description}" for change in self.changes) or "no change"

    def weeks_changed(self, weeks: npt.NDArray[np.datetime64]) -> int:
        """Number of weeks with a change."""
        held = [change.weights(weeks) > 0 for change in self.changes]
        return int(np.any(held, axis=0).sum()) if held else 0


def parse_day(text: str, *, end: bool = False) -> date:
    """A day (2020-06-14) or a month (2020-06): its first day or, with `end`, its last."""
    try:
        if re.fullmatch(r"\d{4}-\d{2}", text):
            year, month = int(text[:4]), int(text[5:])
            return date(year, month, calendar.monthrange(year, month)[1] if end else 1)
        return date.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{text!r} is not a day such as 2020-06-14 or a month such as 2020-06") from None


def parse_change(driver: str, text: str) -> tuple[Change, ...]:
    """The change that a text means: two for `repeat`, one for any other driver."""
    if driver != BOTH_REPEATS and driver not in SCENARIO_DRIVERS:
        raise ConfigError(
            f"no driver is called {driver!r}; there are {', '.join((*SCENARIO_DRIVERS, BOTH_REPEATS))}"
        )
    found = _CHANGE.fullmatch(text.strip())
    if not found:
        raise ConfigError(f"{driver}: cannot read the change {text!r}; {SYNTAX}")
    size = found["size"].replace("−", "-").replace(" ", "")
    number = float(size.strip("x*X=%"))
    first = parse_day(found["first"]) if found["first"] else None
    last = parse_day(found["last"], end=True) if found["last"] else None
    ramp = int(found["ramp"] or 0)
    whose: tuple[Driver, ...] = tuple(
        name
        for name in SCENARIO_DRIVERS
        if name == driver or (driver == BOTH_REPEATS and name.startswith("repeat"))
    )
    if size.startswith("="):
        return tuple(Change(name, level=number, first=first, last=last, ramp=ramp) for name in whose)
    factor = number if size[0] in "x*X" else 1 + number / 100
    return tuple(Change(name, factor=factor, first=first, last=last, ramp=ramp) for name in whose)
