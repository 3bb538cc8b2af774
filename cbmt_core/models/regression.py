"""Penalised log-linear regression of cohort-weeks: tenure, calendar, cohort levels and week shocks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np

from cbmt_core.arrays import Bools, Floats, Ints
from cbmt_core.calendar import Calendar, calendar_of

__all__ = [
    "CalendarDesign",
    "LogLinearFit",
    "ShockDesign",
    "fit_log_linear",
    "fit_poisson",
    "season_waves",
    "tenure_features",
]


FLAT = 10.0
"""Prior standard deviation, in log points, of effects without an informative prior."""
HARMONICS = 4
KNOTS = np.log([2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
ITERATIONS = 40
TOLERANCE = 3e-3
"""In log points; far below the accuracy of any forecast."""
SCALE_RANGE = (0.25, 100.0)
"""Limits of the estimated prior variances of season and holidays, relative to their defaults."""
HUBER = 4.0
"""Residuals are clipped at this many standard deviations."""


@dataclass(frozen=True)
class CalendarDesign:
    """Calendar effects of a driver's regression, with their prior standard deviations."""

    trend_sd: float
    """For one year of trend."""
    season_sd: float = 0.05
    holiday_sd: float = 0.10
    trend_memory: float = 26.0
    """Weeks over which the trend fades out after the origin."""

    def features(self, first_week: date, n_weeks: int, horizon: int, country: str) -> Floats:
        """[n_weeks + horizon, Q]: level, trend, harmonics, holidays."""
        calendar = calendar_of(first_week, n_weeks + horizon, country)
        ahead = np.arange(n_weeks + horizon) - (n_weeks - 1.0)
        faded = self.trend_memory * -np.expm1(-np.maximum(ahead, 0.0) / self.trend_memory)
        trend = np.where(ahead > 0, faded, ahead) / 52.0
        return np.column_stack(
            [np.ones(len(calendar)), trend, season_waves(calendar, HARMONICS), calendar.holiday]
        )

    def prior_sd(self, columns: int) -> Floats:
        waves = [self.season_sd / k for k in range(1, HARMONICS + 1) for _ in range(2)]
        known = [FLAT, self.trend_sd, *waves]
        return np.array([*known, *[self.holiday_sd] * (columns - len(known))])

    def groups(self, columns: int) -> Ints:
        """The group of each column whose prior deviation is learned: 1 the harmonics, 2 the holidays, 0 fixed."""
        return np.repeat([0, 1, 2], [2, 2 * HARMONICS, columns - 2 - 2 * HARMONICS])


def season_waves(calendar: Calendar, count: int) -> Floats:
    """[T, 2 count] sine and cosine of `count` waves of the year, at each week's Wednesday."""
    wednesday = calendar.weeks + 3
    day = (wednesday - wednesday.astype("datetime64[Y]")).astype(float)
    angle = 2 * np.pi * day / 365.25
    return np.column_stack([f(k * angle) for k in range(1, count + 1) for f in (np.sin, np.cos)])


def tenure_features(tenure: Ints, censored: Bools, trend: Floats) -> tuple[Floats, Floats]:
    """[..., K] features of tenure and their prior standard deviations.

    Cohorts of known birth have an effect of the birth week and a broken line in log tenure, extrapolated beyond the
    oldest cohort as a power law. The left-censored cohort's tenure is unknown: it has its own trend (`trend`, the
    calendar's faded one).
    """
    log_tenure = np.log(np.maximum(tenure, 1))
    young = ~censored
    columns = [
        young & (tenure == 0),
        young * log_tenure,
        *(young * np.maximum(log_tenure - knot, 0.0) for knot in KNOTS),
        censored * trend,
    ]
    return np.stack(np.broadcast_arrays(*columns), axis=-1).astype(float), np.array(
        [FLAT, 1.0, *[0.5] * len(KNOTS), 0.3]
    )


@dataclass(frozen=True)
class ShockDesign:
    """Week shocks: a slow part that decays over `memory` weeks, and a part that lasts one week."""

    slow_share: float
    """Share of the slow part in the variance."""
    memory: float

    def correlation(self, weeks: int) -> Floats:
        return self._slow(np.arange(weeks), np.arange(weeks)) + (1 - self.slow_share) * np.eye(weeks)

    def expected(self, shock: Floats, horizon: int) -> Floats:
        """[T + horizon] the slow part, given the shocks of the first T weeks."""
        T = len(shock)
        alpha = np.linalg.solve(self.correlation(T), shock)
        return np.asarray(self._slow(np.arange(T + horizon), np.arange(T)) @ alpha)

    def _slow(self, a: Ints, b: Ints) -> Floats:
        return np.asarray(self.slow_share * np.exp(-np.abs(a[:, None] - b) / self.memory))


@dataclass(frozen=True, eq=False)
class LogLinearFit:
    """log E[y / exposure] = tenure features + calendar features + cohort level + week shock."""

    tenure: Floats
    """[K] coefficients."""
    calendar: Floats
    """[Q] coefficients."""
    level: Floats
    """[N] cohort levels, shrunken."""
    shock: Floats
    """[T] week shocks, shrunken."""
    dispersion: float
    level_sd: float
    shock_sd: float
    converged: bool


def fit_log_linear(
    y: Floats,
    exposure: Floats,
    tenure: Floats,
    tenure_sd: Floats,
    calendar: Floats,
    calendar_sd: Floats,
    calendar_group: Ints,
    *,
    counts: bool,
    wide: Bools,
    cell_sd: float,
    shocks: ShockDesign,
) -> LogLinearFit:
    """Maximise the penalised quasi-likelihood by Newton steps; variances are updated by moments in each step.

    The relative variance of a cell is the dispersion times 1 / mean (`counts`: Poisson) or 1 / exposure (gamma), plus
    `cell_sd` squared, so that a cohort of a million customers does not dominate the fit. Cohort levels are eliminated
    first, so the linear system has the size of the calendar. `wide` marks cohorts whose level is not shrunk.

    Args:
        y: [N, T] outcome of each cohort and week.
        exposure: [N, T] customers or orders; 0 where there is no observation.
        tenure: [N, T, K] features of tenure.
        tenure_sd: [K] prior standard deviations of their effects.
        calendar: [T, Q] features of the weeks; the first one is the level.
        calendar_sd: [Q] prior standard deviations of their effects.
        calendar_group: [Q] group of each column, see `CalendarDesign.groups`.
        counts: whether y are counts (Poisson) or means over the exposure (gamma).
        wide: [N] cohorts whose level is not shrunk.
        cell_sd: standard deviation of each cell's own log noise.
        shocks: prior of the week shocks.
    """
    N, T = y.shape
    K, Q = tenure.shape[2], calendar.shape[1]
    F, G = tenure.reshape(N * T, K), calendar
    seen = exposure > 0
    safe = np.where(seen, exposure, 1.0)
    beta, gamma, shock, level = np.zeros(K), np.zeros(Q), np.zeros(T), np.zeros(N)
    gamma[0] = np.log(max(y[seen].sum(), 0.5) / exposure[seen].sum())
    dispersion, level_var, shock_var = 1.0, 0.2**2, 0.1**2
    scale = np.ones(Q)
    precision = np.linalg.inv(shocks.correlation(T))
    converged = False
    for _ in range(ITERATIONS):
        linear = (F @ beta).reshape(N, T) + (G @ gamma + shock) + level[:, None]
        mean = np.exp(np.clip(linear, gamma[0] - 12.0, gamma[0] + 12.0))
        weight = exposure * mean if counts else exposure
        relative = np.where(seen, 1.0 / np.where(seen, weight, 1.0) + cell_sd**2, np.inf)
        reach = HUBER * np.sqrt(dispersion * relative)
        residual = np.where(seen, np.clip(y / (safe * mean) - 1.0, -reach, reach), 0.0)
        W = 1.0 / (dispersion * relative)
        WR = W * residual
        WF = (W.reshape(-1, 1) * F).reshape(N, T, K)

        # Rows and columns of the system: tenure, calendar, shocks; cohort levels are eliminated.
        by_week, F_week = W.sum(axis=0), WF.sum(axis=0)
        penalty = np.concatenate([tenure_sd**-2, (scale * calendar_sd) ** -2])
        penalty_level = np.where(wide, FLAT**-2, 1.0 / level_var)
        FG, wG = F_week.T @ G, by_week[:, None] * G
        M = np.block(
            [
                [F.T @ WF.reshape(N * T, K), FG, F_week.T],
                [FG.T, G.T @ wG, wG.T],
                [F_week, wG, np.diag(by_week)],
            ]
        )
        M[np.diag_indices(K + Q)] += penalty
        M[K + Q :, K + Q :] += precision / shock_var
        D = W.sum(axis=1) + penalty_level
        B = np.hstack([WF.sum(axis=1), W @ G, W])
        M -= B.T @ (B / D[:, None])
        g = np.concatenate([F.T @ WR.ravel(), G.T @ WR.sum(axis=0), WR.sum(axis=0)])
        g[: K + Q] -= penalty * np.concatenate([beta, gamma])
        g[K + Q :] -= precision @ shock / shock_var
        h = WR.sum(axis=1) - penalty_level * level
        step = np.clip(np.linalg.solve(M, g - B.T @ (h / D)), -1.0, 1.0)
        level = level + np.clip((h - B @ step) / D, -1.0, 1.0)
        beta, gamma, shock = beta + step[:K], gamma + step[K : K + Q], shock + step[K + Q :]

        # Variances by moments; the inverse diagonal stands in for the uncertainty of each effect.
        unsure = np.diag(precision) / np.diag(M)[K + Q :]
        shock_var = float(np.clip((shock @ precision @ shock + unsure.sum()) / T, 1e-4, 1.0))
        second_moment = (gamma**2 + 1.0 / np.diag(M)[K : K + Q]) / calendar_sd**2
        for group in (1, 2):
            if (mine := calendar_group == group).any():
                scale[mine] = np.sqrt(np.clip(np.mean(second_moment[mine]), *SCALE_RANGE))
        if not wide.all():
            level_var = float(np.clip(np.mean((level**2 + 1.0 / D)[~wide]), 1e-4, 0.5))
        pearson = np.sum(residual**2 / relative) / max(int(seen.sum()) - K - N, 1)
        dispersion = float(max(pearson, 1e-4))
        converged = bool(np.abs(step).max() < TOLERANCE)
        if converged:
            break
    return LogLinearFit(
        tenure=beta,
        calendar=gamma,
        level=level,
        shock=shock,
        dispersion=dispersion,
        level_sd=level_var**0.5,
        shock_sd=shock_var**0.5,
        converged=converged,
    )


def fit_poisson(x: Floats, y: Floats, exposure: Floats, sd: Floats) -> Floats:
    """Coefficients of log E[y / exposure] = x beta, normal priors of deviation `sd`, by Newton steps.

    Overdispersion is estimated and gives the data less weight against the priors; residuals are clipped at `HUBER`
    deviations, so that a single odd cell does not set a level.

    Args:
        x: [n, k] features.
        y: [n] counts.
        exposure: [n] positive.
        sd: [k] prior standard deviations; infinite: no prior.
    """
    beta = np.zeros(x.shape[1])
    start = np.log(max(float(y.sum()), 0.5) / float(exposure.sum()))
    # Every row has exactly one of the level columns, so that all of them start at the mean rate.
    beta[np.isinf(sd) | (sd >= FLAT)] = start
    penalty = np.divide(1.0, sd**2, out=np.zeros_like(sd), where=np.isfinite(sd))
    centre = np.where(sd >= FLAT, start, 0.0)
    dispersion = 1.0
    for _ in range(25):
        mean = exposure * np.exp(np.clip(x @ beta, start - 12.0, start + 12.0))
        reach = HUBER * np.sqrt(dispersion * mean)
        residual = np.clip(y - mean, -reach, reach)
        dispersion = max(float(np.sum(residual**2 / mean)) / max(len(y) - len(beta), 1), 0.1)
        gram = x.T @ (mean[:, None] * x) / dispersion + np.diag(penalty + 1e-9)
        gradient = x.T @ residual / dispersion - penalty * (beta - centre)
        step = np.clip(np.linalg.solve(gram, gradient), -1.0, 1.0)
        beta = beta + step
        if np.abs(step).max() < 1e-6:
            break
    return beta
