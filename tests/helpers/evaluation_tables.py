"""Simulated firms with their tables and forecasts in a DuckDB connection."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np
import pandas as pd

from cbmt_core.forecasting import ModelRun, forecast_tables, run_models
from cbmt_core.models.contract import PrimitiveForecast
from cbmt_core.panel import LEFT_CENSORED, FirmPanel
from cbmt_core.schema import TABLES

__all__ = ["cohort_week_of", "fill", "forecasts", "perturbed"]


def cohort_week_of(panel: FirmPanel) -> pd.DataFrame:
    """A panel as rows of `cohort_week`; money is rounded to the four places the table keeps."""
    cohort, week = np.nonzero(panel.born)
    size, birth = panel.size[cohort], panel.birth[cohort]
    initial = np.where(birth == week, size, 0)
    repeat = np.rint(panel.R[cohort, week] * size)
    orders = initial + repeat
    sales = panel.Y[cohort, week].round(4)
    initial_sales = np.where(orders > 0, sales * initial / np.maximum(orders, 1), 0).round(4)
    return pd.DataFrame(
        {
            "firm": panel.firm,
            "cohort": panel.weeks[0] + 7 * birth,
            "week": panel.weeks[week],
            "left_censored": birth == LEFT_CENSORED,
            "tenure": week - birth,
            "cohort_size": size,
            "orders": orders,
            "initial_orders": initial,
            "repeat_orders": repeat,
            "sales": sales,
            "initial_sales": initial_sales,
            "repeat_sales": sales - initial_sales,
            "active_customers": np.minimum(orders, size),
            "ropc": repeat / size,
            "aov": np.divide(sales, orders, out=np.full(len(sales), np.nan), where=orders > 0),
        }
    )


def perturbed(panel: FirmPanel, horizon: int, noise: float, seed: int) -> PrimitiveForecast:
    """A made-up forecast after the panel's origin: last year's level with noise. No model is needed."""
    rng = np.random.default_rng(seed)
    level_r, level_v = np.nanmean(panel.R[:, -26:]), np.nanmean(panel.V[:, -26:])
    shape = (panel.n_cohorts + horizon, horizon)
    born = np.arange(horizon) >= np.concatenate([np.full(panel.n_cohorts, -1), np.arange(horizon)])[:, None]

    def noisy(level, size):
        return level * np.exp(noise * rng.standard_normal(size))

    return PrimitiveForecast(
        A=noisy(panel.A[-26:].mean(), horizon),
        R=np.where(born, noisy(level_r, shape), np.nan),
        V=np.where(born, noisy(level_v, shape), np.nan),
    )


def forecasts(panel: FirmPanel, models: Sequence[str], horizon: int | None = None) -> list[ModelRun]:
    design = panel.design
    return run_models(panel, models, design.origin, horizon or design.holdout_weeks, seed=1)


def fill(con: duckdb.DuckDBPyConnection, panels: Sequence[FirmPanel], runs: Sequence[ModelRun]) -> None:
    """Make the tables `cohort_week`, `firm_week`, `firm` and those of the forecasts from panels and runs."""
    frames = {"cohort_week": pd.concat([cohort_week_of(panel) for panel in panels]), **forecast_tables(runs)}
    for name, frame in frames.items():
        con.register("rows", frame)
        con.execute(f"CREATE OR REPLACE TABLE {name} AS SELECT {TABLES[name].select()} FROM rows")
        con.unregister("rows")
    con.execute("""
        CREATE OR REPLACE TABLE firm_week AS SELECT firm, week, sum(initial_orders) AS acquired,
            sum(orders) AS orders, sum(repeat_orders) AS repeat_orders, sum(sales) AS sales,
            sum(active_customers) AS active_customers, sum(cohort_size) AS cumulative_customers,
            sum(repeat_orders) / sum(cohort_size) AS ropc,
            CAST(sum(sales) AS DOUBLE) / nullif(sum(orders), 0) AS aov
        FROM cohort_week GROUP BY ALL""")
    con.execute("""
        CREATE OR REPLACE TABLE firm AS SELECT DISTINCT firm, CAST(NULL AS VARCHAR) AS segment,
            'Industry ' || (hash(firm) % 2) AS industry, 'USD' AS currency FROM cohort_week""")
