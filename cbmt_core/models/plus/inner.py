"""Forecasts from earlier origins, inside the calibration, beside what then happened."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cbmt_core.models.contract import CannotFit, PrimitiveForecast
from cbmt_core.models.plus.drivers import ANCHOR, EXPERTS, YEAR, driver_totals, seen_totals
from cbmt_core.models.registry import build
from cbmt_core.panel import FirmPanel

__all__ = ["INNER_COLUMNS", "inner_forecasts", "inner_origins"]

INNER_COLUMNS = ("firm", "model", "origin", "week", "horizon", "driver", "actual", "forecast")

ORIGINS = 5
FIRST_SHARE = 0.56
"""The earliest origin leaves the models this share of the weeks, and a year at least."""
LAST_WEEKS = 20
"""Weeks after the latest origin: fewer say little about a horizon of a year."""


def inner_origins(n_weeks: int) -> list[int]:
    """How many weeks each origin has before it."""
    first, last = max(round(FIRST_SHARE * n_weeks), YEAR), n_weeks - LAST_WEEKS
    return sorted({round(x) for x in np.linspace(first, last, ORIGINS)}) if first <= last else []


def inner_forecasts(panel: FirmPanel, *, seed: int) -> pd.DataFrame:
    """`INNER_COLUMNS` for the anchor and every expert, from each origin to the end of the panel.

    An origin from which one of them cannot be fitted is left out.
    """
    frames = [pd.DataFrame({name: [] for name in INNER_COLUMNS})]
    for weeks in inner_origins(panel.n_weeks):
        seen = panel.until(panel.weeks[weeks - 1].astype(object))
        horizon = min(YEAR, panel.n_weeks - weeks)
        actual = seen_totals(seen, panel, horizon)
        try:
            forecasts = {
                name: build(name).fit(seen, seed=seed).forecast(horizon) for name in (ANCHOR, *EXPERTS)
            }
        except CannotFit:
            continue
        for model, forecast in forecasts.items():
            assert isinstance(forecast, PrimitiveForecast)
            for driver, values in driver_totals(seen, forecast).items():
                frames.append(
                    pd.DataFrame(
                        {
                            "firm": panel.firm,
                            "model": model,
                            "origin": seen.origin,
                            "week": panel.weeks[weeks : weeks + horizon],
                            "horizon": np.arange(1, horizon + 1),
                            "driver": driver,
                            "actual": actual[driver],
                            "forecast": values,
                        }
                    )
                )
    return pd.concat(frames[1:] or frames, ignore_index=True)
