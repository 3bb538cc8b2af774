"""Every export of the corpus is detected without help, and its revenue is right to the cent."""

import random
import sqlite3
from datetime import datetime, timedelta
from decimal import Decimal

import duckdb
import pytest
from helpers.exports import written
from helpers.odd_exports import EXPORTS

from cbmt_core import duck
from cbmt_core.config import SourceConfig
from cbmt_core.errors import UnreadableSource
from cbmt_core.transactions.detect import detect
from cbmt_core.transactions.detect_values import amounts_look, times_look
from cbmt_core.transactions.preview import preview
from cbmt_core.transactions.times import time_sql


def test_the_corpus_is_large_enough():
    assert len(EXPORTS) >= 25


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_gives_its_revenue_to_the_cent(tmp_path, name):
    made = EXPORTS[name]()
    file = written(made, tmp_path)
    found = detect(file, {"currency": made.currency, "timezone": made.timezone}, {}, "shop")
    source = SourceConfig.model_validate(
        {"name": "shop", "path": str(file), "currency": made.currency, "timezone": made.timezone,
         **found.settings, "columns": found.columns}
    )  # fmt: skip
    seen = preview(source, tmp_path)
    assert seen.sales == made.revenue, (found, seen)
    assert found.notes


def test_columns_of_unknown_names_are_found_by_their_content(tmp_path):
    file = tmp_path / "orders.csv"
    lines = [f"C{k % 7},{k},2020-01-{1 + k % 28:02d} 10:00,{k}.50,{k % 3}" for k in range(60)]
    file.write_text("shopper_key,bon,gezeichnet,wert,filiale\n" + "\n".join(lines))
    found = detect(file, {}, {}, "shop")
    assert {ours: found.columns[ours] for ours in ("customer", "order_time", "amount")} == {
        "customer": "shopper_key",
        "order_time": "gezeichnet",
        "amount": "wert",
    }
    assert sum("by its content" in note for note in found.notes) == 3


def test_of_two_times_none_is_taken_unless_a_name_tells(tmp_path):
    file = tmp_path / "orders.csv"
    lines = [f"C{k % 7},2020-01-{1 + k % 28:02d},2020-02-{1 + k % 28:02d},{k}.50" for k in range(60)]
    file.write_text("customer,one,other,amount\n" + "\n".join(lines))
    assert "order_time" not in detect(file, {}, {}, "shop").columns
    file.write_text("customer,booked_sale,shipped,amount\n" + "\n".join(lines))
    assert detect(file, {}, {}, "shop").columns["order_time"] == "booked_sale"


def test_a_price_of_one_unit_without_a_quantity_and_other_totals_are_mentioned(tmp_path):
    file = tmp_path / "orders.csv"
    rows = "\n".join(f"{k},C{k % 7},2020-01-{1 + k % 28:02d},{k}.50,{k}.70,x" for k in range(60))
    file.write_text(f"order_id,customer,date,unit_price,weight,sku\n{rows}")
    found = detect(file, {}, {}, "shop")
    assert found.columns["amount"] == "unit_price"
    assert sum("price of one unit" in note for note in found.notes) == 1
    file.write_text(f"order_id,customer,date,total,subtotal,sku\n{rows}")
    found = detect(file, {}, {}, "shop")
    assert "the amount is 'total'; it could also be 'subtotal' (--column amount=...)" in found.notes


def test_a_customer_who_stands_for_many_is_mentioned(tmp_path):
    file = tmp_path / "orders.csv"
    people = [*(f"C{k % 60}" for k in range(600)), *["Walk-in"] * 250]
    rows = "\n".join(f"{k},{who},2020-01-{1 + k % 28:02d},{k}.50" for k, who in enumerate(people))
    file.write_text(f"order_id,customer,date,total\n{rows}")
    (note,) = [note for note in detect(file, {}, {}, "shop").notes if "one customer" in note]
    assert "'Walk-in', has 29%" in note
    assert "--leave-out customer=Walk-in" in note


def test_a_preview_names_the_column_that_leaves_a_row_out_and_money_back_without_an_order(tmp_path):
    file = tmp_path / "orders.csv"
    file.write_text(
        "order_id,customer,order_time,amount,status\n"
        "1,a,2020-01-05 10:00,10.00,done\n"
        "2,a,2020-01-06 10:00,4.00,on hold\n"
        "3,b,2020-01-07 10:00,-4.00,done\n"
    )
    source = SourceConfig.model_validate(
        {"name": "s", "path": str(file), "currency": "GBP", "timezone": "Europe/London", "firm": "Shop",
         "columns": {"order_id": "order_id"}, "leave_out": {"status": ["on hold"]}}
    )  # fmt: skip
    seen = preview(source, tmp_path)
    assert (seen.sales, seen.refunds_unmatched) == (10, 4)
    failing = dict(seen.failing)
    assert failing[2] == "status: left out on hold"
    assert failing[3].startswith("refund without an order: ")


def test_a_preview_counts_every_row_that_is_in_no_order(tmp_path):
    file = tmp_path / "orders.csv"
    file.write_text(
        "order_id,customer,order_time,amount\n"
        "1,a,2020-01-05 10:00,10.00\n"
        "2,b,2020-01-06 10:00,4.00\n"
        "3,b,2020-01-07 10:00,-4.00\n"
        "4,a,2020-01-08 10:00,-3.00\n"
        "5,,2020-01-09 10:00,7.00\n"
    )
    source = SourceConfig.model_validate(
        {"name": "s", "path": str(file), "currency": "GBP", "timezone": "Europe/London", "firm": "Shop",
         "columns": {"order_id": "order_id"}}
    )  # fmt: skip
    seen = preview(source, tmp_path)
    assert seen.used + sum(seen.reasons.values()) == seen.rows == 5
    assert seen.reasons == {"refunded in full": 2, "missing customer": 1}
    assert (seen.sales, seen.refunds, seen.refund_rows, seen.guest_sales) == (7, 7, 2, 7)


def test_line_items_with_discounts_refunds_and_guests_add_up_to_the_cent(tmp_path):
    """Several lines an invoice, equal lines, discounts as negative lines, refunds of their own id, guests.

    Every cent is counted while the file is made, in decimals.
    """
    rng, begin = random.Random(18), datetime(2018, 1, 7)
    revenue, guest_sales, rows, refunds, guests, equal = Decimal(0), Decimal(0), [], 0, 0, 0
    for k in range(1500):
        when = begin + timedelta(minutes=rng.randrange(60 * 7 * 24 * 60))
        who = "" if rng.random() < 0.02 else f"C{rng.randrange(200)}"
        lines = [Decimal(rng.randrange(99, 9000)) / 100 for _ in range(rng.randrange(1, 8))]
        if rng.random() < 0.3:
            lines.append(lines[-1])
            equal += 1
        if rng.random() < 0.25:
            lines.append(-(sum(lines) * rng.randrange(5, 30) / 100).quantize(Decimal("0.01")))
        rows += [(when, f"INV{k}", who, amount) for amount in lines]
        if not who:
            guests, guest_sales = guests + len(lines), guest_sales + sum(lines)
            continue
        revenue += sum(lines)
        if rng.random() < 0.05:
            back = (sum(lines) * rng.randrange(10, 100) / 100).quantize(Decimal("0.01"))
            rows.append((when + timedelta(hours=1), f"CR{k}", who, -back))
            revenue, refunds = revenue - back, refunds + 1
    assert min(refunds, guests, equal) > 20
    rows.sort()
    file = tmp_path / "lines.csv"
    file.write_text("Invoice,InvoiceDate,Customer ID,StockCode,Line Total\n" + "".join(
        f"{invoice},{when:%Y-%m-%d %H:%M:%S},{who},SKU,{amount}\n" for when, invoice, who, amount in rows
    ))  # fmt: skip
    found = detect(file, {}, {}, "shop")
    source = SourceConfig.model_validate(
        {"name": "shop", "path": str(file), "currency": "GBP", "timezone": "Europe/London", **found.settings,
         "columns": found.columns}
    )  # fmt: skip
    seen = preview(source, tmp_path)
    assert (seen.sales, seen.guest_sales) == (revenue, guest_sales)
    assert seen.reasons["missing customer"] == guests
    assert seen.refund_rows == refunds
    assert seen.used + sum(seen.reasons.values()) == seen.rows == len(rows)


def test_an_order_left_out_by_its_first_line_takes_its_other_lines_along(tmp_path):
    """Shopify states an order's status and total on its first line alone: a voided order is no bad data."""
    file = tmp_path / "orders.csv"
    file.write_text(
        "order_id,customer,order_time,amount,status\n"
        "1,a,2020-01-05 10:00,10.00,paid\n"
        "1,a,2020-01-05 10:00,,\n"
        "2,b,2020-01-06 10:00,4.00,voided\n"
        "2,b,2020-01-06 10:00,,\n"
        "2,b,2020-01-06 10:00,,\n"
    )
    source = SourceConfig.model_validate(
        {"name": "s", "path": str(file), "currency": "GBP", "timezone": "Europe/London", "firm": "Shop",
         "columns": {"order_id": "order_id"}, "leave_out": {"status": ["voided"]}, "amount_of": "order"}
    )  # fmt: skip
    seen = preview(source, tmp_path)
    assert (seen.sales, seen.reasons) == (10, {"left out": 3})


def test_words_in_the_place_of_amounts_are_no_signs_of_a_currency() -> None:
    assert amounts_look(["10.00", "oops", "n/a", ""]) == (".", [])
    assert amounts_look(["10.00", "£5.30"]) == (".", ["amounts carry signs of a currency"])


def notes_of(file, text: str) -> str:
    file.write_text(text)
    return "\n".join(detect(file, {}, {}, "shop").notes)


def test_what_is_not_understood_is_told_with_the_cells_that_were_not(tmp_path):
    file = tmp_path / "orders.csv"
    quarters = "".join(f"{k},C{k},Q{1 + k % 4} 2020,{k}.50\n" for k in range(30))
    notes = notes_of(file, "order_id,customer,date,total\n" + quarters)
    assert "'date' is not taken for the order_time: cells such as 'Q1 2020', 'Q2 2020', 'Q3 2020'" in notes
    rows = "".join(f"{k},C{k},2020-01-{1 + k % 28:02d},{k}.50,2,1.05\n" for k in range(30))
    notes = notes_of(file, "order_id,customer,date,unit_price,quantity,discount\n" + rows)
    assert "'discount' is not taken off" in notes
    assert "discount" not in notes_of(file, "order_id,customer,date,total,quantity,discount\n" + rows)
    with pytest.raises(UnreadableSource, match=r"orders.json is none of .csv"):
        detect(tmp_path / "orders.json", {}, {}, "shop")


def test_three_digits_after_a_point_are_decimals_where_every_amount_has_them() -> None:
    separator, notes = amounts_look(["21.930", "4.500"])
    assert separator == "."
    assert "'21.930' are read with three decimals (--decimal-separator ," in notes[0]
    assert amounts_look(["21.930", "0.450"]) == (".", [])
    assert amounts_look(["21.930", "450"])[0] == ","
    assert amounts_look(["1.121.930", "21.930"])[0] == ","
    assert amounts_look(["1,930", "450"]) == (".", ["amounts have dividers of thousands"])


def test_an_order_id_whose_lines_cancel_out_is_a_refund_and_no_bad_data(tmp_path):
    file = tmp_path / "orders.csv"
    file.write_text(
        "order_id,customer,order_time,amount,kind\n"
        "1,a,2020-01-05 10:00,10.00,sale\n"
        "1,a,2020-01-09 10:00,10.00,refund\n"
        "2,b,2020-01-06 10:00,4.00,sale\n"
        "2,b,2020-01-07 10:00,-4.00,refund\n"
        "3,b,2020-01-07 10:00,0.00,sale\n"
        "4,b,2020-01-08 10:00,3.00,sale\n"
    )
    source = SourceConfig.model_validate(
        {"name": "s", "path": str(file), "currency": "GBP", "timezone": "Europe/London", "firm": "Shop",
         "columns": {"order_id": "order_id"}, "refund_where": {"kind": ["Refund"]}}
    )  # fmt: skip
    seen = preview(source, tmp_path)
    assert seen.reasons == {"refunded in full": 4, "non-positive amount": 1}
    assert (seen.sales, seen.refunds, seen.refund_rows) == (3, 14, 2)


def test_kinds_of_payment_are_no_refunds_and_customers_with_several_addresses_no_guests(tmp_path):
    file = tmp_path / "orders.csv"
    rows = "".join(
        f"{k},{k % 9},a{k % 9}.{k % 2}@x.org,2020-01-{1 + k % 28:02d},{k}.50,{'credit' if k % 2 else 'debit'}\n"
        for k in range(60)
    )
    file.write_text("order_id,customer_id,email,date,total,payment_type\n" + rows)
    found = detect(file, {}, {}, "shop")
    assert found.columns["customer"] == "customer_id"
    assert not {"refund_where", "leave_out"} & found.settings.keys()


@pytest.mark.parametrize(
    ("text", "day"),
    [("4. März 2021", 4), ("04-févr-21", 4), ("15 de agosto de 2021", 15), ("20 maggio 2021", 20), ("1 Dez 2021", 1),
     ("12 mei 2021", 12), ("Thu, 4 Mar 2021", 4), ("Sunday, March 7, 2021", 7), ("7 September 2021", 7)],
)  # fmt: skip
def test_months_are_read_in_the_languages_that_are_detected(text, day):
    formats, _ = times_look([text], month_first=False)
    source = SourceConfig(name="s", path="s", currency="EUR", timezone="UTC", time_format=formats[0])
    with duck.connect() as con:
        read = con.execute(
            f"SELECT {time_sql(source, 't', 'VARCHAR')} FROM (SELECT $1 AS t)", [text]
        ).fetchall()
    assert read[0][0].day == day


def test_other_words_are_no_months() -> None:
    assert times_look(["12 bananas 2021", "4 de nada 2021"], month_first=False) == ([], [])


def test_files_that_hold_no_orders_are_refused_in_words(tmp_path):
    def why(name: str, content: bytes | None, **stated: object) -> str:
        file = tmp_path / name
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(UnreadableSource) as error:
            detect(file, stated, {}, "shop")
        return str(error.value)

    rows = b"order_id,customer,date,total\n1,a,2020-01-05,4.00\n"
    assert "is empty" in why("empty.csv", b"")
    assert "no names of columns in line 50" in why("short.csv", rows, header_line=50)
    sqlite3.connect(tmp_path / "lite.db").execute("CREATE TABLE orders (id)").connection.close()
    assert "not a valid DuckDB database file" in why("lite.db", None, table="orders")
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as con:
        con.execute(
            "CREATE TABLE orders (id INT); CREATE SCHEMA web; CREATE VIEW web.sales AS SELECT 1 AS id"
        )
    assert "say which table to read; it has orders, web.sales (--table)" in why("shop.duckdb", None)
    assert "there is no table 'order'; it has orders, web.sales" in why("shop.duckdb", None, table="order")
    assert detect(tmp_path / "shop.duckdb", {"table": "web.sales"}, {}, "shop").heading == ["id"]
    assert detect(tmp_path / "shop.duckdb", {"table": "main.Orders"}, {}, "shop").heading == ["id"]


def test_a_share_that_is_discounted_is_taken_off(tmp_path):
    file = tmp_path / "orders.csv"
    for shares in (["0", "0.05", "0.1", ""], ["0 %", "5 %", "10%", ""]):
        lines = [f"{k},C{k % 7},2020-01-{1 + k % 28:02d},{10 + k}.50,2,{shares[k % 4]}" for k in range(40)]
        file.write_text("OrderID,CustomerID,OrderDate,UnitPrice,Quantity,Discount\n" + "\n".join(lines))
        found = detect(file, {}, {}, "shop")
        assert found.columns["discount"] == "Discount"
        assert "amounts are reduced by the share in 'Discount'" in found.notes
        source = SourceConfig.model_validate(
            {"name": "s", "path": str(file), "currency": "USD", "timezone": "UTC", **found.settings,
             "columns": found.columns}
        )  # fmt: skip
        kept = [Decimal("1"), Decimal("0.95"), Decimal("0.9"), Decimal("1")]
        assert preview(source, tmp_path).sales == sum(
            2 * (10 + k + Decimal("0.5")) * kept[k % 4] for k in range(40)
        )
    file.write_text(file.read_text().replace("10%", "110%"))
    assert preview(source, tmp_path).reasons == {"no share discounted": 10}


def test_orders_paid_back_are_left_out_unless_refunds_are_rows_of_their_own(tmp_path):
    file = tmp_path / "orders.csv"
    rows = "".join(
        f"{k},C{k % 9},2020-01-{1 + k % 28:02d},{k + 1}.50,{'Refunded' if k % 9 else 'Paid'}\n"
        for k in range(40)
    )
    head = "order_id,customer,date,total,status\n"
    assert "left out as no sales: rows whose 'status' is Refunded" in notes_of(file, head + rows)
    notes = notes_of(file, head + rows + "R1,C1,2020-02-01,-1.50,Refunded\n")
    assert "left out" not in notes
    assert "rows whose 'status' is Refunded count as sales, and negative amounts as the refunds" in notes
    assert "--leave-out status=Refunded" in notes
