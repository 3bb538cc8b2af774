"""Pareto/NBD repeat buying: the expected curve, and its parameters from customers or from cohort counts."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import digamma, gammaln, logsumexp

from cbmt_core.panel import LEFT_CENSORED, FirmPanel

with warnings.catch_warnings():  # importing lifetimes changes the warning filters of the process
    warnings.simplefilter("ignore")
    from lifetimes import ParetoNBDFitter

__all__ = [
    "COHORT_SD",
    "CohortCounts",
    "CountFit",
    "CustomerRows",
    "ParetoNbd",
    "customer_rows",
    "fit_counts",
    "fit_customers",
    "survived_weeks",
    "tenure_span",
]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_ROWS = 25_000
"""Unique histories above which ages are rounded to four weeks: estimates move by 1 %."""
STARTS = ((0.5, 0.1, 0.5, 0.1), (1.0, 1.0, 1.0, 1.0), (0.5, 0.5, 2.0, 2.0))
BOUNDS = ((np.log(1e-3), np.log(100.0)),) * 4
"""Where the search of r, alpha, s, beta starts and stays, with the longest history as unit of time."""
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)

# Priors of the count likelihood, on logs: the centre of the published fits, and a wide spread.
CURVE_CENTRE = (np.log(0.6), np.log(10.0))
CURVE_SD = (1.0, 1.0)
MONTH_SD = 0.15
COHORT_SD = 0.1
"""A year of birth weeks."""
AROUND_CURVE_SD, AROUND_MONTH_SD = (0.5, 0.25, 0.25), 0.05
"""Spread of a group's rate, s, beta and months around those of the whole firm."""


def survived_weeks(s: float | Floats, beta: float | Floats, lo: float | Floats, hi: float | Floats) -> Floats:
    """Integral of the survival (beta / (beta + t))^s from lo to hi, stable also at s = 1.

    r / alpha times this is the expected number of repeat orders between the tenures lo and hi
    (Fader & Hardie 2005, "A Note on Deriving the Pareto/NBD Model", eq. 27).
    """
    width = np.log((beta + hi) / (beta + lo))
    z = (1.0 - np.asarray(s)) * width
    small = np.abs(z) < 1e-8
    phi = np.where(small, 1.0 + z / 2.0, np.expm1(z) / np.where(small, 1.0, z))
    return np.asarray(np.exp(s * np.log(beta) + (1.0 - np.asarray(s)) * np.log(beta + lo)) * width * phi)


def tenure_span(tenure: Ints, censored: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """The stretch of tenure covered by a week, `tenure` weeks after the birth week.

    Customers arrive on average in the middle of their birth week, so that half of it is left. The
    clock of the left-censored cohort starts with the panel's first week.
    """
    u = tenure.astype(float)
    return np.where(censored, u - 1.0, np.maximum(u - 0.5, 0.0)), np.where(censored, u, u + 0.5)


@dataclass(frozen=True)
class ParetoNbd:
    """Orders are Poisson with a gamma(r, alpha) rate until a death with a gamma(s, beta) hazard."""

    r: float
    alpha: float
    s: float
    beta: float

    def expected(self, lo: float | Floats, hi: float | Floats) -> Floats:
        """Expected repeat orders of a new customer between the tenures lo and hi."""
        return self.r / self.alpha * survived_weeks(self.s, self.beta, lo, hi)

    def odds_dead(self, x: Floats, tx: Floats, T: Floats, alpha: float | Floats | None = None) -> Floats:
        """Odds of being dead at T after x orders, the last at tx (eq. 36-37 of the same note).

        s (alpha+T)^(r+x) (beta+T)^s times the integral of (alpha+y)^-(r+x) (beta+y)^-(s+1) over tx..T.
        """
        a = self.alpha if alpha is None else alpha
        return np.asarray(np.exp(np.minimum(logsumexp(self._death_times(x, tx, T, a)[1], axis=0), 700.0)))

    def _death_times(self, x: Floats, tx: Floats, T: Floats, alpha: float | Floats) -> tuple[Floats, Floats]:
        """Quadrature nodes y over tx..T, and the log of what each adds to the odds of being dead.

        The nodes lie on a power scale that follows the integrand, which stays exact and quick where
        differences of hypergeometric functions cancel or creep.
        """
        r, s, beta = self.r, self.s, self.beta
        k = r + x
        shift = np.minimum(alpha, beta)
        first, last = (
            (shift + t) * (k / (alpha + t) + (s + 1.0) / (beta + t)) - 1.0 for t in (tx, T)
        )  # rates of decay of the integrand in log(shift + y), which only grow with y
        power = np.maximum(np.maximum(first, 0.25 * last), 0.1)
        low = np.exp(-power * np.log((T + shift) / (tx + shift)))
        w = 0.5 * ((1.0 + low) + (1.0 - low) * NODES[:, None])
        log_w = np.log(w)
        stretch = -log_w / power
        y = (tx + shift) * np.exp(stretch) - shift
        log_mass = stretch - log_w - k * np.log(alpha + y) - (s + 1.0) * np.log(beta + y)
        log_mass += k * np.log(alpha + T) + s * np.log(beta + T)
        log_mass += np.log(0.5 * s * np.maximum(1.0 - low, 1e-300) * (tx + shift) / power)
        return y, log_mass + np.log(WEIGHTS)[:, None]

    def alive_rate(self, x: Floats, tx: Floats, T: Floats, alpha: float | Floats | None = None) -> Floats:
        """Orders a week expected just after T, given the history: (r+x)/(alpha+T) P(alive) (eq. 41)."""
        a = self.alpha if alpha is None else alpha
        return (self.r + x) / (a + T) / (1.0 + self.odds_dead(x, tx, T, a))

    def log_likelihood(self, x: Floats, tx: Floats, T: Floats) -> tuple[Floats, Floats]:
        """[M] log likelihood of histories (eq. 18) and [4, M] its derivatives by log parameters."""
        r, a, s, b = self.r, self.alpha, self.s, self.beta
        y, log_mass = self._death_times(x, tx, T, a)
        log_either = np.logaddexp(0.0, logsumexp(log_mass, axis=0))
        dead = np.exp(log_mass - log_either)  # P(dead), split over the times of death
        value = gammaln(r + x) - gammaln(r) + r * np.log(a / (a + T)) - x * np.log(a + T)
        value += s * np.log(b / (b + T)) + log_either
        log_a, log_b = np.log((a + T) / (a + y)), np.log((b + T) / (b + y))
        slope = np.stack(
            [
                r * (digamma(r + x) - digamma(r) + np.log(a / (a + T)) + (dead * log_a).sum(axis=0)),
                r - a * (r + x) * (1 / (a + T) - (dead * (1 / (a + T) - 1 / (a + y))).sum(axis=0)),
                s * (np.log(b / (b + T)) + (dead * (1 / s + log_b)).sum(axis=0)),
                s - b * (s / (b + T) - (dead * (s / (b + T) - (s + 1) / (b + y))).sum(axis=0)),
            ]
        )
        return value, slope


@dataclass(frozen=True, eq=False)
class CustomerRows:
    """Unique histories (cohort, x repeat orders, the last at tenure tx, age T) and their customers."""

    cohort: Ints
    x: Floats
    tx: Floats
    T: Floats
    weight: Floats

    def of(self, cohorts: Ints) -> CustomerRows:
        """The histories of some cohorts."""
        return self._where(np.isin(self.cohort, cohorts))

    def _where(self, kept: npt.NDArray[np.bool_]) -> CustomerRows:
        return CustomerRows(self.cohort[kept], self.x[kept], self.tx[kept], self.T[kept], self.weight[kept])


def customer_rows(panel: FirmPanel) -> CustomerRows:
    """Histories of every customer of the panel; cohort members without an order count as x = 0."""
    history = panel.customers
    if history is None:
        raise ValueError("the panel holds no customers")
    cohort = history.cohort.astype(np.int64)
    censored = panel.birth == LEFT_CENSORED
    age = np.where(censored, panel.n_weeks, panel.n_weeks - panel.birth - 0.5)
    last = history.week[history.start[1:] - 1].astype(np.int64)
    x = np.diff(history.start) - ~censored[cohort]
    since = last - panel.birth[cohort]
    # A last order somewhere in its week: the middle; a second one in the birth week: a quarter.
    tx = np.where(x > 0, np.where(censored[cohort], since - 0.5, np.maximum(since, 0.25)), 0.0)
    silent = np.maximum(panel.size - np.bincount(cohort, minlength=panel.n_cohorts), 0.0)
    keys = np.stack([cohort, x, 4 * tx]).astype(np.int64)
    base = int(keys.max()) + 1
    unique, counts = np.unique((keys[0] * base + keys[1]) * base + keys[2], return_counts=True)
    every = np.arange(panel.n_cohorts)
    who = np.concatenate([unique // base**2, every])
    zero = np.zeros(panel.n_cohorts)
    rows = CustomerRows(
        cohort=who,
        x=np.concatenate([unique // base % base, zero]).astype(float),
        tx=np.concatenate([unique % base / 4, zero]),
        T=age[who],
        weight=np.concatenate([counts, silent]).astype(float),
    )
    return rows._where(rows.weight > 0)


class _Fitter(ParetoNBDFitter):  # type: ignore[misc]
    """The fitter of lifetimes with another search: by gradients, over the logs, within bounds.

    Its own simplex needs five hundred likelihoods, and its hypergeometric functions become slow or
    infinite where customers hardly differ in their hazard. The likelihood is the same.
    """

    success = False

    def _fit(self, minimizing_function_args: Any, *args: Any, **kwargs: Any) -> tuple[Floats, float]:
        x, tx, T, weight, _ = minimizing_function_args
        best, value = np.log(STARTS[0]), np.inf
        for start in STARTS:
            found = minimize(
                _customer_objective,
                np.log(start),
                (x, tx, T, weight / weight.sum()),
                "L-BFGS-B",
                jac=True,
                bounds=BOUNDS,
                options={"maxiter": 200, "ftol": 1e-10},
            )
            if found.fun < value:
                best, value = found.x, found.fun
            self.success = bool(found.success)
            if self.success:
                break
        return np.exp(best), value * len(x)


def _customer_objective(
    log_parameters: Floats, x: Floats, tx: Floats, T: Floats, share: Floats
) -> tuple[float, Floats]:
    value, slope = ParetoNbd(*np.exp(log_parameters).tolist()).log_likelihood(x, tx, T)
    return -float(share @ value), -slope @ share


def fit_customers(rows: CustomerRows) -> tuple[ParetoNbd, str]:
    """Maximum likelihood by lifetimes on weighted unique histories; the second value is a diagnosis."""
    unique, weight = _weighted_unique(rows.x, rows.tx, rows.T, rows.weight)
    if len(unique) > MAX_ROWS:
        coarse = (np.floor(rows.T / 4.0) + 0.5) * 4.0
        scaled = np.where(rows.x > 0, np.maximum(np.round(rows.tx / rows.T * coarse), 0.25), 0.0)
        unique, weight = _weighted_unique(rows.x, np.minimum(scaled, coarse), coarse, rows.weight)
    fitter = _Fitter()
    fitter.fit(*unique.T, weights=weight)
    r, alpha, s, beta = (float(v) for v in fitter.params_)
    words = "" if fitter.success else "customer likelihood did not converge from any start"
    return ParetoNbd(r, alpha, s, beta), words


def _weighted_unique(x: Floats, tx: Floats, T: Floats, weight: Floats) -> tuple[Floats, Floats]:
    unique, where = np.unique(np.stack([x, tx, T], axis=1), axis=0, return_inverse=True)
    return unique, np.bincount(where.ravel(), weight).astype(float)


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

    Normal priors hold the parameters near published fits and no effects, or near those of the fit
    `around` (its months alone with `own_curve`). Orders of one week share its shock, so that the
    dispersion that weighs data against priors is that of weekly totals.
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
    for _ in range(6):
        result = minimize(
            _objective, start, (counts, centre, sd, fixed, dispersion), "L-BFGS-B", True,
            options={"maxiter": 300, "ftol": 1e-10, "gtol": 1e-6},
        )  # fmt: skip
        mean = np.exp(_log_mean(result.x, counts)[0])
        week = np.bincount(counts.week, counts.orders - mean)
        updated = max(1.0, float(week @ week) / max(float(mean.sum()), 1e-9))
        settled = result.success and abs(np.log(updated / dispersion)) < 0.1
        dispersion = updated
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
    slope = np.where(small, 0.5 + z / 12.0, 1.0 / -np.expm1(-safe) - 1.0 / safe)
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
    fixed: npt.NDArray[np.bool_],
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
