"""The walk forward: one-step forecasts fed back week by week, one code path for every one-step model."""

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
    """Anything that forecasts the next week from windows: trees, a joint network, three networks."""

    def predict(self, windows: Windows) -> npt.NDArray[np.floating[Any]]:
        """[B, 4] scaled forecasts of A, R, V, S in each sample's target week.

        A model without a sales output may return anything finite for S: it only re-enters its own windows.
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

    Each week every cohort born so far, the week's own new cohort included, is forecast from its
    window; week-level forecasts are averaged over these samples; the result enters the windows of the
    following weeks. Cohort sizes and revenue are composed elsewhere, from what is returned here.
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
