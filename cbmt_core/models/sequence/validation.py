"""Validation inside the calibration: hold back its last weeks, forecast them, measure the error."""

from __future__ import annotations

import numpy as np

from cbmt_core.compose import BadForecast, compose
from cbmt_core.metrics import FULL, score
from cbmt_core.models.contract import PrimitiveForecast
from cbmt_core.panel import FirmPanel

__all__ = ["validation_split", "walk_forward_error"]


def validation_split(panel: FirmPanel) -> FirmPanel:
    """The panel without its validation window: the design's weeks, or a quarter of the panel if less or none."""
    quarter = panel.n_weeks // 4
    held = min(panel.design.validation_weeks or quarter, quarter)
    return panel.until(panel.weeks[panel.n_weeks - held - 1].astype(object))


def walk_forward_error(
    panel: FirmPanel, training: FirmPanel, drivers: PrimitiveForecast, outcome: str | None = None
) -> float:
    """SMAPE of a forecast from `training`'s origin on the later weeks of `panel`: of one outcome that
    `cbmt_core.metrics` scores, or the mean over the five. 0 where nothing can be scored, such as AOV without orders;
    infinite for a forecast that is not finite."""
    try:
        composed = compose(training, drivers)
    except BadForecast:
        return np.inf
    scores = score(panel, composed, training.origin)
    errors = {s.outcome: s.smape for s in scores if s.horizon == FULL}
    judged = [errors[outcome]] if outcome else list(errors.values())
    return float(np.mean([error for error in judged if not np.isnan(error)] or [0.0]))
