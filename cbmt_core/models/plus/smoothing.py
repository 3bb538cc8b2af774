"""A weekly series by itself: penalised waves of the year, and a level that exponential smoothing follows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from statsmodels.tsa.holtwinters import SimpleExpSmoothing

__all__ = ["Smoothed"]

Floats = npt.NDArray[np.float64]

WAVES = 3
PENALTY = 3.0
"""On squared waves of log values, against one for each week's squared error."""
YEAR = 365.25 / 7
MIN_WEEKS = round(2 * YEAR)
"""A season seen once cannot be told from a trend, and without a season a level says little of the year ahead."""


@dataclass(frozen=True, eq=False)
class Smoothed:
    """What it takes to go on: the level of log(1 + x) at the end, and the waves around it."""

    weeks: int
    level: float
    waves: Floats

    @classmethod
    def of(cls, values: Floats) -> Self | None:
        """Of a series of `MIN_WEEKS` or more; nothing of a shorter one."""
        if len(values) < MIN_WEEKS:
            return None
        log = np.log1p(np.maximum(values, 0.0))
        shape = _waves(np.arange(len(log)))
        gram = shape.T @ shape + PENALTY * np.eye(shape.shape[1])
        waves = np.linalg.solve(gram, shape.T @ (log - log.mean()))
        rest = log - shape @ waves
        if np.ptp(rest) == 0:
            return cls(len(log), float(rest[-1]), waves)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it may stop at a bound, where the level still is one
            fitted = SimpleExpSmoothing(rest, initialization_method="estimated").fit()
        return cls(len(log), float(fitted.forecast(1)[0]), waves)

    def forecast(self, horizon: int) -> Floats:
        log = self.level + _waves(self.weeks + np.arange(horizon)) @ self.waves
        return np.asarray(np.maximum(np.expm1(log), 0.0))

    def values(self) -> dict[str, Any]:
        """JSON-ready; `from_values` reads it back."""
        return {"weeks": self.weeks, "level": self.level, "waves": self.waves.tolist()}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        return cls(values["weeks"], values["level"], np.array(values["waves"], float))


def _waves(week: npt.NDArray[np.int64]) -> Floats:
    turn = 2 * np.pi * week / YEAR
    return np.column_stack([wave(k * turn) for k in range(1, WAVES + 1) for wave in (np.sin, np.cos)])
