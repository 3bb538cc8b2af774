"""The value of one firm's customers as rows of `VALUE_TABLES`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from cbmt_core.arrays import Floats
from cbmt_core.compose import DriverDraws
from cbmt_core.panel import FirmPanel
from cbmt_core.schema import TABLES
from cbmt_core.value.ages import value_by_age
from cbmt_core.value.base import base_value
from cbmt_core.value.cohorts import cohort_values
from cbmt_core.value.retention import retention
from cbmt_core.value.spend import COLUMNS, acquisition_return
from cbmt_core.value.terms import ValueTerms

__all__ = ["VALUE_TABLES", "value_tables"]

VALUE_TABLES = (
    "cohort_value",
    "customer_base_value",
    "customer_value",
    "acquisition_return",
    "customer_retention",
)


def value_tables(
    panel: FirmPanel,
    draws: DriverDraws,
    terms: ValueTerms,
    spend: pd.Series | None = None,
    keys: Mapping[str, Any] | None = None,
    first: Floats | None = None,
) -> dict[str, pd.DataFrame]:
    """Rows of `VALUE_TABLES`.

    Args:
        panel: the firm up to the origin.
        draws: of the forecast to plan with.
        spend: acquisition spend by week, where known.
        keys: firm, model and origin, stored in every row.
        first: [N] sales of each cohort's first orders.
    """
    cost = (
        pd.DataFrame(columns=COLUMNS)
        if spend is None
        else acquisition_return(panel, draws.centre, terms, spend)
    )
    frames = {
        "cohort_value": cohort_values(panel, draws, terms),
        "customer_base_value": base_value(panel, draws, terms).assign(
            margin=terms.margin,
            discount_rate=terms.discount_rate,
            horizon_weeks=terms.horizon_weeks,
            tail_years=terms.tail_years,
        ),
        "customer_value": value_by_age(panel, draws.centre, terms, first),
        "acquisition_return": cost,
        "customer_retention": retention(panel),
    }
    return {
        name: frame.assign(**(keys or {})).reindex(columns=TABLES[name].column_names)
        for name, frame in frames.items()
    }
