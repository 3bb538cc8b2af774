"""Checks of a forecast before it is used: finite, adds up, and plausible beside the firm's history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cbmt_core.panel import FirmPanel

__all__ = ["PROMISES", "ForecastFinding", "check_forecasts"]

PROMISES = (
    "one row for each week after the origin",
    "numbers finite and not negative",
    "cohorts add up to the firm, orders times their value to sales",
    "mean sales within a factor of 3 of the last year's",
    "no week above 5 times the largest one in history",
)
"""The checks of each model's forecast. The last two give warnings: the forecast is used, and a person should look
at it."""
TOLERANCE = 1e-6
"""Relative difference that rounding may cause."""
MEAN_REACH, PEAK_REACH = 3.0, 5.0
YEAR = 52


@dataclass(frozen=True)
class ForecastFinding:
    """A problem found in one model's forecast of a firm."""

    model: str
    text: str
    fatal: bool
    """The forecast must not be used."""


def check_forecasts(
    tables: Mapping[str, pd.DataFrame], panel: FirmPanel, horizon: int
) -> list[ForecastFinding]:
    """Check the rows of `forecast_week` and `forecast_cohort_week` before they are stored.

    Args:
        panel: the panel that the models were fitted on; its last week is the origin.
        horizon: weeks that were to be forecast.
    """
    cohorts = tables["forecast_cohort_week"]
    by_model = dict(tuple(cohorts.groupby("model", sort=False)))
    found = []
    for model, weeks in tables["forecast_week"].groupby("model", sort=False):
        name, weeks = str(model), weeks.sort_values("week")
        broken = _broken(weeks, by_model.get(model, cohorts.iloc[:0]), panel, horizon)
        if broken:
            found.append(ForecastFinding(name, broken, fatal=True))
        elif far := _out_of_reach(weeks["sales"].to_numpy(float), panel.S):
            found.append(ForecastFinding(name, far, fatal=False))
    return found


def _broken(weeks: pd.DataFrame, cohorts: pd.DataFrame, panel: FirmPanel, horizon: int) -> str:
    """The first hard check that a forecast fails; empty if it passes all."""
    expected = panel.weeks[-1] + 7 * np.arange(1, horizon + 1)
    days = weeks["week"].to_numpy("datetime64[D]")
    if len(days) != horizon or (days != expected.astype("datetime64[D]")).any():
        return f"its forecast has {len(days)} weeks from {days[0]}, not the {horizon} after {panel.origin}"
    values = weeks[["sales", "acquired", "orders", "repeat_orders"]].astype(float)
    known = values if values["acquired"].notna().any() else values[["sales"]]
    wrong = ~(np.isfinite(known.to_numpy()) & (known.to_numpy() >= 0))
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        return f"its {known.columns[column]} of {days[row]} is {known.iloc[row, column]}"
    if "acquired" not in known:
        return ""
    summed = cohorts.assign(repeats=cohorts["cohort_size"] * cohorts["ropc"])
    sums = summed.groupby("week")[["sales", "repeats"]].sum().reindex(weeks["week"]).to_numpy(float)
    orders, value = values["orders"].to_numpy(), weeks["aov"].astype(float).fillna(0.0).to_numpy()
    sales = values["sales"].to_numpy()
    pairs = {
        "sales and the sum of its cohorts' sales": (sales, sums[:, 0]),
        "repeat orders and the sum of its cohorts' orders": (values["repeat_orders"].to_numpy(), sums[:, 1]),
        "orders and new customers with repeat orders": (
            orders,
            (values["acquired"] + values["repeat_orders"]).to_numpy(),
        ),
        "sales and orders times their value": (sales, orders * value),
    }
    for what, (one, other) in pairs.items():
        apart = ~(np.abs(one - other) <= TOLERANCE * np.maximum(1.0, np.abs(one)))
        if apart.any():
            row = int(np.argmax(apart))
            return f"its {what} differ in {days[row]}: {one[row]:,.4f} and {other[row]:,.4f}"
    return ""


def _out_of_reach(sales: np.ndarray, history: np.ndarray) -> str:
    """In what way a forecast is implausible beside the firm's past sales; empty if it is not."""
    past, peak = float(history[-YEAR:].mean()), float(history.max())
    mean, most = float(sales.mean()), float(sales.max())
    if past <= 0:
        return ""
    if not past / MEAN_REACH <= mean <= past * MEAN_REACH:
        return f"it forecasts {mean:,.0f} a week, {mean / past:.2g} times the last year's {past:,.0f}"
    if most > PEAK_REACH * peak:
        return (
            f"it forecasts a week of {most:,.0f}, {most / peak:.2g} times the largest one so far, {peak:,.0f}"
        )
    return ""
