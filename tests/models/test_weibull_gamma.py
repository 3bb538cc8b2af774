"""Weibull-Gamma acquisition: identities, recovery, and sensible forecasts of all kinds of firms."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from cbmt_core.design import StudyDesign
from cbmt_core.models.contract import CannotFit
from cbmt_core.models.weibull_gamma import WeibullGamma, _Problem, _Weeks, adopted_share
from cbmt_core.panel import LEFT_CENSORED, FirmPanel


def panel_of(acquired, base=0.0):
    """A panel in which only acquisition matters."""
    acquired = np.asarray(acquired, dtype=float)
    design = StudyDesign()
    weeks = design.calibration.dates()[0] + 7 * np.arange(len(acquired))
    birth = np.flatnonzero(acquired > 0)
    size = acquired[birth]
    if base:
        birth, size = np.r_[LEFT_CENSORED, birth], np.r_[base, size]
    shape = len(birth), len(acquired)
    nothing = np.zeros(shape)
    return FirmPanel(
        "firm", design, weeks, acquired, nothing.sum(axis=0), size, birth, nothing, nothing, nothing
    )


def weekly(market, before, c, r, alpha, weeks):
    t = np.arange(before, before + weeks + 1.0)
    return market * np.diff(1 - (alpha / (alpha + t**c)) ** r)


def test_adopted_share_is_a_weibull_mixed_by_a_gamma():
    """Monte Carlo over the gamma of the Weibull's own distribution function."""
    rates = np.random.default_rng(0).gamma(0.7, 1 / 50.0, 400_000)
    for t in (1.0, 20.0, 200.0):
        mixed = np.mean(1 - np.exp(-rates * t**1.3))
        assert adopted_share(np.array([t**1.3]), 0.7, 50.0)[0] == pytest.approx(mixed, abs=3e-3)


@pytest.mark.parametrize(("c", "r", "alpha"), [(1.2, 1.0, 2000.0), (0.9, 1.0, 300.0), (1.0, 2.0, 900.0)])
def test_curve_is_recovered_and_extrapolated(c, r, alpha):
    truth = weekly(200_000, 104, c, r, alpha, 165)
    won = np.random.default_rng(3).poisson(truth)
    before = 200_000 * adopted_share(np.array([104.0**c]), r, alpha)[0]
    fit = WeibullGamma.fit(panel_of(won[:118], base=0.8 * before), months=False)
    np.testing.assert_allclose(fit.expected(118).sum(), truth[:118].sum(), rtol=0.01)
    np.testing.assert_allclose(fit.forecast(47), truth[118:], rtol=0.12)


def test_months_are_recovered():
    effect = np.array([0, 0, 0.1, 0, 0, 0.2, 0, -0.2, 0, 0, 0.4, 0.3])
    panel = panel_of(np.ones(165), base=50_000.0)
    month = panel.calendar().month
    truth = 800 * np.exp(effect[month])
    won = np.random.default_rng(0).poisson(truth)
    fit = WeibullGamma.fit(panel_of(won[:118], base=50_000.0), months=True)
    assert np.abs(fit.forecast(47) / truth[118:] - 1).mean() < 0.06
    plain = WeibullGamma.fit(panel_of(won[:118], base=50_000.0), months=False)
    assert np.abs(plain.forecast(47) / truth[118:] - 1).mean() > 0.1


@pytest.mark.parametrize("months", [False, True])
@pytest.mark.parametrize("growth", [-0.01, 0.0, 0.01])
def test_growing_flat_and_declining_firms_go_on_their_way(growth, months):
    path = 500 * np.exp(growth * np.arange(165))
    won = np.random.default_rng(1).poisson(path)
    forecast = WeibullGamma.fit(panel_of(won[:118], base=20_000.0), months=months).forecast(47)
    recent = won[105:118].mean()
    assert 0.6 * path[-1] < forecast[-1] < 1.6 * path[-1]
    assert (forecast[-1] - recent) * growth >= -0.1 * recent * abs(growth)


def test_gradient_is_the_slope_of_the_objective():
    won = weekly(50_000, 52, 1.1, 1.0, 900.0, 60)
    month = (np.arange(112) // 4) % 12
    for base in (100.0, 1e5):
        problem = _Problem(_Weeks(won, base, 2.0), 60_000.0, 52, month)
        theta = np.concatenate([[0.2, -0.1, 7.0], np.linspace(-0.2, 0.2, 12)])
        gradient = problem.objective(theta)[1]
        for i in range(15):
            step = np.where(np.arange(15) == i, 1e-6, 0)
            slope = (problem.objective(theta + step)[0] - problem.objective(theta - step)[0]) / 2e-6
            assert gradient[i] == pytest.approx(slope, rel=1e-4, abs=1e-7)


def test_firm_that_starts_inside_the_panel():
    won = np.r_[np.zeros(40), np.full(78, 100.0)]
    fit = WeibullGamma.fit(panel_of(won), months=True)
    assert np.all(fit.expected(118)[:40] == 0)
    assert 50 < fit.forecast(20).mean() < 200


def test_one_odd_week_moves_little():
    won = np.full(118, 300.0)
    odd = np.where(np.arange(118) == 60, 1e5, won)
    panels = panel_of(won, 5000.0), panel_of(odd, 5000.0)
    calm, moved = (WeibullGamma.fit(p, months=True).forecast(30) for p in panels)
    np.testing.assert_allclose(moved, calm, rtol=0.2)


def test_forecast_is_self_contained_and_never_negative():
    fit = WeibullGamma.fit(panel_of(np.linspace(400, 1, 118), 1000.0), months=True)
    again = WeibullGamma.from_values(fit.values())
    assert np.array_equal(again.forecast(60), fit.forecast(60))
    assert (fit.forecast(200) >= 0).all()
    assert again.first_week == date(2017, 1, 1)


def test_too_few_weeks_are_refused():
    with pytest.raises(CannotFit, match="weeks since the first acquisition"):
        WeibullGamma.fit(panel_of(np.full(8, 10.0)), months=False)
    nobody = panel_of(np.full(60, 10.0))
    with pytest.raises(CannotFit, match="0 weeks"):
        WeibullGamma.fit(replace(nobody, A=np.zeros(60)), months=False)
