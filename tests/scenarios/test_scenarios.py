"""Scenarios change what they say and nothing else, and new cohorts follow."""

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from helpers.planned import drawn, firm, forecast_of

from cbmt_core.compose import compose, compose_draws
from cbmt_core.errors import ConfigError
from cbmt_core.models.contract import PrimitiveForecast
from cbmt_core.scenarios import Change, Scenario, apply, baseline_of, outcome_of, parse_change, tornado
from cbmt_core.scenarios.outcome import Past

PAST = Past(repeat_orders=6000.0, repeat_sales=250_000.0, initial_sales=40_000.0)
NUMBERS = ("acquired", "repeat_existing", "repeat_new", "order_value")


@pytest.fixture(scope="module")
def panel():
    return firm()


@pytest.fixture(scope="module")
def draws(panel):
    return drawn(panel)


@pytest.mark.parametrize(
    "scenario",
    [
        Scenario("nothing"),
        Scenario.of("zero", acquisition="+0%", repeat="x1", aov="-0%", ramp=5),
        Scenario.of("long past", acquisition="-50% from 2010-01 to 2012-12", aov="=3 to 2011-01"),
        Scenario.of("long after", repeat_new="-50% from 2090-01", acquisition="=3 from 2090-01"),
    ],
    ids=lambda scenario: scenario.name,
)
def test_no_change_reproduces_the_baseline_to_the_last_bit(draws, scenario):
    baseline = baseline_of(draws)
    same = outcome_of(baseline, scenario)
    for name in ("sales", "base_sales", "new_sales", "base_orders", "new_orders", "acquired"):
        assert np.array_equal(getattr(same.draws, name), getattr(baseline.outcome.draws, name))
        assert np.array_equal(getattr(same.centre, name), getattr(baseline.outcome.centre, name))


def test_the_forecast_itself_is_the_revenue_forecast(draws):
    assert baseline_of(draws).outcome.centre.sales[0] == pytest.approx(draws.centre.S, rel=1e-12)


def test_a_change_holds_from_its_first_week_to_its_last(draws):
    weeks = draws.centre.weeks
    first, last = weeks[10].astype(object), weeks[20].astype(object)
    changed = apply(draws, Scenario("s", (Change("aov", factor=1.03, first=first, last=last),)))
    assert np.array_equal(changed.order_value[:, 10:21], draws.order_value[:, 10:21] * 1.03)
    assert np.array_equal(
        np.delete(changed.order_value, np.s_[10:21], 1), np.delete(draws.order_value, np.s_[10:21], 1)
    )
    for name in NUMBERS[:3]:
        assert getattr(changed, name) is getattr(draws, name)


def test_a_ramp_grows_in_equal_steps(draws):
    first = draws.centre.weeks[4].astype(object)
    changed = apply(draws, Scenario("s", (Change("acquisition", factor=0.8, first=first, ramp=4),)))
    expected = np.r_[np.ones(4), 0.95, 0.9, 0.85, np.full(45, 0.8)]
    assert (changed.acquired / draws.acquired)[7] == pytest.approx(expected)


def test_new_cohorts_follow_acquisition(panel, draws):
    """Independent: each draw composed by itself, with the cohorts' sizes of the changed acquisition."""
    week = draws.centre.weeks[9].astype(object)
    outcome = outcome_of(baseline_of(draws), Scenario("s", (Change("acquisition", factor=0.9, first=week),)))
    for k in (0, 17):
        acquired = draws.acquired[k] * np.r_[np.ones(9), np.full(43, 0.9)]
        alone = compose(
            panel,
            PrimitiveForecast(
                acquired, draws.centre.R * draws.repeat_existing[k], draws.centre.V * draws.order_value[k]
            ),
        )
        assert outcome.draws.sales[k] == pytest.approx(alone.S, rel=1e-12)
    before = baseline_of(draws).outcome.draws
    assert np.array_equal(outcome.draws.base_sales, before.base_sales)
    assert (outcome.draws.new_sales[:, 9:] < before.new_sales[:, 9:]).all()


def test_order_value_scales_sales_and_nothing_else(draws):
    before, after = baseline_of(draws), outcome_of(baseline_of(draws), Scenario.of(aov="+3%"))
    assert after.draws.sales == pytest.approx(1.03 * before.outcome.draws.sales, rel=1e-12)
    assert np.array_equal(after.draws.orders, before.outcome.draws.orders)


def test_repeat_orders_of_new_customers_leave_the_base_alone(draws):
    before, after = baseline_of(draws).outcome, outcome_of(baseline_of(draws), Scenario.of(repeat_new="+50%"))
    assert np.array_equal(after.draws.base_sales, before.draws.base_sales)
    extra = after.draws.new_orders - before.draws.new_orders
    repeats = before.draws.new_orders - before.draws.acquired
    assert extra == pytest.approx(0.5 * repeats)


def test_both_repeats_and_order_value_and_acquisition_make_all_sales(draws):
    """Sales are linear in (acquisition + repeats of the base): all three by 10 % and 5 % scale the whole."""
    after = outcome_of(
        baseline_of(draws), Scenario.of(repeat_existing="x1.1", acquisition="x1.1", aov="x1.05")
    )
    before = baseline_of(draws).outcome
    assert after.totals == pytest.approx(1.1 * 1.05 * before.totals)


@pytest.mark.parametrize("driver", ["acquisition", "repeat_existing", "repeat_new", "aov"])
def test_a_level_is_that_level_in_every_draw(panel, draws, driver):
    level = {"acquisition": 21.0, "repeat_existing": 0.03, "repeat_new": 0.05, "aov": 55.0}[driver]
    after = compose_draws(apply(draws, Scenario.of(**{driver: f"={level}"})))
    seen = {
        "acquisition": after.acquired,
        "repeat_existing": after.base_orders / panel.size.sum(),
        "repeat_new": (after.new_orders - after.acquired) / np.cumsum(after.acquired, axis=1),
        "aov": after.sales / after.orders,
    }[driver]
    assert seen == pytest.approx(np.full_like(seen, level), rel=1e-9)


def test_an_order_value_level_holds_beside_other_changes(draws):
    after = compose_draws(apply(draws, Scenario.of(aov="=55", acquisition="x3", repeat="-40%")))
    assert after.sales / after.orders == pytest.approx(np.full_like(after.sales, 55.0))


def test_the_bridge_adds_up_in_every_draw_of_every_scenario(draws):
    baseline = baseline_of(draws)
    for outcome in [
        baseline.outcome,
        *tornado(baseline),
        outcome_of(baseline, Scenario.of(acquisition="=0")),
    ]:
        parts = outcome.bridge(PAST)
        three = sum(parts[name][1] for name in ("order_volume", "spend_per_order", "net_replenishment"))
        assert three == pytest.approx(parts["sales_change"][1], abs=1e-6)
        assert parts["sales_change"][1] == pytest.approx(outcome.totals - PAST.sales, abs=1e-6)


def test_the_tornado_moves_one_driver_at_a_time(draws):
    baseline = baseline_of(draws)
    found = {outcome.scenario.name: outcome for outcome in tornado(baseline)}
    assert len(found) == 8
    up, down = (found[f"aov {sign}10%"].total - baseline.outcome.total for sign in "+-")
    assert up == pytest.approx(0.1 * baseline.outcome.total)
    assert down == pytest.approx(-up)


@pytest.mark.parametrize(
    ("text", "factor", "level"),
    [
        ("-10%", 0.9, None),
        ("+3.5 %", 1.035, None),
        ("−10%", 0.9, None),
        ("x1.2", 1.2, None),
        ("=120", None, 120.0),
    ],
)
def test_changes_are_read(text, factor, level):
    (change,) = parse_change("acquisition", f"{text} from 2020-06 to 2020-09 over 8 weeks")
    assert change.factor == (None if factor is None else pytest.approx(factor))
    assert change.level == level
    assert (change.first, change.last, change.ramp) == (date(2020, 6, 1), date(2020, 9, 30), 8)
    (again,) = parse_change("acquisition", change.description)
    assert again.first == change.first
    assert again.factor == (None if factor is None else pytest.approx(factor))


@pytest.mark.parametrize(
    ("driver", "text", "says"),
    [
        ("acquisition", "10", "write -10%"),
        ("acquisition", "10%", "write -10%"),
        ("acquisition", "-110%", "below zero"),
        ("price", "-10%", "no driver"),
        ("aov", "+3% from June", "2020-06-14"),
        ("aov", "+3% from 2020-13", "2020-06-14"),
        ("aov", "+3% from 2020-06 to 2020-05", "before it begins"),
    ],
)
def test_what_cannot_be_read_is_named(driver, text, says):
    with pytest.raises(ConfigError, match=says):
        parse_change(driver, text)


def test_a_forecast_of_sales_alone_has_no_scenarios(panel, draws):
    unknown = replace(forecast_of(panel), A=np.full(52, np.nan))
    with pytest.raises(Exception, match="sales alone"):
        apply(replace(draws, centre=unknown), Scenario.of(aov="+3%"))
