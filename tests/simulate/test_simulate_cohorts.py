"""The cohort-level sampler: identities, laws, and an economy like the paper's."""

from __future__ import annotations

import numpy as np
import pytest

from cbmt_core.errors import BadFirmData
from cbmt_core.panel import LEFT_CENSORED
from cbmt_core.simulate import Economy, expected_cohorts, sample_cohorts
from cbmt_core.simulate.behaviour import behaviour_of
from cbmt_core.simulate.cohorts import _distinct

# Paper, table "Summary Statistics Across 966 Companies": 25 %, median, 75 %; calibration, then holdout.
PAPER = {
    "acquisition": (350.3, 775.9, 1854.9, 289.4, 606.6, 1310.9),
    "active customers": (2133.7, 4364.2, 12858.9, 2266.4, 4533.9, 13396.1),
    "ROPC": (0.020, 0.040, 0.094, 0.015, 0.030, 0.074),
    "AOV": (26.1, 49.5, 99.1, 26.9, 49.6, 99.8),
    "sales": (127910.3, 338153.7, 936679.1, 137732.1, 352013.6, 1046004.0),
}


@pytest.fixture(scope="module")
def economy():
    return Economy(firms=40, scale=0.2)


def test_the_panel_composes_sales_from_its_drivers(economy):
    for spec in economy.specs()[:8]:
        sample = sample_cohorts(economy, spec)
        panel = sample.panel()
        assert panel.firm == spec.name
        assert panel.birth[0] == LEFT_CENSORED
        assert (np.diff(panel.birth) > 0).all()
        composed = panel.size[:, None] * (panel.is_birth + panel.R) * np.nan_to_num(panel.V)
        np.testing.assert_allclose(composed[panel.born], panel.Y[panel.born], atol=1e-6)
        np.testing.assert_allclose(panel.S, sample.sales.sum(axis=0))
        assert np.isnan(panel.R[~panel.born]).all()
        assert panel.A.sum() == panel.size[1:].sum()
        assert (np.isnan(panel.V) == (panel.orders == 0)).all()


def test_counts_are_possible(economy):
    for spec in economy.specs()[:8]:
        sample = sample_cohorts(economy, spec)
        for counts in (sample.size, sample.repeat_orders, sample.active):
            assert (counts >= 0).all()
            assert (counts == np.rint(counts)).all()
        assert (sample.active <= sample.orders).all()
        assert (sample.active <= sample.size[:, None]).all()
        assert ((sample.active > 0) == (sample.orders > 0)).all()
        assert ((sample.sales > 0) == (sample.orders > 0)).all()
        weeks = np.arange(len(sample.acquired))
        assert (sample.active[1 + weeks, weeks] == sample.acquired).all()


def test_samples_scatter_around_the_expectation(economy):
    """Over 40 firms the ratios average out; a bias of one percent would show."""
    ratios = []
    for spec in economy.specs():
        sample, expected = sample_cohorts(economy, spec), expected_cohorts(economy, spec)
        ratios.append(
            [
                getattr(sample, name).sum() / getattr(expected, name).sum()
                for name in ("size", "repeat_orders", "active", "sales")
            ]
        )
    error = np.std(ratios, axis=0, ddof=1) / np.sqrt(len(ratios))
    assert (np.abs(np.mean(ratios, axis=0) - 1) < 4 * error + 0.002).all()


def test_distinct_customers_match_a_simulation():
    rng = np.random.default_rng(0)
    customers, shape, orders = 30, 0.5, 12
    rates = rng.gamma(shape, size=(20_000, customers))
    chances = np.cumsum(rates / rates.sum(axis=1, keepdims=True), axis=1)
    who = (rng.random((20_000, orders, 1)) > chances[:, None, :]).sum(axis=2)
    ordered = np.sort(who, axis=1)
    simulated = (1 + (np.diff(ordered, axis=1) > 0).sum(axis=1)).mean()
    exact = _distinct(np.array([float(orders)]), np.array([float(customers)]), shape)[0]
    assert exact == pytest.approx(simulated, rel=0.01)


def test_the_share_of_the_base_that_the_washout_reveals(economy):
    rng = np.random.default_rng(1)
    for spec in economy.specs()[:3]:
        b = behaviour_of(economy, spec)
        n, start = 40_000, b.timeline.study_start
        lives = rng.random(n)[:, None] < b.alive[-1, :start]
        rate = rng.gamma(b.parameters.rate_shape, 1 / b.parameters.rate_shape, n)
        orders = rng.poisson(rate * (lives @ b.rate[-1, :start]))
        assert (orders > 0).mean() == pytest.approx(b.base_revealed, abs=0.01)


def test_retention_falls_steeply_then_levels(economy):
    """Median firm, whole cohorts of the first study year, by tenure (paper, section "Estimands")."""
    curves = []
    for spec in economy.specs():
        expected = expected_cohorts(economy, spec)
        ropc = expected.repeat_orders[1:53] / expected.size[1:53, None]
        by_tenure = np.mean([ropc[k, k + 1 : k + 112] for k in range(52)], axis=0)
        curves.append([by_tenure[:4].mean(), by_tenure[28:32].mean(), by_tenure[100:104].mean()])
    early, middle, late = np.median(curves, axis=0)
    assert middle < 0.6 * early
    assert 0.5 * middle < late < middle


def test_a_firm_without_customers_says_so():
    economy = Economy(firms=1, scale=1e-9)
    with pytest.raises(BadFirmData, match="scale"):
        sample_cohorts(economy, economy.specs()[0]).panel()


@pytest.mark.slow
def test_quartiles_of_the_full_economy_are_the_papers():
    economy = Economy()
    rows = []
    for spec in economy.specs():
        sample = sample_cohorts(economy, spec)
        acquired, repeat = sample.acquired, sample.repeat_orders.sum(axis=0)
        sales, active = sample.sales.sum(axis=0), sample.active.sum(axis=0)
        so_far = sample.size[0] + np.cumsum(acquired)
        series = np.array([acquired, active, repeat / so_far, sales / (repeat + acquired), sales])
        calibration = len(economy.design.calibration)
        rows.append([series[:, :calibration].mean(axis=1), series[:, calibration:].mean(axis=1)])
    quartiles = np.percentile(rows, [25, 50, 75], axis=0)  # [quartile, window, metric]
    for k, (metric, wanted) in enumerate(PAPER.items()):
        np.testing.assert_allclose(quartiles[:, :, k].T.ravel(), wanted, rtol=0.20, err_msg=metric)
