"""Ranges and scenarios of a notebook's forecast: thin calls of `cbmt_core.bands` and `cbmt_core.scenarios`."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cbmt_core.bands import bands, draws_of
from cbmt_core.compose import DriverDraws, compose, compose_draws
from cbmt_core.models import PrimitiveForecast
from cbmt_core.scenarios import Scenario, apply, centre_only

if TYPE_CHECKING:
    from cbmt_core.notebook.forecast import Forecast

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
    drawn = compose_draws(joint_draws(forecast, draws))
    found = bands(drawn, float(forecast.panel.size.sum()), None)
    return found.assign(week=pd.to_datetime(found["week"]))


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
