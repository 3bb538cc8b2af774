"""LMP: Bass with attrition, and attrition read off repeat orders."""

import numpy as np
import pytest
from helpers.panels import big_panel, panel_with

from cbmt_core.models.diffusion import Bass, BassAttrition, fit_diffusion
from cbmt_core.models.lmp import Lmp

P, Q, M, D = 0.001, 0.02, 1e6, 0.01
THETA = np.log([P, Q, M])


def test_without_attrition_it_is_the_bass_model():
    weekly, exact = BassAttrition().acquired(THETA, 300), Bass().acquired(THETA, 300)
    np.testing.assert_allclose(np.cumsum(weekly)[50:], np.cumsum(exact)[50:], rtol=0.03)


def test_active_customers_settle_where_the_equation_is_in_balance():
    """p (M - N) + q (1 - d) N / M (M - N) = d N: gains replace losses."""
    N = M * np.roots([Q * (1 - D), P + D - Q * (1 - D), -P]).max()
    gained = BassAttrition(attrition=D).acquired(THETA, 3000)[-1]
    assert gained == pytest.approx(D * N, rel=1e-3)


def test_curve_is_recovered_and_extrapolated():
    curve = BassAttrition(initial=5e4, attrition=D)
    path = curve.acquired(THETA, 165)
    noisy = np.random.default_rng(2).poisson(path[:118]).astype(float)
    fit = fit_diffusion(curve, noisy, None)
    np.testing.assert_allclose(fit.acquired(np.zeros(165, dtype=np.int64))[118:], path[118:], rtol=0.1)


@pytest.mark.parametrize("version", [1, 2])
def test_attrition_comes_from_repeat_orders(version):
    panel = panel_with(big_panel(), lambda birth, week, month: 0.1 * (1 - D) ** (week - birth))
    fit = Lmp(version).fit(panel, seed=0)
    assert fit.record.parameters["acquisition"]["attrition"] == pytest.approx(D, abs=0.003)
    assert not fit.acquisition.months.any()
    assert not fit.ropc.months.any()
