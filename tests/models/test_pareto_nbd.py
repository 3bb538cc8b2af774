"""Pareto/NBD: published CDNOW figures, lifetimes as an independent computation, and recovery."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.panels import calibration, ordinary
from helpers.repeat_buying import CDNOW, MONTH, counts_panel, reference
from scipy.integrate import quad

from cbmt_core.models.pareto_nbd import (
    CustomerRows,
    ParetoNbd,
    customer_rows,
    fit_customers,
    survived_weeks,
)
from cbmt_core.models.pareto_nbd_counts import CohortCounts, _objective, fit_counts
from cbmt_core.panel import LEFT_CENSORED


def cdnow_rows() -> CustomerRows:
    """The sample as lifetimes ships it; read by hand, since `lifetimes.datasets` needs an old setuptools."""
    package = Path(find_spec("lifetimes").origin).parent
    data = pd.read_csv(package / "datasets" / "cdnow_customers_summary.csv")
    x, tx, T = (data[c].to_numpy(float) for c in ("frequency", "recency", "T"))
    return CustomerRows(np.zeros(len(x), dtype=np.int64), x, tx, T, np.ones(len(x)))


def test_cdnow_estimates_are_the_published_ones():
    rows = cdnow_rows()
    model, diagnosis = fit_customers(rows)
    assert diagnosis == ""
    assert model.r == pytest.approx(0.553, abs=0.002)
    assert model.alpha == pytest.approx(10.578, abs=0.03)
    assert model.s == pytest.approx(0.606, abs=0.005)
    assert model.beta == pytest.approx(11.669, abs=0.15)
    assert model.log_likelihood(rows.x, rows.tx, rows.T)[0].sum() == pytest.approx(-9595.0, abs=0.1)


def test_published_customer_is_expected_to_order_as_published():
    """x = 26, tx = 30.86, T = 31: alive with 0.9979, and 25.46 orders in the next 52 weeks."""
    x, tx, T = np.array([26.0]), np.array([30.86]), np.array([31.0])
    assert 1 / (1 + CDNOW.odds_dead(x, tx, T)) == pytest.approx(0.9979, abs=5e-5)
    after = survived_weeks(CDNOW.s, CDNOW.beta + T, 0.0, 52.0)
    assert CDNOW.alive_rate(x, tx, T) * after == pytest.approx(25.46, abs=0.02)


def test_likelihood_alive_and_expectations_equal_those_of_lifetimes():
    rows, fitter = cdnow_rows(), reference()
    mine = CDNOW.log_likelihood(rows.x, rows.tx, rows.T)[0]
    theirs = fitter._conditional_log_likelihood(
        (CDNOW.r, CDNOW.alpha, CDNOW.s, CDNOW.beta), rows.x, rows.tx, rows.T
    )
    np.testing.assert_allclose(mine, theirs, atol=5e-5)
    alive = fitter.conditional_probability_alive(rows.x, rows.tx, rows.T)
    np.testing.assert_allclose(1 / (1 + CDNOW.odds_dead(rows.x, rows.tx, rows.T)), alive, atol=1e-5)
    next_year = CDNOW.alive_rate(rows.x, rows.tx, rows.T) * survived_weeks(
        CDNOW.s, CDNOW.beta + rows.T, 0, 52
    )
    theirs = fitter.conditional_expected_number_of_purchases_up_to_time(52, rows.x, rows.tx, rows.T)
    np.testing.assert_allclose(next_year, theirs, rtol=1e-4)


def test_expected_curve_without_covariates_is_that_of_lifetimes():
    weeks = np.arange(120.0)
    cumulative = reference().expected_number_of_purchases_up_to_time(np.arange(121.0))
    np.testing.assert_allclose(CDNOW.expected(weeks, weeks + 1), np.diff(cumulative), rtol=1e-10)


def test_odds_of_death_are_exact_for_extreme_customers_and_parameters():
    rng = np.random.default_rng(1)
    for _ in range(100):
        m = ParetoNbd(*(np.exp(rng.normal(0, 1.2, 4)) * [1, 20, 1, 20]).tolist())
        T, x = rng.uniform(1, 160), float(rng.choice([0, 1, 3, 20, 100]))
        tx = rng.uniform(0, T) if x else 0.0

        def log_density(y, m=m, x=x, T=T):
            fall = (m.r + x) * np.log((m.alpha + T) / (m.alpha + y))
            return np.log(m.s) + fall + m.s * np.log((m.beta + T) / (m.beta + y)) - np.log(m.beta + y)

        top, near = log_density(tx), min(tx + 5 * (m.alpha + tx) / (m.r + x), T)
        mass = quad(lambda y, f=log_density, top=top: np.exp(f(y) - top), tx, near, epsabs=0, epsrel=1e-9)[0]
        mass += quad(lambda y, f=log_density, top=top: np.exp(f(y) - top), near, T, epsrel=1e-9)[0]
        mine = np.log(m.odds_dead(np.array([x]), np.array([tx]), np.array([T]))[0])
        assert mine == pytest.approx(top + np.log(mass), abs=1e-3)


def test_survived_weeks_is_continuous_where_s_is_one():
    for s in (1 - 1e-9, 1.0, 1 + 1e-9):
        assert survived_weeks(s, 10.0, 3.0, 4.0) == pytest.approx(10 * np.log(14 / 13), rel=1e-7)


def simulate_histories(n, weeks, model, seed):
    rng = np.random.default_rng(seed)
    T = rng.uniform(1, weeks, n)
    life = np.minimum(rng.exponential(1 / rng.gamma(model.s, 1 / model.beta, n)), T)
    x = rng.poisson(rng.gamma(model.r, 1 / model.alpha, n) * life).astype(float)
    tx = np.where(x > 0, life * rng.beta(np.maximum(x, 1), 1), 0.0)  # last of x uniform times
    return CustomerRows(np.zeros(n, dtype=np.int64), x, np.round(tx, 1), np.ceil(T), np.ones(n))


def test_customer_parameters_are_recovered():
    truth = ParetoNbd(0.8, 8.0, 0.7, 15.0)
    found, diagnosis = fit_customers(simulate_histories(20_000, 120, truth, 0))
    assert diagnosis == ""
    assert found.r == pytest.approx(truth.r, rel=0.1)
    assert found.r / found.alpha == pytest.approx(truth.r / truth.alpha, rel=0.05)
    t = np.arange(100.0)
    np.testing.assert_allclose(found.expected(t, t + 1), truth.expected(t, t + 1), rtol=0.1)


def test_count_parameters_are_recovered():
    panel = counts_panel(0.1, 0.8, 12.0, slope=0.15, month=MONTH)
    counts = CohortCounts.of(panel, np.arange(panel.n_cohorts))
    fit = fit_counts(counts, months=True, cohort=True)
    assert fit.converged
    assert fit.s == pytest.approx(0.8, rel=0.1)
    assert fit.theta[3] == pytest.approx(0.15, abs=0.03)
    np.testing.assert_allclose(fit.theta[4:] - fit.theta[4:].mean(), MONTH - np.mean(MONTH), atol=0.03)
    truth = counts_panel(0.1, 0.8, 12.0, slope=0.15, month=MONTH, seed=9)
    other = CohortCounts.of(truth, np.arange(truth.n_cohorts))
    assert fit.expected(other).sum() == pytest.approx(other.orders.sum(), rel=0.01)


def test_counts_and_customers_agree_on_the_curve():
    panel = calibration(ordinary())
    young = np.flatnonzero(panel.birth != LEFT_CENSORED)
    counts = CohortCounts.of(panel, young)
    by_counts = fit_counts(counts, months=False, cohort=False)
    by_customers, _ = fit_customers(customer_rows(panel).of(young))
    expected = counts.size * by_customers.expected(counts.lo, counts.hi)
    assert by_counts.expected(counts).sum() == pytest.approx(counts.orders.sum(), rel=0.03)
    assert expected.sum() == pytest.approx(counts.orders.sum(), rel=0.1)


def test_customer_rows_hold_every_customer_and_repeat_order():
    panel = calibration(ordinary())
    rows = customer_rows(panel)
    repeats = np.nansum(panel.R * panel.size[:, None], axis=1)
    np.testing.assert_allclose(np.bincount(rows.cohort, rows.weight), panel.size)
    np.testing.assert_allclose(np.bincount(rows.cohort, rows.weight * rows.x), repeats)
    assert (rows.tx <= rows.T).all()
    assert ((rows.tx == 0) == (rows.x == 0)).all()


def test_gradient_of_the_count_likelihood_is_its_slope():
    panel = counts_panel(0.1, 0.8, 12.0, weeks=40)
    counts = CohortCounts.of(panel, np.arange(panel.n_cohorts))
    rng = np.random.default_rng(0)
    args = (counts, np.zeros(16), np.ones(16), np.zeros(16, dtype=bool), 3.0)
    for s in (0.3, 1.0, 4.0):
        theta = np.concatenate([[-2.0, np.log(s), 2.0], rng.normal(0, 0.2, 13)])
        gradient = _objective(theta, *args)[1]
        for i in range(16):
            step = np.where(np.arange(16) == i, 1e-5, 0)
            slope = (_objective(theta + step, *args)[0] - _objective(theta - step, *args)[0]) / 2e-5
            assert gradient[i] == pytest.approx(slope, rel=1e-4, abs=1e-7)
