"""Statistics of a single series: concentration, inequality, simple fits, spectrum, changepoints."""

from __future__ import annotations

import numpy as np
from scipy.signal import detrend
from scipy.stats import median_abs_deviation
from statsmodels.tsa.stattools import acf, pacf

from cbmt_core.arrays import Floats, Ints

__all__ = [
    "autocorrelation",
    "changepoints",
    "fit_r2",
    "gini",
    "herfindahl",
    "partial_autocorrelation",
    "spectral_entropy",
    "variation",
]


SHORTEST_SEGMENT = 4
"""Weeks a level must last to count as one: a single odd week is no change of level."""
STEADY = 1e-9
"""A series whose relative variation is below this counts as constant."""


def herfindahl(x: Floats) -> float:
    """Sum of squared shares (Web App. "Explaining Prediction Performance", B)."""
    total = x.sum()
    return float(np.sum((x / total) ** 2)) if total > 0 else float("nan")


def gini(x: Floats) -> float:
    """Mean absolute difference of all pairs over twice the mean (same place, I)."""
    total = len(x) * x.sum()
    return float(np.abs(x[:, None] - x).sum() / (2 * total)) if total > 0 else float("nan")


def variation(x: Floats) -> float:
    """Coefficient of variation: sample standard deviation over mean."""
    return float(x.std(ddof=1) / x.mean()) if len(x) > 1 and x.mean() > 0 else float("nan")


def autocorrelation(x: Floats, lag: int) -> float:
    """Autocorrelation of the deviations from a straight line."""
    rest = _detrended(x, lag)
    return float("nan") if rest is None else float(acf(rest, nlags=lag, fft=False)[lag])


def partial_autocorrelation(x: Floats, lag: int) -> float:
    """Partial autocorrelation of the deviations from a straight line, by the Yule-Walker equations."""
    rest = _detrended(x, lag)
    return float("nan") if rest is None else float(pacf(rest, nlags=lag, method="ywm")[lag])


def fit_r2(x: Floats, t: Ints, degree: int, month: Ints | None = None) -> float:
    """R² of log(x + 1) on a polynomial of time and, if given, dummies of the months (same place, H).

    NaN without residual degrees of freedom, or when the series is constant.
    """
    if len(x) <= degree + 1:
        return float("nan")
    y = np.log1p(x)
    design = np.vander((t - t.mean()) / np.ptp(t), degree + 1)
    if month is not None:
        present = np.unique(month)[1:]  # The first month is the constant.
        design = np.column_stack([design, month[:, None] == present])
    if len(y) <= design.shape[1] or not _moves(y):
        return float("nan")
    rest = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    return float(1 - rest @ rest / np.sum((y - y.mean()) ** 2))


def spectral_entropy(x: Floats) -> float:
    """Entropy of the periodogram over its K positive frequencies, divided by log K (same place, J).

    1 for a flat spectrum (pure noise), 0 for a single wave.
    """
    if len(x) < 4 or not _moves(x):
        return float("nan")
    power = np.abs(np.fft.rfft(x - x.mean()))[1:] ** 2
    p = power / power.sum()
    p = p[p > 0]
    return float(-np.sum(p * np.log(p)) / np.log(len(power)))


def changepoints(x: Floats) -> float:
    """Number of changes of level in log(x + 1), by the best piecewise-constant mean (same place, J).

    Optimal partitioning (Jackson et al. 2005) of the squared deviations, with the penalty 2 σ² log T a
    change (Yao 1988: one for its place, one for its level). σ comes from the differences of neighbouring
    weeks, which a few changes of level hardly touch.
    """
    if len(x) < 2 * SHORTEST_SEGMENT:
        return float("nan")
    y = np.log1p(x)
    if not _moves(y):
        return 0.0
    steps = np.diff(y)
    sigma = float(median_abs_deviation(steps, scale="normal")) or float(steps.std())
    penalty = sigma**2 * np.log(len(y))  # σ of a step is √2 times σ of a week.
    first, second = (np.concatenate([[0.0], np.cumsum(y**power)]) for power in (1, 2))
    best = np.full(len(y) + 1, np.inf)
    best[0] = -penalty
    changes = np.zeros(len(y) + 1)
    for end in range(SHORTEST_SEGMENT, len(y) + 1):
        start = np.arange(end - SHORTEST_SEGMENT + 1)
        spread = second[end] - second[start] - (first[end] - first[start]) ** 2 / (end - start)
        total = best[start] + spread + penalty
        chosen = int(np.argmin(total))
        best[end], changes[end] = total[chosen], changes[chosen] + (chosen > 0)
    return float(changes[-1])


def _detrended(x: Floats, lag: int) -> Floats | None:
    if len(x) < 4 * (lag + 1):
        return None
    rest: Floats = detrend(x)
    return rest if np.abs(rest).max() > STEADY * np.abs(x).max() else None


def _moves(x: Floats) -> bool:
    return len(x) > 0 and bool(np.ptp(x) > STEADY * np.abs(x).max())
