"""Drivers: the input of the co-movement measures, a firm's three weekly series and its cohorts.

The paper transforms the weekly drivers by log(1 + x) and gives no further detail, so neither do we. Every measure is
also taken of adjusted drivers, without slow movement (a centred half-year mean), because two trends always correlate
(Yule 1926, Granger and Newbold 1974): acquisition falls as a market saturates and ROPC as the base ages, without a
common shock; and without holiday effects, because every model has the calendar as an input: a Christmas that lifts
two drivers is no reason to forecast them together.

Measures of co-movement in the same week, of lags and of prediction use the series as observed. The others use
aligned series: ROPC and AOV are shifted by up to two months to the lag of the largest common factor, because a
driver that follows with a delay is shared structure too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cbmt_core.arrays import Ints
from cbmt_core.diagnostics.comovement.series import (
    Floats,
    ar_errors,
    half_year_mean,
    holiday_effect,
    standardised,
    weekly_means,
)
from cbmt_core.panel import LEFT_CENSORED, FirmPanel

__all__ = ["DIRECTIONS", "MAX_SHIFT", "MIN_WEEKS", "PAIRS", "Drivers", "drivers_of"]

PAIRS = ((0, 1), (0, 2), (1, 2))
"""Acquisition and ROPC, acquisition and AOV, ROPC and AOV."""
DIRECTIONS = tuple((i, j) for i in range(3) for j in range(3) if i != j)
MIN_WEEKS = 52
"""Minimum number of weeks: with fewer, lags, windows and segments leave too few points."""
MAX_SHIFT = 8
"""Weeks by which ROPC and AOV may lead or follow acquisition."""


@dataclass(frozen=True, eq=False)
class Drivers:
    """Drivers of one firm in log(1 + x) (Web App. "Measuring Cross-Metric Co-Movement")."""

    log: Floats
    """[T, 3] acquisition, ROPC weighted by cohort size, AOV weighted by orders."""
    log_sales: Floats
    """[T]"""
    size: Floats
    """[N, 1] customers of the cohorts born in these weeks."""
    tenure: Ints
    """[N, T] weeks since birth, negative before it."""
    R: Floats
    """[N, T] log(1 + ROPC); NaN up to and including the birth week, which is only partly observed."""
    V: Floats
    """[N, T] log(1 + AOV); NaN without an order."""
    holidays: Floats
    """[T, H] 1 where the holiday falls into the week."""
    adjust: bool = False
    """Whether slow movement and holidays are taken out."""

    def adjusted(self, x: Floats) -> Floats:
        """A weekly series [T], or one for each cohort [N, T]; if `adjust`, without slow movement and holiday effects.
        The holiday effect is estimated on the cohorts' mean and is the same for every cohort.
        """
        if not self.adjust:
            return x
        moving = x - half_year_mean(x)
        mean = moving if x.ndim == 1 else weekly_means(moving, self.size)
        return np.asarray(moving - holiday_effect(mean, self.holidays))

    @cached_property
    def moving(self) -> Floats:
        """[T, 3] the drivers, adjusted."""
        return np.column_stack([self.adjusted(self.log[:, k]) for k in range(3)])

    @cached_property
    def spread(self) -> Floats:
        return np.asarray(self.moving.std(axis=0))

    @property
    def defined(self) -> bool:
        """Whether there are enough weeks and every driver varies by more than rounding errors."""
        if len(self.log) < MIN_WEEKS:
            return False
        return bool((self.spread > 1e-9 * (1 + np.abs(self.log).max(axis=0))).all())

    @cached_property
    def z(self) -> Floats:
        """[T, 3] the same, standardised."""
        return standardised(self.moving / self.spread)

    @cached_property
    def shifts(self) -> tuple[int, int]:
        """Weeks by which ROPC and AOV follow acquisition where the largest eigenvalue of the three
        series' correlations peaks."""
        lags = np.arange(-MAX_SHIFT, MAX_SHIFT + 1)
        middle = np.arange(MAX_SHIFT, len(self.z) - MAX_SHIFT)
        a = standardised(self.z[middle, 0])
        later = self.z[middle[:, None] + lags]  # [week, lag, driver]
        r, v = (standardised(later[:, :, k]) for k in (1, 2))
        C = np.empty((len(lags), len(lags), 3, 3))
        C[..., range(3), range(3)] = 1.0
        C[..., 0, 1] = C[..., 1, 0] = (a @ r / len(a))[:, None]
        C[..., 0, 2] = C[..., 2, 0] = a @ v / len(a)
        C[..., 1, 2] = C[..., 2, 1] = r.T @ v / len(a)
        largest = np.linalg.eigvalsh(C)[..., -1]
        best = np.unravel_index(int(largest.argmax()), largest.shape)
        return int(lags[best[0]]), int(lags[best[1]])

    def meet(self, *series: tuple[int, Floats]) -> tuple[Floats, ...]:
        """Shift weekly series, each by the shift of the driver with the given number, and cut them to their common
        weeks."""
        shift = (0, *self.shifts)
        first, last = -min(shift), len(self.z) - max(shift)
        return tuple(x[first + shift[k] : last + shift[k]] for k, x in series)

    @cached_property
    def aligned(self) -> Floats:
        """[T', 3] standardised drivers moved by `shifts`."""
        return standardised(np.column_stack(self.meet(*((k, self.z[:, k]) for k in range(3)))))

    @cached_property
    def errors(self) -> Floats:
        """[T-1, 3] standardised one-step errors of a first-order autoregression of each driver."""
        return standardised(ar_errors(self.z))

    @cached_property
    def aged_R(self) -> Floats:
        return self._aged(self.R)

    @cached_property
    def aged_V(self) -> Floats:
        return self._aged(self.V)

    def _aged(self, values: Floats) -> Floats:
        """[N, T] deviations from the mean of the same tenure, so that ageing does not count as co-movement."""
        known = np.isfinite(values)
        age = self.tenure[known]
        weight = np.broadcast_to(self.size, values.shape)[known]
        total = np.bincount(age, weight)
        summed = np.bincount(age, weight * values[known])
        mean = np.divide(summed, total, out=np.zeros_like(total), where=total > 0)
        out = np.full_like(values, np.nan)
        out[known] = values[known] - mean[age]
        return out


def drivers_of(panel: FirmPanel, *, adjust: bool = False) -> Drivers:
    """Drivers of a panel. A week without an order has the last known AOV, as in the models' inputs; weeks before the
    first order are left out."""
    repeat = np.nansum(panel.size[:, None] * panel.R, axis=0)
    customers = np.where(panel.born, panel.size[:, None], 0.0).sum(axis=0)
    orders = panel.orders.sum(axis=0)
    known = orders > 0
    start = int(np.argmax(known)) if known.any() else panel.n_weeks
    last = np.maximum.accumulate(np.where(known, np.arange(panel.n_weeks), 0))
    ropc = np.divide(repeat, customers, out=np.zeros_like(repeat), where=customers > 0)
    aov = np.divide(panel.S, orders, out=np.zeros_like(repeat), where=known)[last]
    cohorts = panel.birth != LEFT_CENSORED
    tenure = panel.tenure[cohorts][:, start:]
    return Drivers(
        log=np.log1p(np.column_stack([panel.A, ropc, aov])[start:]),
        log_sales=np.log1p(panel.S[start:]),
        size=panel.size[cohorts][:, None],
        tenure=tenure,
        R=np.log1p(np.where(tenure > 0, panel.R[cohorts][:, start:], np.nan)),
        V=np.log1p(panel.V[cohorts][:, start:]),
        holidays=panel.calendar().holiday[start:],
        adjust=adjust,
    )
