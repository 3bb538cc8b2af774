"""Pareto/NBD repeat buying: the expected curve, and its parameters from single customers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import digamma, gammaln, logsumexp

from cbmt_core.arrays import Bools, Floats, Ints
from cbmt_core.panel import LEFT_CENSORED, FirmPanel

with warnings.catch_warnings():  # importing lifetimes changes the warning filters of the process
    warnings.simplefilter("ignore")
    from lifetimes import ParetoNBDFitter

__all__ = [
    "CustomerRows",
    "ParetoNbd",
    "customer_rows",
    "fit_customers",
    "survived_weeks",
    "tenure_span",
]


MAX_ROWS = 25_000
"""Unique histories above which ages are rounded to four weeks: estimates move by 1 %."""
STARTS = ((0.5, 0.1, 0.5, 0.1), (1.0, 1.0, 1.0, 1.0), (0.5, 0.5, 2.0, 2.0))
BOUNDS = ((np.log(1e-3), np.log(100.0)),) * 4
"""Where the search of r, alpha, s, beta starts and stays, with the longest history as unit of time."""
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


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


def tenure_span(tenure: Ints, censored: Bools) -> tuple[Floats, Floats]:
    """Start and end of a week in tenure, `tenure` weeks after the birth week.

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
        """Quadrature nodes y over tx..T, and the log of each node's weighted integrand of `odds_dead`.

        The nodes lie on a power scale that follows the integrand. This is exact and fast also where differences of
        hypergeometric functions cancel or converge slowly.
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
        """Expected orders a week just after T, given the history: (r+x)/(alpha+T) P(alive) (eq. 41)."""
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

    def _where(self, kept: Bools) -> CustomerRows:
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
    """The fitter of lifetimes with another optimiser: gradients over the log parameters, within bounds.

    The library's simplex needs about 500 evaluations, and its hypergeometric functions become slow or infinite where
    customers hardly differ in their hazard. The likelihood is the same.
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
