"""Shared by the one-step models: windows, scaling and walk-forward forecasts."""

from cbmt_core.models.sequence.history import History
from cbmt_core.models.sequence.scaling import OUTCOMES, Scaling
from cbmt_core.models.sequence.validation import validation_split, walk_forward_error
from cbmt_core.models.sequence.walk_forward import OneStepModel, walk_forward
from cbmt_core.models.sequence.windows import LOOKBACK, Samples, Sequences, Windows, hide_cohorts

__all__ = [
    "LOOKBACK",
    "OUTCOMES",
    "History",
    "OneStepModel",
    "Samples",
    "Scaling",
    "Sequences",
    "Windows",
    "hide_cohorts",
    "validation_split",
    "walk_forward",
    "walk_forward_error",
]
