"""Draws as rows of the table `forecast_draw`, and back."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd

from cbmt_core.compose import DrawnForecast, DriverDraws, RevenueForecast

__all__ = ["draw_rows", "read_draws", "revenue_from_rows", "sales_from_rows"]


def draw_rows(draws: DriverDraws | None, drawn: DrawnForecast) -> pd.DataFrame:
    """Rows of the table `forecast_draw` without its keys; of a forecast of sales alone, without `draws`."""
    K, H = drawn.sales.shape
    return pd.DataFrame(
        {
            "draw": np.repeat(np.arange(1, K + 1), H),
            "week": np.tile(drawn.weeks, K),
            "acquired": drawn.acquired.ravel(),
            "repeat": draws.repeat_existing.ravel() if draws else np.nan,
            "order_value": draws.order_value.ravel() if draws else np.nan,
            "orders": drawn.orders.ravel(),
            "sales": drawn.sales.ravel(),
            "existing_orders": drawn.base_orders.ravel(),
            "existing_sales": drawn.base_sales.ravel(),
        }
    )


def read_draws(forecast_draw: pd.DataFrame, forecast_cohort_week: pd.DataFrame, origin: date) -> DriverDraws:
    """The draws of one firm, model and origin, as they were made.

    Args:
        forecast_draw: its rows.
        forecast_cohort_week: the rows of the same forecast.
        origin: last week that the forecast has seen.
    """
    centre = revenue_from_rows(forecast_cohort_week, origin)
    rows = forecast_draw.sort_values(["draw", "week"])
    shape = (-1, len(centre.weeks))
    acquired, repeat, value = (
        rows[name].to_numpy(float).reshape(shape) for name in ("acquired", "repeat", "order_value")
    )
    return DriverDraws(
        centre=centre, acquired=acquired, repeat_existing=repeat, repeat_new=repeat, order_value=value
    )


def sales_from_rows(forecast_week: pd.DataFrame) -> RevenueForecast:
    """The forecast of sales alone of one firm, model and origin from its rows of the table `forecast_week`."""
    rows = forecast_week.sort_values("week")
    H = len(rows)
    unknown = np.full((H, H), np.nan)
    return RevenueForecast(
        weeks=rows["week"].to_numpy("datetime64[D]"),
        A=unknown[0],
        R=unknown,
        V=unknown,
        size=unknown[0],
        birth=np.arange(H),
        Y=unknown,
        S=rows["sales"].to_numpy(float),
    )


def revenue_from_rows(forecast_cohort_week: pd.DataFrame, origin: date) -> RevenueForecast:
    """The forecast of one firm, model and origin from its rows of the table `forecast_cohort_week`."""
    cohort = forecast_cohort_week["cohort"].to_numpy("datetime64[D]")
    week = forecast_cohort_week["week"].to_numpy("datetime64[D]")
    weeks = np.unique(week)
    first = np.datetime64(origin, "D") + 7
    # A forecast week without new customers gets an empty cohort, so that row numbers match weeks.
    born = np.union1d(np.unique(cohort[cohort < first]), weeks)
    row, column = np.searchsorted(born, cohort), np.searchsorted(weeks, week)
    cells = {}
    for name in ("ropc", "aov", "sales"):
        values = np.full((len(born), len(weeks)), np.nan)
        values[row, column] = forecast_cohort_week[name].to_numpy(float)
        cells[name] = values
    size = np.zeros(len(born))
    size[row] = forecast_cohort_week["cohort_size"].to_numpy(float)
    return RevenueForecast(
        weeks=weeks,
        A=size[-len(weeks) :],
        R=cells["ropc"],
        V=cells["aov"],
        size=size,
        birth=(born - first).astype(int) // 7,
        Y=cells["sales"],
        S=np.nansum(cells["sales"], axis=0),
    )
