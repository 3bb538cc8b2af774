"""Measures of a common factor: covariance structure of the drivers, and the decomposition of sales."""

from __future__ import annotations

import numpy as np
from sklearn.decomposition import FactorAnalysis

from cbmt_core.diagnostics.comovement.drivers import PAIRS, Drivers
from cbmt_core.diagnostics.comovement.measure import GROUPS, Measure
from cbmt_core.diagnostics.comovement.series import Floats

__all__ = ["DECOMPOSITION", "STRUCTURE"]


def _correlations(d: Drivers) -> Floats:
    return np.asarray(np.corrcoef(d.aligned.T))


def shared_covariance(d: Drivers) -> float:
    r, spread = _correlations(d), d.spread
    stake = [spread[i] * spread[j] for i, j in PAIRS]
    return float(np.average([abs(r[i, j]) for i, j in PAIRS], weights=stake))


def generalised_variance(d: Drivers) -> float:
    return float(1 - np.linalg.det(_correlations(d)))


def offsetting_errors(d: Drivers) -> float:
    return float(1 - d.errors.sum(axis=1).var() / 3)


def principal_share(d: Drivers) -> float:
    return float(np.linalg.eigvalsh(_correlations(d))[-1] / 3)


def factor_share(d: Drivers) -> float:
    loading = FactorAnalysis(1, max_iter=2000).fit(d.aligned).components_
    return float((loading**2).sum() / 3)


def tightness(d: Drivers) -> float:
    total = d.log_sales.var()
    return float(1 - (d.log_sales - d.log.sum(axis=1)).var() / total) if total > 1e-12 else float("nan")


GROUP = GROUPS[5]
STRUCTURE = (
    Measure(
        "shared_covariance", 17, "Shared covariance", GROUP,
        "Σ |σ_ij| / Σ σ_i σ_j over pairs: correlations weighted by the volatility at stake; aligned",
        "bound of Cauchy and Schwarz", shared_covariance,
    ),
    Measure(
        "generalised_variance", 18, "Generalized variance reduction", GROUP,
        "1 - det(correlation matrix); aligned", "Wilks 1932", generalised_variance,
    ),
    Measure(
        "offsetting_errors", 19, "Offsetting-error index", GROUP,
        "1 - Var(e_A + e_R + e_V) / 3, e standardised one-step errors of first-order autoregressions: positive "
        "when errors cancel in the product, negative when they add up",
        "own definition; the paper names the family", offsetting_errors, rises=False,
    ),
    Measure(
        "principal_share", 20, "First principal component share", GROUP,
        "largest eigenvalue of the correlation matrix / 3; aligned", "Jolliffe 2002, ch. 2", principal_share,
    ),
    Measure(
        "factor_share", 21, "Static factor share", GROUP,
        "mean communality of a one-factor model by maximum likelihood; aligned", "Lawley and Maxwell 1971",
        factor_share,
    ),
)  # fmt: skip
DECOMPOSITION = (
    Measure(
        "tightness", 28, "Firm-week decomposition tightness", GROUPS[7],
        "1 - Var(s - a - r - v) / Var(s), all in log(1 + x), trends kept; unbounded below",
        "own definition; the paper names the family", tightness, rises=False,
    ),
)  # fmt: skip
