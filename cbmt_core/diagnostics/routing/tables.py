"""Tables of the routing study; without forecasts of both models they are empty, with a note."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from cbmt_core.diagnostics.data import DiagnosticData, DiagnosticState
from cbmt_core.diagnostics.difficulty.features import SCALE, VOLATILITY
from cbmt_core.diagnostics.routing.panel import RoutingPanel
from cbmt_core.diagnostics.routing.study import NEEDED, RESPLITS, study

__all__ = ["routing_panel", "routing_tables"]

JOINT, SINGLE = "cbmt", "single_task"


def routing_panel(data: DiagnosticData) -> RoutingPanel:
    return RoutingPanel(
        firms=[str(name) for name in data.errors.index],
        industry=[str(name) for name in data.industry],
        measures=data.measures.to_numpy(np.float64),
        log_orders=np.log1p(data.features[SCALE].to_numpy(np.float64)),
        volatility=data.features[VOLATILITY].to_numpy(np.float64),
        joint=np.asarray(data.smape("total_sales", JOINT), dtype=np.float64),
        single=np.asarray(data.smape("total_sales", SINGLE), dtype=np.float64),
    )


def routing_tables(
    data: DiagnosticData, *, resplits: int = RESPLITS, on_split: Callable[[int, int], None] | None = None
) -> tuple[dict[str, pd.DataFrame], DiagnosticState]:
    """The tables `routing_policy` and `routing_choice`, and their row of `diagnostic`."""
    panel = routing_panel(data)
    made = study(panel, resplits=resplits, on_split=on_split)
    firms = int(panel.scored.sum())
    if lacking := data.lacking((JOINT, SINGLE)):
        note = f"needs forecasts by {JOINT} and {SINGLE}; no firm has one by {' or '.join(lacking)}"
    elif firms < NEEDED:
        note = f"rules are learned from at least {NEEDED} firms with both forecasts; there are {firms}"
    else:
        note = f"three rules on the primary split and {resplits} re-splits"
    state = DiagnosticState("routing", firms, NEEDED, not made.choices.empty, note)
    return {"routing_policy": made.policies, "routing_choice": made.choices}, state
