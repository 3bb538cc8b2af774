"""Panels and designs out of DuckDB relations, customers one by one."""

import time
from collections import defaultdict
from datetime import datetime
from decimal import Decimal

import duckdb
import numpy as np
import pytest
from helpers.order_sets import WEEK, count_cohorts, order_sets, put, small_design, sunday_of
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cbmt_core.cohorts import make_cohort_week
from cbmt_core.customers import customer_history
from cbmt_core.design import StudyDesign
from cbmt_core.errors import CbmtError
from cbmt_core.names import Unit, UnknownFirm
from cbmt_core.stored_panel import read_panel


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as connection:
        yield connection


@given(data=st.data(), design=st.sampled_from([small_design(0), small_design(13)]))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_customer_has_the_weeks_of_its_orders(con, data, design):
    orders = data.draw(order_sets(design))
    expected = count_cohorts(orders, design)
    assume(expected)
    put(con, orders)
    make_cohort_week(con, Unit("F"), "transactions", design)
    history = customer_history(con, "transactions", "cohort_week", design)
    cohorts = sorted({cohort for cohort, _ in expected})
    by_hand = []
    weeks_of = defaultdict(list)
    for customer, _, moment, _ in orders:
        if sunday_of(moment) <= design.study.last:
            weeks_of[customer].append((sunday_of(moment) - design.study.first).days // 7)
    for weeks in weeks_of.values():
        birth = design.study.first + min(weeks) * WEEK
        cohort = birth if min(weeks) >= 0 else design.left_censored_cohort
        if seen := sorted(w for w in weeks if w >= 0):
            by_hand.append((cohorts.index(cohort), seen))
    found = [
        (cohort, history.week[a:b].tolist())
        for cohort, a, b in zip(history.cohort.tolist(), history.start[:-1], history.start[1:], strict=True)
    ]
    assert found == sorted(by_hand)
    assert (history.cohort.dtype, history.start.dtype, history.week.dtype) == (np.int32, np.int64, np.int16)


def test_customers_and_panel_tell_the_same(con):
    design = small_design(13)
    rng = np.random.default_rng(3)
    first = datetime.combine(design.observed_from, datetime.min.time())
    orders = [
        (f"c{rng.integers(200)}", f"o{k}", first + timedelta_days(rng.integers(0, 7 * 21)), Decimal(3))
        for k in range(900)
    ]
    put(con, orders)
    make_cohort_week(con, Unit("F"), "transactions", design)
    panel = read_panel(con, "F", design, orders="transactions")
    history = panel.customers
    counted = np.zeros((panel.n_cohorts, panel.n_weeks))
    np.add.at(counted, (np.repeat(history.cohort, np.diff(history.start)), history.week), 1)
    assert counted == pytest.approx(panel.orders)
    born = panel.birth >= 0
    assert np.bincount(history.cohort, minlength=panel.n_cohorts)[born] == pytest.approx(panel.size[born])


def timedelta_days(days):
    return int(days) * (WEEK / 7)


def test_orders_of_another_snapshot_are_refused(con):
    design = small_design(0)
    orders = [(c, c, datetime(2016, 1, 5), Decimal(1)) for c in "ab"]
    put(con, orders)
    make_cohort_week(con, Unit("F"), "transactions", design)
    put(con, [*orders, ("c", "c", datetime(2016, 1, 12), Decimal(1))])
    with pytest.raises(CbmtError, match="hold 1 customers of cohort 2016-01-10, cohort_week says 0"):
        read_panel(con, "F", design, orders="transactions")


def test_one_firm_is_read_out_of_many(con):
    design = small_design(0)
    for name, amount in (("O'Neil", 1), ("other", 2)):
        put(con, [("c", "1", datetime(2016, 1, 5), Decimal(amount))], firm=name)
        make_cohort_week(con, Unit(name), "transactions", design)
        con.execute(f"CREATE OR REPLACE TABLE t{amount} AS FROM transactions")
        con.execute(f"CREATE OR REPLACE TABLE c{amount} AS FROM cohort_week")
    both = {"cohort_week": "(FROM c1 UNION ALL FROM c2)", "orders": "(FROM t1 UNION ALL FROM t2)"}
    assert read_panel(con, "O'Neil", design, **both).S[0] == 1
    assert read_panel(con, "other", design, **both).S[0] == 2
    with pytest.raises(UnknownFirm, match="no firm is called 'oneil'; did you mean O'Neil"):
        read_panel(con, "oneil", design, **both)


def test_a_median_firm_takes_about_a_second(con):
    design = StudyDesign()
    con.execute(
        "CREATE OR REPLACE TABLE transactions AS SELECT 'F' AS firm, 'customer ' || customer AS customer, "
        "DATE '2016-01-03' + 7 * CAST(least(216, first_week + later) AS INTEGER) AS week FROM ("
        "SELECT hash(i) % 90000 AS customer, hash(customer) % 200 AS first_week, hash(i, 7) % 120 AS later "
        "FROM range(600000) t(i))"
    )
    con.execute("ALTER TABLE transactions ADD COLUMN amount DECIMAL(18,4) DEFAULT 5")
    con.execute(
        "ALTER TABLE transactions ADD COLUMN ordered_at TIMESTAMP; UPDATE transactions SET ordered_at = week"
    )
    con.execute(
        "ALTER TABLE transactions ADD COLUMN order_id VARCHAR; UPDATE transactions SET order_id = rowid"
    )
    make_cohort_week(con, Unit("F"), "transactions", design)
    started = time.process_time()
    panel = read_panel(con, "F", design, orders="transactions")
    assert time.process_time() - started < 5
    assert panel.customers.start[-1] == panel.orders.sum()
