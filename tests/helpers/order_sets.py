"""Small sets of orders, and the cohort tables counted from them one by one, without SQL."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import date, datetime, timedelta
from decimal import Decimal

import duckdb
from hypothesis import strategies as st

from cbmt_core.design import StudyDesign

WEEK = timedelta(days=7)
SUNDAY = date(2016, 1, 3)


def small_design(washout: int, study: int = 8) -> StudyDesign:
    """A study short enough to count by hand: `study` weeks, the last two held out."""
    return StudyDesign(
        observed_from=SUNDAY - timedelta(days=2 if washout else 0),
        first_week=SUNDAY,
        washout_weeks=washout,
        training_weeks=study - 3,
        validation_weeks=1,
        holdout_weeks=2,
        observed_to=SUNDAY + timedelta(days=7 * (washout + study) + 2),
    )


def order_sets(design: StudyDesign, max_orders: int = 40) -> st.SearchStrategy[list[tuple]]:
    """Lists of (customer, order id, time, amount), ids unique, times anywhere in the observed days."""
    # Customers return often and times collide, because ties and repeats are where counting goes wrong.
    first = datetime.combine(design.observed_from, datetime.min.time())
    near_study = (design.study.first - timedelta(days=10) - design.observed_from).days
    last = (design.observed_to - design.observed_from).days
    days = st.integers(max(0, near_study), last) | st.integers(0, last)
    when = st.builds(lambda d, h: first + timedelta(days=d, hours=h), days, st.sampled_from([0, 23]))
    order = st.tuples(st.sampled_from("abcdefg"), when, st.integers(1, 20000))
    return st.lists(order, min_size=1, max_size=max_orders).map(
        lambda rows: [
            (c, f"o{(k * 7) % 100:02}", t, Decimal(cents) / 100) for k, (c, t, cents) in enumerate(rows)
        ]
    )


def sunday_of(moment: datetime | date) -> date:
    day = moment.date() if isinstance(moment, datetime) else moment
    while day.strftime("%A") != "Sunday":
        day -= timedelta(days=1)
    return day


def put(con: duckdb.DuckDBPyConnection, orders: list[tuple], firm: str = "F") -> None:
    """Make the table `transactions` of these orders."""
    con.execute(
        "CREATE OR REPLACE TABLE transactions (firm VARCHAR, customer VARCHAR, order_id VARCHAR, "
        "ordered_at TIMESTAMP, week DATE, amount DECIMAL(18,4), rows INTEGER)"
    )
    if orders:
        con.executemany(
            "INSERT INTO transactions VALUES (?, ?, ?, ?, ?, ?, 1)",
            [(firm, c, o, t, sunday_of(t), a) for c, o, t, a in orders],
        )


def count_cohorts(orders: list[tuple], design: StudyDesign) -> dict[tuple[date, date], dict]:
    """(cohort, week) -> counts, straight from the definitions."""
    study = list(design.study)
    by_customer = defaultdict(list)
    for customer, order_id, moment, amount in orders:
        if sunday_of(moment) <= study[-1]:
            by_customer[customer].append((moment, order_id, amount))
    members = defaultdict(list)
    for customer, placed in by_customer.items():
        first = sunday_of(min(placed)[0])
        members[first if first >= study[0] else design.left_censored_cohort].append(customer)
    table = {}
    for cohort, customers in members.items():
        censored = cohort < study[0]
        for week in study:
            if week < cohort:
                continue
            row = Counter(size=len(customers), left_censored=censored, tenure=(week - cohort).days // 7)
            row["sales"] = row["initial_sales"] = Decimal(0)
            for customer in customers:
                placed = sorted(by_customer[customer])
                here = [p for p in placed if sunday_of(p[0]) == week]
                row["orders"] += len(here)
                row["sales"] += sum(p[2] for p in here)
                row["active"] += bool(here)
                if not censored and placed[0] in here:
                    row["initial"] += 1
                    row["initial_sales"] += placed[0][2]
            table[cohort, week] = row
    return table
