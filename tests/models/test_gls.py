"""GLS: the logistic curve, its recovery, and the regressions beside it."""

import numpy as np
import pytest
from helpers.panels import big_panel, panel_with

from cbmt_core.models.diffusion import Logistic, fit_diffusion, month_effects, tamed
from cbmt_core.models.gls import Gls
from cbmt_core.models.ropc_regression import RopcRegression

MONTHS = np.log([0.8, 0.9, 1.0, 1.0, 1.1, 1.0, 0.9, 0.9, 1.0, 1.0, 1.3, 1.5])


def test_logistic_acquisition_is_the_difference_of_the_published_curve():
    a, b, c = 5000.0, -3.0, 0.05
    theta = np.array([np.log(a), np.log(c), -b / c])
    t = np.arange(101)
    N = a / (1 + np.exp(-b - c * t))
    np.testing.assert_allclose(Logistic().acquired(theta, 100), np.diff(N))
    assert Logistic().named(theta) == pytest.approx({"a": a, "b": b, "c": c})


def test_logistic_curve_is_recovered_and_extrapolated():
    truth = np.array([np.log(4e5), np.log(0.02), 70.0])
    path = Logistic().acquired(truth, 165)
    noisy = np.random.default_rng(0).poisson(path[:118]).astype(float)
    fit = fit_diffusion(Logistic(), noisy, None)
    assert fit.converged
    np.testing.assert_allclose(fit.theta, truth, rtol=0.05)
    months = np.zeros(165, dtype=np.int64)
    np.testing.assert_allclose(fit.acquired(months)[118:], path[118:], rtol=0.1)


def test_month_effects_are_recovered_beside_the_curve():
    panel = big_panel()
    month = panel.calendar(47).month
    truth = np.array([np.log(4e5), np.log(0.012), 60.0])
    path = Logistic().acquired(truth, 165) * np.exp(MONTHS[month])
    fit = fit_diffusion(Logistic(), path[:118], month[:118])
    np.testing.assert_allclose(fit.acquired(month)[118:], path[118:], rtol=0.12)
    assert np.corrcoef(fit.months, MONTHS)[0, 1] > 0.98


def test_month_effects_are_ratios_of_totals():
    month = np.repeat(np.arange(12), 4)
    expected = np.full(48, 1000.0)
    effect = month_effects(expected * np.exp(MONTHS[month]), expected, month)
    # Four weeks against a prior of one: the log ratio is four fifths of the way at least.
    centred = MONTHS - MONTHS.mean()
    assert np.all(np.abs(effect - centred) <= 0.3 * np.abs(centred) + 0.02)
    assert effect.mean() == pytest.approx(0.0)


def test_one_absurd_week_is_brought_down_and_ordinary_weeks_are_not():
    series = np.random.default_rng(0).poisson(100, 80).astype(float)
    absurd = series.copy()
    absurd[40] = 1e5
    assert tamed(absurd)[40] < 400
    np.testing.assert_array_equal(tamed(series), series)


def test_weekly_ropc_with_trend_and_months_is_recovered():
    panel = panel_with(
        big_panel(), lambda birth, week, month: 0.1 * np.exp(-0.002 * week + MONTHS[month]) + 0 * birth
    )
    fit = RopcRegression.fit_weekly(panel, months=True)
    month = panel.calendar(8).month[118:]
    np.testing.assert_allclose(
        fit.forecast(month)[0], 0.1 * np.exp(-0.002 * np.arange(118, 126) + MONTHS[month]), rtol=0.03
    )


def test_cohort_ropc_on_log_tenure_is_recovered():
    def rate(birth, week, month):
        young = 0.3 * (1.0 + np.maximum(week - birth, 0)) ** -0.6
        return np.where(birth < 0, 0.05 * np.exp(-0.004 * (week + 1)), young) * np.exp(MONTHS[month])

    panel = panel_with(big_panel(), rate)
    fit = RopcRegression.fit_cells(panel, months=True, scale="log_tenure")
    month = panel.calendar(20).month
    week = np.arange(118, 138)
    truth = rate(panel.birth[:, None], week, month[118:])
    np.testing.assert_allclose(fit.forecast(month[118:])[: panel.n_cohorts], truth, rtol=0.06)
    assert fit.young[1] == pytest.approx(-0.6, abs=0.02)


def test_versions_use_what_they_are_said_to_use():
    panel = big_panel()
    fits = {v: Gls(v).fit(panel, seed=0) for v in (1, 2, 3)}
    assert not fits[1].acquisition.months.any()
    assert not fits[1].ropc.months.any()
    assert fits[2].acquisition.months.any()
    same = fits[2].forecast(5).R[: panel.n_cohorts]
    np.testing.assert_allclose(same, np.broadcast_to(same[0], same.shape))
    by_cohort = fits[3].forecast(5).R
    assert by_cohort[-6, 0] != by_cohort[1, 0]
