"""Rows become orders: the grain, the duplicates, the quarantine, and no row lost."""

from datetime import date, datetime
from decimal import Decimal

import duckdb
import pytest
from helpers.sources import HEAD, Shop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cbmt_core.errors import BadFirmData

WITH_ID = "firm,customer,order_time,amount,no\n"
BY_ID = {"columns": {"order_id": "no"}}


def orders(con):
    return con.execute(
        "SELECT customer, order_id, ordered_at, amount, rows FROM transactions ORDER BY ALL"
    ).fetchall()


def quarantine(con):
    return con.execute("SELECT file, row, reason FROM quarantine ORDER BY ALL").fetchall()


def test_rows_of_one_order_id_are_one_order(shop, con):
    shop.put(
        "a.csv", WITH_ID + "F,c,2017-01-02 09:00,5,1\nF,c,2017-01-02 08:00,7,1\nF,c,2017-01-02 08:00,2,2\n"
    )
    shop.config(BY_ID)
    shop.update()
    shop.make(con)
    assert orders(con) == [
        ("c", "1", datetime(2017, 1, 2, 8), Decimal(12), 2),
        ("c", "2", datetime(2017, 1, 2, 8), Decimal(2), 1),
    ]


def test_without_ids_an_order_is_a_customer_and_a_time(shop, con):
    shop.put(
        "a.csv",
        HEAD
        + "F,c,2017-01-02 09:00,5\nF,c,2017-01-02 09:00,7\nF,c,2017-01-02 10:00,1\nF,d,2017-01-02 09:00,1\n",
    )
    shop.update()
    shop.make(con)
    assert [(c, t.hour, a) for c, _, t, a, _ in orders(con)] == [("c", 9, 12), ("c", 10, 1), ("d", 9, 1)]


def test_the_day_grain_merges_a_customers_day(shop, con):
    shop.put(
        "a.csv", WITH_ID + "F,c,2017-01-02 09:00,5,1\nF,c,2017-01-02 23:59,7,2\nF,c,2017-01-03 00:00,1,3\n"
    )
    shop.config({**BY_ID, "order_grain": "day"})
    shop.update()
    shop.make(con)
    assert [(o, a) for _, o, _, a, _ in orders(con)] == [("2017-01-02", 12), ("2017-01-03", 1)]


def test_the_week_is_that_of_the_local_day(shop, con):
    # Saturday 23:30 UTC in July is Sunday 00:30 in London.
    shop.put("a.csv", HEAD + "F,c,2017-07-01T23:30:00Z,5\nF,d,2017-07-01 23:30:00,5\n")
    shop.update()
    shop.make(con)
    assert con.execute("SELECT customer, week FROM transactions ORDER BY 1").fetchall() == [
        ("c", date(2017, 7, 2)),
        ("d", date(2017, 6, 25)),
    ]


def test_equal_lines_of_an_invoice_are_two_lines_and_those_of_another_file_duplicates(shop, con):
    shop.put(
        "a.csv", WITH_ID + "F,c,2017-01-02,5,1\nF,c,2017-01-02,5,1\nF,c,2017-01-02,6,1\nF,d,2017-01-02,5,1\n"
    )
    shop.put("b.csv", WITH_ID + "F,c,2017-01-02,5,1\n" * 3)
    shop.config(BY_ID)
    shop.update()
    counts = shop.make(con)
    assert quarantine(con) == [("orders/b.csv", 1, "duplicate"), ("orders/b.csv", 2, "duplicate")]
    assert [(c, a) for c, _, _, a, _ in orders(con)] == [("c", 21), ("d", 5)]
    assert (counts.rows_in, counts.rows_used, counts.rows_quarantined, counts.rows_bad) == (7, 5, 2, 0)


def test_equal_orders_of_two_customers_in_two_files_are_no_duplicates(shop, con):
    """Two customers order the same at the same time, and both files hold both: each keeps one order."""
    both = "F,c,2017-01-02,5\nF,d,2017-01-02,5\n"
    shop.put("a.csv", HEAD + both)
    shop.put("b.csv", HEAD + both + "F,e,2017-01-03,7\n")
    shop.update()
    shop.make(con)
    assert quarantine(con) == [("orders/b.csv", 1, "duplicate"), ("orders/b.csv", 2, "duplicate")]
    assert [(c, a) for c, _, _, a, _ in orders(con)] == [("c", 5), ("d", 5), ("e", 7)]


def test_without_ids_overlapping_exports_do_not_count_twice_and_equal_lines_do(shop, con):
    shop.put("a.csv", HEAD + "F,c,2017-01-02,5\nF,c,2017-01-02,5\nF,c,2017-01-03,5\n")
    shop.put("b.csv", HEAD + "F,c,2017-01-02,5\nF,c,2017-01-02,5\nF,c,2017-01-02,5\nF,c,2017-01-04,5\n")
    shop.update()
    shop.make(con)
    assert quarantine(con) == [("orders/b.csv", 1, "duplicate"), ("orders/b.csv", 2, "duplicate")]
    assert [(t.day, a) for _, _, t, a, _ in orders(con)] == [(2, 15), (3, 5), (4, 5)]


def test_rows_out_of_the_window_are_quarantined(shop, con):
    shop.put(
        "a.csv", HEAD + "F,c,2015-12-31 23:59,5\nF,c,2016-01-01,5\nF,c,2020-02-29 23:59,5\nF,c,2020-03-01,5\n"
    )
    shop.update()
    counts = shop.make(con)
    assert quarantine(con) == [("orders/a.csv", 1, "out of window"), ("orders/a.csv", 4, "out of window")]
    assert counts.rows_out_of_window == 2


def test_the_quarantine_shows_the_row_and_its_amount(shop, con):
    shop.put("a.csv", HEAD + 'F,"c, 1",2017-01-02,-5\nF,c,2017-01-02,oops\nF,c,2014-01-02,7\n')
    shop.update()
    shop.make(con)
    found = con.execute("SELECT reason, detail, amount FROM quarantine ORDER BY row").fetchall()
    assert [(reason, amount) for reason, _, amount in found] == [
        ("refund without an order", -5), ("unparseable amount", None), ("stray date", 7),
    ]  # fmt: skip
    assert "c, 1" in found[0][1]
    assert "oops" in found[1][1]
    assert "2014-01-02" in found[2][1]


def test_a_segment_has_its_own_rows_and_the_firm_has_all(shop, con):
    shop.put(
        "a.csv",
        "firm,customer,order_time,amount,area\nF,c,2017-01-02,5,n\nF,d,2017-01-02,7,s\nF,e,2017-01-02,0,s\n",
    )
    shop.config({"columns": {"segment": "area"}})
    shop.update()
    assert shop.make(con).rows_in == 3
    counts = shop.make(con, "F", "s")
    assert (counts.rows_in, counts.rows_used) == (2, 1)
    assert con.execute("SELECT DISTINCT firm FROM transactions").fetchall() == [("F~s",)]


def test_a_segment_called_like_a_firm_is_refused(tmp_path, con):
    shop = Shop(tmp_path, {"columns": {"segment": "area"}}, {"name": "plain", "path": "plain.csv"})
    shop.put("a.csv", "firm,customer,order_time,amount,area\nF,c,2017-01-02,5,n\n")
    (tmp_path / "plain.csv").write_text(HEAD + "F~n,c,2017-01-02,5\n")
    shop.update()
    with pytest.raises(BadFirmData, match=r"firm 'F~n': .* both called this"):
        shop.make(con, "F", "n")
    assert shop.make(con, "F~n").rows_used == 1


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [("currency", "EUR", "several currencies: EUR, GBP"), ("timezone", "UTC", "several time zones")],
)
def test_money_and_time_of_several_kinds_are_refused(tmp_path, con, field, value, words):
    shop = Shop(tmp_path, {}, {"name": "second", "path": "second.csv", field: value})
    shop.put("a.csv", HEAD + "F,c,2017-01-02,5\n")
    (tmp_path / "second.csv").write_text(HEAD + "F,d,2017-01-02,5\n")
    shop.update()
    with pytest.raises(BadFirmData, match=words):
        shop.make(con)


def test_the_industry_is_the_one_most_rows_give(shop, con):
    shop.put(
        "a.csv",
        "firm,customer,order_time,amount,kind\nF,c,2017-01-02,5,toys\nF,d,2017-01-02,5,toys\nF,e,2017-01-02,5,\n",
    )
    shop.config({"columns": {"industry": "kind"}})
    shop.update()
    counts = shop.make(con)
    assert (counts.industry, counts.currency, counts.timezone) == ("toys", "GBP", "Europe/London")


ROW = st.tuples(
    st.sampled_from(["F", "F", "F", "G", ""]),
    st.sampled_from(["c", "d", ""]),
    st.sampled_from(["2017-01-02", "2017-01-03 10:00", "2031-01-01", "soon", ""]),
    st.sampled_from(["5", "7.5", "0", "-1", "nan", "inf", "?", ""]),
    st.sampled_from(["1", "2", ""]),
)


TIMES = {"2017-01-02": datetime(2017, 1, 2), "2017-01-03 10:00": datetime(2017, 1, 3, 10)}


def completed(rows, ids):
    """(file, customer, time, amount, order id) of the rows of F that can be used, lines that leave out the customer or
    the time completed from the other lines of their order."""
    mine = [(file, c, t, a, o) for file, (f, c, t, a, o) in rows if f == "F"]
    heads = {}
    for _, c, t, _, o in mine:
        if o and c and t in (*TIMES, "2031-01-01"):
            heads.setdefault(o, []).append((c, TIMES.get(t, datetime(2031, 1, 1))))
    for file, c, t, a, o in mine:
        if a not in ("5", "7.5", "0", "-1") or (ids and not o) or t == "soon":
            continue
        moment = TIMES.get(t, datetime(2031, 1, 1)) if t else None
        if ids and not (c and t) and len({who for who, _ in heads.get(o, [])}) == 1:
            c, moment = c or heads[o][0][0], moment or min(when for _, when in heads[o])
        if c and moment and moment.year == 2017:
            yield file, c, moment, Decimal(a), o


def netted(groups):
    """Orders left after refunds took away from the customer's latest earlier ones. {key: amount}, rows of each."""
    left = {key: amount for key, (_, amount, _) in groups.items() if amount > 0}
    rows = {key: groups[key][2] for key in left}
    for (customer, _), (moment, amount, count) in sorted(
        groups.items(), key=lambda item: (item[1][0], item[0])
    ):
        if amount >= 0:
            continue
        earlier = sorted(
            (groups[key][0], key) for key in left if key[0] == customer and groups[key][0] <= moment
        )
        owed, first = -amount, True
        for _, key in reversed(earlier):
            taken = min(owed, left[key])
            if taken and first:
                rows[key] += count
                first = False
            left[key] -= taken
            owed -= taken
    return {key: amount for key, amount in left.items() if amount > 0}, rows


@given(
    first=st.lists(ROW, min_size=1, max_size=25),
    second=st.lists(ROW, max_size=25),
    ids=st.booleans(),
    day=st.booleans(),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_in_are_rows_used_or_quarantined(tmp_path_factory, first, second, ids, day):
    """Against the rows counted one by one in Python."""
    shop = Shop(tmp_path_factory.mktemp("rows"))
    for name, rows in (("a.csv", first), ("b.csv", second)):
        shop.put(name, WITH_ID + "".join(",".join(row) + "\n" for row in rows))
    shop.config({**(BY_ID if ids else {}), "order_grain": "day" if day else "order"})
    report = shop.update()
    assert report.failed == {}
    same = first == second
    rows = [("a", r) for r in first] + ([] if same else [("b", r) for r in second])
    assert sum(e.rows for e in report.read) == len(rows)
    seen, groups, lines = set(), {}, {}
    for file, c, t, a, o in completed(rows, ids):
        given_id = o if ids else None
        lines[file, c, t, a, given_id] = line = lines.get((file, c, t, a, given_id), 0) + 1
        if (c, t, a, given_id, line) in seen:  # the k-th equal line of a file stands for the k-th of another
            continue
        seen.add((c, t, a, given_id, line))
        key = (c, str(t.date()) if day else o if ids else str(t))
        at, amount, count = groups.get(key, (t, 0, 0))
        groups[key] = (min(at, t), amount + a, count + 1)
    with duckdb.connect() as con:
        if not any(r[0] == "F" for _, r in rows):
            with pytest.raises(BadFirmData):
                shop.make(con)
            return
        counts = shop.make(con)
        orders, used = netted(groups)
        assert counts.rows_in == sum(r[0] == "F" for _, r in rows)
        assert counts.rows_in == counts.rows_used + counts.rows_quarantined
        assert con.execute("SELECT count(*) FROM quarantine").fetchall() == [(counts.rows_quarantined,)]
        assert counts.orders == len(orders)
        found = con.execute(
            "SELECT coalesce(sum(amount), 0), coalesce(min(amount), 1) FROM transactions"
        ).fetchall()
        assert found[0][0] == sum(orders.values())
        assert found[0][1] > 0
        assert counts.rows_used == sum(used[key] for key in orders)
