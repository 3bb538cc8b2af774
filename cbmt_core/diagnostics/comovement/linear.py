"""Measures of co-movement in the same week: linear, rank and partial correlation."""

from __future__ import annotations

import numpy as np
from scipy import stats

from cbmt_core.diagnostics.comovement.drivers import PAIRS, Drivers
from cbmt_core.diagnostics.comovement.measure import GROUPS, Measure
from cbmt_core.diagnostics.comovement.series import Floats

__all__ = ["MEASURES"]


def _pairs(matrix: Floats) -> Floats:
    """Entries of the three pairs, in absolute value."""
    return np.asarray([abs(matrix[i, j]) for i, j in PAIRS])


def pearson(d: Drivers) -> float:
    return float(_pairs(np.asarray(np.corrcoef(d.z.T))).mean())


def pearson_max(d: Drivers) -> float:
    return float(_pairs(np.asarray(np.corrcoef(d.z.T))).max())


def spearman(d: Drivers) -> float:
    return float(_pairs(stats.spearmanr(d.z).statistic).mean())


def partial(d: Drivers) -> float:
    precision = np.linalg.pinv(np.corrcoef(d.z.T), hermitian=True)
    scale = np.sqrt(np.diag(precision))
    return float(_pairs(precision / np.outer(scale, scale)).mean())


GROUP = GROUPS[0]
MEASURES = (
    Measure(
        "pearson", 1, "Pairwise Pearson correlation", GROUP, "mean |r| over pairs", "Pearson 1896", pearson
    ),
    Measure(
        "pearson_max", 1, "Pairwise Pearson correlation", GROUP,
        "largest |r| of the pairs", "Pearson 1896", pearson_max,
    ),
    Measure("spearman", 2, "Spearman rank correlation", GROUP, "mean |ρ_S|", "Spearman 1904", spearman),
    Measure(
        "partial", 3, "Partial correlation", GROUP,
        "mean |p_ij / √(p_ii p_jj)|, P the inverse of the correlation matrix: each pair given the third",
        "Whittaker 1990, ch. 5", partial,
    ),
)  # fmt: skip
