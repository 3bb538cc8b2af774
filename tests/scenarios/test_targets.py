"""The move a target needs brings the target, no more and no less."""

from datetime import date

import duckdb
import numpy as np
import pytest
from helpers.planned import drawn, firm

from cbmt_core.compose import compose_draws
from cbmt_core.errors import ConfigError
from cbmt_core.scenarios import Scenario, apply, moves_needed, probability, weekly_plan
from cbmt_core.scenarios.plan import spread_year
from cbmt_core.scenarios.plan_file import read_plan


@pytest.fixture(scope="module")
def draws():
    return drawn(firm())


def totals(draws, factor, drivers):
    scenario = Scenario.of(**dict.fromkeys(drivers, f"x{factor:.12f}"))
    return compose_draws(apply(draws, scenario)).sales.sum(axis=1)


def test_every_move_brings_just_the_probability(draws):
    now = compose_draws(draws).sales.sum(axis=1)
    wanted = float(np.quantile(now, 0.6))
    for move in moves_needed(draws, wanted, 0.8):
        drivers = (
            ("acquisition", "repeat_existing", "repeat_new", "aov")
            if move.driver == "all"
            else (move.driver,)
        )
        if move.change is None:
            assert probability(totals(draws, 10, drivers), wanted) < 0.8
            continue
        factor = 1 + move.change / 100
        assert probability(totals(draws, factor + 1e-6, drivers), wanted) >= 0.8
        assert probability(totals(draws, factor - 1e-4, drivers), wanted) < 0.8
        assert move.change > 0
        assert move.reached >= 0.8


def test_order_value_has_a_closed_form(draws):
    """Sales are proportional to it: the factor is the target over the draw that must reach it."""
    now = np.sort(compose_draws(draws).sales.sum(axis=1))
    wanted, K = 1.3 * now.mean(), len(now)
    move = next(m for m in moves_needed(draws, wanted, 0.8) if m.driver == "aov")
    assert 1 + move.change / 100 == pytest.approx(wanted / now[K - int(0.8 * K)], rel=1e-9)


def test_a_target_that_is_met_leaves_room_to_fall(draws):
    now = compose_draws(draws).sales.sum(axis=1)
    moves = {move.driver: move for move in moves_needed(draws, 0.5 * float(now.min()), 0.8)}
    assert moves["aov"].change < -40
    assert moves["acquisition"].change == -100


def test_an_impossible_target_says_so(draws):
    now = compose_draws(draws).sales.sum(axis=1)
    moves = {move.driver: move for move in moves_needed(draws, 30 * float(now.max()), 0.8)}
    assert moves["acquisition"].change is None
    assert moves["all"].change is not None


def test_later_starts_need_larger_moves(draws):
    wanted = 1.05 * float(compose_draws(draws).sales.sum(axis=1).max())
    late = draws.centre.weeks[26].astype(object)
    for now, later in zip(
        moves_needed(draws, wanted, 0.5), moves_needed(draws, wanted, 0.5, first=late), strict=True
    ):
        if now.change is not None and later.change is not None:
            assert later.change > now.change


@pytest.mark.parametrize(("sales", "share"), [(0.0, 0.8), (float("nan"), 0.8), (10.0, 1.0), (10.0, 0.0)])
def test_nonsense_is_refused(draws, sales, share):
    with pytest.raises(ConfigError):
        moves_needed(draws, sales, share)


def test_a_plan_by_month_becomes_weeks():
    weeks = np.datetime64("2020-05-24") + 7 * np.arange(6)
    plan = weekly_plan({date(2020, 5, 1): 310.0, date(2020, 6, 1): 600.0}, weeks)
    # 24 to 30 May at 10 a day; 31 May at 10 and 1 to 6 June at 20; June at 20; the last week ends in July.
    assert plan.sales == pytest.approx([70, 130, 140, 140, 140, np.nan], nan_ok=True)
    assert plan.covered.sum() == 5


def test_a_plan_for_the_year_keeps_its_total():
    plan = spread_year(900.0, np.array([1.0, 2.0, np.nan, 3.0]), "last year")
    assert plan.sales == pytest.approx([150, 300, 0, 450])
    assert spread_year(8.0, np.zeros(4), "nothing").sales == pytest.approx([2, 2, 2, 2])


def test_a_plan_file_is_read(tmp_path):
    file = tmp_path / "plan.csv"
    file.write_text("month,sales,firm\n2020-06,120,a\n2020-07-01,130,a\n2020-06,9,b\n")
    con = duckdb.connect()
    assert read_plan(con, file, "a", 2) == {date(2020, 6, 1): 120.0, date(2020, 7, 1): 130.0}
    for text, message in (
        ("month,amount\n2020-06,1\n", "no column sales"),
        ("month,sales\nJune,1\n", "month 'June'"),
        ("month,sales\n2020-06,1\n2020-06,2\n", "two rows for 2020-06"),
    ):
        file.write_text(text)
        with pytest.raises(ConfigError, match=message):
            read_plan(con, file, "a")
    file.write_text("month,sales\n2020-06,1\n")
    with pytest.raises(ConfigError, match="needs a column firm"):
        read_plan(con, file, "a", 2)
    with pytest.raises(ConfigError, match="no file"):
        read_plan(con, tmp_path / "none.csv", "a")
