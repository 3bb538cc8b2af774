"""SSW: the Bass curve with its identities, and constant retention."""

import numpy as np
import pytest
from helpers.panels import big_panel, calibration, panel_with, simulate
from scipy.integrate import solve_ivp

from cbmt_core.models.diffusion import Bass, fit_diffusion
from cbmt_core.models.ropc_regression import RopcRegression
from cbmt_core.models.ssw import Ssw

P, Q, M = 0.001, 0.02, 1e6


@pytest.mark.parametrize("initial", [0.0, 2e5])
def test_curve_solves_the_differential_equation(initial):
    path = Bass(initial).acquired(np.log([P, Q, M]), 150)
    ode = solve_ivp(
        lambda t, N: (P + Q * N / M) * (M - N),
        (0, 150),
        [initial],
        t_eval=np.arange(151),
        rtol=1e-10,
        atol=1e-6,
    )
    np.testing.assert_allclose(path, np.diff(ode.y[0]), rtol=1e-5)


def test_peak_comes_when_bass_says():
    # Bass (1969): t* = ln(q / p) / (p + q)
    path = Bass().acquired(np.log([P, Q, M]), 400)
    assert np.argmax(path) == pytest.approx(np.log(Q / P) / (P + Q), abs=1.0)


def test_the_market_is_never_exceeded():
    assert Bass(9e5).acquired(np.log([P, Q, M]), 2000).sum() == pytest.approx(1e5, rel=1e-3)


def test_bass_curve_is_recovered_and_extrapolated():
    path = Bass(5e4).acquired(np.log([P, Q, M]), 165)
    noisy = np.random.default_rng(1).poisson(path[:118]).astype(float)
    fit = fit_diffusion(Bass(5e4), noisy, None)
    _, q, market = np.exp(fit.theta)
    assert q == pytest.approx(Q, rel=0.1)
    assert market == pytest.approx(M, rel=0.15)
    np.testing.assert_allclose(fit.acquired(np.zeros(165, dtype=np.int64))[118:], path[118:], rtol=0.1)


def retained(birth, week, month):
    return np.where(birth < 0, 0.10, 0.12) * 0.98 ** (week - birth)


def test_retention_is_recovered_from_weekly_totals():
    panel = panel_with(big_panel(), retained)
    fit = RopcRegression.fit_stock(panel, months=False)
    assert fit.attrition == pytest.approx(0.02, abs=0.003)
    repeat = panel.size[:, None] * retained(panel.birth[:, None], np.arange(118, 150), None)
    ours = panel.size[:, None] * fit.forecast(np.zeros(32, dtype=np.int64))[: panel.n_cohorts]
    np.testing.assert_allclose(ours.sum(axis=0), repeat.sum(axis=0), rtol=0.03)


def test_retention_is_recovered_from_cohort_weeks():
    panel = panel_with(big_panel(), retained)
    fit = RopcRegression.fit_cells(panel, months=True, scale="tenure")
    assert fit.attrition == pytest.approx(0.02, abs=1e-3)
    truth = retained(panel.birth[:, None], np.arange(118, 150), None)
    month = panel.calendar(32).month[118:]
    np.testing.assert_allclose(fit.forecast(month)[: panel.n_cohorts], truth, rtol=0.03)


def test_nobody_is_retained_more_than_fully():
    panel = panel_with(big_panel(), lambda birth, week, month: 0.05 * 1.01 ** (week - birth))
    fit = RopcRegression.fit_cells(panel, months=False, scale="tenure")
    assert fit.young[1] <= 0
    assert fit.censored[1] <= 0


def test_washout_customers_are_the_first_adopters():
    panel = calibration(simulate(1))
    assert Ssw(1).fit(panel, seed=0).acquisition.curve == Bass(initial=160.0)
    assert Ssw(1).fit(calibration(simulate(1, censored=0, washout=0)), seed=0).acquisition.curve == Bass(0.0)
