"""Measures of nonlinear and extreme dependence between drivers, in the same week or aligned."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import pdist
from sklearn.feature_selection import mutual_info_regression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import KernelCenterer
from statsmodels.stats.dist_dependence_measures import distance_correlation

from cbmt_core.diagnostics.comovement.drivers import PAIRS, Drivers
from cbmt_core.diagnostics.comovement.measure import GROUPS, Measure
from cbmt_core.diagnostics.comovement.series import Floats

__all__ = ["MEASURES"]

TAIL = 0.2
"""Share of weeks that count as extreme: 118 weeks leave 24."""
NEIGHBOURS = 5


def strongest(d: Drivers, dependence: Callable[[Floats, Floats], float]) -> float:
    """Mean over pairs of the larger of the dependence in the same week and that of the aligned series:
    the alignment maximises linear correlation, so nonlinear dependence may be strongest in the same week."""
    return float(np.mean([max(dependence(x[:, i], x[:, j]) for x in (d.z, d.aligned)) for i, j in PAIRS]))


def mutual_information(x: Floats, y: Floats) -> float:
    nats = mutual_info_regression(x[:, None], y, n_neighbors=NEIGHBOURS, random_state=0)[0]
    return float(np.sqrt(1 - np.exp(-2 * nats)))


def distance(x: Floats, y: Floats) -> float:
    return float(distance_correlation(x, y))


def kernel(x: Floats, y: Floats) -> float:
    g, h = _centred_gram(x[:, None]), _centred_gram(y[:, None])
    return float((g * h).sum() / np.sqrt((g**2).sum() * (h**2).sum()))


def _centred_gram(x: Floats) -> Floats:
    width = float(np.median(pdist(x))) or 1.0
    return np.asarray(KernelCenterer().fit_transform(rbf_kernel(x, gamma=1 / (2 * width**2))))


def upper_tail(x: Floats, y: Floats) -> float:
    beyond, also = x > np.quantile(x, 1 - TAIL), y > np.quantile(y, 1 - TAIL)
    return float((beyond & also).sum() / max(beyond.sum(), also.sum(), 1))


GROUP = GROUPS[3]
MEASURES = (
    Measure(
        "mutual_information", 9, "Mutual information", GROUP,
        f"mean over pairs of √(1 - exp(-2 I)), I by {NEIGHBOURS} nearest neighbours; same week or aligned",
        "Kraskov et al. 2004; scale of Linfoot 1957", lambda d: strongest(d, mutual_information),
    ),
    Measure(
        "distance_correlation", 10, "Distance correlation", GROUP,
        "mean over pairs of dCor; same week or aligned", "Székely et al. 2007", lambda d: strongest(d, distance),
    ),
    Measure(
        "kernel_dependence", 11, "Kernel dependence", GROUP,
        "mean over pairs of HSIC(x, y) / √(HSIC(x, x) HSIC(y, y)), Gaussian kernels of median width; "
        "same week or aligned",
        "Gretton et al. 2005; normalised as Cortes et al. 2012", lambda d: strongest(d, kernel),
    ),
    Measure(
        "tail_upper", 12, "Tail co-exceedance", GROUP,
        f"P(both in the upper {TAIL:.0%}) / {TAIL}, mean over pairs; same week or aligned",
        "Coles et al. 1999, χ(u)",
        lambda d: strongest(d, upper_tail),
    ),
    Measure(
        "tail_lower", 12, "Tail co-exceedance", GROUP,
        f"P(both in the lower {TAIL:.0%}) / {TAIL}, mean over pairs; same week or aligned",
        "Coles et al. 1999, χ(u)",
        lambda d: strongest(d, lambda x, y: upper_tail(-x, -y)),
    ),
)  # fmt: skip
