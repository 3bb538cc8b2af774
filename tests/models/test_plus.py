"""cbmt_plus: how cohorts and paths are joined, which priors it uses, and what it says about them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers.panels import calibration, ordinary, simulate

import cbmt_core
from cbmt_core.compose import compose
from cbmt_core.models import CannotFit, build
from cbmt_core.models.plus import CbmtPlus, PathPriors, learn_priors, weekly_series
from cbmt_core.models.plus.model import TOPLINE, FittedPlus, sold_before
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


def founded(weeks: int, panel_weeks: int = 70) -> FirmPanel:
    """A firm whose first order lies `weeks` weeks before the end of a panel without a washout."""
    return calibration(
        simulate(
            4,
            firm="young",
            weeks=panel_weeks,
            washout=0,
            censored=0,
            acquisition=lambda t: np.where(t >= panel_weeks - weeks, 18.0, 0.0),
        )
    )


@pytest.mark.parametrize(("weeks", "prior"), [(26, "the default prior"), (40, "from this firm alone")])
def test_a_young_firm_is_forecast_from_its_own_weeks(weeks: int, prior: str) -> None:
    panel = founded(weeks)
    assert panel.n_weeks == 70
    fitted = CbmtPlus().fit(panel, seed=1)
    revenue = compose(panel, fitted.forecast(13))
    assert (revenue.birth[: panel.n_cohorts] + panel.n_weeks).tolist() == panel.birth.tolist()
    assert 0.5 < revenue.S.mean() / panel.S[-10:].mean() < 2
    assert 0.5 < revenue.A.mean() / panel.A[-10:].mean() < 2
    assert fitted.drivers.n_weeks == weeks
    assert f"{weeks} weeks of history" in fitted.record.diagnosis
    assert "leans on" in fitted.record.diagnosis
    assert prior in fitted.record.diagnosis


def test_the_weeks_before_a_firm_do_not_matter() -> None:
    panel = founded(40)
    first, second = (CbmtPlus().fit(p, seed=1).forecast(13) for p in (panel, panel.since_first_order()))
    for name in "ARV":
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_fewer_than_26_weeks_are_refused() -> None:
    with pytest.raises(CannotFit, match="25 weeks since its first order; 26 are needed"):
        CbmtPlus().fit(founded(25), seed=1)


def test_a_young_firm_uses_the_priors_of_others_and_does_not_teach_them(seen: FirmPanel) -> None:
    priors = learn_priors(
        pd.concat([weekly_series(seen, seed=1).assign(firm=name) for name in "ab"]), seen.design.country
    )
    fitted = CbmtPlus(priors).fit(founded(40), seed=1)
    assert fitted.record.parameters["firms"] == 2
    assert "learned from 2 firms" in fitted.record.diagnosis
    assert weekly_series(founded(40), seed=1).empty
    assert weekly_series(founded(20, panel_weeks=21), seed=1).empty
    assert not weekly_series(founded(70), seed=1).empty


def test_a_firm_with_a_full_history_and_priors_of_others_has_nothing_to_say() -> None:
    panel = calibration(simulate(1, weeks=85))
    priors = replace_firms(PathPriors.default(panel.design.country), 5)
    assert CbmtPlus(priors).fit(panel, seed=1).record.diagnosis == ""


def replace_firms(priors: PathPriors, firms: int) -> PathPriors:
    return PathPriors.from_frame(priors.frame().assign(firms=firms), "US")


def cut(weeks: int, until: str) -> tuple[FirmPanel, float]:
    """An old firm of which only the last weeks before a day are known, and its sales of the 52 weeks from that day."""
    orders = cbmt_core.example_orders()
    time, end = pd.to_datetime(orders["order_time"]), pd.Timestamp(until)
    known = (time >= end - pd.Timedelta(weeks=weeks)) & (time < end)
    ahead = (time >= end) & (time < end + pd.Timedelta(weeks=52))
    panel = cbmt_core.panel_from_orders(orders[known], country="US")
    return panel, float(orders.loc[ahead, "amount"].sum())


@pytest.mark.parametrize("until", ["2018-09-02", "2019-03-03"])
def test_old_customers_of_a_short_history_are_no_growth(until: str) -> None:
    """All customers of such data seem new in their first weeks; counted as acquired, they add a third to the year."""
    panel, year = cut(32, until)
    assert panel.design.washout_weeks == 0
    assert panel.birth[0] == 0
    fitted = CbmtPlus().fit(panel, seed=1)
    forecast = fitted.forecast(52)
    assert 0.8 < compose(panel, forecast).S.sum() / year < 1.2
    assert "less than a year" in fitted.record.diagnosis
    assert "old customers" in fitted.record.diagnosis
    again = FittedPlus.from_state(fitted.state()).forecast(52)
    for name in "ARV":
        np.testing.assert_array_equal(getattr(again, name), getattr(forecast, name))


def test_a_firm_that_began_with_its_data_keeps_its_cohorts() -> None:
    panel, _ = cut(32, "2018-09-02")
    assert sold_before(panel)
    growing = replace(panel, S=panel.S * np.linspace(0.05, 2.0, panel.n_weeks))
    assert not sold_before(growing)
    assert CbmtPlus().fit(growing, seed=1).record.parameters["topline"] == TOPLINE
    assert CbmtPlus().fit(panel, seed=1).record.parameters["topline"] == 1.0
