"""Calendar covariates of weeks: season, trend and holidays, all known in advance."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

import holidays
import numpy as np
import numpy.typing as npt
from dateutil.easter import easter
from dateutil.relativedelta import SU, TH, relativedelta

from cbmt_core.arrays import Floats, Ints
from cbmt_core.timeline import week_of

__all__ = ["VERSION", "Calendar", "calendar_id", "calendar_of", "has_holidays"]

Dates = npt.NDArray[np.datetime64]

VERSION = "1"
"""Raise it when the holidays or other covariates change, so that everything made with them is made again."""

RECURS = 3
"""A holiday is used if it falls in at least this many of ten years: what happened once says nothing about next
year."""


@dataclass(frozen=True, eq=False)
class Calendar:
    """Covariates of consecutive weeks; row t belongs to `weeks[t]`."""

    weeks: Dates
    week_of_year: Ints
    """0-51: the number of whole weeks since 1 January of the week's Wednesday."""
    month: Ints
    """0-11: the month of the week's Wednesday."""
    holiday: Floats
    """[T, H]: 1 where the holiday falls into the week."""
    holiday_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.weeks)


def has_holidays(country: str) -> bool:
    """Whether the holidays of this country (ISO code) are known."""
    return country in holidays.list_supported_countries()


def calendar_id(country: str) -> str:
    """The country's calendar with its version: what stored results are identified by."""
    return country if VERSION == "1" else f"{country} {VERSION}"


@lru_cache(maxsize=64)
def _holiday_weeks(country: str, year: int) -> tuple[tuple[str, date], ...]:
    """(holiday, Sunday of its week) for one year, public holidays and shopping days."""
    public = holidays.country_holidays(country, years=year, observed=False, language="en_US")
    days = [(name, day) for day, names in public.items() for name in names.split("; ")]
    thanksgiving = date(year, 11, 1) + relativedelta(weekday=TH(4))
    days += [
        ("Black Friday", thanksgiving + timedelta(days=1)),
        ("Cyber Monday", thanksgiving + timedelta(days=4)),
        ("Easter", easter(year)),
        ("Valentine's Day", date(year, 2, 14)),
        ("Mother's Day", date(year, 5, 1) + relativedelta(weekday=SU(2))),
    ]
    return tuple((name, week_of(day)) for name, day in days)


@lru_cache(maxsize=64)
def calendar_of(first: date, weeks: int, country: str = "US") -> Calendar:
    """The calendar of `weeks` weeks from the Sunday `first`.

    The holiday columns are the holidays that recur in the years 2010 to 2019, whatever the weeks, so that two
    calendars of one country always have the same columns.

    Args:
        first: Sunday of the first week.
        weeks: number of weeks.
        country: ISO code of a country whose holidays are known (`has_holidays`).
    """
    sundays = np.datetime64(first, "D") + 7 * np.arange(weeks)
    wednesdays = sundays + 3
    years = wednesdays.astype("datetime64[Y]")
    year_numbers = range(first.year, (first + timedelta(days=7 * weeks)).year + 1)
    known = Counter(
        name for year in range(2010, 2020) for name in {n for n, _ in _holiday_weeks(country, year)}
    )
    names = sorted(name for name, years_seen in known.items() if years_seen >= RECURS)
    column = {name: k for k, name in enumerate(names)}
    holiday = np.zeros((weeks, len(names)))
    for year in year_numbers:
        for name, sunday in _holiday_weeks(country, year):
            row = (sunday - first).days // 7
            if name in column and 0 <= row < weeks:
                holiday[row, column[name]] = 1.0
    calendar = Calendar(
        weeks=sundays,
        week_of_year=np.minimum((wednesdays - years).astype("int64") // 7, 51),
        month=wednesdays.astype("datetime64[M]").astype("int64") % 12,
        holiday=holiday,
        holiday_names=tuple(names),
    )
    for shared in (calendar.weeks, calendar.week_of_year, calendar.month, calendar.holiday):
        shared.setflags(write=False)
    return calendar
