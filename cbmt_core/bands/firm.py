"""Draws and bands of one firm at one origin, for every model that forecast it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from cbmt_core.arrays import Floats
from cbmt_core.bands.draws import DRAWS, draw_drivers, draw_sales, generator
from cbmt_core.bands.error_paths import (
    SALES,
    as_deviations,
    drawn_paths,
    usual_changes,
    usual_sales_change,
    whole_paths,
)
from cbmt_core.bands.errors import SALES_FLOOR
from cbmt_core.bands.factors import BORROWED, CALIBRATED, SHIPPED, BandFactors
from cbmt_core.bands.quantiles import BridgeBaseline, bands
from cbmt_core.bands.stored import draw_rows, revenue_from_rows, sales_from_rows
from cbmt_core.compose import DrawnForecast, DriverDraws, RevenueForecast, compose_draws
from cbmt_core.models import CannotFit, build
from cbmt_core.panel import FirmPanel
from cbmt_core.schema import TABLES
from cbmt_core.timeline import SEASON, Origin
from cbmt_core.uncertainty import DRIVERS, DriverUncertainty

if TYPE_CHECKING:  # Torch takes a second to import, and most commands do not need it.
    from cbmt_core.models.plus import PathPriors

__all__ = ["DRAWN_FROM", "FirmBands", "band_tables"]

DRAWN_FROM = "cbmt_plus"
"""The model with a distribution of its own. Draws of other models use their own error paths; if those are too few,
the error paths of all models that have backtests; if those are too few as well, this model's deviations."""
NO_FACTORS = BandFactors(np.ones(3), np.ones(3), CALIBRATED)


class Drawn(NamedTuple):
    """Draws of one forecast."""

    composed: DrawnForecast
    draws: DriverDraws | None
    """None where the model forecasts sales alone."""
    source: str
    """What they are calibrated on, as in `BandFactors`."""


@dataclass(frozen=True, eq=False)
class FirmBands:
    """Inputs of a firm's bands, all known at the origin."""

    panel: FirmPanel
    baseline: BridgeBaseline | None
    """Of the bridge; None where there is not yet a year before the origin."""
    forecasts: pd.DataFrame
    """Rows of `forecast_cohort_week` of the origin."""
    factors: pd.DataFrame
    """The firm's rows of `band_factor`; without any, the shipped factors are used."""
    paths: pd.DataFrame
    """Rows of `error_path`."""
    weeks: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["model"]))
    """Rows of `forecast_week` of the origin, for models that forecast sales only."""
    priors: PathPriors | None = None
    """Of `cbmt_plus`."""
    draws: int = DRAWS
    seed: int = 1

    @cached_property
    def uncertainty(self) -> DriverUncertainty | None:
        """Of `DRAWN_FROM`, for the longest forecast; None where it cannot be fitted."""
        try:
            fitted = build(DRAWN_FROM, priors=self.priors).fit(self.panel, seed=self.seed)
        except CannotFit:
            return None
        made: DriverUncertainty = fitted.uncertainty(self.forecasts["week"].nunique())  # type: ignore[attr-defined]
        return made

    def drawn(self, model: str) -> Drawn | None:
        """The draws of a model's forecast; None where it has none, or nothing is known of its errors."""
        rows = self.forecasts[self.forecasts["model"] == model]
        if len(rows):
            centre = revenue_from_rows(rows, self.panel.origin)
            found = self.draw(model, centre)
            if found is None:
                return None
            # The bridge's existing base: cohorts up to the last of the same weeks a season earlier.
            H = len(centre.weeks)
            base = centre.birth[: len(centre.birth) - H] < H - SEASON
            return Drawn(compose_draws(found[0], base), *found)
        rows = self.weeks[self.weeks["model"] == model]
        return self._drawn_sales(model, sales_from_rows(rows)) if len(rows) else None

    def _drawn_sales(self, model: str, centre: RevenueForecast) -> Drawn | None:
        """Of a forecast of sales alone: by error paths or, where those are too few, by draws of `DRAWN_FROM`."""
        rng = generator(self.seed, self.panel.firm, model, self.panel.origin)
        whole, source = self._paths(model, len(centre.weeks), SALES)
        if whole is not None:
            errors = drawn_paths(whole, usual_sales_change(self.panel), self.draws, rng)
            return Drawn(draw_sales(centre, errors[:, 0]), None, source)
        other = self.forecasts[self.forecasts["model"] == DRAWN_FROM]
        if other.empty or self.uncertainty is None:
            return None
        middle = revenue_from_rows(other, self.panel.origin)
        deviations = self.uncertainty.draw(self.draws, rng)
        factors = SHIPPED.at(self.panel.since_first_order().n_weeks)
        sales = compose_draws(draw_drivers(middle, deviations, factors, rng)).sales
        least = SALES_FLOOR * middle.S.mean()
        return Drawn(draw_sales(centre, np.log((sales + least) / (middle.S + least))), None, SHIPPED.source)

    def draw(self, model: str, centre: RevenueForecast) -> tuple[DriverDraws, str] | None:
        """Draws around a model's forecast, and what they are calibrated on; None where nothing is known of errors."""
        rng = generator(self.seed, self.panel.firm, model, self.panel.origin)
        horizon = len(centre.weeks)
        if model != DRAWN_FROM:
            whole, source = self._paths(model, horizon, DRIVERS)
            if whole is not None:
                errors = as_deviations(drawn_paths(whole, usual_changes(self.panel), self.draws, rng))
                return draw_drivers(centre, errors, NO_FACTORS, rng, counting=False), source
        if self.uncertainty is None:
            return None
        factors = self._factors() if model == DRAWN_FROM else SHIPPED
        deviations = self.uncertainty.draw(self.draws, rng)
        history = self.panel.since_first_order().n_weeks
        return draw_drivers(centre, deviations, factors.at(history), rng), factors.source

    def _paths(self, model: str, horizon: int, outcomes: tuple[str, ...]) -> tuple[Floats | None, str]:
        """Error paths that a model is drawn with, as `whole_paths` gives them, and what they are calibrated on."""
        own = whole_paths(self.paths[self.paths["model"] == model], self.panel.firm, horizon, outcomes)
        if own is not None:
            return own, CALIBRATED
        key = (horizon, *outcomes)
        if key not in self._lent:
            self._lent[key] = whole_paths(self.paths, self.panel.firm, horizon, outcomes)
        return self._lent[key], BORROWED

    @cached_property
    def _lent(self) -> dict[tuple[object, ...], Floats | None]:
        """Paths of all models together, once for each horizon and kind."""
        return {}

    def _factors(self) -> BandFactors:
        own = self.factors[self.factors["model"] == DRAWN_FROM].set_index("driver")
        if own.empty:
            return SHIPPED
        own = own.loc[list(DRIVERS)]
        first = own.iloc[0]
        return BandFactors(
            lasting=own["lasting"].to_numpy(float),
            weekly=own["weekly"].to_numpy(float),
            source=str(first["source"]),
            firms=int(first["firms"]),
            own=float(first["own"]),
        )


def band_tables(
    firm: FirmBands,
    models: Sequence[str],
    origin: Origin,
    *,
    keep_draws: Collection[str] = (),
    tell: Callable[[str, float], None] = lambda doing, share: None,
) -> dict[str, pd.DataFrame]:
    """Rows of `forecast_band` and, of the models in `keep_draws`, of `forecast_draw`.

    A model without a forecast, or without known errors, has no rows. Of a live forecast every period has
    bands, of others only what is judged later.
    """
    found: dict[str, list[pd.DataFrame]] = {"forecast_band": [], "forecast_draw": []}
    live = origin.purpose == "live"
    for k, model in enumerate(models):
        tell(model, k / len(models))
        drawn = firm.drawn(model)
        if drawn is None:
            continue
        composed = drawn.composed
        keys: dict[str, Any] = {
            "firm": firm.panel.firm,
            "model": model,
            "origin": origin.week,
            "purpose": origin.purpose,
        }
        ranges = bands(composed, float(firm.panel.size.sum()), firm.baseline, every_period=live)
        found["forecast_band"].append(ranges.assign(**keys, source=drawn.source))
        if model in keep_draws:
            found["forecast_draw"].append(draw_rows(drawn.draws, composed).assign(**keys))
    return {
        name: pd.concat(frames, ignore_index=True)
        if frames
        else pd.DataFrame(columns=TABLES[name].column_names)
        for name, frames in found.items()
    }
