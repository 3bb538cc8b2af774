"""The weeks of an economy, including incomplete ones at either end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache

import numpy as np

from cbmt_core.arrays import Bools, Floats
from cbmt_core.calendar import Calendar, calendar_of
from cbmt_core.design import StudyDesign
from cbmt_core.timeline import week_of

__all__ = ["SimulatedTimeline", "simulated_timeline"]


@dataclass(frozen=True, eq=False)
class SimulatedTimeline:
    """Consecutive weeks from the one of `observed_from` to the one of `observed_to`."""

    calendar: Calendar
    observed: Bools
    """[T, 7] whether orders of that day are seen, Sunday first."""
    study_start: int
    """Index of the first calibration week."""
    study_weeks: int
    washout: bool
    """Whether anything is observed before the study, so that a left-censored cohort exists."""

    def __len__(self) -> int:
        return len(self.calendar)

    @property
    def exposure(self) -> Floats:
        """[T] share of the week's days that are observed."""
        return np.asarray(self.observed.mean(axis=1))

    @property
    def study(self) -> slice:
        return slice(self.study_start, self.study_start + self.study_weeks)


@lru_cache(maxsize=16)
def simulated_timeline(design: StudyDesign) -> SimulatedTimeline:
    first = week_of(design.observed_from)
    weeks = (week_of(design.observed_to) - first).days // 7 + 1
    days = np.datetime64(first, "D") + np.arange(7 * weeks).reshape(weeks, 7)
    end = design.observed_to + timedelta(days=1)
    return SimulatedTimeline(
        calendar=calendar_of(first, weeks, design.country),
        observed=(days >= np.datetime64(design.observed_from, "D")) & (days < np.datetime64(end, "D")),
        study_start=(design.study.first - first).days // 7,
        study_weeks=len(design.study),
        washout=design.washout_weeks > 0,
    )
