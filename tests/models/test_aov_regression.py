"""The AOV regression recovers what made the data and stays sensible where they say little."""

from datetime import date

import numpy as np
import pytest

from cbmt_core.design import StudyDesign
from cbmt_core.models.aov_regression import AovRegression
from cbmt_core.models.contract import CannotFit
from cbmt_core.panel import LEFT_CENSORED, FirmPanel

MONTH = np.array([0.0, 0.05, -0.1, 0.1, 0.0, 0.05, -0.05, 0.0, 0.1, -0.1, 0.2, 0.15])


def panel_of(weeks, log_value, orders=50.0, noise=0.0, seed=0):
    """A panel with a left-censored cohort and one born each week, AOV exp(log_value(birth, week, month))."""
    rng = np.random.default_rng(seed)
    design = StudyDesign()
    calendar = design.calibration.dates()[0] + 7 * np.arange(weeks)
    month = (calendar + 3).astype("datetime64[M]").astype(int) % 12
    birth = np.arange(LEFT_CENSORED, weeks)
    born = np.arange(weeks) >= birth[:, None]
    size = np.full(len(birth), 100.0)
    R = np.where(born, orders / size[:, None], np.nan)
    V = np.where(born, np.exp(log_value(birth[:, None], np.arange(weeks), month)), np.nan)
    V = V * rng.lognormal(-(noise**2) / 2, noise, V.shape)
    orders_made = np.where(
        born, size[:, None] * ((np.arange(weeks) == birth[:, None]) + np.nan_to_num(R)), 0.0
    )
    Y = np.where(born, orders_made * V, np.nan)
    A = np.full(weeks, 100.0)
    return FirmPanel("firm", design, calendar, A, np.nansum(Y, axis=0), size, birth, R, V, Y)


def test_month_and_level_are_recovered():
    panel = panel_of(118, lambda b, w, m: 4.0 + MONTH[m] + 0 * b, noise=0.2)
    for fit in (AovRegression.fit_weekly(panel), AovRegression.fit_cohorts(panel)):
        V = fit.forecast(47)
        truth = panel_of(165, lambda b, w, m: 4.0 + MONTH[m] + 0 * b).V[:, 118:]
        assert np.nanmean(np.abs(V / truth - 1)) < 0.03


def test_cohort_differences_are_recovered():
    def log_value(b, w, m):
        censored = b == LEFT_CENSORED
        return 3.0 + np.where(censored, 0.5, 0.2 * (w == b) + 0.05 * np.log1p(np.maximum(w - b, 0)))

    panel = panel_of(118, log_value)
    V = AovRegression.fit_cohorts(panel).forecast(30)
    truth = panel_of(148, log_value).V[:, 118:]
    assert np.nanmax(np.abs(V / truth - 1)) < 0.05


def test_weekly_regression_gives_every_cohort_the_same():
    V = AovRegression.fit_weekly(panel_of(60, lambda b, w, m: 4.0 + 0.1 * (b < 20) + 0 * w)).forecast(10)
    assert np.allclose(np.nanmax(V, axis=0), np.nanmin(V, axis=0))


def test_trend_is_followed_but_fades():
    panel = panel_of(118, lambda b, w, m: 4.0 + 0.002 * w + 0 * b)
    V = AovRegression.fit_weekly(panel).forecast(104)[0]
    last = np.exp(4.0 + 0.002 * 117)
    assert V[12] > last
    assert last < V[-1] < last * np.exp(0.002 * 60)


def test_shapes_births_and_round_trip():
    fit = AovRegression.fit_cohorts(panel_of(30, lambda b, w, m: 4.0 + 0 * w + 0 * b, noise=0.3))
    V = fit.forecast(8)
    assert V.shape == (31 + 8, 8)
    assert np.array_equal(np.isnan(V[31:]), np.tril(np.ones((8, 8)), -1) == 1)
    assert np.isfinite(V[:31]).all()
    assert np.array_equal(AovRegression.from_values(fit.values()).forecast(8), V, equal_nan=True)


@pytest.mark.parametrize("weeks", [1, 3, 10])
def test_short_histories_give_a_plausible_level(weeks):
    panel = panel_of(weeks, lambda b, w, m: 4.0 + 0 * w + 0 * b, noise=0.2)
    for fit in (AovRegression.fit_weekly(panel), AovRegression.fit_cohorts(panel)):
        V = fit.forecast(52)
        assert np.nanmin(V) > 0.5 * np.exp(4.0)
        assert np.nanmax(V) < 2 * np.exp(4.0)


def test_one_outlier_moves_little():
    panel = panel_of(118, lambda b, w, m: 4.0 + 0 * w + 0 * b, noise=0.1)
    before = AovRegression.fit_cohorts(panel).forecast(20)
    panel.V[5, 60] *= 1e4
    after = AovRegression.fit_cohorts(panel).forecast(20)
    assert np.nanmax(np.abs(after / before - 1)) < 0.05


def test_no_orders_is_a_clear_refusal():
    panel = panel_of(10, lambda b, w, m: 4.0 + 0 * w + 0 * b)
    panel.R[:] = np.where(np.isnan(panel.R), np.nan, -1.0 * panel.is_birth)
    with pytest.raises(CannotFit, match="no order"):
        AovRegression.fit_cohorts(panel)


def test_dates_are_the_panels_own():
    fit = AovRegression.fit_weekly(panel_of(10, lambda b, w, m: 4.0 + 0 * w + 0 * b))
    assert fit.first_week == date(2017, 1, 1)
