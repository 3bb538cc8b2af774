"""`cbmt_plus`: cohorts age as in `cohort_glm`; the weekly drivers are Gaussian processes under priors of all firms."""

from cbmt_core.models.plus.model import CbmtPlus, FittedPlus
from cbmt_core.models.plus.priors import PathPriors, learn_priors
from cbmt_core.models.plus.series import SERIES_COLUMNS, weekly_series

__all__ = ["SERIES_COLUMNS", "CbmtPlus", "FittedPlus", "PathPriors", "learn_priors", "weekly_series"]
