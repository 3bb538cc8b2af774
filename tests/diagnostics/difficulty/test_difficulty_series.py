"""Statistics of plain series at values known in closed form."""

import math

import numpy as np
import pytest

from cbmt_core.diagnostics.difficulty import measures, series

T = np.arange(120)


def test_equal_shares_have_the_smallest_concentration():
    assert series.herfindahl(np.full(40, 3.0)) == pytest.approx(1 / 40)
    assert series.herfindahl(np.array([0.0, 9.0, 0.0])) == 1


def test_gini_of_one_owner_and_of_equals():
    assert series.gini(np.full(7, 5.0)) == 0
    assert series.gini(np.array([0.0, 0.0, 0.0, 8.0])) == pytest.approx(3 / 4)
    assert series.gini(np.array([1.0, 3.0])) == pytest.approx(1 / 4)


def test_exponential_growth_is_found_exactly_and_does_not_accelerate():
    x = 100 * np.exp(0.3 * T / 52)
    assert measures.annual_growth(x) == pytest.approx(0.3)
    assert measures.acceleration(x) == pytest.approx(0, abs=1e-12)
    assert measures.acceleration(100 * np.exp((T / 52) ** 2)) > 0.5


def test_a_cubic_in_logs_with_months_is_explained_entirely():
    month = (T // 4) % 12
    logs = 3 + (T / 60 - 1) ** 3 + 0.2 * np.sin(month)
    assert series.fit_r2(np.expm1(logs), T, 3, month) == pytest.approx(1)
    assert series.fit_r2(np.expm1(logs), T, 3) < 0.99


def test_a_fit_without_spare_observations_or_variation_has_no_r2():
    assert math.isnan(series.fit_r2(np.arange(4.0), np.arange(4), 3))
    assert math.isnan(series.fit_r2(np.full(50, 2.0), np.arange(50), 1))


def test_entropy_is_0_for_a_wave_and_1_for_a_flat_spectrum():
    assert series.spectral_entropy(np.sin(2 * np.pi * T / 12)) == pytest.approx(0, abs=1e-9)
    assert series.spectral_entropy((T == 50).astype(float)) == pytest.approx(1)
    assert series.spectral_entropy(np.random.default_rng(0).normal(size=120)) > 0.85


def test_autocorrelation_of_alternating_and_autoregressive_series():
    assert series.autocorrelation(np.where(T % 2, 1.0, -1.0) + 0.5 * T, 1) == pytest.approx(-1, abs=0.02)
    rng = np.random.default_rng(1)
    x = np.zeros(5000)
    for t in range(1, 5000):
        x[t] = 0.7 * x[t - 1] + rng.normal()
    assert series.autocorrelation(x, 1) == pytest.approx(0.7, abs=0.04)
    assert series.partial_autocorrelation(x, 4) == pytest.approx(0, abs=0.04)


def test_planted_changes_of_level_are_counted():
    rng = np.random.default_rng(2)
    noise = rng.normal(0, 0.1, size=120)
    for levels in ([5], [5, 6], [5, 6, 5.3], [5, 6, 5.3, 7]):
        step = np.repeat(levels, 120 // len(levels))
        assert series.changepoints(np.expm1(step + noise)) == len(levels) - 1
    assert series.changepoints(np.full(120, 4.0)) == 0
    assert series.changepoints(np.repeat([2.0, 9.0], 60)) == 1


def test_one_odd_week_is_no_change_of_level():
    x = np.exp(5 + np.random.default_rng(3).normal(0, 0.1, size=120))
    x[60] *= 1.5
    assert series.changepoints(x) == 0


def test_noise_seldom_shows_a_change():
    rng = np.random.default_rng(4)
    found = [series.changepoints(np.exp(5 + rng.normal(0, 0.2, size=120))) for _ in range(40)]
    assert np.mean(np.array(found) > 0) <= 0.25
