"""The battery of co-movement measures: 34 columns in 28 families, and their values for a firm."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd

from cbmt_core.diagnostics.comovement import (
    cohort_level,
    lead_lag,
    linear,
    nonlinear,
    predictive,
    regimes,
    structure,
)
from cbmt_core.diagnostics.comovement.drivers import Drivers, drivers_of
from cbmt_core.diagnostics.comovement.measure import Measure
from cbmt_core.panel import FirmPanel

__all__ = ["MEASURES", "measures_of", "measures_table"]

MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        *linear.MEASURES,
        *lead_lag.MEASURES,
        *cohort_level.COHORT,
        *nonlinear.MEASURES,
        *predictive.MEASURES,
        *structure.STRUCTURE,
        *regimes.MEASURES,
        *cohort_level.PANEL,
        *structure.DECOMPOSITION,
    )
}
"""By column, in the order of the paper's table (Web App. "Measuring Cross-Metric Co-Movement")."""


def measures_of(panel: FirmPanel, *, adjusted: bool = False) -> dict[str, float]:
    """Every measure of one firm, from all weeks of `panel`; pass `panel.until(origin)`.

    NaN where a measure is undefined; all are when a driver never moves or weeks are too few. The drivers are
    transformed by log(1 + x), as the paper prints it; `adjusted` ones are also freed of slow movement and
    holidays: see `drivers.py` for the reason.
    """
    return _values(drivers_of(panel, adjust=adjusted))


def _values(drivers: Drivers) -> dict[str, float]:
    if not drivers.defined:
        return dict.fromkeys(MEASURES, float("nan"))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return {name: _value(measure, drivers) for name, measure in MEASURES.items()}


def _value(measure: Measure, drivers: Drivers) -> float:
    try:
        value = measure.compute(drivers)
    except np.linalg.LinAlgError:  # drivers that are copies of each other
        return float("nan")
    return value if np.isfinite(value) else float("nan")


def measures_table() -> pd.DataFrame:
    """The registry as a table: group, family, column, formula, reference."""
    rows = [(m.group, m.number, m.family, m.name, m.formula, m.reference) for m in MEASURES.values()]
    return pd.DataFrame(rows, columns=["group", "number", "family", "measure", "formula", "reference"])
