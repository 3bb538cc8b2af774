"""The SQL relations that an evaluation reads: tables of the published file, or Parquet files of the lake."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import pandas as pd

__all__ = ["Relations", "whole_firms"]


@dataclass(frozen=True)
class Relations:
    """SQL text for each relation; the defaults are the names in the published file."""

    firm: str = "firm"
    firm_week: str = "firm_week"
    cohort_week: str = "cohort_week"
    model_fit: str = "model_fit"
    forecast_week: str = "forecast_week"
    forecast_cohort_week: str = "forecast_cohort_week"
    forecast_spread: str = "forecast_spread"
    forecast_band: str = "forecast_band"


def whole_firms(con: duckdb.DuckDBPyConnection, relations: Relations) -> pd.DataFrame:
    """Name, industry and currency of each firm. Segments are left out, because their sales are in their firm's."""
    return con.execute(
        f"SELECT firm, industry, currency FROM {relations.firm} WHERE segment IS NULL ORDER BY firm"
    ).df()
