"""Every promise of the quality suites can fail, in words that name what is wrong and where."""

from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from datetime import datetime, timedelta
from decimal import Decimal

import duckdb
import pytest
from helpers.order_sets import WEEK, put, small_design

from cbmt_core.cohorts import make_cohort_week, make_firm_week
from cbmt_core.config import QualityConfig
from cbmt_core.names import Unit
from cbmt_core.quality import CHECKED_TABLES, Facts, TablesToCheck, check_table, check_tables
from cbmt_core.timeline import Timeline
from cbmt_core.transactions.orders import OrderCounts

DESIGN = small_design(13)
LIMITS = QualityConfig(min_customers=3, max_silent_weeks=4)
COUNTS = OrderCounts(47, 45, 2, 1, 45, "GBP", "UTC", None, rows_bad=1)
"""45 used rows, one out of the window and one bad."""
TABLES = {name: name for name in ("transactions", "cohort_week", "firm_week")}


@pytest.fixture
def con():
    with good_tables() as connection:
        yield connection


@contextmanager
def good_tables():
    """Tables of a good firm: a left-censored customer and one new customer a week, two orders each week."""
    first = datetime.combine(DESIGN.study.first, datetime.min.time())
    moments = [(f"c{w}", first + w * WEEK) for w in range(8)] + [("old", first - 2 * WEEK)]
    moments += [
        (f"c{w}", first + (w + k) * WEEK + timedelta(hours=1)) for w in range(8) for k in range(8 - w)
    ]
    orders = [(c, f"o{n}", t, Decimal(10 + n)) for n, (c, t) in enumerate(sorted(moments))]
    with duckdb.connect() as connection:
        put(connection, orders)
        make_cohort_week(connection, Unit("F"), "transactions", DESIGN)
        make_firm_week(connection, Unit("F"), "cohort_week", DESIGN)
        yield connection


def judge(con, table, counts=COUNTS, limits=LIMITS):
    return check_table(con, table, TABLES, DESIGN, limits, counts)


@pytest.mark.parametrize("table", CHECKED_TABLES)
def test_good_tables_pass(con, table):
    verdict = judge(con, table)
    assert (verdict.errors, verdict.warnings) == ((), ())
    assert verdict.passed
    assert verdict.evaluated > 5


STUDY = DESIGN.study
WEEK_3 = STUDY.first + 3 * WEEK
COHORT_1 = STUDY.first + WEEK
IN_COHORT = f"WHERE cohort = DATE '{COHORT_1}' AND week = DATE '{WEEK_3}'"
IN_WEEK = f"WHERE week = DATE '{WEEK_3}'"
ORDER = "WHERE order_id = 'o5'"
COLUMNS = "its columns and types are the declared ones"


def order(change):
    return f"UPDATE transactions SET {change} {ORDER}"


def cohort(change):
    return f"UPDATE cohort_week SET {change} {IN_COHORT}"


def firm(change):
    return f"UPDATE firm_week SET {change} {IN_WEEK}"


BROKEN = {
    "transactions": [
        (order("order_id = NULL"), "every field of every order is filled", "1"),
        (
            "UPDATE transactions SET order_id = 'x', customer = 'c0' WHERE order_id IN ('o1', 'o2')",
            "a customer's order ids are unique",
            "1",
        ),
        (order("amount = -5"), "every amount is above zero", "-5"),
        (order("week = week + 7"), "every order lies in its week", "1"),
        (
            order("ordered_at = TIMESTAMP '2010-01-05', week = DATE '2010-01-03'"),
            "every order lies in the project's dates",
            "1",
        ),
        (f"DELETE FROM transactions {ORDER}", "rows in = rows used + rows quarantined", "1"),
        ("ALTER TABLE transactions ALTER amount TYPE DOUBLE", COLUMNS, "amount is DOUBLE, not DECIMAL(18,4)"),
        ("ALTER TABLE transactions DROP COLUMN rows", COLUMNS, "rows is missing"),
    ],
    "cohort_week": [
        (f"INSERT INTO cohort_week FROM cohort_week {IN_COHORT}", "a cohort has each week once", ""),
        (
            f"DELETE FROM cohort_week {IN_COHORT}",
            "every cohort has every week since its birth",
            "6 of 43 rows",
        ),
        (
            cohort(f"week = DATE '{STUDY.last + WEEK}'"),
            "every week is a week after the washout",
            "1 of 44 rows",
        ),
        (cohort("cohort_size = 0"), "a cohort has members", ""),
        (cohort("repeat_orders = -1"), "no count of repeat orders is negative", ""),
        (cohort("repeat_sales = -1"), "repeat sales are not negative", ""),
        (cohort("active_customers = 99"), "no more customers are active than the cohort has", ""),
        (cohort("initial_orders = 1"), "initial orders equal the cohort's size in its birth week only", ""),
        (cohort("aov = aov + 1"), "sales = size (1[birth] + ROPC) AOV", ""),
        (cohort("repeat_sales = repeat_sales + 1"), "sales = initial + repeat sales", ""),
        (cohort("aov = NULL"), "AOV is known exactly where there are orders", ""),
        (cohort("orders = orders + 1"), "orders = initial + repeat orders", ""),
        (cohort("ropc = ropc + 1"), "ROPC = repeat orders / size", ""),
        (cohort("tenure = tenure + 1"), "tenure counts the weeks since the cohort's week", ""),
        ("ALTER TABLE cohort_week ADD COLUMN note VARCHAR", COLUMNS, "note is not declared"),
    ],
    "firm_week": [
        (f"DELETE FROM firm_week {IN_WEEK}", "it has the 8 weeks after the washout", "found 7"),
        (firm("week = week + 7"), "each week has one row", f"week {WEEK_3 + WEEK}"),
        (firm("acquired = -1"), "no count of new customers is negative", ""),
        (firm("orders = orders + 1"), "its orders are those of the transactions", ""),
        (firm("sales = sales + 1"), "its sales are those of the transactions", ""),
        (firm("active_customers = 0"), "its active customers are those of the transactions", ""),
        (cohort("sales = sales + 1"), "its sales are the sum of its cohorts", ""),
        (firm("acquired = acquired + 1"), "its customers are those of its cohorts", ""),
        (firm("cumulative_customers = 99"), "customers grow by those acquired", ""),
        (firm("repeat_orders = repeat_orders + 1"), "orders = initial + repeat orders", ""),
        (firm("initial_sales = initial_sales + 1"), "sales = initial + repeat sales", ""),
        (firm("ropc = 9"), "ROPC = repeat orders / customers so far", ""),
        (firm("aov = NULL"), "sales = orders x AOV", ""),
        ("ALTER TABLE firm_week ALTER orders TYPE INTEGER", COLUMNS, "orders is INTEGER, not BIGINT"),
    ],
}
"""Table -> (damage, the promise it breaks, what else must be told; by default the place of the damage)."""
PLACE = {"cohort_week": f"cohort {COHORT_1}, week {WEEK_3}", "firm_week": f"week {WEEK_3}"}
EVERY = [pytest.param(t, *case, id=f"{t}: {case[1]}") for t, cases in BROKEN.items() for case in cases]


@pytest.mark.parametrize(("table", "damage", "promise", "where"), EVERY)
def test_a_failed_expectation_is_reported_with_its_place(con, table, damage, promise, where):
    con.execute(damage)
    verdict = judge(con, table)
    assert not verdict.passed
    matching = [error for error in verdict.errors if promise in error]
    assert matching, verdict.errors
    assert (where or PLACE[table]) in matching[0]


@pytest.mark.parametrize("table", CHECKED_TABLES)
def test_firms_judged_together_get_the_verdicts_of_each_alone(table):
    """Damaged firms of every kind among good ones, an empty one, and one that has delivered fewer weeks."""
    damages = [None, *(damage for damage, _, _ in BROKEN[table]), f"DELETE FROM {table}", None]
    known = {one.name: getattr(DESIGN, one.name) for one in fields(Timeline)}
    shorter = Timeline(**known | {"delivered_to": DESIGN.study.last + timedelta(days=6) - 2 * WEEK})
    with ExitStack() as opened:
        firms = []
        for damage in damages:
            con = opened.enter_context(good_tables())
            if damage:
                con.execute(damage)
            firms.append(TablesToCheck(con, TABLES, Facts(DESIGN, LIMITS, COUNTS)))
        firms.append(TablesToCheck(firms[0].con, TABLES, Facts(shorter, LIMITS, COUNTS)))
        together = check_tables(table, firms)
        alone = [check_tables(table, [firm])[0] for firm in firms]
    assert together == alone
    assert together[0].passed
    assert together[-2].passed
    assert sum(not verdict.passed for verdict in together) >= len(BROKEN[table])


def test_one_firm_cannot_lend_another_the_week_that_it_lacks():
    with good_tables() as more, good_tables() as less:
        more.execute(f"INSERT INTO firm_week SELECT * REPLACE (week + 700 AS week) FROM firm_week {IN_WEEK}")
        less.execute(f"DELETE FROM firm_week {IN_WEEK}")
        firms = [TablesToCheck(con, TABLES, Facts(DESIGN, LIMITS, COUNTS)) for con in (more, less)]
        for verdict, found in zip(check_tables("firm_week", firms), (9, 7), strict=True):
            assert any(f"8 weeks after the washout: found {found}" in error for error in verdict.errors)


@pytest.mark.parametrize(
    ("counts", "limits", "promise"),
    [
        (
            replace(COUNTS, rows_in=70, rows_quarantined=25, rows_bad=24),
            LIMITS,
            "max_quarantine_share = 0.05 in cbmt.toml; 0.348 would pass",
        ),
        (COUNTS, QualityConfig(min_customers=20), "min_customers = 20 in cbmt.toml; 9 would pass"),
    ],
)
def test_a_limit_names_its_setting_and_the_value_that_would_pass(con, counts, limits, promise):
    (error,) = judge(con, "transactions", counts, limits).errors
    assert promise in error


@pytest.mark.parametrize(
    ("first", "last", "warnings"),
    [
        (
            1,
            5,
            [
                "it is never silent for more than 4 weeks (weeks): found 5 "
                "([quality] max_silent_weeks = 4 in cbmt.toml; "
                "5 would pass)"
            ],
        ),
        (
            3,
            7,
            [
                "its last order is at most 4 weeks old (weeks): found 5 ([quality] max_silent_weeks = 4 in cbmt.toml; "
                "5 would pass)"
            ],
        ),
        (4, 7, []),
    ],
)
def test_silence_is_a_warning_not_an_error(con, first, last, warnings):
    gone = [STUDY.first + first * WEEK, STUDY.first + last * WEEK]
    con.execute("DELETE FROM transactions WHERE week BETWEEN ? AND ?", gone)
    rows = con.execute("SELECT count(*) FROM transactions").fetchall()[0][0]
    counts = replace(COUNTS, rows_in=rows, rows_quarantined=0, rows_out_of_window=0, rows_bad=0)
    verdict = judge(con, "transactions", counts)
    assert verdict.passed
    assert [w.removeprefix("not true that ") for w in verdict.warnings] == warnings


def test_every_promise_has_a_way_to_fail():
    """The list above leaves out no promise of any suite."""
    import great_expectations as gx

    elsewhere = {
        "at most 5% of its rows",
        "it has at least 3 customers",
        "its last order is",
        "it is never silent",
    }
    for table, (_, _, suite) in CHECKED_TABLES.items():
        for promise in suite(gx.expectations, Facts(DESIGN, LIMITS, COUNTS)):
            says = promise.meta["says"]
            tried = any(promised in says for _, promised, _ in BROKEN[table])
            assert tried or any(part in says for part in elsewhere), (table, says)
