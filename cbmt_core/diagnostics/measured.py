"""One firm's measures as rows of the tables that the diagnostics across firms read."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from cbmt_core.diagnostics.comovement import historical_controls, measures_of
from cbmt_core.diagnostics.difficulty import features_of
from cbmt_core.panel import FirmPanel

__all__ = ["measure_firm"]


def measure_firm(panel: FirmPanel, washout_sales: float | None) -> dict[str, pd.DataFrame]:
    """Rows of the three tables, from all weeks of `panel` and the sales of the washout."""
    return {
        "comovement_measure": _rows(panel.firm, "measure", measures_of(panel)).assign(
            adjusted=list(measures_of(panel, adjusted=True).values())
        ),
        "difficulty_feature": _rows(panel.firm, "feature", features_of(panel)),
        "firm_history": pd.DataFrame([{"firm": panel.firm, **historical_controls(panel, washout_sales)}]),
    }


def _rows(firm: str, name: str, values: Mapping[str, float]) -> pd.DataFrame:
    return pd.DataFrame({"firm": firm, name: list(values), "value": list(values.values())})
