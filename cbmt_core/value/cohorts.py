"""Value of each cohort: realised and forecast sales."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cbmt_core.arrays import Floats
from cbmt_core.compose import DriverDraws
from cbmt_core.panel import LEFT_CENSORED, FirmPanel
from cbmt_core.scenarios.outcome import interval
from cbmt_core.value.terms import ValueTerms

__all__ = ["cohort_draws", "cohort_values"]


def cohort_values(panel: FirmPanel, draws: DriverDraws, terms: ValueTerms) -> pd.DataFrame:
    """A row a cohort, those yet to come included: realised, forecast and discounted sales, and value.

    Args:
        panel: up to the origin of the forecast.
        draws: of the drivers; their centre is the forecast.
    """
    centre, weeks = draws.centre, terms.horizon_weeks
    known = np.arange(draws.horizon) < weeks
    forecast = np.nan_to_num(centre.Y) * known
    discount = np.where(known, terms.discount(draws.horizon), 0.0)
    realised = np.concatenate([np.nansum(panel.Y, axis=1), np.zeros(draws.horizon)])
    low, high = interval(cohort_draws(draws, known.astype(float)).T)
    value_low, value_high = interval(terms.margin * cohort_draws(draws, discount).T)
    sales = forecast.sum(axis=1)
    return pd.DataFrame(
        {
            "cohort": centre.weeks[0] + 7 * centre.birth,
            "left_censored": np.r_[panel.birth == LEFT_CENSORED, np.zeros(draws.horizon, bool)],
            "to_come": centre.birth >= 0,
            "customers": centre.size,
            "realised_sales": realised,
            "forecast_sales": sales,
            "forecast_low": low,
            "forecast_high": high,
            "discounted_sales": forecast @ discount,
            "forecast_value": terms.margin * (forecast @ discount),
            "value_low": value_low,
            "value_high": value_high,
            "lifetime_sales": realised + sales,
        }
    )[: panel.n_cohorts + weeks]


def cohort_draws(draws: DriverDraws, weight: Floats) -> Floats:
    """[N + H, K] each cohort's sales in each draw, summed over weeks with these weights [H]."""
    centre, H = draws.centre, draws.horizon
    N = len(centre.size) - H
    R, V = np.nan_to_num(centre.R), np.nan_to_num(centre.V)
    repeat = R * V
    existing = (centre.size[:N, None] * repeat[:N]) @ (draws.repeat_existing * draws.order_value * weight).T
    unborn = repeat[N:] @ (draws.repeat_new * draws.order_value * weight).T
    first = np.diagonal(V[N:])[:, None] * (draws.order_value * weight).T
    return np.vstack([existing, draws.acquired.T * (first + unborn)])
