"""Cumulative sales per customer at fixed ages, by quarter of acquisition: observed, then forecast."""

from __future__ import annotations

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd

from cbmt_core.arrays import Floats, Ints
from cbmt_core.compose import RevenueForecast
from cbmt_core.panel import LEFT_CENSORED, FirmPanel
from cbmt_core.value.terms import ValueTerms

__all__ = ["AGES", "cumulative_sales", "first_sales", "quarter_of", "value_by_age"]


AGES = {0: 1, 90: 13, 180: 26, 360: 52, 720: 104}
"""Days since the first order -> weeks counted, that of the first order included; age 0 is the first order alone."""


def first_sales(con: duckdb.DuckDBPyConnection, cohort_week: str, panel: FirmPanel) -> Floats:
    """[N] sales of each cohort's first orders, from the relation `cohort_week`."""
    rows = con.execute(
        f"SELECT cohort, CAST(sum(initial_sales) AS DOUBLE) FROM {cohort_week} WHERE firm = ? GROUP BY cohort",
        [panel.firm],
    ).fetchall()
    held = {np.datetime64(cohort, "D"): sales for cohort, sales in rows}
    return np.array([held.get(week, 0.0) for week in panel.weeks[0] + 7 * panel.birth])


def value_by_age(
    panel: FirmPanel, forecast: RevenueForecast, terms: ValueTerms, first: Floats | None = None
) -> pd.DataFrame:
    """Rows by quarter of acquisition and age: customers, sales per customer and value per customer.

    A quarter has a row at an age only when all its cohorts reach that age by the end of the horizon; `source` says
    whether all of it is observed, or some of it forecast. Not discounted. Customers acquired before the first
    week have no known age and are left out.

    Args:
        first: [N] sales of the first orders, see `first_sales`; estimated from the week's average order unless stated.
    """
    sales, born = cumulative_sales(panel, forecast, terms.horizon_weeks)
    last = panel.n_weeks + terms.horizon_weeks
    initial = _first_orders(panel, forecast, first)
    size = forecast.size
    rows = []
    for quarter, members in _quarters(panel, forecast, terms.horizon_weeks).items():
        customers = float(size[members].sum())
        if customers <= 0:
            continue
        for days, weeks in AGES.items():
            ends = born[members] + weeks
            if ends.max() > last:
                continue
            summed = (
                initial[members].sum()
                if days == 0
                else sum(sales[member, end - 1] for member, end in zip(members, ends, strict=True))
            )
            each = float(summed) / customers
            rows.append(
                {
                    "acquired_in": quarter,
                    "age_days": days,
                    "customers": customers,
                    "sales_per_customer": each,
                    "value_per_customer": terms.margin * each,
                    "source": "observed" if ends.max() <= panel.n_weeks else "forecast",
                }
            )
    return pd.DataFrame(
        rows,
        columns=[
            "acquired_in",
            "age_days",
            "customers",
            "sales_per_customer",
            "value_per_customer",
            "source",
        ],
    )


def cumulative_sales(panel: FirmPanel, forecast: RevenueForecast, horizon: int) -> tuple[Floats, Ints]:
    """[N + H, T + horizon] sales of each cohort up to and including each week, and its birth as an index into it."""
    past = np.vstack([np.nan_to_num(panel.Y), np.zeros((len(forecast.weeks), panel.n_weeks))])
    ahead = np.nan_to_num(forecast.Y[:, :horizon])
    return np.cumsum(np.hstack([past, ahead]), axis=1), forecast.birth + panel.n_weeks


def quarter_of(days: npt.NDArray[np.datetime64]) -> npt.NDArray[np.datetime64]:
    """First day of the quarter each day lies in."""
    month = days.astype("datetime64[M]").astype(int)
    return np.asarray((month - month % 3).astype("datetime64[M]").astype("datetime64[D]"))


def _quarters(
    panel: FirmPanel, forecast: RevenueForecast, horizon: int
) -> dict[np.datetime64, npt.NDArray[np.intp]]:
    quarter = quarter_of(forecast.weeks[0] + 7 * forecast.birth)
    known = np.r_[panel.birth != LEFT_CENSORED, np.arange(len(forecast.weeks)) < horizon]
    return {one: np.flatnonzero((quarter == one) & known) for one in np.unique(quarter[known])}


def _first_orders(panel: FirmPanel, forecast: RevenueForecast, known: Floats | None) -> Floats:
    """[N + H] sales of the first orders; a forecast has customers x order value of the birth week."""
    past = np.zeros(panel.n_cohorts)
    own = np.flatnonzero(panel.birth != LEFT_CENSORED)
    past[own] = panel.size[own] * np.nan_to_num(panel.V[own, panel.birth[own]])
    ahead = forecast.A * np.diagonal(forecast.V[panel.n_cohorts :])
    return np.concatenate([past if known is None else known, ahead])
