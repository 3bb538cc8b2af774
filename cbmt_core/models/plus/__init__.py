"""`cbmt_plus`: cohorts age as in `cohort_glm`; the weekly drivers are Gaussian processes with priors learned from
all firms."""

from cbmt_core.models.plus.model import CbmtPlus, FittedPlus
from cbmt_core.models.plus.prior import MOST_FIRMS
from cbmt_core.models.plus.priors import PathPriors, is_clear, learn_priors
from cbmt_core.models.plus.series import SERIES_COLUMNS, weekly_series

__all__ = [
    "MOST_FIRMS",
    "SERIES_COLUMNS",
    "CbmtPlus",
    "FittedPlus",
    "PathPriors",
    "is_clear",
    "learn_priors",
    "weekly_series",
]
