"""Do the aligned drivers depend on each other in nonlinear or extreme ways?"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
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


def mutual_information(d: Drivers) -> float:
    x = d.aligned
    nats = [
        mutual_info_regression(x[:, [i]], x[:, j], n_neighbors=NEIGHBOURS, random_state=0)[0]
        for i, j in PAIRS
    ]
    return float(np.mean(np.sqrt(1 - np.exp(-2 * np.array(nats)))))


def distance(d: Drivers) -> float:
    return float(np.mean([distance_correlation(d.aligned[:, i], d.aligned[:, j]) for i, j in PAIRS]))


def kernel(d: Drivers) -> float:
    grams = [_centred_gram(d.aligned[:, [k]]) for k in range(3)]
    unit = [g / np.sqrt((g**2).sum()) for g in grams]
    return float(np.mean([(unit[i] * unit[j]).sum() for i, j in PAIRS]))


def _centred_gram(x: Floats) -> Floats:
    width = float(np.median(pdist(x))) or 1.0
    return np.asarray(KernelCenterer().fit_transform(rbf_kernel(x, gamma=1 / (2 * width**2))))


def co_exceedance(beyond: npt.NDArray[np.bool_]) -> float:
    both = [(beyond[:, i] & beyond[:, j]).sum() for i, j in PAIRS]
    either = [max(beyond[:, i].sum(), beyond[:, j].sum(), 1) for i, j in PAIRS]
    return float(np.mean(np.divide(both, either)))


GROUP = GROUPS[3]
MEASURES = (
    Measure(
        "mutual_information", 9, "Mutual information", GROUP,
        f"mean over pairs of √(1 - exp(-2 I)), I by {NEIGHBOURS} nearest neighbours; aligned",
        "Kraskov et al. 2004; scale of Linfoot 1957", mutual_information,
    ),
    Measure(
        "distance_correlation", 10, "Distance correlation", GROUP,
        "mean over pairs of dCor; aligned", "Székely et al. 2007", distance,
    ),
    Measure(
        "kernel_dependence", 11, "Kernel dependence", GROUP,
        "mean over pairs of HSIC(x, y) / √(HSIC(x, x) HSIC(y, y)), Gaussian kernels of median width; aligned",
        "Gretton et al. 2005; normalised as Cortes et al. 2012", kernel,
    ),
    Measure(
        "tail_upper", 12, "Tail co-exceedance", GROUP,
        f"P(both in the upper {TAIL:.0%}) / {TAIL}, mean over pairs; aligned", "Coles et al. 1999, χ(u)",
        lambda d: co_exceedance(d.aligned > np.quantile(d.aligned, 1 - TAIL, axis=0)),
    ),
    Measure(
        "tail_lower", 12, "Tail co-exceedance", GROUP,
        f"P(both in the lower {TAIL:.0%}) / {TAIL}, mean over pairs; aligned", "Coles et al. 1999, χ(u)",
        lambda d: co_exceedance(d.aligned < np.quantile(d.aligned, TAIL, axis=0)),
    ),
)  # fmt: skip
