"""Measures of prediction: whether past values of one driver help to predict another."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_predict
from statsmodels.tsa.api import VAR

from cbmt_core.arrays import Ints
from cbmt_core.diagnostics.comovement.drivers import DIRECTIONS, Drivers
from cbmt_core.diagnostics.comovement.measure import GROUPS, Measure
from cbmt_core.diagnostics.comovement.series import Floats

__all__ = ["MEASURES"]

LAGS = 4
VAR_LAGS = 2
AHEAD = 8
BLOCKS = 5
LEVELS = 3
STILL = 1e-9
"""A standardised driver that moves by less stands still: what is left is rounding."""


def _past(x: Floats) -> Floats:
    """[T - LAGS, LAGS k] the last values of every column, the latest first."""
    return np.hstack([x[LAGS - k : len(x) - k] for k in range(1, LAGS + 1)])


def incremental(d: Drivers) -> float:
    gains = []
    for j in range(3):
        y = d.z[LAGS:, j]
        own, everyone = (
            ((y - cross_val_predict(LinearRegression(), past, y, cv=KFold(BLOCKS))) ** 2).sum()
            for past in (_past(d.z[:, [j]]), _past(d.z))
        )
        gains.append(max(0.0, 1 - everyone / own))
    return float(np.mean(gains))


def granger(d: Drivers) -> float:
    gains = []
    for i, j in DIRECTIONS:
        y, own = d.z[LAGS:, j], _past(d.z[:, [j]])
        gains.append(np.log(_unexplained(own, y) / _unexplained(np.hstack([own, _past(d.z[:, [i]])]), y)))
    return float(np.mean(gains))


def _unexplained(X: Floats, y: Floats) -> float:
    error = y - LinearRegression().fit(X, y).predict(X)
    return max(float(error @ error), 1e-12)


def transfer_entropy(d: Drivers) -> float:
    change = np.diff(d.z, axis=0)
    cuts = np.quantile(change, np.arange(1, LEVELS) / LEVELS, axis=0)
    symbol = (change[:, :, None] > cuts.T[None]).sum(axis=2)
    return float(np.mean([_transfer(symbol[:, i], symbol[:, j]) for i, j in DIRECTIONS]))


def _transfer(x: Ints, y: Ints) -> float:
    counts = np.zeros((LEVELS, LEVELS, LEVELS))
    np.add.at(counts, (y[1:], y[:-1], x[:-1]), 1)
    own = counts.sum(axis=2)
    return _entropy(own) - _entropy(own.sum(axis=0)) - _entropy(counts) + _entropy(counts.sum(axis=0))


def _entropy(counts: Floats) -> float:
    """In nats, with the correction of Miller (1955) for few observations."""
    seen = counts[counts > 0] / counts.sum()
    return float(-(seen * np.log(seen)).sum() + (len(seen) - 1) / (2 * counts.sum()))


def spillover(d: Drivers) -> float:
    past = [d.z[VAR_LAGS - k : len(d.z) - k] for k in range(1, VAR_LAGS + 1)]
    # A driver that moves in the first or the last weeks alone has no past to regress on.
    if min(np.ptp(x, axis=0).min() for x in past) < STILL:
        return float("nan")
    fit = VAR(d.z).fit(VAR_LAGS)
    sigma = np.asarray(fit.sigma_u)
    # θ_ij = Σ_h (Φ_h Σ)_ij² / σ_jj; a row's common denominator cancels when rows are made to add to one.
    shocks = ((fit.ma_rep(AHEAD - 1) @ sigma) ** 2).sum(axis=0) / np.diag(sigma)
    return float(1 - np.trace(shocks / shocks.sum(axis=1, keepdims=True)) / 3)


GROUP = GROUPS[4]
MEASURES = (
    Measure(
        "incremental_prediction", 13, "Incremental predictive coupling", GROUP,
        f"1 - squared error of a regression on {LAGS} lags of all drivers / on {LAGS} own lags, forecast for "
        f"{BLOCKS} left-out blocks of weeks, no less than 0; mean over drivers",
        "Clark and McCracken 2001, out-of-sample causality", incremental,
    ),
    Measure(
        "granger", 14, "Granger causality index", GROUP,
        f"mean over the six directions of ln(σ²(y | own {LAGS} lags) / σ²(y | own and x's {LAGS} lags))",
        "Geweke 1982", granger,
    ),
    Measure(
        "transfer_entropy", 15, "Transfer entropy", GROUP,
        "mean over the six directions of H(y_t | y_(t-1)) - H(y_t | y_(t-1), x_(t-1)), weekly changes in "
        "thirds, bias-corrected", "Schreiber 2000; Miller 1955", transfer_entropy,
    ),
    Measure(
        "spillover", 16, "Forecast-error variance decomposition", GROUP,
        f"share of the {AHEAD}-week error variance that comes from the other drivers' shocks; generalised "
        f"decomposition of a VAR({VAR_LAGS})", "Diebold and Yilmaz 2012", spillover,
    ),
)  # fmt: skip
