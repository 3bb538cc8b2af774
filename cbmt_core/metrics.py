"""Forecast errors: SMAPE and MASE of every outcome at every horizon."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

import numpy as np

from cbmt_core.arrays import Floats
from cbmt_core.compose import RevenueForecast
from cbmt_core.panel import FirmPanel

__all__ = ["FULL", "HORIZONS", "OUTCOMES", "Score", "mase", "score", "smape", "symmetric_errors"]


OUTCOMES = ("acquisition", "ropc", "aov", "cohort_sales", "total_sales")
FULL = "full"
HORIZONS = {"1q": 13, "2q": 26, "3q": 39}
"""Quarters ahead and their weeks; `FULL` stands for all weeks of the forecast."""


@dataclass(frozen=True)
class Score:
    """Errors of one outcome over the first `weeks` weeks after the origin."""

    outcome: str
    horizon: str
    weeks: int
    smape: float
    mase: float


def symmetric_errors(actual: Floats, forecast: Floats) -> Floats:
    """The terms of SMAPE: |F - X| / ((|X| + |F|) / 2) of each entry; 0/0 counts as 0 (section "Study Design")."""
    size = (np.abs(actual) + np.abs(forecast)) / 2
    errors: Floats = np.divide(np.abs(forecast - actual), size, out=np.zeros_like(size), where=size > 0)
    return errors


def smape(actual: Floats, forecast: Floats, weight: Floats | None = None) -> float:
    """100 times the mean of `symmetric_errors`.

    Entries whose actual value is NaN are unknown and are left out; `weight`
    (broadcast) makes the mean a weighted one. NaN when nothing is known.

    Args:
        actual: observed values; NaN where unknown.
        forecast: forecast values, of the same shape.
        weight: weights that broadcast to that shape; equal by default.
    """
    weights = _weights(actual, weight)
    if weights.sum() == 0:
        return float("nan")
    known = weights > 0
    return float(100 * np.average(symmetric_errors(actual[known], forecast[known]), weights=weights[known]))


def mase(actual: Floats, forecast: Floats, weight: Floats | None = None) -> float:
    """Mean |F - X| over the mean |X_t - X_(t-1)| of the same weeks (Web App. "MASE Definition").

    Rows of a matrix are series of their own: errors and naive steps are averaged over all rows before the division,
    so that a cohort with constant values does not divide by zero. Across an unknown (NaN) week the naive forecast is
    the last known value. NaN when the scale is unknown, or zero while the error is not.

    Args:
        actual: [weeks] or [series, weeks] observed values; NaN where unknown.
        forecast: forecast values, of the same shape.
        weight: weights that broadcast to that shape; equal by default.
    """
    rows, guesses = np.atleast_2d(actual), np.atleast_2d(forecast)
    weights = _weights(rows, weight)
    if weights.sum() == 0:
        return float("nan")
    known = weights > 0
    error = np.average(np.abs(guesses - rows)[known], weights=weights[known])
    previous = _last_known(rows)
    step = np.abs(rows - previous)
    stepped = known & ~np.isnan(previous)
    if not stepped.any():
        return float("nan")
    scale = np.average(step[stepped], weights=weights[stepped])
    if scale == 0:
        return 0.0 if error == 0 else float("nan")
    return float(error / scale)


def score(panel: FirmPanel, forecast: RevenueForecast, origin: date) -> list[Score]:
    """Score a forecast made at `origin` against a panel that holds the weeks after it.

    ROPC and AOV are weighted by cohort size (section "Why Joint Customer-Base Forecasting Helps", note to the family
    table), AOV is scored where there were orders. Cohort outcomes are scored over the cohorts that exist in the
    panel, those born after the origin included; a forecast cohort without customers shows in acquisition and total
    sales. Horizons longer than the forecast or the panel are left out. A forecast of sales alone is scored on total
    sales alone.

    Args:
        panel: panel that goes on after the origin.
        forecast: forecast of the weeks after the origin.
        origin: Sunday of the last week before the forecast.
    """
    start = int(np.searchsorted(panel.weeks, np.datetime64(origin, "D"), side="right"))
    if start == panel.n_weeks or forecast.weeks[0] != panel.weeks[start]:
        raise ValueError(
            f"the panel of {panel.firm!r} must hold the forecast's first week, {forecast.weeks[0]}"
        )
    full = min(len(forecast.weeks), panel.n_weeks - start)
    known = int(np.searchsorted(panel.birth, start))
    reach = int(np.searchsorted(panel.birth, start + full))
    # Row of the forecast for each cohort of the panel: known ones keep theirs, later ones have their week's.
    row = np.concatenate([np.arange(known), known + panel.birth[known:reach] - start])
    after = slice(start, start + full)
    size = panel.size[:reach, None]
    outcomes: dict[str, tuple[Floats, Floats, Floats | None]] = {
        "acquisition": (panel.A[after], forecast.A[:full], None),
        "ropc": (panel.R[:reach, after], forecast.R[row, :full], size),
        "aov": (panel.V[:reach, after], forecast.V[row, :full], size),
        "cohort_sales": (panel.Y[:reach, after], forecast.Y[row, :full], None),
        "total_sales": (panel.S[after], forecast.S[:full], None),
    }
    if not forecast.has_drivers:
        outcomes = {"total_sales": outcomes["total_sales"]}
    horizons = {name: weeks for name, weeks in HORIZONS.items() if weeks <= full} | {FULL: full}
    scores = []
    for outcome, (x, f, w) in outcomes.items():
        for name, weeks in horizons.items():
            weight = None if w is None else np.broadcast_to(w, x.shape)[..., :weeks]
            cut = x[..., :weeks], f[..., :weeks], weight
            scores.append(Score(outcome, name, weeks, smape(*cut), mase(*cut)))
    return scores


def _weights(actual: Floats, weight: Floats | None) -> Floats:
    return np.where(np.isnan(actual), 0.0, 1.0 if weight is None else weight)


def _last_known(rows: Floats) -> Floats:
    """The last known value before each entry of a row; NaN where there is none."""
    position = np.where(np.isnan(rows), -1, np.arange(rows.shape[1]))
    latest = np.maximum.accumulate(position, axis=1)
    before = np.concatenate([np.full((len(rows), 1), -1), latest[:, :-1]], axis=1)
    values = np.take_along_axis(rows, np.maximum(before, 0), axis=1)
    return np.where(before >= 0, values, np.nan)
