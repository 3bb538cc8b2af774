"""Validation inside the calibration: hold back its last weeks, walk over them, measure the error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cbmt_core.compose import compose
from cbmt_core.models.contract import PrimitiveForecast
from cbmt_core.panel import FirmPanel

__all__ = ["validation_split", "walk_forward_error"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def validation_split(panel: FirmPanel) -> FirmPanel:
    """The panel without its validation window: the design's weeks, at most a quarter of the panel."""
    held = min(panel.design.validation_weeks, panel.n_weeks // 4)
    return panel.until(panel.weeks[panel.n_weeks - held - 1].astype(object))


def walk_forward_error(panel: FirmPanel, training: FirmPanel, drivers: PrimitiveForecast) -> float:
    """Error of a forecast from `training`'s origin against the weeks `panel` holds after it.

    The mean over acquisition, repeat orders per customer, average order value and total sales, each as
    its weekly absolute error relative to its level, so that no outcome's unit decides.
    """
    later = slice(training.n_weeks, training.n_weeks + drivers.horizon)
    weeks = np.arange(panel.n_weeks)[later]
    actual = _Weekly.of(panel.A[later], panel.S[later], panel.size, panel.birth, panel.R[:, later], weeks)
    hat = compose(training, drivers)
    forecast = _Weekly.of(hat.A, hat.S, hat.size, hat.birth, hat.R, np.arange(drivers.horizon))
    sold = actual.orders > 0
    errors = [
        _relative_error(actual.A, forecast.A),
        _relative_error(actual.ropc, forecast.ropc),
        _relative_error(actual.aov[sold], forecast.aov[sold]),
        _relative_error(actual.S, forecast.S),
    ]
    return float(np.mean(errors))


@dataclass(frozen=True, eq=False)
class _Weekly:
    """The drivers of the whole customer base, week by week."""

    A: Floats
    S: Floats
    orders: Floats
    ropc: Floats
    aov: Floats

    @classmethod
    def of(cls, A: Floats, S: Floats, size: Floats, birth: Ints, R: Floats, weeks: Ints) -> _Weekly:
        customers = size @ (weeks >= birth[:, None])
        repeat = size @ np.nan_to_num(R)
        orders = repeat + size @ np.equal(weeks, birth[:, None])
        return cls(A, S, orders, repeat / np.maximum(customers, 1e-9), S / np.maximum(orders, 1e-9))


def _relative_error(actual: Floats, forecast: Floats) -> float:
    """Sum of absolute errors over sum of actuals; at most 100, also for a firm that stood still."""
    level = max(actual.sum(), 0.01 * forecast.sum(), 1e-9)
    return float(np.abs(forecast - actual).sum() / level)
