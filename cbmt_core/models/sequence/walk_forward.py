"""Walk-forward forecasts: one-step forecasts fed back week by week, the same code for every one-step model."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from cbmt_core.models.contract import PrimitiveForecast
from cbmt_core.models.sequence.history import History
from cbmt_core.models.sequence.scaling import OUTCOMES, Scaling
from cbmt_core.models.sequence.windows import LOOKBACK, Sequences, Windows

__all__ = ["OneStepModel", "walk_forward"]


class OneStepModel(Protocol):
    """A model that forecasts the next week from windows: trees, a joint network, three networks."""

    def predict(self, windows: Windows) -> npt.NDArray[np.floating[Any]]:
        """[B, 4] scaled forecasts of A, R, V, S in each sample's target week.

        A model without a sales output may return any finite S, which is only used in its own later windows.
        """
        ...


def walk_forward(
    model: OneStepModel,
    history: History,
    scaling: Scaling,
    horizon: int,
    *,
    known_cohorts: int | None = None,
) -> PrimitiveForecast:
    """Forecast `horizon` weeks (Web App. "Walk-Forward Inference Algorithm", Algorithm 1).

    In each week every cohort born so far, the week's new cohort included, is forecast from its window. Week-level
    forecasts are averaged over the cohorts, and the result enters the windows of the following weeks. `compose` makes
    cohort sizes and revenue from the returned drivers.

    Args:
        model: a fitted one-step model.
        history: what is known up to the origin.
        scaling: the scaling that the model was fitted with.
        horizon: weeks to forecast.
        known_cohorts: number of cohorts with an id of their own; all of the history by default.
    """
    sequences = Sequences.of(history.tail(LOOKBACK), scaling, horizon=horizon, known_cohorts=known_cohorts)
    N, T = history.n_cohorts, history.n_weeks
    A = np.zeros(horizon)
    R = np.full((N + horizon, horizon), np.nan)
    V = np.full((N + horizon, horizon), np.nan)
    for h in range(horizon):
        rows = np.arange(N + h + 1)
        scaled = model.predict(sequences.windows(rows, np.full(len(rows), T + h)))
        a, r, v, s = (scaled[:, k] for k in range(len(OUTCOMES)))
        A[h] = scaling.unscale("A", a.mean())
        R[rows, h] = scaling.unscale("R", r)
        V[rows, h] = scaling.unscale("V", v)
        sequences.write(
            T + h,
            A=float(scaling.scale("A", A[h])),
            S=float(scaling.scale("S", scaling.unscale("S", s.mean()))),
            R=scaling.scale("R", R[rows, h]).astype(np.float32),
            V=scaling.scale("V", V[rows, h]).astype(np.float32),
        )
    return PrimitiveForecast(A, R, V)
