"""Single orders: plausible one by one, and in sum what the cohort level says."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import pytest
from helpers.simulated_tables import tables_of

from cbmt_core.design import StudyDesign
from cbmt_core.simulate import Economy, expected_cohorts, sample_cohorts, sample_orders

SCALE = 0.15
FIRMS = [0, 1, 2, 3, 7]


@pytest.fixture(scope="module")
def economy():
    return Economy(firms=10, scale=SCALE)


@pytest.fixture(scope="module")
def orders(economy):
    specs = economy.specs()
    return {index: sample_orders(economy, specs[index]) for index in FIRMS}


def test_columns_are_what_a_firm_would_deliver(economy, orders):
    for index, frame in orders.items():
        spec = economy.specs()[index]
        assert list(frame.columns) == ["firm", "customer", "order_id", "order_time", "amount", "industry"]
        assert set(frame["firm"]) == {spec.name}
        assert set(frame["industry"]) == {spec.industry}
        assert frame["order_id"].is_unique
        assert frame["order_time"].is_monotonic_increasing


def test_orders_lie_in_the_observed_days_and_cost_whole_cents(economy, orders):
    for frame in orders.values():
        days = frame["order_time"].dt.date
        assert days.min() >= economy.design.observed_from
        assert days.max() <= economy.design.observed_to
        cents = 100 * frame["amount"].to_numpy()
        assert cents.min() >= 1 - 1e-9
        assert np.abs(cents - np.rint(cents)).max() < 1e-6


def test_people_order_by_day_and_at_weekends(orders):
    time = pd.concat([frame["order_time"] for frame in orders.values()])
    by_hour = time.dt.hour.value_counts(normalize=True)
    assert by_hour[[2, 3, 4]].sum() < 0.02 < by_hour[[12, 18]].min()
    by_day = time.dt.day_of_week.value_counts(normalize=True)
    assert by_day[[4, 5]].sum() > by_day[[0, 1]].sum() * 1.1


def test_every_order_level_cohort_agrees_with_the_expectation(economy, orders):
    """Both levels are one law: sums over blocks of cohort-weeks agree within sampling error."""
    for index, frame in orders.items():
        spec = economy.specs()[index]
        seen, expected = tables_of(frame, economy.design), expected_cohorts(economy, spec)
        sampled = sample_cohorts(economy, spec)
        assert abs(seen.size[0] - expected.size[0]) < 4.5 * np.sqrt(expected.size[0])
        wild = np.abs(seen.size[1:] - expected.acquired) / np.sqrt(expected.acquired)
        assert wild.max() < 5
        for name in ("repeat_orders", "active", "sales"):
            for rows in (slice(0, 1), slice(1, 60), slice(60, 166)):
                mean = getattr(expected, name)[rows].sum()
                # Orders of n customers with gamma rates: their sum scatters like that of far fewer.
                scatter = 5 * np.sqrt(6 / expected.size[rows].sum()) + 5 * np.sqrt(3 / mean)
                for level in (seen, sampled):
                    assert getattr(level, name)[rows].sum() == pytest.approx(mean, rel=scatter)


def test_nobody_silent_in_the_washout_comes_back_as_an_old_customer(economy, orders):
    """Acquisition in the study's first weeks would swell if silent old customers were let in."""
    for index, frame in orders.items():
        expected = expected_cohorts(economy, economy.specs()[index])
        first_quarter = tables_of(frame, economy.design).size[1:14].sum()
        mean = expected.acquired[:13].sum()
        assert abs(first_quarter - mean) < 4.5 * np.sqrt(mean)


def test_scale_thins_customers_and_keeps_the_shape():
    small, large = Economy(firms=4, scale=0.05), Economy(firms=4, scale=0.5)
    for spec in small.specs():
        a, b = expected_cohorts(small, spec), expected_cohorts(large, spec)
        for name in ("size", "repeat_orders", "sales", "active"):
            np.testing.assert_allclose(10 * getattr(a, name), getattr(b, name), rtol=1e-9)


def test_without_a_washout_there_is_no_left_censored_cohort():
    design = StudyDesign.for_span(date(2018, 1, 7), date(2019, 12, 31), washout_weeks=0)
    economy = Economy(firms=3, scale=0.1, design=design)
    for spec in economy.specs():
        sample = sample_cohorts(economy, spec)
        assert sample.birth.min() == 0
        tables = tables_of(sample_orders(economy, spec), design)
        assert tables.size[0] == 0
        assert tables.size[1:].sum() == pytest.approx(sample.size.sum(), rel=0.15)


def test_unfinished_weeks_hold_only_their_observed_days():
    design = StudyDesign.for_span(date(2016, 1, 1), date(2019, 1, 2))
    economy = Economy(firms=2, scale=0.1, design=design)
    for spec in economy.specs():
        time = sample_orders(economy, spec)["order_time"].dt.date
        assert time.max() == date(2019, 1, 2)
        assert time.min() == date(2016, 1, 1)
