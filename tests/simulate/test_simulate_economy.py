"""Who is in the economy, and that nothing but the seed decides it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbmt_core.names import MAX_SLUG, Unit
from cbmt_core.simulate import INDUSTRIES, Economy, sample_cohorts, sample_orders, truth_of
from cbmt_core.simulate.industries import allocate

PAPER_COUNTS = {"Restaurants": 192, "Grocers": 111, "Apparel & Accessories": 109, "Gig Economy Income": 2}


def test_the_full_economy_has_the_papers_industries():
    counts = {industry.name: industry.firms for industry in INDUSTRIES}
    assert len(counts) == 25
    assert sum(counts.values()) == 966
    assert PAPER_COUNTS.items() <= counts.items()
    assert {name: [i.name for i in allocate(966)].count(name) for name in counts} == counts


@given(st.integers(1, 3000))
@settings(max_examples=60, deadline=None)
def test_any_number_of_firms_is_shared_out_by_quota(firms):
    names = [industry.name for industry in allocate(firms)]
    assert len(names) == firms
    for industry in INDUSTRIES:
        assert abs(names.count(industry.name) - industry.firms * firms / 966) < 1


def test_a_small_demo_has_several_industries():
    assert len({spec.industry for spec in Economy(firms=8).specs()}) >= 5


@pytest.mark.parametrize("firms", [1, 30, 966, 1500])
def test_names_are_unique_and_survive_a_path(firms):
    specs = Economy(firms=firms).specs()
    assert len({spec.name.casefold() for spec in specs}) == firms
    for spec in specs:
        assert len(spec.slug) <= MAX_SLUG
        assert Unit.from_slug(spec.slug).firm == spec.name


def test_names_hold_what_breaks_careless_code():
    text = "".join(spec.name for spec in Economy(firms=60).specs())
    assert set(",\"'&/%") <= set(text)
    assert not text.isascii()


def test_parameters_do_not_depend_on_scale():
    assert Economy(firms=20, scale=0.01).specs() == Economy(firms=20).specs()


def test_another_seed_is_another_economy():
    one, two = Economy(firms=5, seed=1).specs(), Economy(firms=5, seed=2).specs()
    assert all(a.name != b.name and a.parameters != b.parameters for a, b in zip(one, two, strict=True))


def test_a_firm_alone_is_the_firm_among_all():
    specs = Economy(firms=12, scale=0.01).specs()
    among_all = {spec.index: sample_orders(Economy(firms=12, scale=0.01), spec) for spec in reversed(specs)}
    fresh = Economy(firms=12, scale=0.01)
    spec = fresh.specs()[7]
    assert sample_orders(fresh, spec).equals(among_all[7])
    first, second = sample_cohorts(fresh, spec), sample_cohorts(fresh, spec)
    assert np.array_equal(first.sales, second.sales)


def test_impossible_economies_are_refused():
    for wrong in ({"firms": 0}, {"scale": 0.0}, {"scale": float("nan")}, {"seed": -1}):
        with pytest.raises(ValueError, match=next(iter(wrong)).removesuffix("s")):
            Economy(**wrong)


def test_drivers_of_firms_that_share_more_move_together_more():
    """Co-movement is measured on what a trend and a yearly wave leave of the true paths."""
    economy = Economy(firms=200)
    weeks = len(truth_of(economy, economy.specs()[0]).weeks)
    t = np.arange(weeks)[1:]
    known = np.column_stack([np.ones(len(t)), t, np.cos(t * 2 * np.pi / 52), np.sin(t * 2 * np.pi / 52)])
    strength, measured = [], []
    for spec in economy.specs():
        truth = truth_of(economy, spec)
        assert 0 <= truth.comovement <= 1
        # The first week is cut short by the calendar year.
        paths = np.log([truth.acquisition[1:], truth.repeat_rate[1:], truth.order_value[1:]]).T
        rest = paths - known @ np.linalg.lstsq(known, paths, rcond=None)[0]
        strength.append(truth.comovement)
        measured.append(np.abs(np.corrcoef(rest.T)[np.triu_indices(3, 1)]).mean())
    ranks = [np.argsort(np.argsort(values)) for values in (strength, measured)]
    assert np.corrcoef(ranks)[0, 1] > 0.4
