"""Names under which exports carry the columns we need, most telling first."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["HINTS", "NOT_SALES", "STATUS", "SYNONYMS", "UNIT_PRICES", "plain_name"]


def plain_name(name: str) -> str:
    """A column's name without case, accents, blanks and signs."""
    bare = unicodedata.normalize("NFKD", name.strip().lstrip("\ufeff").casefold())
    return re.sub(r"[^\w]|_", "", "".join(c for c in bare if not unicodedata.combining(c)))


SYNONYMS: dict[str, tuple[str, ...]] = {
    "order_id": (
        "orderid", "ordernumber", "orderno", "ordernr", "orderref", "orderreference", "amazonorderid", "invoiceno",
        "invoicenumber", "invoice", "invoiceid", "incrementid", "vbeln", "salesdocument", "billingdocument",
        "salesordernumber", "receiptnumber", "receiptno", "receiptid", "saleid", "bestellnummer", "bestellnr",
        "auftragsnummer", "rechnungsnummer", "belegnummer", "numerodecommande", "numerodepedido", "order",
        "transactionid", "paymentid", "documentnumber", "name", "id", "no",
    ),
    "customer": (
        "customer", "customerid", "customernumber", "customerno", "custno", "custid", "customerreferenceid",
        "customeremail", "email", "emailaddress", "buyeremail", "billingemail", "emailbilling", "contactemail",
        "payeremail", "fromemailaddress", "userid", "user", "clientid", "client", "memberid", "accountid", "kunnr",
        "soldtoparty", "soldto", "kunde", "kundennummer", "kundennr", "debitor", "cliente", "idcliente",
        "numeroclient", "buyeruserid", "buyerusername", "buyer", "customername", "billingname", "billtoname",
        "cardfingerprint", "cardid",
    ),
    "order_time": (
        "ordertime", "orderts", "ordertimestamp", "createdat", "ordercreatedat", "orderdate", "orderdatetime",
        "dateordered", "purchasedate", "purchasedon",
        "invoicedate", "datecreated", "createddate", "created", "createdutc", "createddateutc",
        "transactiondate", "saledate", "datepaid", "paidat", "completedat", "audat", "erdat", "fkdat", "documentdate",
        "billingdate", "postingdate", "bestelldatum", "rechnungsdatum", "belegdatum", "datum", "fecha",
        "datedecommande", "date", "datetime", "timestamp", "orderplaced", "time",
    ),
    "amount": (
        "amount", "linetotal", "linetotalnet", "lineamount", "linenetamount", "netlineamount", "itemtotal", "netwr",
        "netvalue", "nettowert", "total", "ordertotal", "ordertotalamount", "grandtotal", "grandtotalpurchased",
        "grandtotalbase", "totalprice", "totalamount", "totalsales", "netsales", "totalcollected", "netamount",
        "nettotal", "gross", "betrag", "gesamtbetrag", "summe", "umsatz", "importe", "montant", "montantttc",
        "sales", "revenue", "value", "orderamount", "subtotal", "itemprice", "lineitemprice", "itemcost", "unitprice",
        "price", "preis",
    ),
    "firm": ("firm", "brand", "brandname", "merchant", "merchantname", "shop", "shopname", "store", "storename"),
    "industry": ("industry",),
    "segment": ("segment",),
    "quantity": ("quantity", "qty", "lineitemquantity", "itemquantity", "quantitypurchased", "menge"),
    "refunded": ("refundedamount", "amountrefunded", "totalrefunded", "orderrefundamount", "refundtotal"),
    "parent_id": (
        "parentid", "parentorderid", "originalorderid", "originalorder", "originalinvoice", "originalsaleid",
        "originaltransactionid", "refundedorderid", "refersto",
    ),
    "currency": ("currency", "currencycode", "ordercurrency", "waerk", "waers", "wahrung", "devise", "moneda"),
}  # fmt: skip
HINTS: dict[str, tuple[str, ...]] = {
    "customer": ("cust", "client", "kund", "email", "buyer", "shopper", "member", "user"),
    "order_time": ("order", "purchas", "invoice", "sale", "creat", "place", "date"),
    "amount": ("total", "amount", "net", "sales", "revenue", "value", "paid", "betrag"),
}
"""Parts of names that tell between columns whose content fits, where no name above is found."""
UNIT_PRICES = frozenset({"itemprice", "lineitemprice", "itemcost", "unitprice", "price", "preis"})
"""Amounts of one unit, to be multiplied by a quantity."""
STATUS = frozenset(
    {"status", "orderstatus", "financialstatus", "paymentstatus", "state", "transactionstatus"}
)
NOT_SALES = frozenset(
    {
        "cancelled", "canceled", "failed", "pending", "pending payment", "voided", "void", "draft", "checkout-draft",
        "declined", "expired", "unpaid", "incomplete", "on-hold", "abandoned", "denied", "storniert", "holded",
        "pending_payment", "requires_payment_method", "blocked",
    }
)  # fmt: skip
"""States of an order that was not, or not yet, paid."""
