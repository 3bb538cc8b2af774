"""`cbmt_plus`: experts and a joint network, weighed by what forecasts from earlier origins taught across firms."""

from cbmt_core.models.plus.inner import INNER_COLUMNS, inner_forecasts
from cbmt_core.models.plus.model import CbmtPlus, FittedPlus
from cbmt_core.models.plus.weights import ExpertWeights, learn_weights

__all__ = [
    "INNER_COLUMNS",
    "CbmtPlus",
    "ExpertWeights",
    "FittedPlus",
    "inner_forecasts",
    "learn_weights",
]
