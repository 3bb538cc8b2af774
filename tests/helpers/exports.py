"""Exports as shops have them, written here from the public formats of each product, with their revenue.

Every export holds the same kind of orders under the headers, dialects and habits of one product. `revenue` is added up
while the file is written, without any code of the product under test.
"""

from __future__ import annotations

# ruff: noqa: E501, PERF401
import csv
import gzip
import io
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

D = Decimal
START = datetime(2019, 1, 6, 9, 30)


@dataclass(frozen=True)
class Line:
    order: int
    customer: str
    at: datetime
    price: Decimal
    units: int

    @property
    def amount(self) -> Decimal:
        return self.price * self.units


def orders(seed: int, count: int = 120) -> list[list[Line]]:
    """Orders of one to four lines, three a day."""
    draw = random.Random(seed)
    made = []
    for k in range(count):
        at = START + timedelta(hours=8 * k, minutes=draw.randrange(60))
        who = f"user{draw.randrange(40)}@example.com"
        lines = [
            Line(1001 + k, who, at, D(draw.randrange(200, 250_000)) / 100, draw.randrange(1, 4))
            for _ in range(draw.randrange(1, 5))
        ]
        made.append(lines)
    return made


def total(lines: list[Line]) -> Decimal:
    return sum((line.amount for line in lines), D(0))


def text_of(rows: list[list[object]], delimiter: str = ",", end: str = "\n") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator=end).writerows(rows)
    return out.getvalue()


@dataclass(frozen=True)
class Export:
    name: str
    content: bytes
    revenue: Decimal
    suffix: str = ".csv"
    currency: str = "USD"
    timezone: str = "America/New_York"
    options: tuple[str, ...] = ()


EXPORTS: dict[str, Callable[[], Export]] = {}


def export(make: Callable[[], Export]) -> Callable[[], Export]:
    EXPORTS[make.__name__] = make
    return make


def euro(amount: Decimal, sign: str = "") -> str:
    return f"{amount:,.2f}".translate(str.maketrans(",.", ".,")) + sign


@export
def shopify() -> Export:
    head = ["Name", "Email", "Financial Status", "Paid at", "Currency", "Subtotal", "Total", "Lineitem quantity",
            "Lineitem name", "Lineitem price", "Created at", "Refunded Amount", "Vendor", "Notes"]  # fmt: skip
    rows: list[list[object]] = [head]
    revenue = D(0)
    for k, lines in enumerate(orders(1)):
        void, back = k % 17 == 0, total(lines) / 2 if k % 10 == 0 else D(0)
        back = back.quantize(D("0.01"))
        status = "voided" if void else "partially_refunded" if back else "paid"
        for n, line in enumerate(lines):
            first = n == 0
            at = f"{line.at:%Y-%m-%d %H:%M:%S} -0500"
            rows.append([f"#{line.order}", line.customer, status if first else "", at if first else "",
                         "USD" if first else "", total(lines) if first else "", total(lines) if first else "",
                         line.units, f"Thing {n}", line.price, at, back if first else "", f"Vendor {n}",
                         "two\nlines" if k % 7 == 0 and first else ""])  # fmt: skip
        revenue += D(0) if void else total(lines) - back
    return Export("shopify", text_of(rows).encode(), revenue)


@export
def woocommerce_orders() -> Export:
    rows: list[list[object]] = [
        ["Order ID", "Order Number", "Order Date", "Status", "Billing Email", "Order Total"]
    ]
    revenue = D(0)
    for k, lines in enumerate(orders(2)):
        status = ("completed", "processing", "cancelled", "failed")[k % 4]
        rows.append([lines[0].order, lines[0].order, f"{lines[0].at:%Y-%m-%d %H:%M}", status, lines[0].customer,
                     total(lines)])  # fmt: skip
        revenue += total(lines) if k % 4 < 2 else D(0)
    return Export("woocommerce_orders", text_of(rows).encode(), revenue)


@export
def woocommerce_items() -> Export:
    """One row an item, the order's total repeated on each."""
    rows: list[list[object]] = [
        ["Order Number", "Order Date", "Customer Email", "Item Name", "Quantity", "Order Total"]
    ]
    revenue = D(0)
    for lines in orders(3):
        for n, line in enumerate(lines):
            rows.append(
                [
                    line.order,
                    f"{line.at:%Y-%m-%d %H:%M:%S}",
                    line.customer,
                    f"Item {n}",
                    line.units,
                    total(lines),
                ]
            )
        revenue += total(lines)
    return Export("woocommerce_items", text_of(rows).encode(), revenue)


@export
def stripe() -> Export:
    rows: list[list[object]] = [
        ["id", "Created date (UTC)", "Amount", "Amount Refunded", "Currency", "Status", "Customer Email"]
    ]
    revenue = D(0)
    for k, lines in enumerate(orders(4)):
        failed, back = k % 9 == 0, total(lines) if k % 13 == 5 else D(0)
        status = "Failed" if failed else "Refunded" if back else "Paid"
        rows.append(
            [
                f"ch_{k}",
                f"{lines[0].at:%Y-%m-%d %H:%M:%S}",
                total(lines),
                back,
                "usd",
                status,
                lines[0].customer,
            ]
        )
        revenue += D(0) if failed else total(lines) - back
    return Export("stripe", text_of(rows).encode(), revenue)


@export
def square_transactions() -> Export:
    rows: list[list[object]] = [
        [
            "Date",
            "Time",
            "Time Zone",
            "Net Sales",
            "Gross Sales",
            "Transaction ID",
            "Customer ID",
            "Event Type",
        ]
    ]
    revenue = D(0)
    for k, lines in enumerate(orders(5)):
        amount = total(lines)
        at = lines[0].at
        rows.append([f"{at:%m/%d/%y}", f"{at:%H:%M:%S}", "Eastern Time", f"${amount:,.2f}", f"${amount:,.2f}", f"T{k}",
                     lines[0].customer, "Payment"])  # fmt: skip
        revenue += amount
        if k % 12 == 3:
            later = at + timedelta(days=1)
            rows.append([f"{later:%m/%d/%y}", f"{later:%H:%M:%S}", "Eastern Time", f"-${amount / 2:,.2f}", f"-${amount / 2:,.2f}",
                         f"R{k}", lines[0].customer, "Refund"])  # fmt: skip
            revenue -= D(f"{amount / 2:.2f}")
    return Export("square_transactions", text_of(rows).encode(), revenue)


@export
def magento() -> Export:
    rows: list[list[object]] = [["ID", "Purchase Point", "Purchase Date", "Bill-to Name", "Grand Total (Base)",
                                 "Grand Total (Purchased)", "Status", "Customer Email"]]  # fmt: skip
    revenue = D(0)
    for k, lines in enumerate(orders(6)):
        status = "canceled" if k % 8 == 0 else "complete"
        rows.append([f"{lines[0].order:09}", "Main Website", f"{lines[0].at:%b %d, %Y %I:%M:%S %p}", "A B",
                     f"${total(lines):,.2f}", f"${total(lines):,.2f}", status, lines[0].customer])  # fmt: skip
        revenue += D(0) if k % 8 == 0 else total(lines)
    return Export("magento", text_of(rows).encode("utf-8-sig"), revenue)


@export
def lightspeed() -> Export:
    """Lines with their totals; discounts as negative lines."""
    rows: list[list[object]] = [["Sale ID", "Completed At", "Customer", "Description", "Qty", "Line Total"]]
    revenue = D(0)
    for k, lines in enumerate(orders(7)):
        for n, line in enumerate(lines):
            rows.append(
                [
                    line.order,
                    f"{line.at:%Y-%m-%dT%H:%M:%S}+00:00",
                    line.customer,
                    f"SKU{n}",
                    line.units,
                    line.amount,
                ]
            )
        if k % 3 == 0:
            rows.append(
                [
                    lines[0].order,
                    f"{lines[0].at:%Y-%m-%dT%H:%M:%S}+00:00",
                    lines[0].customer,
                    "Discount",
                    1,
                    D("-1.50"),
                ]
            )
            revenue -= D("1.50")
        revenue += total(lines)
    return Export("lightspeed", text_of(rows, end="\r\n").encode(), revenue)


@export
def sap_sales_documents() -> Export:
    rows: list[list[object]] = [["VBELN", "POSNR", "ERDAT", "KUNNR", "MATNR", "KWMENG", "NETWR", "WAERK"]]
    revenue = D(0)
    for lines in orders(8):
        for n, line in enumerate(lines, start=1):
            rows.append([f"{line.order:010}", n * 10, f"{line.at:%d.%m.%Y}", line.customer.split("@")[0], "M-1", line.units,
                         euro(line.amount), "EUR"])  # fmt: skip
        revenue += total(lines)
    return Export("sap_sales_documents", text_of(rows, ";").encode(), revenue, ".txt", "EUR", "Europe/Berlin")


@export
def sap_compact_dates() -> Export:
    rows: list[list[object]] = [["Sales document", "Document date", "Sold-to party", "Net value"]]
    revenue = D(0)
    for lines in orders(9):
        rows.append([lines[0].order, f"{lines[0].at:%Y%m%d}", lines[0].customer, f"{total(lines):.2f}"])
        revenue += total(lines)
    return Export("sap_compact_dates", text_of(rows, "|").encode(), revenue, ".txt", "EUR", "Europe/Berlin")


@export
def online_retail() -> Export:
    """Units and unit prices; returns are invoices of their own with negative units."""
    rows: list[list[object]] = [
        ["InvoiceNo", "StockCode", "Quantity", "InvoiceDate", "UnitPrice", "CustomerID"]
    ]
    revenue = D(0)
    for k, lines in enumerate(orders(10)):
        who = lines[0].customer[4:].split("@")[0]
        for line in lines:
            rows.append(
                [line.order, "85123A", line.units, f"{line.at:%m/%d/%Y %H:%M}", line.price, f"17{who}"]
            )
        revenue += total(lines)
        if k % 10 == 4:
            back = lines[0]
            rows.append(
                [
                    f"C{back.order}",
                    "85123A",
                    -back.units,
                    f"{back.at + timedelta(hours=3):%m/%d/%Y %H:%M}",
                    back.price,
                    f"17{who}",
                ]
            )
            revenue -= back.amount
    return Export("online_retail", text_of(rows).encode(), revenue, currency="GBP", timezone="Europe/London")


@export
def german_shop_cp1252() -> Export:
    rows: list[list[object]] = [["Bestellnummer", "Kunde", "Bestelldatum", "Gesamtbetrag", "Währung"]]
    revenue = D(0)
    for lines in orders(11):
        rows.append(
            [
                lines[0].order,
                f"Jörg {lines[0].customer}",
                f"{lines[0].at:%d.%m.%Y %H:%M}",
                euro(total(lines), " €"),
                "EUR",
            ]
        )
        revenue += total(lines)
    return Export(
        "german_shop_cp1252",
        text_of(rows, ";", "\r\n").encode("cp1252"),
        revenue,
        ".csv",
        "EUR",
        "Europe/Berlin",
    )


@export
def utf16_spreadsheet_text() -> Export:
    rows: list[list[object]] = [["Order ID", "Customer", "Order Date", "Total"]]
    revenue = D(0)
    for lines in orders(12):
        rows.append(
            [lines[0].order, lines[0].customer, f"{lines[0].at:%d/%m/%Y %H:%M:%S}", f"£{total(lines):,.2f}"]
        )
        revenue += total(lines)
    return Export(
        "utf16_spreadsheet_text",
        text_of(rows, "\t").encode("utf-16"),
        revenue,
        ".txt",
        "GBP",
        "Europe/London",
    )


@export
def utf16_big_endian() -> Export:
    rows: list[list[object]] = [["Order ID", "Customer", "Order Date", "Total"]]
    revenue = D(0)
    for lines in orders(13):
        rows.append([lines[0].order, lines[0].customer, f"{lines[0].at:%Y-%m-%d}", total(lines)])
        revenue += total(lines)
    return Export("utf16_big_endian", text_of(rows).encode("utf-16-be"), revenue)


@export
def report_with_title_and_totals() -> Export:
    rows: list[list[object]] = [
        ["Sales report"],
        ["From 2019-01-01 to 2019-12-31"],
        [],
        ["Order", "Customer", "Date", "Amount"],
    ]
    revenue = D(0)
    for lines in orders(14):
        rows.append([lines[0].order, lines[0].customer, f"{lines[0].at:%Y-%m-%d}", f"{total(lines):,.2f}"])
        revenue += total(lines)
    rows += [["Grand total", "", "", f"{revenue:,.2f}"]]
    return Export("report_with_title_and_totals", text_of(rows).encode(), revenue)


@export
def bracketed_negatives() -> Export:
    rows: list[list[object]] = [["Order No", "Account ID", "Order Date", "Amount"]]
    revenue = D(0)
    for k, lines in enumerate(orders(15)):
        rows.append([lines[0].order, lines[0].customer, f"{lines[0].at:%d-%b-%Y}", f"${total(lines):,.2f}"])
        revenue += total(lines)
        if k % 9 == 2 and k < 100:
            rows.append(
                [lines[0].order, lines[0].customer, f"{lines[0].at + timedelta(days=2):%d-%b-%Y}", "($1.25)"]
            )
            revenue -= D("1.25")
    return Export("bracketed_negatives", text_of(rows).encode(), revenue)


@export
def two_date_formats() -> Export:
    rows: list[list[object]] = [["order_id", "customer_id", "order_date", "amount"]]
    revenue = D(0)
    for k, lines in enumerate(orders(16)):
        at = lines[0].at
        rows.append(
            [
                lines[0].order,
                lines[0].customer,
                f"{at:%Y-%m-%d}" if k < 60 else f"{at:%d/%m/%Y}",
                total(lines),
            ]
        )
        revenue += total(lines)
    return Export(
        "two_date_formats", text_of(rows).encode(), revenue, currency="GBP", timezone="Europe/London"
    )


@export
def epoch_seconds() -> Export:
    rows: list[list[object]] = [["id", "customer", "created", "amount", "currency"]]
    revenue = D(0)
    for lines in orders(17):
        seconds = int((lines[0].at - datetime(1970, 1, 1)).total_seconds())
        rows.append([f"pi_{lines[0].order}", lines[0].customer, seconds, total(lines), "usd"])
        revenue += total(lines)
    return Export("epoch_seconds", text_of(rows).encode(), revenue)


@export
def gzipped_many_firms() -> Export:
    rows: list[list[object]] = [["brand", "customer", "order_time", "amount", "order_id", "industry"]]
    revenue = D(0)
    for k, lines in enumerate(orders(18)):
        for line in lines:
            rows.append(
                [
                    f"Brand {k % 3}",
                    line.customer,
                    f"{line.at:%Y-%m-%dT%H:%M:%SZ}",
                    line.amount,
                    line.order,
                    "toys",
                ]
            )
        revenue += total(lines)
    return Export("gzipped_many_firms", gzip.compress(text_of(rows).encode()), revenue, ".csv.gz")


@export
def amazon_orders() -> Export:
    rows: list[list[object]] = [
        [
            "amazon-order-id",
            "purchase-date",
            "order-status",
            "buyer-email",
            "quantity-purchased",
            "item-price",
            "currency",
        ]
    ]
    revenue = D(0)
    for k, lines in enumerate(orders(19)):
        status = "Cancelled" if k % 11 == 0 else "Shipped"
        for line in lines:
            rows.append(
                [
                    f"111-{line.order}",
                    f"{line.at:%Y-%m-%dT%H:%M:%S}+00:00",
                    status,
                    line.customer,
                    line.units,
                    line.price,
                    "USD",
                ]
            )
        revenue += D(0) if k % 11 == 0 else total(lines)
    return Export("amazon_orders", text_of(rows, "\t").encode(), revenue, ".txt")


@export
def bigcommerce() -> Export:
    rows: list[list[object]] = [
        [
            "Order ID",
            "Customer ID",
            "Order Date",
            "Order Status",
            "Order Total (inc tax)",
            "Subtotal",
            "Refund Amount",
            "Total",
        ]
    ]
    revenue = D(0)
    for lines in orders(20):
        rows.append(
            [
                lines[0].order,
                lines[0].customer,
                f"{lines[0].at:%d/%m/%Y}",
                "Completed",
                total(lines),
                total(lines),
                "0.00",
                total(lines),
            ]
        )
        revenue += total(lines)
    return Export("bigcommerce", text_of(rows).encode(), revenue, currency="AUD", timezone="Australia/Sydney")


@export
def guests_and_refunds_with_parents() -> Export:
    rows: list[list[object]] = [["order_id", "parent_id", "customer", "order_time", "amount"]]
    revenue = D(0)
    for k, lines in enumerate(orders(21)):
        guest = k % 20 == 7
        rows.append(
            [
                lines[0].order,
                "",
                "" if guest else lines[0].customer,
                f"{lines[0].at:%Y-%m-%d %H:%M}",
                total(lines),
            ]
        )
        revenue += D(0) if guest else total(lines)
        if k % 15 == 2 and not guest:
            rows.append(
                [
                    f"R{lines[0].order}",
                    lines[0].order,
                    "",
                    f"{lines[0].at + timedelta(days=3):%Y-%m-%d %H:%M}",
                    -lines[0].price,
                ]
            )
            revenue -= lines[0].price
    return Export("guests_and_refunds_with_parents", text_of(rows).encode(), revenue)


@export
def swiss_apostrophes() -> Export:
    rows: list[list[object]] = [["Rechnungsnummer", "Kundennummer", "Rechnungsdatum", "Betrag"]]
    revenue = D(0)
    for lines in orders(22):
        rows.append(
            [
                lines[0].order,
                lines[0].customer,
                f"{lines[0].at:%d.%m.%Y}",
                f"CHF {total(lines):,.2f}".replace(",", "'"),
            ]
        )
        revenue += total(lines)
    return Export("swiss_apostrophes", text_of(rows, ";").encode(), revenue, ".csv", "CHF", "Europe/Zurich")


@export
def french_spaces() -> Export:
    rows: list[list[object]] = [["Numéro de commande", "Client", "Date de commande", "Montant"]]
    revenue = D(0)
    for lines in orders(23):
        amount = f"{total(lines):,.2f}".replace(",", "\u202f").replace(".", ",") + "\u00a0€"
        rows.append([lines[0].order, lines[0].customer, f"{lines[0].at:%d/%m/%Y %H:%M}", amount])
        revenue += total(lines)
    return Export("french_spaces", text_of(rows, ";").encode(), revenue, ".csv", "EUR", "Europe/Paris")


@export
def trailing_delimiters() -> Export:
    """Every line of values, but not the header, ends with a delimiter."""
    lines_of = ["order_id;customer;order_date;amount"]
    revenue = D(0)
    for lines in orders(24):
        lines_of.append(f"{lines[0].order};{lines[0].customer};{lines[0].at:%Y-%m-%d};{total(lines)};")
        revenue += total(lines)
    return Export("trailing_delimiters", ("\n".join(lines_of) + "\n").encode(), revenue)


@export
def etsy() -> Export:
    rows: list[list[object]] = [
        ["Sale Date", "Order ID", "Buyer User ID", "Number of Items", "Order Total", "Status"]
    ]
    revenue = D(0)
    for lines in orders(25):
        rows.append(
            [f"{lines[0].at:%m/%d/%y}", lines[0].order, lines[0].customer, 2, total(lines), "Shipped"]
        )
        revenue += total(lines)
    return Export("etsy", text_of(rows).encode(), revenue)


@export
def parquet_lines() -> Export:
    import pandas as pd

    frame = pd.DataFrame(
        [
            (str(line.order), line.customer, line.at, float(line.amount))
            for lines in orders(26)
            for line in lines
        ],
        columns=["order_id", "customer_id", "created_at", "amount"],
    )
    out = io.BytesIO()
    frame.to_parquet(out)
    return Export(
        "parquet_lines", out.getvalue(), sum((total(lines) for lines in orders(26)), D(0)), ".parquet"
    )


@export
def sales_fact_table() -> Export:
    """A warehouse's table: amount, price of a unit, quantity and two later dates side by side, days as numbers."""
    rows: list[list[object]] = [["SalesOrderNumber", "DueDate", "OrderDate", "CustomerKey", "OrderQuantity", "UnitPrice",
                                 "TaxAmt", "SalesAmount"]]  # fmt: skip
    revenue = D(0)
    for lines in orders(31):
        for line in lines:
            due = line.at + timedelta(days=12)
            rows.append([f"SO{line.order}", f"{due:%Y%m%d}", f"{line.at:%Y%m%d}", line.customer, line.units,
                         line.price, 0, line.amount])  # fmt: skip
            revenue += line.amount
    return Export("sales_fact_table", text_of(rows).encode(), revenue)


@export
def german_unit_prices() -> Export:
    """The price of one unit, with its currency in the heading, and a quantity: no total at all."""
    rows: list[list[object]] = [
        ["Rechnungs-Nr.", "Rechnungsdatum", "Kunden-Nr.", "Anzahl Stück", "Einzelpreis (EUR)"]
    ]
    revenue = D(0)
    for lines in orders(32):
        for line in lines:
            rows.append([line.order, f"{line.at:%d.%m.%Y}", line.customer, line.units, euro(line.price)])
            revenue += line.amount
    return Export(
        "german_unit_prices",
        text_of(rows, ";").encode("cp1252"),
        revenue,
        currency="EUR",
        timezone="Europe/Berlin",
    )


@export
def ebay_orders() -> Export:
    """Dates such as Jan-06-19, and two columns of totals."""
    rows: list[list[object]] = [["Sales Record Number", "Order Number", "Buyer Username", "Buyer Email", "Quantity",
                                 "Sold For", "Total Price", "Sale Date", "Paid On Date"]]  # fmt: skip
    revenue = D(0)
    for k, lines in enumerate(orders(33)):
        at = f"{lines[0].at:%b-%d-%y}"
        rows.append([k, f"12-{lines[0].order}", f"buyer{k % 40}", lines[0].customer, 1, f"${total(lines):,.2f}",
                     f"${total(lines) + 5:,.2f}", at, at])  # fmt: skip
        revenue += total(lines) + 5
    return Export("ebay_orders", text_of(rows).encode(), revenue)


@export
def database_dump_with_nulls() -> Export:
    """Guests are written NULL, unpaid orders "On hold"."""
    rows: list[list[object]] = [
        ["order_id", "customer_id", "created_at", "order_status", "total_usd", "total_eur"]
    ]
    revenue = D(0)
    for k, lines in enumerate(orders(34)):
        guest, held = k % 11 == 3, k % 13 == 5
        rows.append([lines[0].order, "NULL" if guest else lines[0].customer, lines[0].at, "On hold" if held else "Done",
                     total(lines), f"{total(lines) * 9 / 10:.2f}"])  # fmt: skip
        revenue += D(0) if guest or held else total(lines)
    return Export("database_dump_with_nulls", text_of(rows).encode(), revenue)


@export
def workbook_of_three_sheets() -> Export:
    rows: list[list[object]] = [["Order number", "Customer number", "Order date", "Revenue"]]
    revenue = D(0)
    for lines in orders(35):
        rows.append([lines[0].order, lines[0].customer, lines[0].at, total(lines)])
        revenue += total(lines)
    sheets = {"Read me": [["Made by Finance"]], "Orders": rows, "Products": [["SKU", "Name"], ["A", "Thing"]]}
    return Export("workbook_of_three_sheets", xlsx(sheets), revenue, ".xlsx")


@export
def workbook() -> Export:
    """An Excel file with a title row and real dates, made without the library that reads it."""
    rows: list[list[object]] = [["Orders of 2019"], ["Order ID", "Customer", "Order Date", "Total"]]
    revenue = D(0)
    for lines in orders(27):
        rows.append([lines[0].order, lines[0].customer, lines[0].at, total(lines)])
        revenue += total(lines)
    return Export("workbook", xlsx({"Orders": rows}), revenue, ".xlsx")


def xlsx(sheets: dict[str, list[list[object]]]) -> bytes:
    """The smallest workbook that holds the sheets: inline strings, numbers, dates in a date style."""
    import zipfile
    from xml.sax.saxutils import escape

    def cell(value: object) -> str:
        if isinstance(value, datetime):
            return f'<c s="1"><v>{(value - datetime(1899, 12, 30)) / timedelta(days=1)!r}</v></c>'
        if isinstance(value, int | Decimal):
            return f"<c><v>{value}</v></c>"
        return f'<c t="inlineStr"><is><t>{escape(str(value))}</t></is></c>'

    numbered = list(enumerate(sheets.items(), start=1))
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/></Types>',
        "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        f'<Relationship Id="r1" Type="{kind}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{kind}"><sheets>'
        + "".join(f'<sheet name="{title}" sheetId="{k}" r:id="r{k}"/>' for k, (title, _) in numbered)
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        + "".join(
            f'<Relationship Id="r{k}" Type="{kind}/worksheet" Target="worksheets/sheet{k}.xml"/>' for k, _ in numbered
        )
        + f'<Relationship Id="r0" Type="{kind}/styles" Target="styles.xml"/></Relationships>',
        "xl/styles.xml": f'<styleSheet xmlns="{main}"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="22"/></cellXfs>'
        "</styleSheet>",
    }  # fmt: skip
    for k, (_, rows) in numbered:
        cells = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in rows)
        parts[f"xl/worksheets/sheet{k}.xml"] = (
            f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData></worksheet>'
        )
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, f'<?xml version="1.0" encoding="UTF-8"?>{text}')
    return out.getvalue()


def written(made: Export, folder: Path) -> Path:
    file = folder / f"{made.name}{made.suffix}"
    file.write_bytes(made.content)
    return file
