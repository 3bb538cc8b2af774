"""Pareto/NBD with covariates: parameters of the expected curve from cohort-week counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from cbmt_core.arrays import Bools, Floats, Ints
from cbmt_core.models.month_effects import month_spread
from cbmt_core.models.pareto_nbd import tenure_span
from cbmt_core.panel import LEFT_CENSORED, FirmPanel

__all__ = ["COHORT_SD", "CohortCounts", "CountFit", "fit_counts"]


# Priors of the count likelihood, on logs: the centre of the published fits, and a wide spread.
CURVE_CENTRE = (np.log(0.6), np.log(10.0))
CURVE_SD = (1.0, 1.0)
MONTH_SD = 0.1
"""Initial spread of month effects, which is then estimated from the data."""
COHORT_SD = 0.1
"""For one year of birth weeks."""
AROUND_CURVE_SD, AROUND_MONTH_SD = (0.5, 0.25, 0.25), 0.02
"""Spread of a group's rate, s, beta and months around those of the whole firm."""


@dataclass(frozen=True, eq=False)
class CohortCounts:
    """Repeat orders of cohort-weeks, one entry each."""

    orders: Floats
    size: Floats
    lo: Floats
    hi: Floats
    week: Ints
    month: Ints
    cohort: Ints
    number: Floats
    """Birth week in years before the last one, the covariate "cohort number"; 0 when left-censored."""

    @classmethod
    def of(cls, panel: FirmPanel, cohorts: Ints) -> CohortCounts:
        row, week = np.nonzero(panel.born[cohorts])
        cohort = cohorts[row]
        birth = panel.birth[cohort]
        censored = birth == LEFT_CENSORED
        lo, hi = tenure_span(week - birth, censored)
        return cls(
            orders=panel.size[cohort] * np.nan_to_num(panel.R[cohort, week]),
            size=panel.size[cohort],
            lo=lo,
            hi=hi,
            week=week,
            month=panel.calendar().month[week],
            cohort=cohort,
            number=np.where(censored, 0.0, (birth - (panel.n_weeks - 1)) / 52.0),
        )


@dataclass(frozen=True, eq=False)
class CountFit:
    """Parameters from cohort counts: log of r / alpha, log s, log beta, slope on cohort number, 12 months."""

    theta: Floats
    dispersion: float
    converged: bool
    diagnosis: str = ""

    @property
    def s(self) -> float:
        return float(np.exp(self.theta[1]))

    @property
    def beta(self) -> float:
        return float(np.exp(self.theta[2]))

    def expected(self, counts: CohortCounts) -> Floats:
        """Expected repeat orders: size (r/alpha) exp(gamma'x) times the survived part of the week."""
        return np.exp(_log_mean(self.theta, counts)[0])


def fit_counts(
    counts: CohortCounts,
    *,
    months: bool,
    cohort: bool,
    around: CountFit | None = None,
    own_curve: bool = False,
) -> CountFit:
    """Penalised Poisson quasi-likelihood of cohort-week counts, with analytic gradients.

    Normal priors hold the parameters near published fits and no effects, or near those of the fit `around` (its
    months alone with `own_curve`). Orders of one week share its shock, so the dispersion that weighs data against
    priors is estimated from weekly totals.

    Args:
        months: whether to estimate month effects.
        cohort: whether to estimate a slope on the cohort's number.
        around: an earlier fit that the priors are centred on.
        own_curve: use only the months of `around`.
    """
    rate = max(counts.orders.sum(), 0.5) / max(float(counts.size @ (counts.hi - counts.lo)), 1e-9)
    centre = np.array([np.log(rate) + 0.5, *CURVE_CENTRE, *np.zeros(13)])
    sd = np.array([3.0, *CURVE_SD, COHORT_SD, *[MONTH_SD] * 12])
    if around is not None:
        centre[4:], sd[4:] = around.theta[4:], AROUND_MONTH_SD
        if not own_curve:
            centre[:3], sd[:3] = around.theta[:3], AROUND_CURVE_SD
    fixed = np.zeros(16, dtype=bool)
    fixed[3], fixed[4:] = not cohort, not months
    centre[fixed] = 0.0
    start, dispersion, tries = centre.copy(), 10.0, 0
    for _ in range(8):
        result = minimize(
            _objective, start, (counts, centre, sd, fixed, dispersion), "L-BFGS-B", True,
            options={"maxiter": 300, "ftol": 1e-10, "gtol": 1e-6},
        )  # fmt: skip
        mean = np.exp(_log_mean(result.x, counts)[0])
        week = np.bincount(counts.week, counts.orders - mean)
        updated = max(1.0, float(week @ week) / max(float(mean.sum()), 1e-9))
        settled = result.success and abs(np.log(updated / dispersion)) < 0.1
        dispersion = updated
        if months and around is None:
            spread = month_spread(result.x[4:], np.bincount(counts.month, mean, 12) / dispersion, sd[4])
            settled &= abs(np.log(spread / sd[4])) < 0.1
            sd[4:] = spread
        if settled:
            break
        if result.success:
            start = result.x
        else:  # another start: a slower death with less spread
            tries += 1
            start = centre + np.where(fixed, 0.0, tries * np.array([-0.3, 0.5, 1.0, *np.zeros(13)]))
    words = "" if result.success else f"count likelihood did not converge in {tries} starts: {result.message}"
    return CountFit(result.x, dispersion, bool(result.success), words)


def _log_mean(theta: Floats, counts: CohortCounts) -> tuple[Floats, Floats, Floats]:
    """Log expected orders and its derivatives by log s and log beta."""
    s, beta = np.exp(theta[1]), np.exp(theta[2])
    low, high = beta + counts.lo, beta + counts.hi
    width = np.log(high / low)
    z = (1.0 - s) * width
    small = np.abs(z) < 1e-5
    safe = np.where(small, 1.0, z)
    log_phi = np.where(small, z / 2.0, np.log(np.expm1(safe) / safe))
    slope = np.where(small, 0.5 + z / 12.0, 1.0 / -np.expm1(np.minimum(-safe, 700.0)) - 1.0 / safe)
    log_survived = s * theta[2] + (1.0 - s) * np.log(low) + np.log(width) + log_phi
    by_s = s * (theta[2] - np.log(low) - slope * width)
    width_by_beta = 1.0 / high - 1.0 / low
    by_beta = beta * (s / beta + (1.0 - s) / low + (1.0 / width + (1.0 - s) * slope) * width_by_beta)
    linear = theta[0] + theta[3] * counts.number + theta[4:][counts.month]
    return np.log(counts.size) + linear + log_survived, by_s, by_beta


def _objective(
    theta: Floats,
    counts: CohortCounts,
    centre: Floats,
    sd: Floats,
    fixed: Bools,
    dispersion: float,
) -> tuple[float, Floats]:
    log_mean, by_s, by_beta = _log_mean(theta, counts)
    mean = np.exp(np.minimum(log_mean, 50.0))
    residual = counts.orders - mean
    distance = (theta - centre) / sd
    scale = 1.0 / max(counts.orders.sum(), 1.0)
    data = float(counts.orders @ log_mean - mean.sum())
    value = -scale * data + 0.5 * scale * dispersion * float(distance @ distance)
    gradient = np.concatenate(
        [
            [residual.sum(), residual @ by_s, residual @ by_beta, residual @ counts.number],
            np.bincount(counts.month, residual, 12),
        ]
    )
    gradient = -scale * gradient + scale * dispersion * distance / sd
    return value, np.where(fixed, 0.0, gradient)
