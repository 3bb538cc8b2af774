"""Exports that mislead: guests as customer 0, refunds without a minus, amounts that look like decimals, and more.

Like those of `exports`, each adds its revenue up while it is written.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

from helpers.exports import EXPORTS, Export, euro, export, orders, text_of, total, xlsx

__all__ = ["EXPORTS"]

D = Decimal
GERMAN = {"currency": "EUR", "timezone": "Europe/Berlin"}


@export
def whole_amounts_with_points() -> Export:
    """1.234 is one thousand two hundred thirty-four: 450 stands beside it."""
    rows: list[list[object]] = [["Auftragsnr", "Kunde", "Datum", "Umsatz"]]
    revenue = D(0)
    for lines in orders(51):
        amount = int(total(lines)) + 1
        rows.append(
            [lines[0].order, lines[0].customer, f"{lines[0].at:%d.%m.%Y}", f"{amount:,}".replace(",", ".")]
        )
        revenue += amount
    return Export("whole_amounts_with_points", text_of(rows, ";").encode(), revenue, **GERMAN)


@export
def woocommerce_guests() -> Export:
    """Guests are customer 0 with their e-mail address; orders paid back keep their total."""
    rows: list[list[object]] = [["order_id", "date", "status", "order_total", "customer_id", "billing_email"]]
    revenue = D(0)
    numbers: dict[str, int] = {}
    for k, lines in enumerate(orders(52)):
        guest, back = k % 6 == 2, k % 15 == 4
        number = 0 if guest else numbers.setdefault(lines[0].customer, 500 + len(numbers))
        email = f"guest{k}@example.org" if guest else lines[0].customer
        rows.append([lines[0].order, f"{lines[0].at:%Y-%m-%d %H:%M:%S}", "refunded" if back else "completed",
                     total(lines), number, email])  # fmt: skip
        revenue += D(0) if back else total(lines)
    return Export("woocommerce_guests", text_of(rows).encode(), revenue)


@export
def refunds_told_by_their_kind() -> Export:
    """A row for each payment; refunds, some of a whole order, have no minus and their order's id."""
    rows: list[list[object]] = [["Order ID", "Kind", "Customer ID", "Created At", "Amount"]]
    revenue = D(0)
    for k, lines in enumerate(orders(53)):
        order, who, at = lines[0].order, lines[0].customer, lines[0].at
        rows.append([order, "authorization", who, at, total(lines)])
        rows.append([order, "capture", who, at + timedelta(minutes=1), total(lines)])
        revenue += total(lines)
        if k % 8 == 3:
            back = total(lines) if k % 16 == 3 else D("0.75")
            rows.append([order, "refund", who, at + timedelta(days=3), back])
            revenue -= back
    return Export("refunds_told_by_their_kind", text_of(rows).encode(), revenue)


@export
def sales_lines_and_payments() -> Export:
    """A till's register: each sale, then its lines, then how it was paid."""
    rows: list[list[object]] = [
        ["Date", "Receipt Number", "Line Type", "Customer Code", "Quantity", "Total", "Status"]
    ]
    revenue = D(0)
    for lines in orders(62):
        head, who = [f"{lines[0].at:%Y-%m-%d %H:%M:%S}", f"R{lines[0].order}"], lines[0].customer
        rows.append([*head, "Sale", who, len(lines), total(lines), "CLOSED"])
        rows += [[*head, "Sale Line", who, line.units, line.amount, "CLOSED"] for line in lines]
        rows.append([*head, "Payment", who, "", total(lines), "CLOSED"])
        revenue += total(lines)
    return Export("sales_lines_and_payments", text_of(rows).encode(), revenue)


@export
def xero_invoices() -> Export:
    """Names with asterisks, the invoice's total on each of its lines beside the line's amount."""
    rows: list[list[object]] = [["*ContactName", "EmailAddress", "*InvoiceNumber", "*InvoiceDate", "Total", "*Quantity",
                                 "*UnitAmount", "LineAmount", "Currency"]]  # fmt: skip
    revenue = D(0)
    for lines in orders(63):
        rows += [[line.customer.split("@")[0], "", f"INV-{line.order}", f"{line.at:%d/%m/%Y}", total(lines),
                  f"{line.units}.0000", line.price, line.amount, "GBP"] for line in lines]  # fmt: skip
        revenue += total(lines)
    return Export("xero_invoices", text_of(rows).encode(), revenue, currency="GBP", timezone="Europe/London")


@export
def names_over_two_lines() -> Export:
    rows: list[list[object]] = [["Order\nNumber", "Customer\nEmail", "Order Date", "Order\nTotal"]]
    revenue = D(0)
    for lines in orders(54):
        rows.append([lines[0].order, lines[0].customer, f"{lines[0].at:%Y-%m-%d %I:%M %p}", total(lines)])
        revenue += total(lines)
    return Export("names_over_two_lines", b"Orders of 2019,,,\n" + text_of(rows).encode(), revenue)


@export
def sap_list_with_rules() -> Export:
    """A list saved to a file: rules of dashes between its parts, points in dates and amounts, a total."""
    rule = "-" * 58 + "\r\n"
    text = f"Dynamische Listenausgabe\r\n{rule}|Verk.beleg|Auftraggeb|Angel. am |     Nettowert|\r\n{rule}"
    revenue = D(0)
    for lines in orders(55):
        who = lines[0].customer[4:].split("@")[0]
        text += f"|{lines[0].order:10}|{100_000 + int(who):10}|{lines[0].at:%d.%m.%Y}|{euro(total(lines)):>14}|\r\n"
        revenue += total(lines)
    text += f"{rule}|          |          |          |{euro(revenue):>14}|\r\n{rule}"
    return Export("sap_list_with_rules", text.encode("cp1252"), revenue, ".txt", **GERMAN)


@export
def times_with_weekdays_and_offsets() -> Export:
    rows: list[list[object]] = [["order_ref", "customer_email", "created", "total_usd"]]
    revenue = D(0)
    for lines in orders(56):
        rows.append(
            [lines[0].order, lines[0].customer, f"{lines[0].at:%a, %d %b %Y %H:%M:%S} -0500", total(lines)]
        )
        revenue += total(lines)
    return Export("times_with_weekdays_and_offsets", text_of(rows).encode(), revenue)


@export
def french_months() -> Export:
    months = [
        "janv.",
        "févr.",
        "mars",
        "avr.",
        "mai",
        "juin",
        "juil.",
        "août",
        "sept.",
        "oct.",
        "nov.",
        "déc.",
    ]
    rows: list[list[object]] = [["N° facture", "Code client", "Date de facture", "Montant HT"]]
    revenue = D(0)
    for lines in orders(61):
        at = lines[0].at
        rows.append([lines[0].order, lines[0].customer, f"{at:%d} {months[at.month - 1]} {at:%Y}",
                     euro(total(lines), " €")])  # fmt: skip
        revenue += total(lines)
    content = text_of(rows, ";").encode("cp1252")
    return Export("french_months", content, revenue, currency="EUR", timezone="Europe/Paris")


@export
def clock_with_points() -> Export:
    rows: list[list[object]] = [["Numero ordine", "Codice cliente", "Data ordine", "Importo"]]
    revenue = D(0)
    for lines in orders(57):
        rows.append(
            [lines[0].order, lines[0].customer, f"{lines[0].at:%d/%m/%Y %H.%M.%S}", euro(total(lines))]
        )
        revenue += total(lines)
    return Export(
        "clock_with_points", text_of(rows, ";").encode(), revenue, currency="EUR", timezone="Europe/Rome"
    )


@export
def digits_alone() -> Export:
    rows: list[list[object]] = [["sale", "member_id", "sale_date", "net_sales"]]
    revenue = D(0)
    for lines in orders(58):
        rows.append([lines[0].order, lines[0].customer, f"{lines[0].at:%Y%m%d%H%M%S}", total(lines)])
        revenue += total(lines)
    return Export("digits_alone", text_of(rows).encode(), revenue)


@export
def subtotals_of_days() -> Export:
    rows: list[list[object]] = [["Order Number", "Customer Name", "Order Date", "Order Total"]]
    revenue = D(0)
    day = D(0)
    for k, lines in enumerate(orders(59)):
        rows.append([lines[0].order, lines[0].customer, f"{lines[0].at:%Y-%m-%d}", total(lines)])
        day, revenue = day + total(lines), revenue + total(lines)
        if k % 3 == 2:
            rows.append([f"Subtotal {lines[0].at:%Y-%m-%d}", "", "", day])
            day = D(0)
    rows.append(["Grand total", "", "", revenue])
    return Export("subtotals_of_days", text_of(rows).encode(), revenue)


@export
def workbook_with_a_summary_first() -> Export:
    """The first sheet has the same columns, but a row a month."""
    rows: list[list[object]] = [["Order", "Customer", "Date", "Total"]]
    revenue = D(0)
    for lines in orders(60):
        rows.append([lines[0].order, lines[0].customer, f"{lines[0].at:%d.%m.%Y}", euro(total(lines), " €")])
        revenue += total(lines)
    summary: list[list[object]] = [["Month", "Customer", "Date", "Total"]]
    summary += [[month, "all", f"01.{month:02}.2019", euro(revenue / 4, " €")] for month in range(1, 5)]
    content = xlsx({"Summary": summary, "Orders": rows})
    return Export("workbook_with_a_summary_first", content, revenue, ".xlsx", **GERMAN)
