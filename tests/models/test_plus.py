"""cbmt_plus: how cohorts and paths are joined, which priors it uses, and what it says about them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from panels import calibration, ordinary

from cbmt_core.compose import compose
from cbmt_core.models import build
from cbmt_core.models.plus import CbmtPlus, learn_priors, weekly_series
from cbmt_core.models.plus.model import TOPLINE
from cbmt_core.models.plus.paths import fit_paths
from cbmt_core.models.plus.prior import PathPrior
from cbmt_core.models.plus.series import HALF, series_of
from cbmt_core.panel import FirmPanel


@pytest.fixture(scope="module")
def seen() -> FirmPanel:
    return calibration(ordinary())


def test_the_drivers_forecast_is_the_cohorts_times_the_paths(seen: FirmPanel) -> None:
    fitted = CbmtPlus().fit(seen, seed=2)
    forecast, (acquired, repeat, aov) = fitted.from_drivers(20), fitted.drivers.forecast(20)
    R, V = build("cohort_glm").fit(seen, seed=2).cohorts_alone(20)  # type: ignore[attr-defined]
    np.testing.assert_allclose(forecast.A, np.maximum(np.exp(acquired) - 0.5, 0))
    np.testing.assert_allclose(forecast.R, R * np.exp(repeat))
    np.testing.assert_allclose(forecast.V, V * np.exp(aov))
    assert 0 < fitted.record.parameters["comovement"] < 1
    assert fitted.record.validation_error is None


def test_orders_go_a_share_of_the_way_to_the_path_of_sales(seen: FirmPanel) -> None:
    fitted = CbmtPlus().fit(seen, seed=2)
    own, forecast = fitted.from_drivers(20), fitted.forecast(20)
    before, after = compose(seen, own).S, compose(seen, forecast).S
    path = np.exp(fitted.sales.forecast(20)[0]) - fitted.half_order
    # To first order in the step; repeat orders of unborn cohorts move by their size and their rate.
    np.testing.assert_allclose(np.log(after / before), TOPLINE * np.log(path / before), atol=0.01)
    assert np.abs(np.log(path / before)).max() > 0.02
    np.testing.assert_array_equal(forecast.V, own.V)


def test_a_firm_by_itself_is_a_panel_of_one(seen: FirmPanel) -> None:
    alone = CbmtPlus().fit(seen, seed=2)
    priors = learn_priors(weekly_series(seen, seed=2), seen.design.country)
    of_one = CbmtPlus(priors).fit(seen, seed=2)
    for name in "ARV":
        actual, expected = (getattr(fitted.forecast(20), name) for fitted in (of_one, alone))
        np.testing.assert_allclose(actual, expected)
    assert of_one.record.diagnosis == alone.record.diagnosis
    assert "this firm alone" in alone.record.diagnosis


def test_a_season_far_from_the_default_is_learned_from_the_firm_itself(seen: FirmPanel) -> None:
    """Acquisition that triples and falls again within each year is far beyond the default priors' seasons."""
    season = np.exp(1.1 * np.sin(2 * np.pi * np.arange(seen.n_weeks + 26) / 52))
    acquired = np.round(200 * season)
    panel = replace(seen, A=acquired[: seen.n_weeks])
    series = series_of(panel, build("cohort_glm").fit(seen, seed=1))["drivers"]  # type: ignore[arg-type]
    ahead = np.log(acquired[seen.n_weeks :] + HALF)
    own, default = (
        np.abs(fit_paths(series, prior).forecast(26)[0] - ahead).mean()
        for prior in (
            PathPrior.learned([series], "drivers", series.country),
            PathPrior.default("drivers", series.country),
        )
    )
    assert own < 0.5 * default
