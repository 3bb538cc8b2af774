"""Calendar regressors of the weekly series: waves of the year and holidays."""

from __future__ import annotations

from datetime import date
from functools import lru_cache

import numpy as np

from cbmt_core.arrays import Floats
from cbmt_core.calendar import calendar_of
from cbmt_core.models.regression import season_waves

__all__ = ["WAVES", "regressor_names", "regressors"]


WAVES = 4
"""Sine and cosine pairs of the year."""


@lru_cache(maxsize=8)
def regressors(first_week: date, weeks: int, country: str) -> Floats:
    """[weeks, Q] waves of the year, and holidays in the week."""
    calendar = calendar_of(first_week, weeks, country)
    return np.column_stack([season_waves(calendar, WAVES), calendar.holiday])


def regressor_names(country: str) -> tuple[str, ...]:
    """[Q] names of the columns of `regressors`."""
    waves = [f"{name} {k}" for k in range(1, WAVES + 1) for name in ("sine", "cosine")]
    holidays = calendar_of(date(2017, 1, 1), 1, country).holiday_names
    return (*waves, *holidays)
