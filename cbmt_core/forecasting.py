"""Run many models on one firm: fit, forecast, compose sales, and record each fit, also failed ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from cbmt_core.compose import RevenueForecast, compose
from cbmt_core.fits import ModelFit, fit_model, guarded
from cbmt_core.models import MODELS, FitRecord
from cbmt_core.models.contract import KnowsItsErrors
from cbmt_core.panel import FirmPanel
from cbmt_core.schema import TABLES
from cbmt_core.timeline import Purpose
from cbmt_core.uncertainty import DRIVERS, Spread

__all__ = ["FORECAST_TABLES", "ModelRun", "forecast_fit", "forecast_tables", "run_model", "run_models"]

FORECAST_TABLES = ("model_fit", "forecast_week", "forecast_cohort_week")


@dataclass(frozen=True, eq=False)
class ModelRun:
    """One model's forecast of one firm, or the reason why there is none."""

    firm: str
    model: str
    origin: date
    seed: int
    seconds: float
    record: FitRecord | None = None
    forecast: RevenueForecast | None = None
    reason: str | None = None
    profile: str | None = None
    """Budget of the fit, for networks."""
    spread: Spread | None = None
    """Standard deviations of the drivers' errors, for models with a distribution of their own."""
    history: int = 0
    """Weeks that the model has seen."""


def run_model(name: str, panel: FirmPanel, horizon: int, seed: int) -> ModelRun:
    """Fit one model on all weeks of `panel` and forecast. An exception becomes the run's reason."""
    return forecast_fit(fit_model(name, panel, seed), panel, horizon)


def forecast_fit(fit: ModelFit, panel: FirmPanel, horizon: int) -> ModelRun:
    """The forecast of a model that was fitted on `panel`."""
    fitted, record = fit.fitted, None

    def forecast() -> tuple[RevenueForecast, Spread | None]:
        assert fitted is not None
        known = fitted.uncertainty(horizon).spread() if isinstance(fitted, KnowsItsErrors) else None
        return compose(panel, fitted.forecast(horizon)), known

    made, reason, seconds = guarded(forecast) if fitted else (None, fit.reason, 0.0)
    if fitted and made:
        record = fitted.record
    return ModelRun(
        firm=fit.firm,
        model=fit.model,
        origin=fit.origin,
        seed=fit.seed,
        seconds=fit.seconds + seconds,
        record=record,
        forecast=made[0] if made else None,
        reason=reason,
        profile=fit.profile,
        spread=made[1] if made else None,
        history=panel.since_first_order().n_weeks,
    )


def run_models(
    panel: FirmPanel,
    models: Iterable[str],
    origin: date,
    horizon: int,
    *,
    seed: int,
    on_model: Callable[[ModelRun], None] | None = None,
) -> list[ModelRun]:
    """Run each model on `panel.until(origin)`, which holds nothing after the origin; `horizon` is at least 1.

    Arithmetic uses one thread: firms run in parallel, and sums do not depend on the number of cores.

    Args:
        panel: the firm's panel; weeks after the origin are cut off.
        models: names in `MODELS`.
        origin: Sunday of the last week that the models see.
        horizon: weeks to forecast.
        seed: seed of every model.
        on_model: called with each run when it is done.
    """
    if horizon < 1:
        raise ValueError(f"a forecast goes at least one week ahead, not {horizon}")
    runs = []
    for name in models:
        with threadpool_limits(1):
            runs.append(run_model(name, panel.until(origin), horizon, seed))
        if on_model:
            on_model(runs[-1])
    return runs


def forecast_tables(runs: Iterable[ModelRun], purpose: Purpose = "study") -> dict[str, pd.DataFrame]:
    """The runs as rows of `FORECAST_TABLES` and `forecast_spread`."""
    runs = list(runs)
    done = [run for run in runs if run.forecast is not None]
    frames = {
        "model_fit": [_fit_row(run) for run in runs],
        "forecast_week": [_weeks(run) for run in done],
        "forecast_cohort_week": [_cohort_weeks(run) for run in done],
        "forecast_spread": [_spreads(run) for run in done if run.forecast and run.forecast.has_drivers],
    }
    return {
        table: pd.concat(parts, ignore_index=True).assign(purpose=purpose)
        if parts
        else pd.DataFrame({name: [] for name in TABLES[table].column_names})
        for table, parts in frames.items()
    }


def _keys(run: ModelRun) -> dict[str, object]:
    return {"firm": run.firm, "model": run.model, "origin": run.origin}


def _fit_row(run: ModelRun) -> pd.DataFrame:
    record = run.record
    parameters = {
        **({"profile": run.profile} if run.profile else {}),
        **(record.parameters if record else {}),
    }
    row = {
        **_keys(run),
        "family": MODELS[run.model].family,
        "succeeded": run.forecast is not None,
        "reason": run.reason,
        "converged": record.converged if record else None,
        "diagnosis": record.diagnosis if record else "",
        "parameters": json.dumps(parameters) if record or parameters else None,
        "validation_error": record.validation_error if record else None,
        "seconds": run.seconds,
        "seed": run.seed,
    }
    return pd.DataFrame([row], dtype=object)


def _weeks(run: ModelRun) -> pd.DataFrame:
    forecast = run.forecast
    assert forecast is not None
    born = np.isfinite(forecast.Y)
    customers = (forecast.size[:, None] * born).sum(axis=0)
    repeats = np.nansum(forecast.size[:, None] * forecast.R, axis=0)
    orders = repeats + forecast.A
    with np.errstate(divide="ignore", invalid="ignore"):
        ropc = np.where(customers > 0, repeats / customers, 0.0)
        aov = np.where(orders > 0, forecast.S / orders, np.nan)
    if not forecast.has_drivers:
        repeats, ropc = orders, orders  # all unknown
    return pd.DataFrame(
        {
            **_keys(run),
            "week": forecast.weeks,
            "horizon": np.arange(1, len(forecast.weeks) + 1),
            "acquired": forecast.A,
            "orders": orders,
            "repeat_orders": repeats,
            "ropc": ropc,
            "aov": aov,
            "sales": forecast.S,
        }
    )


def _cohort_weeks(run: ModelRun) -> pd.DataFrame:
    forecast = run.forecast
    assert forecast is not None
    cohort, week = np.nonzero(np.isfinite(forecast.Y))
    # The left-censored cohort's birth stands one week before the panel: the last washout week, its name.
    return pd.DataFrame(
        {
            **_keys(run),
            "cohort": forecast.weeks[0] + 7 * forecast.birth[cohort],
            "week": forecast.weeks[week],
            "cohort_size": forecast.size[cohort],
            "ropc": forecast.R[cohort, week],
            "aov": forecast.V[cohort, week],
            "sales": forecast.Y[cohort, week],
        }
    )


def _spreads(run: ModelRun) -> pd.DataFrame:
    forecast, spread = run.forecast, run.spread
    assert forecast is not None
    H = len(forecast.weeks)
    repeats = (forecast.size[:, None] * np.nan_to_num(forecast.R))[:-H]
    expected = {
        f"{driver}_{part}": getattr(spread, part)[d] if spread else np.full(H, np.nan)
        for d, driver in enumerate(DRIVERS)
        for part in Spread._fields
    }
    return pd.DataFrame(
        {
            **_keys(run),
            "week": forecast.weeks,
            "horizon": np.arange(1, H + 1),
            "history": run.history,
            "acquired": forecast.A,
            "existing_orders": repeats.sum(axis=0),
            "existing_sales": (repeats * np.nan_to_num(forecast.V[:-H])).sum(axis=0),
            **expected,
        }
    )
