"""The weekly series that `cbmt_plus` forecasts: logs of drivers, without the ageing of cohorts, and of sales."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import numpy as np
import pandas as pd
from scipy.stats import poisson

from cbmt_core.arrays import Floats
from cbmt_core.models.cohort_glm import CohortGlm, FittedCohortGlm
from cbmt_core.models.contract import CannotFit
from cbmt_core.panel import FirmPanel

__all__ = [
    "GROUPS",
    "HALF",
    "MIN_WEEKS",
    "SERIES_COLUMNS",
    "WeeklySeries",
    "half_an_order",
    "series_from_frame",
    "series_of",
    "weekly_series",
]


GROUPS: Mapping[str, tuple[str, ...]] = {"drivers": ("acquisition", "repeat", "aov"), "sales": ("sales",)}
"""Series that are forecast together. Repeat orders and order values are relative to what is expected from the
cohorts."""
SERIES_COLUMNS = ("firm", "series", "week", "value", "noise")
MIN_WEEKS = 26
"""Weeks since its first order that a firm must have to be forecast."""
HALF = 0.5
"""Half an order is added before logs are taken."""
ORDER_VARIANCE = 0.5
"""Variance of the log value of one order, roughly; it matters only where a week has few."""


@dataclass(frozen=True, eq=False)
class WeeklySeries:
    """Logs of the D series of a group, of one firm over T weeks."""

    firm: str
    first_week: date
    country: str
    value: Floats
    """[D, T]"""
    noise: Floats
    """[D, T] sampling variance of `value`: that of counting few orders."""

    @property
    def n_weeks(self) -> int:
        return int(self.value.shape[1])


def series_of(panel: FirmPanel, glm: FittedCohortGlm) -> dict[str, WeeklySeries]:
    """The series of each group.

    Repeat orders and order values are relative to what `glm` expects from the cohorts' tenures and levels, so that
    they no longer depend on the age of the customers.
    """
    R, V = (np.nan_to_num(x) for x in glm.cohorts_alone())
    customers = np.where(panel.born, panel.size[:, None], 0.0)
    repeats = (customers * np.nan_to_num(panel.R)).sum(axis=0)
    orders = panel.orders
    total = orders.sum(axis=0)
    half_value = half_an_order(panel)

    def log_ratio(actual: Floats, expected: Floats, added: float) -> Floats:
        return np.asarray(np.log((actual + added) / (expected + added)))

    ones = np.ones(panel.n_weeks)
    value = {
        "acquisition": np.log(panel.A + HALF),
        "repeat": log_ratio(repeats, (customers * R).sum(axis=0), HALF),
        "aov": log_ratio(panel.S, (orders * V).sum(axis=0), half_value),
        "sales": np.log(panel.S + half_value),
    }
    noise = {
        "acquisition": ones * _counting_variance(panel.A.mean()),
        "repeat": ones * _counting_variance(repeats.mean()),
        "aov": ORDER_VARIANCE / (total + HALF),
        "sales": ones * (_counting_variance(total.mean()) + ORDER_VARIANCE / (total.mean() + HALF)),
    }
    return {
        group: WeeklySeries(
            firm=panel.firm,
            first_week=panel.first_week,
            country=panel.design.country,
            value=np.stack([value[name] for name in names]),
            noise=np.stack([noise[name] for name in names]),
        )
        for group, names in GROUPS.items()
    }


def half_an_order(panel: FirmPanel) -> float:
    """Value of half an average order: added to sales before logs are taken."""
    return float(HALF * panel.S.sum() / max(panel.orders.sum(), 1.0))


def _counting_variance(mean: float) -> float:
    """Variance of log(n + 1/2) for a Poisson count n."""
    count = np.arange(int(mean + 10 * np.sqrt(mean) + 20))
    share, log = poisson.pmf(count, mean), np.log(count + HALF)
    return float(share @ log**2 - (share @ log) ** 2)


def weekly_series(panel: FirmPanel, *, seed: int) -> pd.DataFrame:
    """`SERIES_COLUMNS` of one firm, a row for each series and week: what priors are learned from.

    Empty for a firm younger than the panel or than `MIN_WEEKS`, because all firms must have the same weeks. Empty
    also where `cohort_glm` cannot be fitted.
    """
    empty = pd.DataFrame({name: [] for name in SERIES_COLUMNS})
    if panel.since_first_order() is not panel or panel.n_weeks < MIN_WEEKS:
        return empty
    try:
        series = series_of(panel, CohortGlm().fit(panel, seed=seed))
    except CannotFit:
        return empty
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "firm": panel.firm,
                    "series": name,
                    "week": panel.weeks,
                    "value": series[group].value[k],
                    "noise": series[group].noise[k],
                }
            )
            for group, names in GROUPS.items()
            for k, name in enumerate(names)
        ],
        ignore_index=True,
    )


def series_from_frame(frame: pd.DataFrame, group: str, country: str) -> list[WeeklySeries]:
    """A group's series of each firm in a frame of `SERIES_COLUMNS`, in the order of firms' names."""
    names = list(GROUPS[group])
    rows = frame[frame["series"].isin(names)].sort_values(["firm", "week"])
    made = []
    for firm, own in rows.groupby("firm", sort=True):
        wide = {
            field: own.pivot_table(index="series", columns="week", values=field)
            for field in ("value", "noise")
        }
        made.append(
            WeeklySeries(
                firm=str(firm),
                first_week=pd.Timestamp(own["week"].min()).date(),
                country=country,
                value=wide["value"].loc[names].to_numpy(float),
                noise=wide["noise"].loc[names].to_numpy(float),
            )
        )
    return made
