"""Paired comparison of models over the same firms: common sample, bootstrap intervals and tests."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats

from cbmt_core.arrays import Floats

__all__ = ["MIN_FIRMS", "RESAMPLES", "SEED", "bootstrap_means", "common_sample", "paired_tests"]


RESAMPLES = 10_000
SEED = 20260626
"""Web App. "Full MAE Results and Paired Uncertainty"."""
MIN_FIRMS = 10
"""Minimum number of firms for a test or an interval."""
CHUNK = 500


def common_sample(has: pd.DataFrame, reference: str, coverage: float) -> tuple[list[str], pd.Index[str]]:
    """The models to compare and the firms that all of them have, from a firms × models table of booleans.

    A model must have the share `coverage` of the reference's firms; otherwise it is left out, so that it does not
    shrink the sample of the others.

    Args:
        has: whether a firm (row) has an error of a model (column).
        reference: a column of `has`.
        coverage: share of the reference's firms that a model must have, 0 to 1.
    """
    base = has[has[reference]]
    share = base.mean()
    models = [str(name) for name in has.columns if len(base) and share[name] >= coverage]
    return models, base.index[base[models].all(axis=1)]


def bootstrap_means(
    values: Floats, level: float = 0.95, resamples: int = RESAMPLES, seed: int = SEED
) -> tuple[Floats, Floats]:
    """Percentile interval of the mean of each column when whole rows (firms) are drawn with replacement.

    NaN below `MIN_FIRMS` rows, or when no resamples are asked for.

    Args:
        values: [firms, columns] without NaN.
        level: probability of the interval.
        resamples: number of bootstrap resamples.
        seed: seed of the resamples.
    """
    n, columns = values.shape
    if n < MIN_FIRMS or not resamples:
        return np.full(columns, np.nan), np.full(columns, np.nan)
    rng = np.random.default_rng(seed)
    means = np.empty((resamples, columns))
    for start in range(0, resamples, CHUNK):
        rows = min(CHUNK, resamples - start)
        drawn = rng.integers(0, n, (rows, n)) + n * np.arange(rows)[:, None]
        # With the number of times each firm was drawn, resampling is one matrix product.
        times = np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n)
        means[start : start + rows] = times @ values / n
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def paired_tests(differences: Floats) -> tuple[Floats, Floats]:
    """Two-sided p values of the paired t and the Wilcoxon signed-rank test of each column.

    NaN below `MIN_FIRMS` rows, and for a column without any difference.
    """
    t, wilcoxon = (np.full(differences.shape[1], np.nan) for _ in range(2))
    moves = np.ptp(differences, axis=0) > 0
    if len(differences) >= MIN_FIRMS and moves.any():
        moving = differences[:, moves]
        t[moves] = stats.ttest_1samp(moving, 0).pvalue
        wilcoxon[moves] = stats.wilcoxon(moving, axis=0).pvalue
    return t, wilcoxon
