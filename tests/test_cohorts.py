"""Cohort tables: equal to a count by hand, dense, and true to their identities."""

from datetime import datetime
from decimal import Decimal

import duckdb
import pytest
from helpers.order_sets import WEEK, count_cohorts, order_sets, put, small_design
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cbmt_core.cohorts import make_cohort_week, make_firm, make_firm_week
from cbmt_core.errors import BadFirmData
from cbmt_core.names import Unit
from cbmt_core.schema import TABLES
from cbmt_core.transactions.orders import OrderCounts

UNIT = Unit("F")
DESIGNS = [small_design(0), small_design(13), small_design(52)]
COUNTS = OrderCounts(0, 0, 0, 0, 0, "GBP", "UTC", "retail")


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as connection:
        yield connection


def rows_of(con, table):
    names = TABLES[table].column_names
    rows = con.execute(f"SELECT {TABLES[table].select()} FROM {table}").fetchall()
    return [dict(zip(names, row, strict=True)) for row in rows]


def make(con, orders, design):
    put(con, orders)
    make_cohort_week(con, UNIT, "transactions", design)
    make_firm_week(con, UNIT, "cohort_week", design)


@given(data=st.data(), design=st.sampled_from(DESIGNS))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_number_is_the_one_counted_by_hand(con, data, design):
    orders = data.draw(order_sets(design))
    expected = count_cohorts(orders, design)
    assume(expected)
    make(con, orders, design)
    found = {(row["cohort"], row["week"]): row for row in rows_of(con, "cohort_week")}
    assert found.keys() == expected.keys()
    for key, row in found.items():
        count = expected[key]
        assert row["left_censored"] == count["left_censored"]
        assert row["tenure"] == count["tenure"]
        assert row["cohort_size"] == count["size"]
        assert (row["orders"], row["initial_orders"]) == (count["orders"], count["initial"])
        assert row["repeat_orders"] == count["orders"] - count["initial"]
        assert (row["sales"], row["initial_sales"]) == (count["sales"], count["initial_sales"])
        assert row["repeat_sales"] == count["sales"] - count["initial_sales"]
        assert row["active_customers"] == count["active"]
        assert row["ropc"] == pytest.approx((count["orders"] - count["initial"]) / count["size"])
        if count["orders"]:
            assert row["aov"] == pytest.approx(float(count["sales"]) / count["orders"])
        else:
            assert row["aov"] is None


@given(data=st.data(), design=st.sampled_from(DESIGNS))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_identities_hold_in_every_row_and_week(con, data, design):
    orders = data.draw(order_sets(design))
    assume(count_cohorts(orders, design))
    make(con, orders, design)
    cohorts, weeks = rows_of(con, "cohort_week"), rows_of(con, "firm_week")
    for row in cohorts:
        birth = row["week"] == row["cohort"] and not row["left_censored"]
        assert float(row["sales"]) == pytest.approx(
            row["cohort_size"] * (birth + row["ropc"]) * (row["aov"] or 0), abs=1e-6
        )
        assert row["initial_orders"] == (row["cohort_size"] if birth else 0)
    # Dense: a cohort has each study week since its birth once.
    for cohort in {row["cohort"] for row in cohorts}:
        mine = sorted(row["week"] for row in cohorts if row["cohort"] == cohort)
        assert mine == [week for week in design.study if week >= cohort]
    assert [row["week"] for row in weeks] == list(design.study)
    in_study = [
        o for o in orders if o[2].date() >= design.study.first and o[2].date() <= design.study.last_day
    ]
    assert sum(row["sales"] for row in weeks) == sum(o[3] for o in in_study)
    assert sum(row["orders"] for row in weeks) == len(in_study)
    for row in weeks:
        here = [c for c in cohorts if c["week"] == row["week"]]
        for name in (
            "orders",
            "initial_orders",
            "repeat_orders",
            "sales",
            "repeat_sales",
            "active_customers",
        ):
            assert row[name] == sum(c[name] for c in here)
        assert row["acquired"] == sum(c["cohort_size"] for c in here if c["cohort"] == row["week"])
        assert row["cumulative_customers"] == sum(c["cohort_size"] for c in here)
        if row["cumulative_customers"]:  # weighted by cohort size, and by orders
            weighted = sum(c["cohort_size"] * c["ropc"] for c in here) / row["cumulative_customers"]
            assert row["ropc"] == pytest.approx(weighted)
        if row["orders"]:
            assert row["aov"] == pytest.approx(
                sum(c["orders"] * (c["aov"] or 0) for c in here) / row["orders"]
            )
        else:
            assert row["aov"] is None


def at(design, week, day=0, hour=12):
    return datetime.combine(design.study.first + week * WEEK, datetime.min.time()).replace(
        hour=hour
    ) + day * (WEEK / 7)


def test_a_firm_counted_on_paper(con):
    design = small_design(13)
    orders = [
        ("old", "1", at(design, -3), Decimal("10.00")),
        ("old", "2", at(design, 0), Decimal("20.00")),
        ("old", "3", at(design, 2), Decimal("30.00")),
        ("gone", "4", at(design, -13, -2), Decimal("5.00")),  # before the first whole week: washout too
        ("new", "5", at(design, 1, 0, 9), Decimal("7.00")),
        ("new", "6", at(design, 1, 6, 23), Decimal("3.00")),  # Saturday night: still the birth week
        ("new", "7", at(design, 2), Decimal("1.50")),
        ("late", "8", at(design, 7), Decimal("4.00")),
        ("too late", "9", at(design, 8), Decimal("9.00")),  # after the last whole week
    ]
    make(con, orders, design)
    assert con.execute(
        "SELECT week, cohort_size, orders, sales FROM cohort_week WHERE left_censored AND orders > 0 ORDER BY 1"
    ).fetchall() == [
        (design.study.first, 2, 1, Decimal("20.0000")),
        (design.study.first + 2 * WEEK, 2, 1, Decimal("30.0000")),
    ]
    # Their first orders ever are unknown: all orders of the left-censored cohort are repeats.
    assert con.execute(
        "SELECT DISTINCT initial_orders, initial_sales, repeat_orders = orders, repeat_sales = sales "
        "FROM cohort_week WHERE left_censored"
    ).fetchall() == [(0, Decimal(0), True, True)]
    assert con.execute(
        "SELECT tenure, cohort_size, orders, initial_orders, repeat_orders, initial_sales, repeat_sales, "
        "active_customers, ropc, aov FROM cohort_week "
        "WHERE cohort = ? AND tenure < 3 ORDER BY tenure",
        [design.study.first + WEEK],
    ).fetchall() == [
        (0, 1, 2, 1, 1, Decimal("7.0000"), Decimal("3.0000"), 1, 1.0, 5.0),
        (1, 1, 1, 0, 1, Decimal(0), Decimal("1.5000"), 1, 1.0, 1.5),
        (2, 1, 0, 0, 0, Decimal(0), Decimal(0), 0, 0.0, None),
    ]
    assert con.execute("SELECT cumulative_customers FROM firm_week ORDER BY week").fetchall() == [
        (n,) for n in (2, 3, 3, 3, 3, 3, 3, 4)
    ]
    make_firm(con, UNIT, "transactions", "cohort_week", COUNTS, design)
    (firm,) = rows_of(con, "firm")
    assert (firm["customers"], firm["orders"], firm["sales"]) == (5, 9, Decimal("89.50"))
    # "gone" ordered on a Friday, two days before the first whole week; "too late" after the last one.
    assert firm["first_week"] == design.study.first - 14 * WEEK
    assert firm["last_week"] == design.study.first + 8 * WEEK
    assert (firm["washout_orders"], firm["washout_sales"]) == (2, Decimal("15.00"))
    assert (firm["unfinished_orders"], firm["unfinished_sales"]) == (1, Decimal("9.00"))
    assert firm["left_censored_customers"] == 2
    assert firm["left_censored_share"] == pytest.approx(50 / 65.5)
    assert (firm["parent"], firm["segment"], firm["industry"]) == (None, None, "retail")


def test_the_first_of_two_orders_at_one_time_is_told_by_its_id(con):
    design = small_design(0)
    for first, second in ((2, 9), (9, 2)):
        orders = [("c", "b", at(design, 0), Decimal(second)), ("c", "a", at(design, 0), Decimal(first))]
        for shuffled in (orders, orders[::-1]):
            make(con, shuffled, design)
            assert con.execute("SELECT initial_sales FROM cohort_week WHERE tenure = 0").fetchall() == [
                (first,)
            ]


def test_without_a_washout_there_is_no_left_censored_cohort(con):
    design = small_design(0)
    make(con, [("c", "1", at(design, 0), Decimal(1))], design)
    assert con.execute("SELECT count(*) FROM cohort_week WHERE left_censored").fetchall() == [(0,)]


def test_a_firm_without_orders_in_the_study_is_refused_by_name(con):
    design = small_design(0)
    put(con, [("c", "1", at(design, 8), Decimal(1))])
    with pytest.raises(BadFirmData, match=f"firm 'F': has no order from {design.study.first}"):
        make_cohort_week(con, UNIT, "transactions", design)


def test_a_name_with_quotes_stays_what_it_is(con):
    design = small_design(0)
    unit = Unit('O\'Neil "x"', "a'b")
    put(con, [("c", "1", at(design, 0), Decimal(1))])
    make_cohort_week(con, unit, "transactions", design)
    make_firm(con, unit, "transactions", "cohort_week", COUNTS, design)
    assert con.execute("SELECT DISTINCT firm FROM cohort_week").fetchall() == [(unit.name,)]
    assert con.execute("SELECT parent, segment, slug FROM firm").fetchall() == [
        ('O\'Neil "x"', "a'b", unit.slug)
    ]


def test_weeks_before_the_first_order_are_there_with_zeros(con):
    design = small_design(0)
    make(con, [("c", "1", at(design, 2), Decimal(6))], design)
    counted = [
        "acquired", "orders", "initial_orders", "repeat_orders", "sales", "initial_sales", "repeat_sales",
        "active_customers", "cumulative_customers",
    ]  # fmt: skip
    weeks = rows_of(con, "firm_week")
    assert [[row[name] for name in counted] for row in weeks[:4]] == [
        [0] * 9,
        [0] * 9,
        [1, 1, 1, 0, 6, 6, 0, 1, 1],
        [0, 0, 0, 0, 0, 0, 0, 0, 1],
    ]
    assert [row["aov"] for row in weeks[:4]] == [None, None, 6.0, None]
    assert [row["ropc"] for row in weeks[:4]] == [None, None, 0.0, 0.0]
    make_firm(con, UNIT, "transactions", "cohort_week", COUNTS, design)
    (firm,) = rows_of(con, "firm")
    assert (firm["left_censored_customers"], firm["left_censored_share"]) == (0, 0.0)
    assert (firm["washout_orders"], firm["washout_sales"]) == (0, 0)
    assert (firm["unfinished_orders"], firm["unfinished_sales"]) == (0, 0)
