"""Controls of the regressions: a firm's historical scale and dispersion, from whole years of the panel."""

from __future__ import annotations

import numpy as np

from cbmt_core.panel import FirmPanel
from cbmt_core.timeline import SEASON

__all__ = ["CONTROLS", "historical_controls"]

CONTROLS = ("scale", "dispersion")


def historical_controls(panel: FirmPanel, washout_sales: float | None = None) -> dict[str, float]:
    """scale = log(1 + mean of the positive yearly sales), dispersion = their coefficient of variation (Web
    App. "Specification and Main Results").

    Years are 52 weeks each: the washout where it is a year and its sales are given, then whole years from
    the first week to the panel's last (at the origin of the paper's study 2016, 2017 and 2018). Dispersion needs
    two years, scale one; NaN otherwise.
    """
    sales = panel.S
    whole = len(sales) // SEASON
    years = list(sales[: whole * SEASON].reshape(whole, SEASON).sum(axis=1))
    if washout_sales is not None and panel.design.washout_weeks >= SEASON:
        years.insert(0, washout_sales)
    positive = np.array([year for year in years if year > 0])
    if not len(positive):
        return dict.fromkeys(CONTROLS, float("nan"))
    cv = float(positive.std(ddof=1) / positive.mean()) if len(positive) > 1 else float("nan")
    return {"scale": float(np.log1p(positive.mean())), "dispersion": cv}
