"""cbmt_plus: its totals, how it moves a forecast, and how the parts are joined."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from panels import calibration, ordinary

from cbmt_core.compose import compose
from cbmt_core.models import build
from cbmt_core.models.plus import CbmtPlus, learn_priors, weekly_series
from cbmt_core.models.plus.drivers import DRIVERS, REACH, driver_totals, moved, sales_and_unborn
from cbmt_core.models.plus.model import TOPLINE, TRUST
from cbmt_core.models.plus.paths import fit_paths, learn_prior
from cbmt_core.models.plus.prior import PathPrior
from cbmt_core.models.plus.series import HALF, series_of
from cbmt_core.panel import FirmPanel


@pytest.fixture(scope="module")
def seen() -> FirmPanel:
    return calibration(ordinary())


def test_totals_are_those_of_the_composed_forecast(seen: FirmPanel) -> None:
    forecast = build("cohort_glm").fit(seen, seed=1).forecast(12)
    totals, revenue = driver_totals(seen, forecast), compose(seen, forecast)
    orders = np.nansum(revenue.size[:, None] * revenue.R, axis=0) + revenue.A
    np.testing.assert_allclose(totals["aov"] * orders, revenue.S)
    old = len(seen.birth)
    np.testing.assert_allclose(
        totals["base"] + totals["repeat"], np.nansum(seen.size[:, None] * forecast.R[:old], axis=0)
    )


def test_sales_and_what_the_unborn_add_to_them_are_those_of_the_composed_forecast(seen: FirmPanel) -> None:
    forecast = build("cohort_glm").fit(seen, seed=1).forecast(12)
    sales, unborn = sales_and_unborn(seen, forecast)
    revenue, old = compose(seen, forecast), len(seen.birth)
    np.testing.assert_allclose(sales, revenue.S)
    repeats = np.nansum(revenue.size[old:, None] * forecast.R[old:] * forecast.V[old:], axis=0)
    np.testing.assert_allclose(unborn * sales, repeats)


def test_a_move_multiplies_each_total_by_as_much(seen: FirmPanel) -> None:
    forecast = build("cohort_glm").fit(seen, seed=1).forecast(12)
    by = dict(zip(DRIVERS, (0.1, -0.2, 0.3, 0.05), strict=True))
    after = driver_totals(seen, moved(seen, forecast, {k: np.full(12, v) for k, v in by.items()}))
    before = driver_totals(seen, forecast)
    for driver in ("acquisition", "base", "repeat"):
        np.testing.assert_allclose(after[driver], before[driver] * np.exp(by[driver]))


@pytest.mark.slow
def test_plus_lies_between_its_own_paths_the_network_and_the_path_of_sales(seen: FirmPanel) -> None:
    fitted = CbmtPlus(profile="smoke").fit(seen, seed=2)
    plus, own = fitted.forecast(20), fitted.own_paths(20)
    ratio = np.log(plus.A / own.A)
    assert 0 < np.abs(ratio).max() <= (TRUST + TOPLINE) * REACH + 1e-9
    np.testing.assert_array_equal(np.isnan(plus.R), np.isnan(own.R))
    # Order values follow the paths and the network alone: sales move orders.
    said = driver_totals(fitted.cohorts, fitted.network.forecast(20))["aov"]
    mine = driver_totals(fitted.cohorts, own)["aov"]
    np.testing.assert_allclose(plus.V[0], own.V[0] * (said / mine) ** TRUST)
    assert "one firm" in fitted.record.diagnosis
    assert 0 < fitted.record.parameters["comovement"] < 1


@pytest.mark.slow
def test_a_firm_by_itself_is_a_panel_of_one(seen: FirmPanel) -> None:
    alone = CbmtPlus(profile="smoke").fit(seen, seed=2)
    priors = learn_priors(weekly_series(seen, seed=2), seen.design.country)
    of_one = CbmtPlus(priors=priors, network=alone.network).fit(seen, seed=2)
    for name in "ARV":
        told, expected = (getattr(fitted.forecast(20), name) for fitted in (of_one, alone))
        np.testing.assert_allclose(told, expected)
    assert of_one.record.diagnosis == alone.record.diagnosis


@pytest.mark.slow
def test_a_season_far_from_the_usual_is_learned_from_the_firm_itself(seen: FirmPanel) -> None:
    """Acquisition that triples and falls again within each year is far beyond the usual prior's seasons."""
    season = np.exp(1.1 * np.sin(2 * np.pi * np.arange(seen.n_weeks + 26) / 52))
    acquired = np.round(200 * season)
    panel = replace(seen, A=acquired[: seen.n_weeks])
    series = series_of(panel, build("cohort_glm").fit(seen, seed=1))["drivers"]
    usual = PathPrior.usual("drivers", seen.design.country)
    own = learn_prior([series], usual)
    ahead = np.log(acquired[seen.n_weeks :] + HALF)
    missed = [np.abs(fit_paths(series, prior).forecast(26)[0] - ahead).mean() for prior in (own, usual)]
    assert missed[0] < 0.5 * missed[1]
