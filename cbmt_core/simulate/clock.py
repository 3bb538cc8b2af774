"""Clock: draws the second of the week at which an order is placed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cbmt_core.arrays import Bools, Ints
from cbmt_core.simulate.timeline import SimulatedTimeline

__all__ = ["Clock"]


BY_DAY = np.array([0.98, 0.92, 0.90, 0.94, 1.00, 1.18, 1.20])
"""Relative orders from Sunday to Saturday."""
BY_HOUR = np.array(
    [8, 4, 2, 1, 1, 3, 9, 20, 34, 46, 55, 66, 76, 70, 60, 56, 60, 72, 80, 74, 62, 48, 32, 18], dtype=float
)
"""Relative orders from midnight on: lunch, and a longer evening."""
GRAIN = 1 << 16


class Clock:
    """Draws seconds of the week, only on days that are observed."""

    def __init__(self, timeline: SimulatedTimeline) -> None:
        patterns, self._pattern = np.unique(timeline.observed, axis=0, return_inverse=True)
        self._hours = np.concatenate([_hours(days) for days in patterns])

    def seconds(self, week: Ints, rng: np.random.Generator) -> Ints:
        """One draw a given week."""
        # One random word is used twice: its upper half picks the hour, its lower half the second.
        word = rng.integers(0, 1 << 32, len(week), dtype=np.uint32)
        hour = self._hours[self._pattern[week] * GRAIN + (word >> 16)]
        return hour * np.int64(3600) + (((word & 0xFFFF).astype(np.int64) * 3600) >> 16)


def _hours(days: Bools) -> npt.NDArray[np.int16]:
    """A table of GRAIN hours of the week, each as often as its share of orders."""
    weight = (BY_DAY * days)[:, None] * BY_HOUR
    bounds = np.cumsum(weight.ravel()) / max(weight.sum(), 1e-9)
    return np.searchsorted(bounds, (np.arange(GRAIN) + 0.5) / GRAIN, side="right").astype(np.int16)
