"""Diffusion curves of acquisition: logistic, Bass, and Bass with attrition, fitted to weekly counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from scipy.optimize import least_squares

from cbmt_core.arrays import Floats, Ints

__all__ = [
    "Bass",
    "BassAttrition",
    "Curve",
    "DiffusionFit",
    "Logistic",
    "fit_diffusion",
    "month_effects",
    "tamed",
]


# Meta-analyses of the Bass model put yearly p near 0.03 and q near 0.38 (Sultan, Farley and Lehmann 1990).
# Per week they are the centres of weak priors on the log scale, so that the curve is a typical one if two years of
# data do not separate diffusion from seasons; the bounds allow five times that.
TYPICAL_P, TYPICAL_Q = 0.03 / 52, 0.38 / 52
PRIOR_SD = 1.0
DISCOUNT = 26.0
"""Number of weeks that count as one observation against the priors, because weeks share slow shocks."""
P_BOUNDS = (1e-7, 0.01)
Q_BOUNDS = (1e-6, 0.04)
RATE_BOUNDS = (5e-4, 0.05)
MARKET_FACTOR = 50.0
"""Upper limit of the market, as a multiple of the customers seen so far."""
MONTH_PRIOR_WEEKS = 1.0
"""Pseudo-observations, in average weeks, that shrink a month's effect to zero."""
BEST_STARTS = 3
ROUNDS = 3


class Curve(Protocol):
    """New customers in week t = 0, 1, ... as a function of parameters theta; positive parameters are on the log
    scale."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the entries of theta."""
        ...

    def acquired(self, theta: Floats, weeks: int) -> Floats: ...

    def bounds(self, total: float, weeks: int) -> tuple[Floats, Floats]: ...

    def starts(self, series: Floats) -> Floats: ...

    def surprise(self, theta: Floats) -> Floats:
        """Distance of the parameters from typical ones, in prior standard deviations."""
        ...

    def named(self, theta: Floats) -> dict[str, float]: ...


@dataclass(frozen=True)
class Logistic:
    """N(t) = a / (1 + exp(-b - c t)): the technological substitution curve of Gupta, Lehmann and
    Stuart (2004), acquisition being its weekly differences. theta = log a, log c, and the week -b / c of
    the turning point.
    """

    names = ("a", "c", "turning point")

    def acquired(self, theta: Floats, weeks: int) -> Floats:
        edge = np.arange(weeks + 1)
        rate = np.exp(theta[1])
        return np.asarray(np.exp(theta[0]) * np.diff(0.5 * (1 + np.tanh(0.5 * rate * (edge - theta[2])))))

    def bounds(self, total: float, weeks: int) -> tuple[Floats, Floats]:
        low = [np.log(total), np.log(RATE_BOUNDS[0]), -520.0]
        return np.array(low), np.array([np.log(1e3 * total), np.log(RATE_BOUNDS[1]), weeks + 260.0])

    def starts(self, series: Floats) -> Floats:
        T = len(series)
        grid = [
            (np.log(c), t0) for c in (0.002, 0.006, 0.015, 0.04) for t0 in (-150.0, 0.0, T / 2, T, T + 100.0)
        ]
        scale = [series.sum() / max(self.acquired(np.array([0.0, *g]), T).sum(), 1e-12) for g in grid]
        return np.array([(np.log(max(a, 1e-12)), *g) for a, g in zip(scale, grid, strict=True)])

    def surprise(self, theta: Floats) -> Floats:
        return np.array([(theta[1] - np.log(TYPICAL_P + TYPICAL_Q)) / PRIOR_SD])

    def named(self, theta: Floats) -> dict[str, float]:
        a, c = np.exp(theta[:2])
        return {"a": float(a), "b": float(-c * theta[2]), "c": float(c)}


@dataclass(frozen=True)
class Bass:
    """dN/dt = (p + q N / M) (M - N) (Bass 1969), from the `initial` customers there are before week 0.

    theta = log p, log q, log M.
    """

    initial: float = 0.0
    names = ("p", "q", "market")

    def acquired(self, theta: Floats, weeks: int) -> Floats:
        p, q, M = np.exp(theta)
        # F(t) = (1 - E e^{-(p+q)t}) / (1 + (q/p) E e^{-(p+q)t}), E such that M F(0) = initial.
        share = min(self.initial / M, 1.0)
        E = (1 - share) / (1 + q / p * share)
        fading = E * np.exp(-(p + q) * np.arange(weeks + 1))
        return np.asarray(np.maximum(np.diff(M * (1 - fading) / (1 + q / p * fading)), 0.0))

    def bounds(self, total: float, weeks: int) -> tuple[Floats, Floats]:
        return _bass_bounds(total + self.initial)

    def starts(self, series: Floats) -> Floats:
        middle = self.initial + series.sum() / 2
        return _bass_starts(series, middle, self.initial + series.sum())

    def surprise(self, theta: Floats) -> Floats:
        return _bass_surprise(theta)

    def named(self, theta: Floats) -> dict[str, float]:
        return _bass_named(theta)


@dataclass(frozen=True)
class BassAttrition:
    """Bass with attrition (Libai, Muller and Peres 2009): active customers leave at rate d, may be won again, and
    only active ones influence others: dN/dt = p (M - N) + q (1 - d) N / M (M - N) - d N, week by week.

    theta = log p, log q, log M; `attrition` is estimated from repeat orders and held.
    """

    initial: float = 0.0
    """Active customers before week 0."""
    attrition: float = 0.0
    names = ("p", "q", "market")

    def acquired(self, theta: Floats, weeks: int) -> Floats:
        p, q, M = (float(x) for x in np.exp(theta))
        spread, stay, N = q * (1 - self.attrition) / M, 1 - self.attrition, min(self.initial, M)
        gained = []
        for _ in range(weeks):
            new = (p + spread * N) * (M - N)
            N = min(stay * N + new, M)
            gained.append(new)
        return np.array(gained)

    def bounds(self, total: float, weeks: int) -> tuple[Floats, Floats]:
        # Lost customers can come back, so the market may be smaller than all acquisitions together.
        low, high = _bass_bounds(total + self.initial)
        low[2] = np.log(max(self.initial, total / weeks))
        return low, high

    def starts(self, series: Floats) -> Floats:
        d = max(self.attrition, 1e-4)
        level = series.mean() / d
        return _bass_starts(series, min(level, self.initial + series.sum() / 2), self.initial + series.sum())

    def surprise(self, theta: Floats) -> Floats:
        return _bass_surprise(theta)

    def named(self, theta: Floats) -> dict[str, float]:
        return _bass_named(theta) | {"attrition": self.attrition}


def _bass_bounds(customers: float) -> tuple[Floats, Floats]:
    low = np.log([P_BOUNDS[0], Q_BOUNDS[0], customers])
    return low, np.log([P_BOUNDS[1], Q_BOUNDS[1], MARKET_FACTOR * customers])


def _bass_starts(series: Floats, middle: float, last: float) -> Floats:
    """Markets and imitation on a grid, innovation such that the mean week is met."""
    starts = []
    for M in last * np.array([1.1, 1.5, 3.0, 10.0, 40.0]):
        for q in (1e-4, 0.002, 0.01, 0.03):
            p = series.mean() / (M - min(middle, 0.9 * M)) - q * middle / M
            starts.append(np.log([np.clip(p, *P_BOUNDS), q, M]))
    return np.array(starts)


def _bass_surprise(theta: Floats) -> Floats:
    return np.asarray((theta[:2] - np.log([TYPICAL_P, TYPICAL_Q])) / PRIOR_SD)


def _bass_named(theta: Floats) -> dict[str, float]:
    p, q, M = np.exp(theta)
    return {"p": float(p), "q": float(q), "market": float(M)}


@dataclass(frozen=True, eq=False)
class DiffusionFit:
    """A curve with its parameters, log month effects (zero if there are none) and an upper limit for forecasts."""

    curve: Curve
    theta: Floats
    months: Floats
    ceiling: float
    converged: bool
    diagnosis: str

    def acquired(self, month: Ints) -> Floats:
        """New customers in each week from the panel's first one; `month` is the month of each week."""
        path = self.curve.acquired(self.theta, len(month)) * np.exp(self.months[month])
        return np.asarray(np.clip(path, 0.0, self.ceiling))

    def values(self) -> dict[str, Any]:
        return {
            "curve": type(self.curve).__name__,
            "settings": dict(vars(self.curve)),
            "theta": self.theta.tolist(),
            "months": self.months.tolist(),
            "ceiling": self.ceiling,
            "converged": self.converged,
            "diagnosis": self.diagnosis,
        }

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        kinds: dict[str, type[Any]] = {k.__name__: k for k in (Logistic, Bass, BassAttrition)}
        return cls(
            curve=kinds[values["curve"]](**values["settings"]),
            theta=np.array(values["theta"]),
            months=np.array(values["months"]),
            ceiling=values["ceiling"],
            converged=values["converged"],
            diagnosis=values["diagnosis"],
        )


def fit_diffusion(curve: Curve, acquired: Floats, month: Ints | None) -> DiffusionFit:
    """Weighted, outlier-resistant nonlinear least squares from several starts.

    With `month`, month effects and curve are estimated alternately.

    Args:
        curve: the kind of curve.
        acquired: [T] new customers in each week.
        month: [T] month of each week, 0 to 11; None: no month effects.
    """
    total, T = float(acquired.sum()), len(acquired)
    if total <= 0:
        low, _ = curve.bounds(1.0, T)
        return DiffusionFit(curve, low, np.zeros(12), 0.0, True, "nobody was acquired: none are forecast")
    series = tamed(acquired)
    low, high = curve.bounds(max(total, 1.0), T)
    deviation = np.sqrt(_smooth(series) + 1.0)
    noise = 1.4826 * float(np.median(np.abs(series - _smooth(series)) / deviation))
    deviation = deviation * max(noise, 0.5)
    months = np.zeros(12)

    def misfit(theta: Floats, factor: Floats) -> Floats:
        data = (curve.acquired(theta, T) * factor - series) / deviation
        return np.concatenate([data, np.sqrt(DISCOUNT) * curve.surprise(theta)])

    def cost(theta: Floats) -> float:
        return float(np.sum(np.sqrt(1 + misfit(theta, np.ones(T)) ** 2) - 1))

    candidates = np.clip(curve.starts(series), low + 1e-6, high - 1e-6)
    starts = list(candidates[np.argsort([cost(c) for c in candidates])[:BEST_STARTS]])
    best = None
    for _ in range(ROUNDS if month is not None else 1):
        factor = np.exp(months[month]) if month is not None else np.ones(T)
        fits = [
            least_squares(
                misfit, x, args=(factor,), bounds=(low, high), loss="soft_l1", x_scale="jac", max_nfev=60
            )
            for x in starts
        ]
        best = min(fits, key=lambda f: f.cost)
        starts = [np.clip(best.x, low + 1e-6, high - 1e-6)]
        if month is not None:
            months = month_effects(series, curve.acquired(best.x, T), month)
    assert best is not None
    at_bound = [curve.names[k] for k in np.flatnonzero(best.active_mask)]
    return DiffusionFit(
        curve=curve,
        theta=best.x,
        months=months,
        ceiling=2.0 * float(series.max()),
        converged=bool(best.status > 0),
        diagnosis=f"at its bound: {', '.join(at_bound)}" if at_bound else "",
    )


def month_effects(actual: Floats, expected: Floats, month: Ints) -> Floats:
    """[12] log effects: Poisson estimates of month dummies, given the expected counts without them."""
    prior = MONTH_PRIOR_WEEKS * float(expected.mean()) + 1e-9
    observed, seen = np.bincount(month, actual, 12), np.bincount(month, expected, 12)
    effect = np.log((observed + prior) / (seen + prior))
    return np.asarray(effect - np.average(effect, weights=seen + 1e-9))


def tamed(series: Floats) -> Floats:
    """The series with outliers (weeks far above their neighbours) capped."""
    centre = _running_median(series)
    away = series - centre
    mad = 1.4826 * float(np.median(np.abs(away)))
    return np.asarray(np.minimum(series, centre + 8.0 * mad + np.sqrt(centre + 1.0) + centre))


def _running_median(series: Floats, half: int = 6) -> Floats:
    padded = np.pad(series, half, mode="reflect") if len(series) > half else np.pad(series, half, mode="edge")
    return np.asarray(np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1), axis=1))


def _smooth(series: Floats, half: int = 6) -> Floats:
    window = np.ones(2 * half + 1)
    return np.asarray(np.convolve(series, window, "same") / np.convolve(np.ones(len(series)), window, "same"))
