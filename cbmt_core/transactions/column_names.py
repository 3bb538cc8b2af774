"""Names of the needed columns in exports, the most specific first."""

from __future__ import annotations

import re
import unicodedata

from cbmt_core.transactions.amounts import CURRENCY_SIGNS

__all__ = [
    "HINTS",
    "NOT_SALES",
    "QUANTITIES",
    "STATUS",
    "SYNONYMS",
    "UNIT_PRICES",
    "named_currency",
    "plain_name",
    "plain_status",
]


def plain_name(name: str) -> str:
    """A column's name without case, accents, blanks, signs, and a currency at its end."""
    bare = unicodedata.normalize("NFKD", named_currency(name)[0].strip().lstrip("\ufeff").casefold())
    return re.sub(r"[^\w]|_", "", "".join(c for c in bare if not unicodedata.combining(c)))


def named_currency(name: str) -> tuple[str, str | None]:
    """A column's name without the currency at its end, as in "Total (EUR)" and "amount_usd", and that currency."""
    found = re.fullmatch(r"(.*\w)[\W_]+(?:in[\W_]+)?([A-Za-z]{3})\W*", name.strip())
    if found and found[2].upper() in CURRENCY_SIGNS:
        return found[1], found[2].upper()
    return name, None


SYNONYMS: dict[str, tuple[str, ...]] = {
    "order_id": (
        "orderid", "ordernumber", "orderno", "ordernr", "orderref", "orderreference", "amazonorderid", "invoiceno",
        "invoicenumber", "invoice", "invoiceid", "incrementid", "vbeln", "salesdocument", "billingdocument",
        "salesordernumber", "receiptnumber", "receiptno", "receiptid", "saleid", "bestellnummer", "bestellnr",
        "auftragsnummer", "auftragsnr", "rechnungsnummer", "rechnungsnr", "rechnung", "belegnummer", "belegnr",
        "beleg",
        "sdbeleg", "verkaufsbeleg", "numerodecommande", "ndecommande", "ncommande", "commande", "numerodepedido",
        "npedido", "pedido", "numeroordine", "nordine", "bestelnummer", "ordrenummer", "salesrecordnumber", "order",
        "transactionid", "paymentid", "documentnumber", "name", "id", "no",
    ),
    "customer": (
        "customer", "customerid", "customernumber", "customerno", "custno", "custid", "customerreferenceid",
        "customeremail", "email", "emailaddress", "buyeremail", "billingemail", "emailbilling", "contactemail",
        "payeremail", "fromemailaddress", "userid", "user", "clientid", "client", "memberid", "accountid", "kunnr",
        "soldtoparty", "soldto", "kunde", "kundennummer", "kundennr", "debitor", "cliente", "idcliente",
        "numeroclient", "nclient", "auftraggeber", "auftrgeb", "klant", "klantnummer", "codicecliente",
        "buyeruserid", "buyerusername", "buyer", "customername", "billingname", "billtoname",
        "cardfingerprint", "cardid",
    ),
    "order_time": (
        "ordertime", "orderts", "ordertimestamp", "createdat", "ordercreatedat", "orderdate", "orderdatetime",
        "dateordered", "purchasedate", "purchasedon",
        "invoicedate", "datecreated", "createddate", "created", "createdutc", "createddateutc",
        "transactiondate", "saledate", "datepaid", "paidat", "completedat", "audat", "erdat", "fkdat", "documentdate",
        "billingdate", "postingdate", "bestelldatum", "rechnungsdatum", "belegdatum", "datum", "fecha",
        "datedecommande", "datecommande", "dateorder", "fechadepedido", "dataordine", "besteldatum",
        "orderedat", "orderedon", "soldat", "solddate", "auftragsdatum", "datumuhrzeit", "date", "datetime",
        "timestamp", "orderplaced", "time",
    ),
    "amount": (
        "amount", "linetotal", "linetotalnet", "lineamount", "linenetamount", "netlineamount", "itemtotal", "netwr",
        "netvalue", "nettowert", "total", "ordertotal", "ordertotalamount", "grandtotal", "grandtotalpurchased",
        "grandtotalbase", "totalprice", "totalamount", "totalsales", "netsales", "totalcollected", "netamount",
        "nettotal", "gross", "betrag", "gesamtbetrag", "summe", "umsatz", "importe", "montant", "montantttc",
        "sales", "revenue", "value", "orderamount", "ordervalue", "salesamount", "amountpaid", "extendedprice",
        "extprice",
        "gesamtpreis", "gesamtsumme", "gesamt", "endbetrag", "rechnungsbetrag", "bruttobetrag", "brutto",
        "nettobetrag",
        "netto", "nettoumsatz", "bruttoumsatz", "positionswert", "warenwert", "totalttc", "totalht", "montantht",
        "prixtotal", "preciototal", "importo", "totale", "bedrag", "totaal", "belop", "soldfor", "subtotal",
        "itemprice", "lineitemprice", "itemcost", "unitprice", "priceperunit", "einzelpreis", "stuckpreis",
        "prixunitaire", "preciounitario", "prezzounitario", "price", "preis", "prix", "precio", "prezzo",
    ),
    "firm": ("firm", "brand", "brandname", "merchant", "merchantname", "shop", "shopname", "store", "storename"),
    "industry": ("industry",),
    "segment": ("segment",),
    "quantity": (
        "quantity", "qty", "lineitemquantity", "itemquantity", "quantitypurchased", "orderquantity", "orderqty",
        "quantityordered", "qtyordered", "unitssold", "units", "menge", "auftragsmenge", "anzahl", "stuck",
        "stuckzahl",
        "quantite", "cantidad", "quantita", "aantal", "antal",
    ),
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
"""Parts of names that decide between columns whose content fits, if none of the names above is found."""
UNIT_PRICES = frozenset(
    {
        "itemprice", "lineitemprice", "itemcost", "unitprice", "priceperunit", "einzelpreis", "stuckpreis",
        "prixunitaire", "preciounitario", "prezzounitario", "price", "preis", "prix", "precio", "prezzo",
    }
)  # fmt: skip
"""Amounts of one unit, to be multiplied by a quantity."""
QUANTITIES = ("qty", "quant", "units", "menge", "anzahl", "pieces", "cantidad")
"""Parts of names of quantities, where none of the names above is found."""
STATUS = frozenset(
    {"status", "orderstatus", "financialstatus", "paymentstatus", "state", "transactionstatus"}
)
NOT_SALES = frozenset(
    {
        "cancelled", "canceled", "failed", "pending", "pendingpayment", "voided", "void", "draft", "checkoutdraft",
        "declined", "expired", "unpaid", "incomplete", "onhold", "abandoned", "denied", "storniert", "holded",
        "requirespaymentmethod", "requiresaction", "blocked", "awaitingpayment", "paymentpending", "annule",
        "annulee",
        "cancelado", "cancelada", "annullato",
    }
)  # fmt: skip
"""States of an order that was not, or not yet, paid, as `plain_status` writes them."""


def plain_status(cell: str) -> str:
    """A state without case, accents, blanks and signs: "On hold", "on-hold" and "wc-on-hold" are one."""
    return plain_name(cell).removeprefix("wc")
