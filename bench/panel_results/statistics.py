"""Differences between two models over firms, correlations and shares, each with a 95 % interval."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from scipy import stats

from cbmt_core.arrays import Floats
from cbmt_core.evaluation.paired import MIN_FIRMS, RESAMPLES, SEED, paired_tests

__all__ = ["PAIRED", "against", "correlation", "explained", "oracle"]

NOTHING = {"value": np.nan, "low": np.nan, "high": np.nan, "p": np.nan}
PAIRED = [
    "firms", "mean", "other_mean", "median", "other_median", "change", "low", "high",
    "win_rate", "win_low", "win_high", "t_p", "wilcoxon_p",
]  # fmt: skip


def against(reference: pd.Series[float], model: pd.Series[float]) -> dict[str, float]:
    """The reference's error against a model's, on the firms both have; empty without any.

    `change` is the reference's mean in percent above (+) or below (-) the model's; its interval and the tests
    are left out below ten firms, as everywhere in the product.
    """
    both = pd.concat([reference, model], axis=1).dropna().to_numpy(float)
    if not len(both):
        return {}
    ours, theirs = both.T
    wins = int((ours < theirs).sum())
    enough = len(both) >= MIN_FIRMS
    share = stats.binomtest(wins, len(both)).proportion_ci(method="wilson")
    low, high = _interval(100 * (_means(ours) / _means(theirs) - 1)) if enough else (np.nan, np.nan)
    t_p, wilcoxon_p = paired_tests((ours - theirs)[:, None])
    values = [
        len(both), ours.mean(), theirs.mean(), np.median(ours), np.median(theirs),
        100 * (ours.mean() / theirs.mean() - 1), low, high,
        wins / len(both), *((share.low, share.high) if enough else (np.nan, np.nan)), t_p[0], wilcoxon_p[0],
    ]  # fmt: skip
    return dict(zip(PAIRED, values, strict=True))


def correlation(x: pd.Series[float], y: pd.Series[float]) -> dict[str, float]:
    """Spearman's; the interval by Fisher's z with the variance of Fieller, Hartley and Pearson (1957)."""
    n = len(x)
    if n < MIN_FIRMS or x.nunique() < 2 or y.nunique() < 2:
        return {**NOTHING, "n": n}
    result = stats.spearmanr(x, y)
    rho = float(np.clip(result.statistic, -0.999999, 0.999999))
    half = 1.96 * np.sqrt(1.06 / (n - 3))
    low, high = np.tanh(np.arctanh(rho) + np.array([-half, half]))
    return {"value": rho, "low": low, "high": high, "p": float(result.pvalue), "n": n}


def explained(predicted: pd.Series[float], actual: pd.Series[float]) -> dict[str, float]:
    """R² of predictions made out of fold, all together; the interval over resampled firms."""
    n = len(actual)
    if n < MIN_FIRMS or actual.nunique() < 2:
        return {**NOTHING, "n": n}
    y, miss = actual.to_numpy(), ((actual - predicted) ** 2).to_numpy()
    spread = _means(y**2) - _means(y) ** 2
    low, high = _interval(1 - _means(miss) / spread)
    return {**NOTHING, "value": 1 - miss.mean() / y.var(), "low": low, "high": high, "n": n}


def oracle(cbmt: pd.Series[float], single: pd.Series[float]) -> dict[str, float]:
    """What always cbmt gains over always single_task, less what choosing firm by firm could add to that."""
    n = len(cbmt)
    if n < MIN_FIRMS:
        return {**NOTHING, "n": n}
    gain = (single - cbmt - (cbmt - np.minimum(cbmt, single))).to_numpy()
    low, high = _interval(_means(gain))
    return {**NOTHING, "value": gain.mean(), "low": low, "high": high, "n": n}


@cache
def _draws(n: int) -> Floats:
    """How often each of n firms is drawn, resample by resample, divided by n."""
    drawn = np.random.default_rng(SEED).integers(0, n, (RESAMPLES, n)) + n * np.arange(RESAMPLES)[:, None]
    return np.bincount(drawn.ravel(), minlength=RESAMPLES * n).reshape(RESAMPLES, n) / n


def _means(values: Floats) -> Floats:
    return _draws(len(values)) @ values


def _interval(values: Floats) -> tuple[float, float]:
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)
