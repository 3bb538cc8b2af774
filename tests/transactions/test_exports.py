"""Every export of the corpus is detected without help, and its revenue is right to the cent."""

import pytest
from exports import EXPORTS, written

from cbmt_core.config import SourceConfig
from cbmt_core.transactions.detect import detect
from cbmt_core.transactions.preview import preview


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
