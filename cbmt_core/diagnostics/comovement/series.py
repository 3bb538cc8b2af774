"""Functions of weekly series: moving mean, standardising, correlation, means over cohorts."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import uniform_filter1d

from cbmt_core.arrays import Floats

__all__ = [
    "Floats",
    "ar_errors",
    "correlation",
    "half_year_mean",
    "holiday_effect",
    "standardised",
    "weekly_means",
]


HALF_YEAR = 27
"""Weeks, odd so that the window has a centre."""
LEAST_WEEKS = 20
"""Minimum number of known weeks for a correlation."""


def half_year_mean(x: Floats) -> Floats:
    """Centred moving mean over half a year of weeks (the last axis); the window is shorter at the ends, NaN are
    ignored."""
    known = np.isfinite(x)
    total, count = (
        uniform_filter1d(part, HALF_YEAR, axis=-1, mode="constant")
        for part in (np.where(known, x, 0.0), known.astype(float))
    )
    return np.asarray(np.divide(total, count, out=np.full_like(total, np.nan), where=known))


def holiday_effect(x: Floats, holidays: Floats) -> Floats:
    """[T] the part of x [T] explained by holidays, both without their slow movement; 0 where there are too few
    data."""
    known = np.isfinite(x)
    H = (holidays.T - half_year_mean(holidays.T)).T
    H = H[:, np.ptp(holidays[known], axis=0) > 0] if known.any() else H[:, :0]
    if known.sum() < LEAST_WEEKS + H.shape[1]:
        return np.zeros(len(x))
    H = np.column_stack([np.ones(len(H)), H])
    return np.asarray(H @ np.linalg.lstsq(H[known], x[known], rcond=None)[0])


def standardised(x: Floats, axis: int = 0) -> Floats:
    """Standardise to mean 0 and standard deviation 1 along `axis`; constant series become 0."""
    x = x - x.mean(axis=axis, keepdims=True)
    spread = np.broadcast_to(x.std(axis=axis, keepdims=True), x.shape)
    return np.asarray(np.divide(x, spread, out=np.zeros_like(x), where=spread > 1e-9))


def ar_errors(x: Floats) -> Floats:
    """[T-1, k] one-step errors of a first-order autoregression of each column."""
    before, after = x[:-1] - x[:-1].mean(axis=0), x[1:] - x[1:].mean(axis=0)
    return np.asarray(after - before * (before * after).sum(axis=0) / (before**2).sum(axis=0))


def correlation(x: Floats, y: Floats) -> float:
    """Pearson's r over the weeks in which both are known; NaN with too few of them or without variation."""
    known = np.isfinite(x) & np.isfinite(y)
    if known.sum() < LEAST_WEEKS:
        return float("nan")
    x, y = x[known] - x[known].mean(), y[known] - y[known].mean()
    size = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / size) if size > 1e-9 else float("nan")


def weekly_means(values: Floats, weight: Floats) -> Floats:
    """[T] mean over cohorts of [N, T] values by [N, 1] or [N, T] weights; NaN in weeks without any."""
    known = np.isfinite(values)
    w = np.where(known, weight, 0.0)
    total = w.sum(axis=0)
    summed = (w * np.where(known, values, 0.0)).sum(axis=0)
    return np.asarray(np.divide(summed, total, out=np.full(len(total), np.nan), where=total > 0))
