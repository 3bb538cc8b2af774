"""FirmPanel: the cohort table as arrays, true to its identities, and blind after an origin."""

from dataclasses import fields, replace
from datetime import date

import duckdb
import numpy as np
import pytest
from helpers.order_sets import WEEK, count_cohorts, order_sets, put, small_design
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from cbmt_core.cohorts import make_cohort_week
from cbmt_core.errors import BadFirmData
from cbmt_core.names import Unit
from cbmt_core.panel import LEFT_CENSORED, CustomerHistory, FirmPanel
from cbmt_core.stored_panel import read_panel

DESIGNS = [small_design(0), small_design(13)]


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as connection:
        yield connection


def drawn_panel(con, data, design):
    orders = data.draw(order_sets(design))
    expected = count_cohorts(orders, design)
    assume(expected)
    put(con, orders)
    make_cohort_week(con, Unit("F"), "transactions", design)
    return read_panel(con, "F", design, orders="transactions"), expected


def arrays(thing):
    for field in fields(thing):
        value = getattr(thing, field.name)
        if isinstance(value, np.ndarray):
            yield field.name, value
        elif isinstance(value, CustomerHistory):
            yield from ((f"customers.{name}", array) for name, array in arrays(value))


BY_HAND = settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@given(data=st.data(), design=st.sampled_from(DESIGNS))
@BY_HAND
def test_the_arrays_hold_what_was_counted_by_hand(con, data, design):
    panel, expected = drawn_panel(con, data, design)
    weeks = list(design.study)
    cohorts = sorted({cohort for cohort, _ in expected})
    assert panel.n_cohorts == len(cohorts)
    assert list(panel.weeks.astype(object)) == weeks
    for i, cohort in enumerate(cohorts):
        assert panel.birth[i] == (weeks.index(cohort) if cohort in weeks else LEFT_CENSORED)
        for t, week in enumerate(weeks):
            row = expected.get((cohort, week))
            if row is None:
                assert np.isnan([panel.R[i, t], panel.V[i, t], panel.Y[i, t]]).all()
                assert panel.orders[i, t] == 0
                continue
            assert panel.size[i] == row["size"]
            assert panel.R[i, t] == pytest.approx((row["orders"] - row["initial"]) / row["size"])
            assert panel.Y[i, t] == pytest.approx(float(row["sales"]))
            assert panel.orders[i, t] == pytest.approx(row["orders"])
            assert panel.tenure[i, t] == row["tenure"]
            if row["orders"]:
                assert panel.V[i, t] == pytest.approx(float(row["sales"]) / row["orders"])
            else:
                assert np.isnan(panel.V[i, t])
    assert (
        pytest.approx([sum(r["initial"] for (_, w), r in expected.items() if w == week) for week in weeks])
        == panel.A
    )
    assert (
        pytest.approx(
            [float(sum(r["sales"] for (_, w), r in expected.items() if w == week)) for week in weeks]
        )
        == panel.S
    )


def assert_identities(panel):
    value = np.nan_to_num(panel.V)
    composed = np.where(
        panel.born, panel.size[:, None] * (panel.is_birth + np.nan_to_num(panel.R)) * value, 0
    )
    assert np.nan_to_num(panel.Y) == pytest.approx(composed)
    assert pytest.approx(composed.sum(axis=0)) == panel.S
    assert np.isnan(panel.Y).tolist() == (~panel.born).tolist()
    born = panel.birth >= 0
    assert panel.A[panel.birth[born]] == pytest.approx(panel.size[born])
    assert panel.A.sum() == panel.size[born].sum()


@given(data=st.data(), design=st.sampled_from(DESIGNS), last=st.integers(0, 7))
@BY_HAND
def test_until_holds_nothing_after_the_origin(con, data, design, last):
    panel, expected = drawn_panel(con, data, design)
    origin = design.study.first + last * WEEK
    assume(any(week <= origin for _, week in expected))
    seen = panel.until(origin)
    assert seen.origin == origin
    assert seen.n_weeks == last + 1
    assert (seen.birth <= last).all()
    assert_identities(seen)
    for name, array in arrays(seen):
        assert array.base is None, f"{name} is a view of something larger"
    # What is kept is what was there.
    n = seen.n_cohorts
    np.testing.assert_array_equal(seen.R, panel.R[:n, : last + 1])
    np.testing.assert_array_equal(seen.Y, panel.Y[:n, : last + 1])
    history = seen.customers
    assert (history.week <= last).all()
    assert history.start[-1] == len(history.week) == seen.orders.sum()
    assert len(history.start) == len(history.cohort) + 1
    assert (np.diff(history.start) > 0).all()
    # Another future leaves no trace.
    other = replace(
        panel,
        S=np.where(panel.weeks > np.datetime64(origin), -1.0, panel.S),
        R=np.where(panel.weeks > np.datetime64(origin), -1.0, panel.R),
        customers=replace(
            panel.customers, week=np.where(panel.customers.week > last, 7, panel.customers.week)
        ),
    ).until(origin)
    for (name, a), (_, b) in zip(arrays(seen), arrays(other), strict=True):
        np.testing.assert_array_equal(a, b, err_msg=name)


@given(data=st.data(), design=st.sampled_from(DESIGNS))
@BY_HAND
def test_the_identities_hold(con, data, design):
    assert_identities(drawn_panel(con, data, design)[0])


def one_customer(con, design):
    from datetime import datetime
    from decimal import Decimal

    put(con, [("c", "1", datetime.combine(design.study.first + WEEK, datetime.min.time()), Decimal(5))])
    make_cohort_week(con, Unit("F"), "transactions", design)
    return con.execute("SELECT * FROM cohort_week").df()


def test_an_origin_before_the_first_week_is_refused(con):
    design = small_design(0)
    panel = FirmPanel.from_cohort_week("F", one_customer(con, design), design)
    with pytest.raises(ValueError, match="lies before the first week 2016-01-03"):
        panel.until(date(2016, 1, 2))
    assert panel.until(date(2030, 1, 1)).n_weeks == panel.n_weeks


def test_an_empty_table_is_refused_with_the_firms_name(con):
    design = small_design(0)
    with pytest.raises(BadFirmData, match="firm 'F'"):
        FirmPanel.from_cohort_week("F", one_customer(con, design).iloc[:0], design)


def test_a_table_of_another_study_is_refused(con):
    design = small_design(0)
    frame = one_customer(con, design)
    for other in (small_design(0, study=9), small_design(13), small_design(0, study=7)):
        with pytest.raises(BadFirmData, match=r"the project's are .* make its tables again"):
            FirmPanel.from_cohort_week("F", frame, other)


def test_the_calendar_reaches_as_far_as_asked(con):
    design = small_design(0)
    panel = FirmPanel.from_cohort_week("F", one_customer(con, design), design)
    assert len(panel.calendar()) == 8
    assert len(panel.calendar(5)) == 13
    assert panel.calendar(5).weeks[0] == panel.weeks[0]


@pytest.mark.parametrize(("name", "place"), [("A", 3), ("S", 0), ("size", 0), ("R", (0, 4)), ("Y", (0, 4))])
def test_a_panel_with_a_hole_is_refused_with_its_place(con, name, place):
    design = small_design(0)
    panel = FirmPanel.from_cohort_week("F", one_customer(con, design), design)
    values = getattr(panel, name).copy()
    values[place] = np.nan
    with pytest.raises(BadFirmData, match=rf"firm 'F': {name}\[.*\] of its panel is nan"):
        replace(panel, **{name: values})
    with pytest.raises(BadFirmData, match=f"{name} has the shape"):
        replace(panel, **{name: values[1:]})


def founded_late(first=12, washout=0):
    """Two customers a week from week `first` on, who order again in the week after; before them, if there is a
    washout, one left-censored customer who never orders again."""
    design = small_design(washout, study=40)
    weeks = design.study.dates()
    T, old = len(weeks), int(washout > 0)
    birth = np.r_[[LEFT_CENSORED] * old, np.arange(first, T)].astype(np.int64)
    size = np.r_[[1.0] * old, [2.0] * (T - first)]
    week = np.arange(T)
    born, again = week >= birth[:, None], (week == birth[:, None] + 1) & (birth[:, None] >= 0)
    orders = size[:, None] * ((week == birth[:, None]) | again)
    value = np.where(orders > 0, 10.0 + week, np.nan)
    Y = np.where(born, orders * np.nan_to_num(value), np.nan)
    order_weeks = [[k for k in (b, b + 1) if k < T] for b in birth[old:] for _ in range(2)]
    return FirmPanel(
        firm="late",
        design=design,
        weeks=weeks,
        A=np.where(week >= first, 2.0, 0.0),
        S=np.nansum(Y, axis=0),
        size=size,
        birth=birth,
        R=np.where(born, again.astype(float), np.nan),
        V=value,
        Y=Y,
        customers=CustomerHistory(
            cohort=np.repeat(np.arange(old, len(birth)), 2).astype(np.int32),
            start=np.r_[0, np.cumsum([len(own) for own in order_weeks])],
            week=np.concatenate(order_weeks).astype(np.int16),
        ),
    )


def test_weeks_before_the_first_order_are_dropped():
    panel = founded_late(first=12)
    cut = panel.since_first_order()
    assert cut.first_week == panel.weeks[12].astype(object)
    assert (cut.origin, cut.n_weeks) == (panel.origin, panel.n_weeks - 12)
    assert cut.birth[0] == 0
    np.testing.assert_array_equal(cut.weeks[cut.birth], panel.weeks[panel.birth])
    np.testing.assert_array_equal(cut.size, panel.size)
    np.testing.assert_array_equal(cut.orders, panel.orders[:, 12:])
    for name in ("A", "S"):
        np.testing.assert_array_equal(getattr(cut, name), getattr(panel, name)[12:])
        assert getattr(panel, name)[:12].sum() == 0
    for name in ("R", "V", "Y"):
        np.testing.assert_array_equal(getattr(cut, name), getattr(panel, name)[:, 12:])
    first = panel.customers.start[:-1]
    np.testing.assert_array_equal(cut.customers.week[first], cut.birth[cut.customers.cohort])
    assert cut.since_first_order() is cut


def test_a_firm_older_than_its_panel_is_not_cut():
    censored = founded_late(washout=13)
    assert censored.birth[0] == LEFT_CENSORED
    assert censored.S[:12].sum() == 0
    assert censored.since_first_order() is censored
    from_the_start = founded_late(first=0)
    assert from_the_start.since_first_order() is from_the_start


def test_a_cut_panel_shares_nothing_with_the_panel():
    panel = founded_late()
    before = {name: array.copy() for name, array in arrays(panel)}
    for _, array in arrays(panel.since_first_order()):
        array[:] = 0
    for name, array in arrays(panel):
        np.testing.assert_array_equal(array, before[name], err_msg=name)
