"""Names of the needed columns in exports, the most specific first."""

from __future__ import annotations

import re
import unicodedata

from cbmt_core.transactions.amounts import CURRENCY_SIGNS

__all__ = [
    "DISCOUNTS",
    "GUESTS",
    "HINTS",
    "KIND",
    "KINDS_NOT_SALES",
    "NOT_SALES",
    "PARTS_OF_SALES",
    "QUANTITIES",
    "REFUNDED_STATES",
    "REFUND_KINDS",
    "SALE_KINDS",
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
        "sdbeleg", "verkaufsbeleg", "verkbeleg", "fakturabeleg", "faktura", "fakturanr", "numerofacture", "nfacture",
        "facture", "numerofactura", "nfactura", "factura", "numerofattura", "nfattura", "fattura", "factuurnummer",
        "numerodecommande", "ndecommande", "ncommande", "commande", "numerodepedido",
        "npedido", "pedido", "numeroordine", "nordine", "bestelnummer", "ordrenummer", "salesrecordnumber", "order",
        "transactionid", "paymentid", "documentnumber", "name", "id", "no",
    ),
    "customer": (
        "customer", "customerid", "customernumber", "customerno", "custno", "custid", "customerreferenceid",
        "customeremail", "email", "emailaddress", "buyeremail", "billingemail", "emailbilling", "contactemail",
        "payeremail", "fromemailaddress", "userid", "user", "clientid", "client", "memberid", "accountid", "kunnr",
        "soldtoparty", "soldto", "kunde", "kundennummer", "kundennr", "debitor", "cliente", "idcliente",
        "numeroclient", "nclient", "auftraggeber", "auftrgeb", "auftraggeb", "klant", "klantnummer", "codicecliente",
        "kunag", "kunrg", "regulierer", "kdnr", "kdnummer", "codeclient", "codecliente", "codigocliente", "klantcode",
        "contactname", "contact", "buyername", "clientname", "kundenname", "nomclient", "companyname",
        "buyeruserid", "buyerusername", "buyer", "customername", "billingname", "billtoname",
        "cardfingerprint", "cardid",
    ),
    "order_time": (
        "ordertime", "orderts", "ordertimestamp", "createdat", "ordercreatedat", "orderdate", "orderdatetime",
        "dateordered", "purchasedate", "purchasedon",
        "invoicedate", "datecreated", "createddate", "created", "createdutc", "createddateutc",
        "transactiondate", "saledate", "datepaid", "paidat", "completedat", "audat", "erdat", "fkdat", "documentdate",
        "billingdate", "postingdate", "angelam", "angelegtam", "fakturadatum", "buchungsdatum", "datefacture",
        "datedefacture", "datafattura", "fechafactura", "factuurdatum",
        "bestelldatum", "rechnungsdatum", "belegdatum", "datum", "fecha",
        "datedecommande", "datecommande", "dateorder", "fechadepedido", "dataordine", "besteldatum",
        "orderedat", "orderedon", "soldat", "solddate", "auftragsdatum", "datumuhrzeit", "date", "datetime",
        "timestamp", "orderplaced", "time",
    ),
    "amount": (
        "amount", "linetotal", "linetotalnet", "lineamount", "linenetamount", "netlineamount", "itemtotal", "netwr",
        "netvalue", "nettowert", "total", "ordertotal", "ordertotalamount", "grandtotal", "grandtotalpurchased",
        "grandtotalbase", "totalprice", "totalamount", "totalsales", "netsales", "totalcollected", "netamount",
        "nettotal", "gross", "betrag", "gesamtbetrag", "summe", "umsatz", "importe", "montant", "montantttc",
        "sales", "revenue", "value", "orderamount", "ordervalue", "salesamount", "amountpaid", "net", "extendedprice",
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
        "originaltransactionid", "referencetxnid", "referencetransactionid", "refundedorderid", "refersto",
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
DISCOUNTS = ("discount", "rabatt", "remise", "descuento", "sconto", "korting")
"""Parts of names of discounts."""
GUESTS = frozenset(
    {
        "0", "guest", "guests", "gast", "gastkunde", "walkin", "walkincustomer", "cash", "cashcustomer", "cashsale",
        "anonymous", "unknown", "nocustomer", "laufkunde", "laufkundschaft", "barverkauf", "barkunde", "diverse", "cpd",
        "invite", "ospite", "invitado", "generic", "defaultcustomer",
    }
)  # fmt: skip
"""What a customer is called who stands for everyone without an account, as `plain_name` writes it."""
KIND = frozenset(
    {
        "type", "kind", "transactiontype", "transactionkind", "eventtype", "recordtype", "ordertype", "saletype",
        "salestype", "documenttype", "doctype", "invoicetype", "linetype", "movementtype", "belegart",
        "art", "vorgang", "typ", "tipo", "operation", "reportingcategory",
    }
)  # fmt: skip
"""Columns that say what a row is: a sale, a refund, a payout."""
REFUND_KINDS = frozenset(
    {
        "refund", "refunds", "refunded", "return", "returns", "returned", "salesreturn", "salereturn", "creditnote",
        "creditmemo", "paymentrefund", "paymentreversal", "partialrefund", "reversal", "chargeback",
        "orderrefund", "retoure", "gutschrift", "erstattung", "ruckerstattung", "avoir", "remboursement", "retour",
        "devolucion", "reembolso", "abono", "rimborso", "reso", "notadicredito", "terugbetaling", "kreditnota",
    }
)  # fmt: skip
"""Kinds of rows that give money back, as `plain_name` writes them."""
KINDS_NOT_SALES = frozenset(
    {
        "authorization",
        "authorisation",
        "void",
        "voided",
        "payout",
        "payouts",
        "transfer",
        "withdrawal",
        "generalwithdrawal",
        "fee",
        "fees",
        "stripefee",
        "topup",
        "quote",
        "offer",
        "angebot",
        "devis",
    }
)
"""Kinds of rows that are neither sales nor refunds."""
PARTS_OF_SALES = frozenset({"saleline", "salesline", "lineitem", "payment", "tender"})
"""Kinds of rows that tell a sale once more, where others are called `SALE_KINDS`."""
SALE_KINDS = frozenset({"sale", "order", "invoice"})
REFUNDED_STATES = frozenset(
    {"refunded", "fullyrefunded", "erstattet", "rembourse", "remboursee", "reembolsado", "rimborsato"}
)
"""States of an order that was paid back whole."""
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
