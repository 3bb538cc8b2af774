"""Every registered model keeps the promises of the model contract."""

from __future__ import annotations

import json
import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import pytest
from helpers.panels import ODD_FIRMS, calibration, ordinary, scramble_after

from cbmt_core.compose import compose
from cbmt_core.models import MODELS, CannotFit, FittedForecaster, Forecaster, PrimitiveForecast, build
from cbmt_core.models.contract import SalesForecast
from cbmt_core.models.storage import load, save
from cbmt_core.panel import FirmPanel

SLOW_FAMILIES = frozenset({"tree", "neural", "direct"})
"""Families whose contract test takes more than a few seconds a model."""

CHEAP_OPTIONS: dict[str, dict[str, Any]] = {
    "tree": {"trials": 2},
    "neural": {"profile": "smoke"},
    "direct": {"profile": "smoke"},
}
"""Options by family that make a fit small enough for a test; the promises do not depend on them."""

SEED = 7

MODEL_NAMES = [
    pytest.param(name, marks=pytest.mark.slow if entry.family in SLOW_FAMILIES else ())
    for name, entry in MODELS.items()
]
every_model = pytest.mark.parametrize("name", MODEL_NAMES)


@contextmanager
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def fresh(name: str) -> Forecaster:
    return build(name, **CHEAP_OPTIONS.get(MODELS[name].family, {}))


def seen() -> FirmPanel:
    return calibration(ordinary())


@cache
def fitted(name: str) -> FittedForecaster:
    with no_warnings():
        return fresh(name).fit(seen(), seed=SEED)


Forecast = PrimitiveForecast | SalesForecast


def drivers_of(forecast: Forecast) -> tuple[str, ...]:
    return ("S",) if isinstance(forecast, SalesForecast) else ("A", "R", "V")


def same(a: Forecast, b: Forecast) -> None:
    assert type(a) is type(b)
    for field in drivers_of(a):
        np.testing.assert_array_equal(getattr(a, field), getattr(b, field), err_msg=field)


def check_form(panel: FirmPanel, forecast: Forecast, horizon: int) -> None:
    if isinstance(forecast, SalesForecast):
        assert forecast.S.shape == (horizon,)
        assert np.isfinite(forecast.S).all()
        assert (forecast.S >= 0).all()
        return
    rows = panel.n_cohorts + horizon
    assert forecast.A.shape == (horizon,)
    assert forecast.R.shape == forecast.V.shape == (rows, horizon)
    birth = np.r_[panel.birth - panel.n_weeks, np.arange(horizon)]
    born = np.arange(horizon) >= birth[:, None]
    assert np.isfinite(forecast.A).all()
    assert (forecast.A >= 0).all()
    for driver in (forecast.R, forecast.V):
        assert np.isnan(driver[~born]).all(), "a driver before birth is unknown"
        assert np.isfinite(driver[born]).all()
        assert (driver[born] >= 0).all()


@every_model
@pytest.mark.parametrize("horizon", [1, 13, 60])
def test_forecast_has_the_right_form(name: str, horizon: int) -> None:
    with no_warnings():
        forecast = fitted(name).forecast(horizon)
    check_form(seen(), forecast, horizon)


@every_model
def test_ordinary_firm_is_forecast_in_its_own_range(name: str) -> None:
    """No accuracy contest: total sales within a factor two of last season's, each driver in range."""
    panel = seen()
    forecast = compose(panel, fitted(name).forecast(13))
    assert 0.5 < forecast.S.mean() / panel.S[-52:].mean() < 2
    if forecast.has_drivers:
        assert 0.3 < forecast.A.mean() / panel.A[-52:].mean() < 3


@every_model
def test_longer_horizon_begins_with_the_shorter(name: str) -> None:
    panel, short, long = seen(), fitted(name).forecast(9), fitted(name).forecast(30)
    rows = panel.n_cohorts + 9
    if isinstance(long, SalesForecast):
        np.testing.assert_allclose(long.S[:9], short.S, rtol=1e-4)
        return
    np.testing.assert_allclose(long.A[:9], short.A, rtol=1e-4)
    np.testing.assert_allclose(long.R[:rows, :9], short.R, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(long.V[:rows, :9], short.V, rtol=1e-4)


@every_model
def test_same_seed_same_forecast_and_global_random_state_plays_no_part(name: str) -> None:
    expected = fitted(name).forecast(20)
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    torch = sys.modules.get("torch")
    torch_state = torch.get_rng_state() if torch else None
    try:
        np.random.seed(99)  # noqa: NPY002
        random.seed(99)
        if torch:
            torch.manual_seed(99)
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        python_before = random.getstate()
        torch_before = torch.get_rng_state() if torch else None
        again = fresh(name).fit(seen(), seed=SEED).forecast(20)
        np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
        assert random.getstate() == python_before
        if torch:
            assert torch.equal(torch.get_rng_state(), torch_before)
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)
        if torch:
            torch.set_rng_state(torch_state)
    same(again, expected)


@every_model
def test_nothing_after_the_origin_matters(name: str) -> None:
    full = ordinary()
    other = scramble_after(full, full.design.origin)
    same(fresh(name).fit(calibration(other), seed=SEED).forecast(20), fitted(name).forecast(20))


@every_model
def test_other_firms_fitted_before_change_nothing(name: str) -> None:
    model = fresh(name)
    model.fit(calibration(ordinary(2)), seed=3).forecast(5)
    same(model.fit(seen(), seed=SEED).forecast(20), fitted(name).forecast(20))


@every_model
def test_fitted_model_is_self_contained_and_leaves_the_panel_alone(name: str) -> None:
    panel, untouched = seen(), seen()
    fit = fresh(name).fit(panel, seed=SEED)
    for field in ("A", "S", "size", "birth", "R", "V", "Y"):
        np.testing.assert_array_equal(getattr(panel, field), getattr(untouched, field), err_msg=field)
        getattr(panel, field)[:] = 0
    same(fit.forecast(20), fitted(name).forecast(20))


@every_model
def test_saved_and_loaded_forecasts_the_same(name: str, tmp_path: Any) -> None:
    save(fitted(name), tmp_path / "model")
    back = load(tmp_path / "model")
    same(back.forecast(20), fitted(name).forecast(20))
    assert json.dumps(dict(back.record.parameters)) == json.dumps(dict(fitted(name).record.parameters))
    assert back.record.diagnosis == fitted(name).record.diagnosis
    assert back.record.converged == fitted(name).record.converged


@every_model
@pytest.mark.parametrize("odd", list(ODD_FIRMS))
def test_odd_firm_gets_a_sensible_forecast_or_a_clear_refusal(name: str, odd: str) -> None:
    panel = calibration(ODD_FIRMS[odd]())
    try:
        with no_warnings():
            forecast = fresh(name).fit(panel, seed=SEED).forecast(52)
    except CannotFit as error:
        refusal = error
    else:
        refusal = None
    if refusal is not None:
        assert panel.firm in str(refusal)
        assert len(refusal.reason) > 10
        return
    check_form(panel, forecast, 52)
    sales = compose(panel, forecast).S
    assert sales.max() <= 10 * panel.S.max(), "a forecast must not explode"
    if odd == "dead":
        assert sales.mean() <= panel.S[:-30].mean()
    if odd == "huge":
        assert 0.2 < sales.mean() / panel.S.mean() < 5


def test_registry_names_are_unique_and_every_model_builds() -> None:
    assert len(MODELS) == len({entry.name for entry in MODELS.values()})
    for name in MODELS:
        assert hasattr(build(name), "fit")
