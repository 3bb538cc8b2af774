"""Deliveries: silent firms and missing weeks are distinguished, and forecasts wait for enough firms."""

from datetime import date, timedelta

import numpy as np
import pytest
from helpers.sources import HEAD, Shop
from hypothesis import given
from hypothesis import strategies as st

from cbmt_core.config import DeliveryConfig
from cbmt_core.names import Unit
from cbmt_core.transactions import deliveries, firm_timeline, project_timeline
from cbmt_core.transactions.delivery import LEAST_CHANCE, _usual_silence

FIRST = date(2016, 1, 3)
SHARE = DeliveryConfig()


def week(k):
    """Sunday of the k-th week, from 0."""
    return FIRST + timedelta(weeks=k)


def rows(firm, weeks, every=1, start=0):
    """An order on each day of the weeks `start` to `weeks`, or every so many days."""
    days = range(7 * start, 7 * weeks, every)
    return "".join(f"{firm},c{d},{FIRST + timedelta(days=d)},5\n" for d in days)


def through(shop, firm, settings=SHARE):
    return deliveries(shop.intake, settings).firms[firm].through


@pytest.fixture
def own_files(shop):
    """Five firms with a file each; all but the last have delivered 30 weeks, it only 27."""
    for k in range(4):
        shop.put(f"{k}.csv", HEAD + rows(f"F{k}", 30))
    shop.put("4.csv", HEAD + rows("F4", 27))
    shop.update()
    return shop


def test_a_firm_of_its_own_file_that_ends_early_is_late_and_not_silent(own_files):
    found = deliveries(own_files.intake, SHARE)
    assert found.last_week == week(29)
    assert found.late == ("F4",)
    assert found.week_of("F4") == week(26)
    late = firm_timeline(own_files.intake, own_files.project, Unit("F4"))
    others = firm_timeline(own_files.intake, own_files.project, Unit("F0"))
    assert (late.panel.last, others.panel.last) == (week(26), week(29))
    assert late.panel.first == others.panel.first


def test_new_weeks_of_one_firm_move_nothing(own_files):
    before = project_timeline(own_files.intake, own_files.project)
    own_files.put("more.csv", HEAD + rows("F0", 35, start=30))
    own_files.update()
    after = project_timeline(own_files.intake, own_files.project)
    assert after.panel == before.panel
    found = deliveries(own_files.intake, SHARE)
    assert found.ahead == 1
    assert found.share == pytest.approx(1 / 5)
    # The weeks it is ahead by wait: they are orders of an unfinished week, and not lost.
    assert firm_timeline(own_files.intake, own_files.project, Unit("F0")).observed_to == week(34) + timedelta(
        days=6
    )


def test_new_weeks_of_a_small_firm_are_data_that_wait_and_mistyped_dates_are_not(shop):
    """They are few rows beside those of all firms, as a few mistyped dates would be."""
    big = "".join(rows(f"F{k}", 30) * 8 for k in range(4))
    shop.put("big.csv", HEAD + big)
    shop.put("small.csv", HEAD + rows("small", 35, every=2))
    shop.update()
    found = deliveries(shop.intake, SHARE)
    assert shop.intake.span()[1] == week(35) - timedelta(days=1)
    assert (found.last_week, found.late, found.share) == (week(29), (), pytest.approx(1 / 5))
    assert f"the week of {week(30)} was delivered by 20% of the firms" in found.lines(SHARE)[0]
    shop.put("small.csv", HEAD + rows("small", 30, every=2))
    shop.put("ahead.csv", HEAD + f"F0,c1,{week(31)},5\n")
    shop.update()
    assert shop.intake.span()[1] == week(30) - timedelta(days=1)


@pytest.mark.parametrize(("share", "last"), [(0.2, 33), (0.4, 30), (0.8, 29), (1.0, 26)])
def test_the_stated_share_of_firms_moves_the_origin(own_files, share, last):
    own_files.put("more.csv", HEAD + rows("F0", 34, start=30) + rows("F0", 34, start=30))
    own_files.put("more1.csv", HEAD + rows("F1", 31, start=30))
    own_files.update()
    assert deliveries(own_files.intake, DeliveryConfig(share=share)).last_week == week(last)


def test_a_file_of_all_firms_speaks_for_those_without_orders(shop):
    """The source delivered the week; the firm has no orders in it."""
    shop.put("history.csv", HEAD + "".join(rows(f"F{k}", 20) for k in range(5)))
    shop.put("week20.csv", HEAD + "".join(rows(f"F{k}", 21, start=20) for k in range(4)))
    shop.put("week21.csv", HEAD + "".join(rows(f"F{k}", 22, start=21) for k in range(4)))
    shop.update()
    found = deliveries(shop.intake, SHARE)
    assert found.late == ()
    assert found.week_of("F4") == found.last_week == week(21)
    assert found.firms["F4"].last == week(20) - timedelta(days=1)


def test_a_file_of_a_few_firms_speaks_for_nobody_else(shop):
    shop.put("history.csv", HEAD + "".join(rows(f"F{k}", 20) for k in range(9)))
    shop.put("late.csv", HEAD + rows("F0", 25, start=20) + rows("F1", 25, start=20))
    shop.update()
    assert {through(shop, f"F{k}") for k in range(2, 9)} == {week(20) - timedelta(days=1)}
    assert through(shop, "F0") == week(25) - timedelta(days=1)


def test_a_file_of_other_firms_speaks_for_nobody(shop):
    """Two regions, a file each."""
    shop.put("north.csv", HEAD + "".join(rows(f"N{k}", 20) for k in range(4)))
    shop.put("south.csv", HEAD + "".join(rows(f"S{k}", 20) for k in range(4)))
    shop.put("north2.csv", HEAD + "".join(rows(f"N{k}", 22, start=20) for k in range(4)))
    shop.update()
    assert through(shop, "S0") == week(20) - timedelta(days=1)
    assert through(shop, "N3") == week(22) - timedelta(days=1)


def test_a_firm_with_few_orders_is_not_late_after_a_silence_of_the_usual_length(shop):
    shop.put("busy.csv", HEAD + rows("busy", 60))
    shop.put("rare.csv", HEAD + rows("rare", 55, every=28))
    shop.put("weekly.csv", HEAD + rows("weekly", 55, every=7))
    shop.update()
    assert through(shop, "rare") == week(60) - timedelta(days=1)
    # It never was silent for a whole week: the next one is missing.
    assert through(shop, "weekly") == week(55) - timedelta(days=1)


def test_a_week_that_ends_in_the_middle_is_not_delivered(shop):
    shop.put("a.csv", HEAD + rows("A", 30))
    shop.put(
        "b.csv", HEAD + rows("B", 29) + "".join(f"B,c,{week(29) + timedelta(days=d)},5\n" for d in range(3))
    )
    # Closed at weekends: Friday ends its week.
    closed = "".join(f"C,c,{FIRST + timedelta(days=d)},5\n" for d in range(7 * 30) if d % 7 not in (0, 6))
    shop.put("c.csv", HEAD + closed)
    shop.update()
    assert deliveries(shop.intake, SHARE).firms["B"].week == week(28)
    assert deliveries(shop.intake, SHARE).firms["C"].week == week(29)


def test_a_firm_that_stopped_long_ago_is_not_waited_for(shop):
    for k in range(3):
        shop.put(f"{k}.csv", HEAD + rows(f"F{k}", 60))
    shop.put("gone.csv", HEAD + rows("gone", 30))
    shop.update()
    found = deliveries(shop.intake, DeliveryConfig(share=1.0))
    assert (found.last_week, found.late, found.stopped) == (week(59), (), ("gone",))


def test_the_order_in_which_files_arrive_makes_no_difference(tmp_path):
    files = {
        "history.csv": "".join(rows(f"F{k}", 20) for k in range(5)),
        "own.csv": rows("alone", 24),
        "20.csv": "".join(rows(f"F{k}", 21, start=20) for k in range(4)),
        "21.csv": "".join(rows(f"F{k}", 22, start=21) for k in range(5)),
        "late.csv": rows("F4", 21, start=20),
    }
    rng, found = np.random.default_rng(5), []
    for k in range(4):
        root = tmp_path / str(k)
        root.mkdir()
        shop = Shop(root)
        for name in rng.permutation(list(files)):
            shop.put(name, HEAD + files[name])
            shop.update()
            project_timeline(shop.intake, shop.project)
        found.append((deliveries(shop.intake, SHARE), project_timeline(shop.intake, shop.project)))
    assert all(one == found[0] for one in found)


@given(st.floats(0.001, 0.999), st.integers(0, 2000))
def test_a_usual_silence_is_one_of_at_least_the_least_chance(silent, days):
    """Independent days: k silent ones in a row have the chance silent^k."""
    usual = _usual_silence(silent)
    if days <= usual:
        assert silent**days >= LEAST_CHANCE * (1 - 1e-9)
    else:
        assert silent**days < LEAST_CHANCE * (1 + 1e-9)
