"""StudyDesign: every date of a study, derived once and known nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
import numpy.typing as npt

from cbmt_core.errors import HistoryTooShort

__all__ = ["SEASON", "StudyDesign", "Window", "week_of"]

SEASON = 52
"""Weeks between a week and the same week one season earlier."""

WEEK = timedelta(days=7)
VALIDATION_WEEKS = 20
MAX_HOLDOUT_WEEKS = 47
MIN_HOLDOUT_WEEKS = 13
MIN_TRAINING_WEEKS = SEASON
WASHOUT_CHOICES = (52, 26, 13, 0)


def week_of(day: date) -> date:
    """The Sunday that names the week of `day`."""
    return day - timedelta(days=(day.weekday() + 1) % 7)


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


@dataclass(frozen=True)
class StudyDesign:
    """The windows of a study. The defaults are the paper's (section "Study Design").

    Orders from `observed_from` up to the first calibration week are washout: whoever orders
    there belongs to the one left-censored cohort. With `washout_weeks == 0` there is none.
    Orders after the last whole week, up to `observed_to`, wait for their week to be complete.
    `country` names the holiday calendar (ISO code, as the library `holidays` knows it).
    """

    observed_from: date = date(2016, 1, 1)
    first_week: date = date(2016, 1, 3)
    washout_weeks: int = 52
    training_weeks: int = 98
    validation_weeks: int = VALIDATION_WEEKS
    holdout_weeks: int = MAX_HOLDOUT_WEEKS
    observed_to: date = date(2020, 2, 29)
    country: str = "US"

    def __post_init__(self) -> None:
        if week_of(self.first_week) != self.first_week:
            raise ValueError(f"first_week must be a Sunday, got {self.first_week:%A %Y-%m-%d}")
        if self.observed_from > self.first_week:
            raise ValueError("observed_from must not lie after first_week")
        if self.washout_weeks == 0 and self.observed_from != self.first_week:
            raise ValueError("without a washout, observed_from must be first_week")
        counts = (self.washout_weeks, self.training_weeks, self.validation_weeks)
        if min(*counts, self.holdout_weeks) < 0 or self.training_weeks == 0:
            raise ValueError(f"week counts must not be negative: {self}")
        if self.holdout_weeks > SEASON:
            raise ValueError(
                f"the holdout must not be longer than {SEASON} weeks, or it would overlap its baseline"
            )
        if self.observed_to < self.study.last_day:
            raise ValueError(f"observed_to must not lie before {self.study.last_day}: {self}")

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
    ) -> StudyDesign:
        """The design for data observed on every day from `first_day` to `last_day`.

        Only whole weeks count. The washout is the longest of 52, 26, 13 and 0 weeks that leaves a
        year of training, the validation window and a holdout of at least 13 weeks; the holdout
        takes what is left, up to 47 weeks; training takes the rest.
        """
        sunday = week_of(first_day)
        first_week = sunday if sunday == first_day else sunday + WEEK
        total = max(0, ((last_day + timedelta(days=1) - first_week).days) // 7)
        calibration = MIN_TRAINING_WEEKS + validation_weeks
        shortest = calibration + (MIN_HOLDOUT_WEEKS if holdout_weeks is None else holdout_weeks)
        choices = WASHOUT_CHOICES if washout_weeks is None else (washout_weeks,)
        washout = next((w for w in choices if w + shortest <= total), None)
        if washout is None:
            raise HistoryTooShort(first_day, last_day, have=total, need=choices[-1] + shortest)
        left = total - washout - calibration
        holdout = min(MAX_HOLDOUT_WEEKS, left) if holdout_weeks is None else holdout_weeks
        return cls(
            observed_from=first_day if washout else first_week,
            first_week=first_week,
            washout_weeks=washout,
            training_weeks=MIN_TRAINING_WEEKS + left - holdout,
            validation_weeks=validation_weeks,
            holdout_weeks=holdout,
            observed_to=last_day,
            country=country,
        )

    @property
    def washout(self) -> Window:
        return Window(self.first_week, self.washout_weeks)

    @property
    def training(self) -> Window:
        return Window(self.first_week + self.washout_weeks * WEEK, self.training_weeks)

    @property
    def validation(self) -> Window:
        return Window(self.training.first + self.training_weeks * WEEK, self.validation_weeks)

    @property
    def calibration(self) -> Window:
        return Window(self.training.first, self.training_weeks + self.validation_weeks)

    @property
    def holdout(self) -> Window:
        return Window(self.calibration.first + len(self.calibration) * WEEK, self.holdout_weeks)

    @property
    def study(self) -> Window:
        """Calibration and holdout: the weeks of the cohort tables."""
        return Window(self.calibration.first, len(self.calibration) + self.holdout_weeks)

    @property
    def bridge_target(self) -> Window:
        return self.holdout

    @property
    def bridge_baseline(self) -> Window:
        """The target's weeks one season earlier; its last week is the cohort cutoff."""
        return self.holdout.shifted(-SEASON)

    @property
    def origin(self) -> date:
        """Last observed week when the holdout is forecast."""
        return self.calibration.last

    @property
    def left_censored_cohort(self) -> date | None:
        """The week that names the left-censored cohort: the last of the washout."""
        return self.washout.last if self.washout_weeks else None
