"""The cohort GLM recovers what made the data, goes on from its fit, and beats the floor."""

import numpy as np
import pytest
import statsmodels.api as sm
from helpers.panels import calibration, simulate

from cbmt_core.compose import compose
from cbmt_core.design import StudyDesign
from cbmt_core.metrics import score
from cbmt_core.models import build
from cbmt_core.models.cohort_glm import CohortGlm
from cbmt_core.models.regression import ShockDesign, fit_log_linear, fit_poisson
from cbmt_core.panel import LEFT_CENSORED, FirmPanel


def log_linear_firm(noise=0.0, seed=0):
    """Drivers made by the model's own equation: season, power-law tenure, cohort levels."""
    rng = np.random.default_rng(seed)
    design = StudyDesign()
    weeks = design.study.dates()
    T = len(weeks)
    t = np.arange(T)
    season = 0.3 * np.cos(
        2 * np.pi * (weeks + 3 - (weeks + 3).astype("datetime64[Y]")).astype(float) / 365.25
    )
    A = np.round(1000 * np.exp(season))
    birth = np.arange(LEFT_CENSORED, T)
    size = np.concatenate([[30_000.0], A])
    tenure = t - birth[:, None]
    level = rng.normal(0, 0.1, len(birth))
    level[0] = -0.5
    shape = np.where(birth[:, None] < 0, 0.0, -0.4 * np.log(np.maximum(tenure, 1)) - 0.7 * (tenure == 0))
    born = tenure >= 0
    R = np.where(born, 0.08 * np.exp(shape + level[:, None] + 0.5 * season), np.nan)
    V = np.where(born, 50 * np.exp(0.2 * (tenure == 0) + 0.2 * season), np.nan)
    if noise:
        R = R * rng.lognormal(-(noise**2) / 2, noise, R.shape)
    Y = size[:, None] * ((tenure == 0) + R) * V
    return FirmPanel("firm", design, weeks, A, np.nansum(Y, axis=0), size, birth, R, V, Y)


def test_drivers_that_follow_the_equation_are_forecast_closely():
    full = log_linear_firm()
    seen = calibration(full)
    forecast = CohortGlm().fit(seen, seed=0).forecast(47)
    known = seen.n_cohorts
    assert np.abs(forecast.A / full.A[-47:] - 1).mean() < 0.03
    assert np.abs(forecast.R[:known] / full.R[:known, -47:] - 1).mean() < 0.03
    assert np.nanmean(np.abs(forecast.V[:known] / full.V[:known, -47:] - 1)) < 0.02
    # New cohorts' own levels cannot be known; their mean can.
    assert np.nanmean(forecast.R[known:]) == pytest.approx(np.nanmean(full.R[known:, -47:]), rel=0.06)


def test_in_sample_drivers_follow_the_panel_and_run_into_the_forecast():
    seen = calibration(log_linear_firm(noise=0.1))
    fit = CohortGlm().fit(seen, seed=0)
    inside, ahead = fit.in_sample(), fit.forecast(2)
    assert inside.R.shape == inside.V.shape == seen.R.shape
    np.testing.assert_array_equal(np.isnan(inside.R), ~seen.born)
    assert np.abs(inside.A / seen.A - 1).mean() < 0.03
    assert np.nanmean(np.abs(inside.R / seen.R - 1)) < 0.12
    old = slice(0, 100)
    np.testing.assert_allclose(ahead.R[old, 0], inside.R[old, -1], rtol=0.1)
    np.testing.assert_allclose(ahead.V[old, 0], inside.V[old, -1], rtol=0.05)


def test_sales_are_forecast_better_than_by_the_seasonal_floor():
    errors = {"cohort_glm": [], "seasonal_naive": []}
    for seed in range(6):
        full = simulate(seed, weeks=110, holdout=26)
        seen = calibration(full)
        for name, found in errors.items():
            forecast = compose(seen, build(name).fit(seen, seed=0).forecast(26))
            found += [s.smape for s in score(full, forecast, seen.origin) if s.outcome == "total_sales"]
    assert np.mean(errors["cohort_glm"]) < np.mean(errors["seasonal_naive"])


def test_slow_shocks_are_the_conditional_mean_of_a_gaussian_process():
    design, rng = ShockDesign(slow_share=0.6, memory=10.0), np.random.default_rng(0)
    shock = rng.normal(size=30)
    together = ShockDesign(0.6, 10.0).correlation(35)
    by_hand = together[30:, :30] @ np.linalg.inv(together[:30, :30]) @ shock
    np.testing.assert_allclose(design.expected(shock, 5)[30:], by_hand)


def test_flat_priors_give_the_maximum_likelihood_estimate_of_statsmodels():
    rng = np.random.default_rng(1)
    x = np.column_stack([np.ones(400), rng.normal(size=400)])
    exposure = rng.uniform(10, 50, 400)
    y = rng.poisson(exposure * np.exp(x @ [-1.0, 0.3])).astype(float)
    theirs = sm.GLM(y, x, family=sm.families.Poisson(), exposure=exposure).fit().params
    ours = fit_poisson(x, y, exposure, np.array([np.inf, np.inf]))
    np.testing.assert_allclose(ours, theirs, rtol=1e-3)


def test_eliminating_cohort_levels_solves_the_whole_system():
    """With nothing held back, fitted cohort totals equal the actual ones: Poisson's first-order condition."""
    rng = np.random.default_rng(2)
    N, T = 6, 40
    exposure = rng.uniform(50, 200, (N, T))
    y = rng.poisson(exposure * np.exp(-1 + rng.normal(0, 0.3, (N, 1)) + 0.2 * np.sin(np.arange(T)))).astype(
        float
    )
    calendar = np.column_stack([np.ones(T), np.sin(np.arange(T))])
    fit = fit_log_linear(
        y,
        exposure,
        np.zeros((N, T, 0)),
        np.zeros(0),
        calendar,
        np.array([10.0, 10.0]),
        np.zeros(2, dtype=np.int64),
        counts=True,
        wide=np.ones(N, dtype=bool),
        cell_sd=0.0,
        shocks=ShockDesign(0.0, 1.0),
    )
    mean = exposure * np.exp(calendar @ fit.calendar + fit.shock + fit.level[:, None])
    np.testing.assert_allclose(mean.sum(axis=1), y.sum(axis=1), rtol=5e-3)
    assert fit.converged
