"""WG-PNBD: groups of cohorts, continuity with the observed past, and what the record says."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.panels import calibration, ordinary
from helpers.repeat_buying import MONTH, counts_panel, reference

from cbmt_core.models import build
from cbmt_core.models.pareto_nbd import customer_rows, fit_customers, survived_weeks
from cbmt_core.models.wg_pnbd import RepeatBuying, WgPnbd, acquisition_groups
from cbmt_core.panel import LEFT_CENSORED

NAMES = ["wg_pnbd_fp", "wg_pnbd_pp", "wg_pnbd_e_fp", "wg_pnbd_e_pp"]


def test_groups_are_those_of_the_paper():
    """2016; Q1 2017, ..., Q1 2018; Q2 2018 and all that follow."""
    panel = counts_panel(0.1, 0.8, 12.0, censored=True)
    groups = acquisition_groups(panel, pooled=False)
    first = [
        None if panel.birth[g[0]] == LEFT_CENSORED else str(panel.weeks[panel.birth[g[0]]]) for g in groups
    ]
    assert first == [None, "2017-01-01", "2017-04-02", "2017-07-02", "2017-10-01", "2017-12-31", "2018-04-01"]
    assert np.array_equal(np.concatenate(groups), np.arange(panel.n_cohorts))
    assert [len(g) for g in acquisition_groups(panel, pooled=True)] == [1, 118]


def test_small_groups_are_merged_and_nobody_is_lost():
    panel = counts_panel(0.1, 0.8, 12.0, censored=True, size=5.0)
    groups = acquisition_groups(panel, pooled=False)
    assert np.array_equal(np.sort(np.concatenate(groups)), np.arange(panel.n_cohorts))
    assert all(panel.size[g].sum() >= 100 for g in groups[1:])


@pytest.mark.parametrize("name", ["wg_pnbd_e_fp", "wg_pnbd_e_pp"])
def test_repeat_orders_of_known_and_new_cohorts_are_recovered(name):
    """Counts made by the model itself are forecast up to their parameters."""
    full = counts_panel(0.1, 0.8, 12.0, month=MONTH, weeks=165, censored=True, seed=4)
    panel = full.until(full.weeks[117].astype(object))
    R = build(name).fit(panel, seed=0).forecast(47).R
    truth = counts_panel(0.1, 0.8, 12.0, month=MONTH, weeks=165, censored=True, size=1e7).R[:, 118:]
    old, new = slice(0, panel.n_cohorts), slice(panel.n_cohorts, None)
    for rows in (old, new):
        actual, forecast = np.nanmean(truth[rows], axis=0), np.nanmean(R[rows], axis=0)
        np.testing.assert_allclose(forecast, actual, rtol=0.12)
    np.testing.assert_allclose(R[0], truth[0], rtol=0.15)


@pytest.mark.parametrize("name", ["wg_pnbd_fp", "wg_pnbd_pp"])
def test_known_cohorts_follow_the_conditional_expectation_of_their_customers(name):
    """An independent sum over single customers, by lifetimes, for the left-censored cohort."""
    panel = calibration(ordinary())
    fitted = build(name).fit(panel, seed=0)
    rows = customer_rows(panel).of(np.array([0]))
    model, _ = fit_customers(rows)
    # lifetimes' hypergeometric series overflows at a huge beta; the same curve lies within its reach.
    near = replace(model, s=min(model.s, 8.0), beta=model.beta * min(model.s, 8.0) / model.s)
    total = reference(near).conditional_expected_number_of_purchases_up_to_time(13.0, rows.x, rows.tx, rows.T)
    expected = total @ rows.weight / rows.weight.sum()
    assert fitted.forecast(13).R[0].sum() == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("name", NAMES)
def test_record_says_how_repeat_buying_was_estimated(name):
    panel = calibration(ordinary())
    record = build(name).fit(panel, seed=0).record
    ways = {g["by"] for g in record.parameters["repeat"]}
    assert ways == ({"counts"} if "_e_" in name else {"customers"})
    assert record.converged
    assert record.diagnosis == ""
    without = build(name).fit(replace(panel, customers=None), seed=0).record
    assert {g["by"] for g in without.parameters["repeat"]} == {"counts"}


@pytest.mark.parametrize("name", ["wg_pnbd_fp", "wg_pnbd_pp"])
def test_customers_and_counts_lead_to_similar_forecasts(name):
    panel = calibration(ordinary())
    one = build(name).fit(panel, seed=0).forecast(26).R
    other = build(name).fit(replace(panel, customers=None), seed=0).forecast(26).R
    known = slice(0, panel.n_cohorts)
    weights = panel.size[:, None]
    assert (weights * one[known]).sum() == pytest.approx((weights * other[known]).sum(), rel=0.2)


def test_cohort_number_fades_out_after_the_last_cohort():
    birth = np.array([0])
    flat = RepeatBuying(birth, np.zeros(2), np.full(2, 0.8), np.full(2, 12.0), np.zeros((2, 12)), 0.0)
    steep = replace(flat, slope=1.0)
    month = np.zeros(520, dtype=np.int64)
    ratio = np.diag(steep.forecast(1, month)[1:]) / np.diag(flat.forecast(1, month)[1:])
    assert np.all(np.diff(ratio) >= 0)
    assert ratio[-1] < np.exp(0.51)


def test_a_week_of_repeat_orders_is_rate_times_survived_weeks():
    model = RepeatBuying(
        np.array([LEFT_CENSORED, 3]),
        np.log([0.2, 0.1, 0.1]),
        np.full(3, 0.8),
        np.full(3, 12.0),
        np.zeros((3, 12)),
        0.0,
    )
    R = model.forecast(10, np.zeros(2, dtype=np.int64))
    assert R[0, 0] == pytest.approx(0.2 * survived_weeks(0.8, 12.0, 10.0, 11.0))
    assert R[1, 1] == pytest.approx(0.1 * survived_weeks(0.8, 12.0, 7.5, 8.5))
    assert R[2, 0] == pytest.approx(0.1 * survived_weeks(0.8, 12.0, 0.0, 0.5))
    assert np.isnan(R[3, 0])


def test_names_match_the_registry():
    for name in NAMES:
        model = build(name)
        assert isinstance(model, WgPnbd)
        assert model.name == name
