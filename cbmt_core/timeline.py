"""Timeline and Origin: the weeks that the data cover, and the week, horizon and purpose of a forecast."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from cbmt_core.errors import HistoryTooShort

__all__ = [
    "BACKTEST_STEP",
    "HORIZON",
    "MIN_BACKTEST_WEEKS",
    "MIN_LIVE_WEEKS",
    "MIN_STUDY_WEEKS",
    "PURPOSES",
    "SEASON",
    "VALIDATION_WEEKS",
    "WEEK",
    "Origin",
    "Purpose",
    "Timeline",
    "Window",
    "choose_washout",
    "week_of",
    "week_sql",
    "whole_weeks",
]

SEASON = 52
"""Weeks between a week and the same week one season earlier."""
WEEK = timedelta(days=7)
VALIDATION_WEEKS = 20
MIN_TRAINING_WEEKS = SEASON
MIN_HOLDOUT_WEEKS = 13
MIN_STUDY_WEEKS = MIN_TRAINING_WEEKS + VALIDATION_WEEKS + MIN_HOLDOUT_WEEKS
"""Weeks after the washout that the shortest study needs."""
MIN_LIVE_WEEKS = 26
"""Weeks after the washout from which on the year ahead is forecast."""
MIN_BACKTEST_WEEKS = SEASON
"""Weeks needed before a backtest's origin: fewer do not show a season, so the backtest says little about today's
forecasts."""
WASHOUT_CHOICES = (52, 26, 13, 0)
YOUNG_WASHOUT_CHOICES = (26, 13, 0)
HORIZON = SEASON
"""Weeks ahead of live forecasts and backtests."""
BACKTEST_STEP = 13
BACKTEST_ANCHOR = date(2019, 3, 31)
"""In every project backtest origins lie a multiple of 13 weeks from this Sunday, the paper's forecast origin:
a new week adds at most one of them and moves none."""

Purpose = Literal["study", "backtest", "live"]
PURPOSES: tuple[Purpose, ...] = get_args(Purpose)


def week_of(day: date) -> date:
    """The Sunday that names the week of `day`."""
    return day - timedelta(days=(day.weekday() + 1) % 7)


def week_sql(day: str) -> str:
    """SQL for the Sunday that names the week of a DATE: `week_of` in SQL."""
    return f"({day} - CAST(dayofweek({day}) AS INTEGER))"


def whole_weeks(first_day: date, last_day: date) -> tuple[date, int]:
    """The first whole week (Sunday to Saturday) from `first_day` on, and how many there are up to `last_day`."""
    sunday = week_of(first_day)
    first_week = sunday if sunday == first_day else sunday + WEEK
    return first_week, max(0, (last_day + timedelta(days=1) - first_week).days // 7)


def choose_washout(weeks: int, validation_weeks: int, holdout_weeks: int | None = None) -> int:
    """The longest of 52, 26, 13 and 0 weeks that leaves enough for a study: a year of training, the validation
    window, and the holdout (or at least 13 weeks of it). In shorter data, the longest of 26, 13 and 0 weeks that
    leaves 26 for a live forecast.

    Args:
        weeks: complete weeks of the data.
        holdout_weeks: the holdout the study shall have, where that is fixed.
    """
    holdout = MIN_HOLDOUT_WEEKS if holdout_weeks is None else holdout_weeks
    study = MIN_TRAINING_WEEKS + validation_weeks + holdout
    fit = [w for w in WASHOUT_CHOICES if w + study <= weeks]
    fit += [w for w in YOUNG_WASHOUT_CHOICES if w + MIN_LIVE_WEEKS <= weeks]
    return fit[0] if fit else 0


@dataclass(frozen=True)
class Window:
    """A run of consecutive weeks, each named by its Sunday. May be empty."""

    first: date
    weeks: int

    @property
    def last(self) -> date:
        """Sunday of the last week."""
        return self.first + (self.weeks - 1) * WEEK

    @property
    def last_day(self) -> date:
        """Saturday that closes the window."""
        return self.first + self.weeks * WEEK - timedelta(days=1)

    def __len__(self) -> int:
        return self.weeks

    def __iter__(self) -> Iterator[date]:
        return (self.first + k * WEEK for k in range(self.weeks))

    def __contains__(self, day: date) -> bool:
        return self.first <= day <= self.last_day

    def dates(self) -> npt.NDArray[np.datetime64]:
        """The window's Sundays as a datetime64[D] array."""
        return np.datetime64(self.first, "D") + 7 * np.arange(self.weeks)

    def shifted(self, weeks: int) -> Window:
        return Window(self.first + weeks * WEEK, self.weeks)


@dataclass(frozen=True, order=True)
class Origin:
    """Origin of a forecast: the last observed week, the horizon in weeks, and the purpose."""

    week: date
    horizon: int
    purpose: Purpose

    @property
    def target(self) -> Window:
        """The weeks ahead."""
        return Window(self.week + WEEK, self.horizon)

    @property
    def needed_week(self) -> date:
        """The last week that a firm must have delivered to be included. For a study this is the end of the target,
        because its forecasts are scored."""
        return self.target.last if self.purpose == "study" else self.week


@dataclass(frozen=True)
class Timeline:
    """The weeks that the data cover.

    Orders from `observed_from` up to the first week after the washout are washout: whoever orders there
    belongs to the one left-censored cohort. With `washout_weeks == 0` there is none. `delivered_to` is the day
    through which the orders are known to be complete (`observed_to` unless stated); orders after the last whole
    week by then, up to `observed_to`, are not used until their week is complete. `country` names the holiday
    calendar (ISO code, as the library `holidays` knows it). `validation_weeks` is the number of weeks before an
    origin that models may hold back to choose settings.
    """

    observed_from: date = date(2016, 1, 1)
    first_week: date = date(2016, 1, 3)
    washout_weeks: int = 52
    observed_to: date = date(2020, 2, 29)
    country: str = "US"
    validation_weeks: int = VALIDATION_WEEKS
    delivered_to: date | None = None

    def __post_init__(self) -> None:
        if week_of(self.first_week) != self.first_week:
            raise ValueError(f"first_week must be a Sunday, got {self.first_week:%A %Y-%m-%d}")
        if self.observed_from > self.first_week:
            raise ValueError("observed_from must not lie after first_week")
        if self.washout_weeks == 0 and self.observed_from != self.first_week:
            raise ValueError("without a washout, observed_from must be first_week")
        if min(self.washout_weeks, self.validation_weeks) < 0:
            raise ValueError(f"week counts must not be negative: {self}")

    @classmethod
    def for_span(
        cls,
        first_day: date,
        last_day: date,
        *,
        washout_weeks: int | None = None,
        validation_weeks: int = VALIDATION_WEEKS,
        holdout_weeks: int | None = None,
        country: str = "US",
    ) -> Timeline:
        """The timeline of data observed on every day from `first_day` to `last_day`. Only whole weeks count.

        Args:
            washout_weeks: chosen by `choose_washout` unless stated.
            holdout_weeks: the holdout the study shall have, where that is fixed.
        """
        first_week, total = whole_weeks(first_day, last_day)
        if washout_weeks is None:
            washout_weeks = choose_washout(total, validation_weeks, holdout_weeks)
        if total <= washout_weeks:
            raise HistoryTooShort(first_day, last_day, have=total, need=washout_weeks + 1)
        return cls(
            observed_from=first_day if washout_weeks else first_week,
            first_week=first_week,
            washout_weeks=washout_weeks,
            observed_to=last_day,
            country=country,
            validation_weeks=validation_weeks,
        )

    def until(self, week: date) -> Timeline:
        """The timeline cut after `week`; itself where it ends by then."""
        return replace(self, delivered_to=week + timedelta(days=6)) if week < self.panel.last else self

    @property
    def washout(self) -> Window:
        return Window(self.first_week, self.washout_weeks)

    @property
    def panel(self) -> Window:
        """The whole weeks after the washout: those of the cohort tables and of every model's input."""
        first = self.first_week + self.washout_weeks * WEEK
        end = self.delivered_to or self.observed_to
        return Window(first, max(0, (end + timedelta(days=1) - first).days // 7))

    @property
    def left_censored_cohort(self) -> date | None:
        """The week that names the left-censored cohort: the last of the washout."""
        return self.washout.last if self.washout_weeks else None

    def live_origins(self) -> list[Origin]:
        """The last complete week, once there are enough weeks before it; at most one origin."""
        return [Origin(self.panel.last, HORIZON, "live")] if len(self.panel) >= MIN_LIVE_WEEKS else []

    def backtest_origins(self) -> list[Origin]:
        """Every 13th week before the last one that has enough history, oldest first."""
        return [Origin(week, HORIZON, "backtest") for week in self._quarters() if week < self.panel.last]

    def prior_week(self, origin: Origin) -> date | None:
        """The week up to which the prior of forecasts made at `origin` is learned; None while there is too little
        history.

        For a study or backtest this is its origin, for a live forecast the last week on the backtests' grid: the
        prior changes slowly, so it is learned four times a year and not every week.
        """
        if origin.purpose != "live":
            return origin.week
        return max((week for week in self._quarters() if week <= origin.week), default=None)

    def _quarters(self) -> list[date]:
        """The weeks that end a quarter of the backtests' grid and have enough history."""
        first = self.panel.first + (MIN_BACKTEST_WEEKS - 1) * WEEK
        start = first + (BACKTEST_ANCHOR - first).days // 7 % BACKTEST_STEP * WEEK
        weeks = (self.panel.last - start).days // 7 + 1
        return [start + k * WEEK for k in range(0, weeks, BACKTEST_STEP)]
