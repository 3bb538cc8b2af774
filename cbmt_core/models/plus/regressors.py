"""Calendar regressors of the weekly series: waves of the year, holidays, and weeks before holidays."""

from __future__ import annotations

from datetime import date
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from cbmt_core.calendar import calendar_of
from cbmt_core.models.regression import season_waves

__all__ = ["BEFORE", "WAVES", "regressor_names", "regressors"]

Floats = npt.NDArray[np.float64]

WAVES = 4
"""Sine and cosine pairs of the year."""
BEFORE = "week before "


@lru_cache(maxsize=8)
def regressors(first_week: date, weeks: int, country: str) -> Floats:
    """[weeks, Q] waves of the year, holidays in the week, holidays in the next week."""
    calendar = calendar_of(first_week, weeks + 1, country)
    waves = season_waves(calendar, WAVES)[:-1]
    return np.column_stack([waves, calendar.holiday[:-1], calendar.holiday[1:]])


def regressor_names(country: str) -> tuple[str, ...]:
    """[Q] names of the columns of `regressors`."""
    waves = [f"{name} {k}" for k in range(1, WAVES + 1) for name in ("sine", "cosine")]
    holidays = calendar_of(date(2017, 1, 1), 1, country).holiday_names
    return (*waves, *holidays, *(BEFORE + name for name in holidays))
