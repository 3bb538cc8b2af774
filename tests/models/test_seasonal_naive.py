"""The seasonal naive forecast is last year's week times last year's growth."""

from dataclasses import replace

import numpy as np
from helpers.panels import calibration, simulate

from cbmt_core.models.seasonal_naive import SeasonalNaive


def two_years():
    return calibration(simulate(1, weeks=110, holdout=47))


def test_acquisition_is_last_years_week_times_growth():
    panel = two_years()
    forecast = SeasonalNaive().fit(panel, seed=0).forecast(47)
    growth = panel.A[-52:].sum() / panel.A[-104:-52].sum()
    np.testing.assert_allclose(forecast.A, panel.A[-52:-5] * growth)


def test_left_censored_ropc_is_last_years_week_times_growth():
    panel = two_years()
    forecast = SeasonalNaive().fit(panel, seed=0).forecast(20)
    growth = panel.R[0, -52:].sum() / panel.R[0, -104:-52].sum()
    np.testing.assert_allclose(forecast.R[0], panel.R[0, -52:-32] * growth)


def test_a_firm_without_change_is_forecast_exactly():
    """Constant acquisition, ROPC by tenure alone, one price: nothing is left to err about."""
    panel = two_years()
    T, N = panel.n_weeks, panel.n_weeks + 1
    birth = np.arange(-1, T)
    size = np.full(N, 100.0)
    tenure = np.arange(T) - birth[:, None]
    curve = np.where(birth[:, None] < 0, 0.2, np.where(tenure == 0, 0.01, 0.1))
    R = np.where(tenure >= 0, curve, np.nan)
    V = np.where(tenure >= 0, 30.0, np.nan)
    Y = size[:, None] * ((tenure == 0) + R) * V
    steady = replace(
        panel,
        A=np.full(T, 100.0),
        S=np.nansum(Y, axis=0),
        size=size,
        birth=birth,
        R=R,
        V=V,
        Y=Y,
        customers=None,
    )
    forecast = SeasonalNaive().fit(steady, seed=0).forecast(30)
    np.testing.assert_allclose(forecast.A, 100.0)
    np.testing.assert_allclose(forecast.R[0], 0.2)
    np.testing.assert_allclose(forecast.V[~np.isnan(forecast.V)], 30.0)
    new = forecast.R[N:]
    np.testing.assert_allclose(np.diag(new), 0.01, rtol=0.05)
    np.testing.assert_allclose(new[np.triu_indices(30, 1)], 0.1, rtol=0.05)


def test_less_than_a_year_carries_the_recent_mean_forward_and_says_so():
    panel = two_years()
    short = panel.until(panel.weeks[29].astype(object))
    fit = SeasonalNaive().fit(short, seed=0)
    np.testing.assert_allclose(fit.forecast(60).A, short.A[-13:].mean())
    assert "30 weeks" in fit.record.diagnosis
