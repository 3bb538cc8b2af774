"""What windows tell of their target week before any network: a level, and the calendar's way from it.

Networks forecast deviations, as shares of the level. Min-max units alone would serve a firm badly: an old
cohort's few repeat orders vanish beside those of a newborn one, and a year's recursion walks away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from cbmt_core.models.sequence import LOOKBACK, OUTCOMES, YOUNG, Scaling, Windows
from cbmt_core.models.sequence.windows import (
    COHORT_COVARIATES,
    FLAGS,
    N_MONTHS,
    N_WEEKS_OF_YEAR,
    WEEK_COVARIATES,
)

__all__ = ["Baseline", "calendar_size"]

Floats = npt.NDArray[np.float32]

FLOOR = 0.02
"""Smallest level, as a share of the typical value: what never happened may still begin."""
WAVES = 3
"""Waves of the year in the calendar: once, twice and three times a year."""

_BORN, _TENURE = COHORT_COVARIATES.index("born"), COHORT_COVARIATES.index("tenure")
_HOLIDAYS = len(COHORT_COVARIATES) + len(WEEK_COVARIATES)


def calendar_size(week_covariates: int) -> int:
    """Rows of `Baseline.calendar`, from the number of covariates of a week."""
    return week_covariates - len(WEEK_COVARIATES) + 2 * WAVES + 1


@dataclass(frozen=True, eq=False)
class Baseline:
    """Of B windows and K outcomes."""

    level: Floats
    """[K, B] mean of the window's weeks, counted from zero in units of the outcome's span. Weeks before
    a cohort's birth count as typical ones of young cohorts."""
    zero: Floats
    """[K] how far zero lies below the lowest value, in the same units."""
    history: Floats
    """[K, B, L + 1] the window's weeks as shares above or below the level, and at last how far the level of a
    week-level outcome lies above its mean over the calibration, in logs: what a return to normal rests on."""
    calendar: Floats
    """[F, B] holidays, waves of the year and log age of the target week, less their means over the window."""

    @classmethod
    def of(cls, windows: Windows, outcomes: tuple[str, ...], scaling: Scaling) -> Self:
        inside = windows.flags[..., FLAGS.index("before_panel")] == 0
        born = inside & (windows.covariates[:, :-1, _BORN] > 0)
        zero = np.array([scaling.low[k] / scaling.span[k] for k in outcomes], np.float32)
        parts = [_outcome(windows, name, scaling, born if name in "RV" else inside) for name in outcomes]
        level, history = (np.stack(each).astype(np.float32) for each in zip(*parts, strict=True))
        return cls(level, zero, history, _calendar(windows, born, scaling.oldest))

    def relative(self, scaled: Floats) -> Floats:
        """[K, B] deviations of scaled values [K, B] from their levels, as shares of these."""
        return np.asarray((scaled + self.zero[:, None]) / self.level - 1.0, np.float32)

    def scaled(self, relative: Floats) -> Floats:
        """[..., K, B] the scaled values of deviations; none lies below zero in original units."""
        return np.asarray(np.maximum(1.0 + relative, 0.0) * self.level - self.zero[:, None], np.float32)


def _outcome(
    windows: Windows, name: str, scaling: Scaling, known: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.floating]]:
    """[B] level, [B, L + 1] history."""
    span = scaling.span[name]
    values = windows.outcomes[..., OUTCOMES.index(name)] + scaling.low[name] / span
    typical = scaling.typical[name] / span
    n = known.sum(1)
    total = (values * known).sum(1)
    # The left-censored cohort and the firm as a whole are never young: they have what was seen of them.
    missing = LOOKBACK - n if name in "RV" else 0
    missing = np.where((windows.month == N_MONTHS - 1) & (n > 0), 0, missing)
    weeks = n + missing
    level = np.where(weeks > 0, (total + missing * typical) / np.maximum(weeks, 1), typical)
    level = np.maximum(level, max(FLOOR * typical, 1e-6))
    past = np.where(known, values / level[:, None] - 1.0, 0.0)
    away = np.log(level / typical) if name in "AS" and typical > 0 else np.zeros(len(level))
    return level, np.column_stack([past, away])


def _calendar(windows: Windows, born: npt.NDArray[np.bool_], oldest: int) -> Floats:
    turn = 2 * np.pi * windows.week_of_year / N_WEEKS_OF_YEAR
    waves = [wave(k * turn) for k in range(1, WAVES + 1) for wave in (np.cos, np.sin)]
    age = np.log1p(windows.covariates[..., _TENURE] * oldest)
    age[:, :-1] = np.where(born, age[:, :-1], np.log1p(YOUNG // 2))
    known = np.concatenate([windows.covariates[..., _HOLIDAYS:], np.stack([*waves, age], axis=-1)], axis=-1)
    step = known[:, -1] - known[:, :-1].mean(axis=1)
    return np.ascontiguousarray(step.T, np.float32)
