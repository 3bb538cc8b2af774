"""Ranges and scenarios of a notebook's forecast: thin calls of `cbmt_core.bands` and `cbmt_core.scenarios`."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cbmt_core.bands import Baseline, bands, draws_of
from cbmt_core.bridge import BridgeWindows
from cbmt_core.compose import DriverDraws, compose, compose_draws
from cbmt_core.models import PrimitiveForecast
from cbmt_core.scenarios import Scenario, apply, centre_only
from cbmt_core.timeline import SEASON

if TYPE_CHECKING:
    from cbmt_core.notebook.forecast import Forecast
    from cbmt_core.notebook.panel import Panel

__all__ = ["changed", "joint_draws", "ranges"]


def joint_draws(forecast: Forecast, draws: int) -> DriverDraws:
    """Joint paths of the drivers around the forecast, with its scenarios' changes in every one."""
    weeks, seed = len(forecast.revenue.weeks), forecast.seed
    found = draws_of(forecast.panel, forecast.fitted, weeks, seed=seed, model=forecast.model, draws=draws)
    for scenario in forecast.scenarios:
        found = apply(found, scenario)
    return found


def ranges(forecast: Forecast, draws: int) -> pd.DataFrame:
    """Quantiles of the draws by outcome, period and level."""
    panel, weeks = forecast.panel, len(forecast.revenue.weeks)
    windows = BridgeWindows.ahead(panel.origin, weeks) if weeks <= SEASON else None
    base = panel.birth - panel.n_weeks < weeks - SEASON
    drawn = compose_draws(joint_draws(forecast, draws), base)
    found = bands(drawn, float(panel.size.sum()), _baseline(panel, windows) if windows else None)
    return found.assign(week=pd.to_datetime(found["week"]))


def _baseline(panel: Panel, windows: BridgeWindows) -> Baseline | None:
    """Sums over the bridge's baseline, where all of it was observed."""
    if windows.baseline.first < panel.first_week:
        return None
    first, last = (pd.Timestamp(day) for day in (windows.baseline.first, windows.baseline.last))
    rows = panel.cohort_week[pd.to_datetime(panel.cohort_week["week"]).between(first, last)]
    return Baseline(*(float(rows[name].sum()) for name in Baseline._fields))


def changed(
    forecast: Forecast,
    first: str | date | None,
    last: str | date | None,
    ramp: int,
    drivers: dict[str, float | str],
) -> Forecast:
    """The forecast with the drivers changed in every week from `first` to `last`."""
    texts = {
        name: size if isinstance(size, str) else f"{100 * size:+.10f}%" for name, size in drivers.items()
    }
    scenario = Scenario.of("scenario", texts, first=first, last=last, ramp=ramp)
    moved = apply(centre_only(forecast.revenue), scenario)
    centre, known = forecast.revenue, forecast.panel.n_cohorts
    repeat = np.where(np.arange(len(centre.size))[:, None] < known, moved.repeat_existing, moved.repeat_new)
    drawn = PrimitiveForecast(A=moved.acquired[0], R=centre.R * repeat, V=centre.V * moved.order_value)
    return replace(
        forecast, revenue=compose(forecast.panel, drawn), scenarios=(*forecast.scenarios, scenario)
    )
