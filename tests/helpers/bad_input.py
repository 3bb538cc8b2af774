"""Bad values and files with what must become of each. The outcome is stated by hand, never taken from the code."""

from __future__ import annotations

# ruff: noqa: E501, C420
import gzip

HEAD = "firm,customer,order_time,amount\n"
GOOD = "F,c1,2017-01-01 10:00:00,5\n"
USED = None

AMOUNTS: dict[str, tuple[str | None, str | None]] = {
    # text -> (amount, reason), the source in GBP with a decimal point
    **{text: (value, USED) for text, value in {
        "5": "5", " 5 ": "5", "+5": "5", "5.": "5", ".5": "0.5", "5.25": "5.25", "0005": "5", "1e3": "1000", "1E2": "100",
        "1,234.50": "1234.5", "12,345,678.9": "12345678.9", "1,23,456.00": "123456", "1'234.50": "1234.5", "1’234.50": "1234.5",
        "1 234.50": "1234.5", "1\u00a0234.50": "1234.5", "1\u202f234.50": "1234.5", "£5": "5", "£ 5": "5", "5£": "5", "5 £": "5",
        "GBP 5": "5", "gbp5": "5", "5 GBP": "5", "£1,234.50": "1234.5", "(5)": "-5", "(£5.00)": "-5", "£(5)": "-5", "-£5": "-5",
        "£-5": "-5", "5-": "-5", "5.00-": "-5", "−5": "-5", "–5": "-5", "-5": "-5", "-0.01": "-0.01", "0": "0", "0.00": "0", "-0": "0",
        "99999999999999": "99999999999999", "0.00005": "0.0001", "1.23456": "1.2346", "£505.30": "505.3", "1,000": "1000",
        "£5 GBP": "5", "(5 GBP)": "-5", "5\t": "5", "\t5": "5", "5\u3000": "5", "1e-400": "0", "-0.00001": "0", "5e-5": "0.0001", "000,005": "5",
        "1E+3": "1000", "5,000.": "5000", "£ 1 000": "1000",
    }.items()},
    **{text: (None, "unparseable amount") for text in (
        "five", "5,30", "£505,30", "12,34.5", "1,2345", "1.234,50", "1,234,5", "5 5", "1 23", "5..5", "5.5.5", "--5", "((5))",
        "(5", "5)", "€5", "$5", "USD 5", "5 EUR", "¥5", "1_000", "0x10", "1/2", "5%", "5k", "1e17", "1e18", "99999999999999999999",
        "#REF!", "#N/A", "N/A", "null", "NULL", "None", "-", "£", "true", "yes", "5;6", "٥", "五", "½", "5\u200b", "<b>5</b>", "=5", "=SUM(A1)",
        "'5", "5'", "1,,000", ",5", "5,", "1.000.000", "2017-01-01", "5e", "e5", "1e400x",
        "5£50", "5 £ 50", "5GBP5", "GBP5GBP5", "５", "٫5", "1\u066c000", "\ufeff5", ".", "+", "-.", "£.", "()", "(.)", "- 5", "5 -", "+5-", "-5-",
        "(5)-", "1,234e2", "0e999999999", "99999999999999.99999", "1e14", "5+", "5#", "1:30", "0b1", "1d", "5f", "£ GBP 5 £", "1,000,00",
    )},
    **{text: (None, "missing amount") for text in ("", " ", "NaN", "nan", "-nan")},
    **{text: (None, "infinite amount") for text in ("inf", "Infinity", "-inf", "-Infinity", "1e400", "+inf")},
}  # fmt: skip

COMMA_AMOUNTS: dict[str, str | None] = {
    # text -> amount, the source in EUR with a decimal comma
    "5": "5", "5,25": "5.25", "1.234,50": "1234.5", "1.234.567,8": "1234567.8", "1.250": "1250", ",5": "0.5", "5,": "5",
    "5,25 €": "5.25", "€5,25": "5.25", "EUR 5,25": "5.25", "1 234,50": "1234.5", "1\u202f234,50 €": "1234.5", "1'234,50": "1234.5",
    "(5,25)": "-5.25", "5,25-": "-5.25", "-5,25": "-5.25", "−5,25": "-5.25",
    "12.50": None, "1250.00": None, "1.25,00": None, "1,250.00": None, "5,2,5": None, "£5,25": None, "5.2": None, "fünf": None,
    "5€50": None, "12 € 50": None, "EUR 5,25 €": "5.25", "5,25 EUR": "5.25", ",": None, ".": None, "1.": None, "1,234.5": None, "1..234,5": None,
}  # fmt: skip

TIMES: dict[str, tuple[str | None, str | None]] = {
    # text -> (local time in London, reason)
    **{text: (value, USED) for text, value in {
        "2017-07-01": "2017-07-01 00:00:00", "2017-7-1": "2017-07-01 00:00:00", "2017/07/01": "2017-07-01 00:00:00",
        "2017-07-01 10:00": "2017-07-01 10:00:00", "2017-07-01T10:00:00": "2017-07-01 10:00:00", " 2017-07-01 ": "2017-07-01 00:00:00",
        "2017-07-01 10:00:00.123456": "2017-07-01 10:00:00.123456", "2017-07-01T10:00:00Z": "2017-07-01 11:00:00",
        "2017-07-01T10:00:00z": "2017-07-01 11:00:00", "2017-01-01T10:00:00Z": "2017-01-01 10:00:00",
        "2017-07-01 10:00:00+00": "2017-07-01 11:00:00", "2017-07-01 10:00:00+14:00": "2017-06-30 21:00:00",
        "2017-07-01 10:00:00-12:00": "2017-07-01 23:00:00", "2017-07-01 10:00:00 +0530": "2017-07-01 05:30:00",
        "2017-07-01 10:00:00 UTC": "2017-07-01 11:00:00", "2017-07-01 10:00:00 Asia/Tokyo": "2017-07-01 02:00:00",
        "2017-03-26 01:30:00": "2017-03-26 01:30:00", "2017-03-26T00:59:59Z": "2017-03-26 00:59:59", "2017-03-26T01:00:00Z": "2017-03-26 02:00:00",
        "2017-10-29T00:30:00Z": "2017-10-29 01:30:00", "2017-10-29T01:30:00Z": "2017-10-29 01:30:00", "2016-02-29": "2016-02-29 00:00:00",
        "2017-12-31 23:59:59": "2017-12-31 23:59:59", "1980-01-01": "1980-01-01 00:00:00", "2100-12-31": "2100-12-31 00:00:00",
        "2017-07-01T24:00:00": "2017-07-02 00:00:00", "2017-07-01\t10:00": "2017-07-01 10:00:00", "2017-07-01T10:00:00.1234567890": "2017-07-01 10:00:00.123456",
        "2017-07-01 10:00:00 EST": "2017-07-01 16:00:00", "2017-07-01 10:00:00-00:00": "2017-07-01 11:00:00", "2017-07-01 10:00:00 utc": "2017-07-01 11:00:00",
        "2017-07-01 10:00:00+14:30": "2017-06-30 20:30:00", "2017-07-01 10:00:00\u00a0": "2017-07-01 10:00:00",
    }.items()},
    **{text: (None, "unparseable time") for text in (
        "yesterday", "2017-02-29", "2017-02-30", "2017-13-01", "2017-00-10", "2017-01-00", "2017-01-32", "01/07/2017", "31.12.2017",
        "2017-07-01 25:00:00", "2017-07-01 10:60:00", "2017-07-01 10:00:61", "2017-07-01 10:00 PM", "2017-07-01 junk", "2017-07", "2017",
        "20170701", "1500000000", "infinity", "-infinity", "NaT", "null", "N/A", "0000-00-00", "0000-00-00 00:00:00", "1 July 2017", "July 1",
        "2017-07-01 10:00:00+99:00", "2017-07-01 10:00:00+15:00", "2017-07-01 10:00:00-24:00", "2017-07-01 10:00:00+01:75",
        "2017-07-01 10:00:00 Mars/Olympus", "12:00", "2017-W27-6", "2017-182", "=TODAY()", "<script>", "二〇一七", "2017-07-01,5",
        "2017-07-01 10:00:00 BST", "2017-07-01 10:00:00 IST", "2017-01-01 10:00:00 AST", "2017-07-01 10:00:00 bst", "2017-07-01 10:00:00EST", "today", "now",
        "2017-07-01 23:59:60", "2017-07-01T10", "2017-07-01T10:00:00+00:00[Europe/London]", "2017-07-01 BC", "2017\u201107\u201101", "2017-07-01Z",
        "2017-07-01 10:00:00 Z Z", "2017-07-01 10:00:00 +", "2017.07.01", "2017_07_01", "2017-07/01", "+2017-07-01", "2017-07-01\u00a010:00:00",
    ) if "," not in text},
    **{text: (None, "stray date") for text in (
        "1900-01-01", "1899-12-30", "1970-01-01", "1979-12-31", "2101-01-01", "2999-12-31", "9999-12-31", "0001-01-01", "19-07-01", "17-01-01",
        "20170-01-01", "epoch", "2017-07-01 (BC)", "-2017-07-01",
    )},
    "": (None, "missing time"),
    "  ": (None, "missing time"),
}  # fmt: skip

FIRMS: dict[str, str | None] = {
    # name in the file, quoted -> reason
    **dict.fromkeys((
        "../../x", "/etc/passwd", "..", ".", "...", "....", "'; DROP TABLE firm;--", '""; DROP TABLE firm;--', "<script>alert(1)</script>",
        "${jndi:ldap://x}", "{{7*7}}", "%s%n", "a%2Fb", "C:\\\\x", "con", "NUL", "aux", "a\u202eb", "שלום", "مرحبا", "🛒", "👩\u200d👧", "é", "e\u0301",
        "Ünïcode", "店", "a b", "a  b", "a~b", "~", "a|b", "a,b", "a;b", "a=b", "a&b", "a?b", "a#b", "*", "[a]", "a'b", "null", "NULL", "None", "true",
        "0", "-1", "1e5", "=1+1", "@x", "-", "_", "firm", "x" * 200,
    ), USED),
    **dict.fromkeys(("", " ", "   ", "\u00a0" * 0), "missing firm"),
    **dict.fromkeys(("a\x07", "\x01", "a\x1fb", "a\x7f", "x" * 201, "é" * 40, "店" * 30), "bad firm name"),
}  # fmt: skip

LINES: dict[str, str] = {
    # a line among good ones -> reason of the one row that is lost
    **dict.fromkeys((
        "F", "F,c1", "F,c1,2017-01-01", "F,c1,2017-01-01,5,6", "F,c1,2017-01-01,5,", "F,c1,2017-01-01,5,,", "F,c1,2017-01-01,5,,,,,,,,",
        'F,"c1,2017-01-01,5', 'F,"c1"x,2017-01-01,5', '"F,c1,2017-01-01,5', 'F,c1,2017-01-01,"5', "F;c1;2017-01-01;5", "F\tc1\t2017-01-01\t5",
        "random words", "----,----", "# comment", "F,c1,2017-01-01 10:00:00,1,000", "F,\x00c,2017-01-01,5", "\x00", "{'json': 1}",
        "<html>", "F,c\ufffd,2017-01-01", 'F,c1,"2017-01-01"5,5',
        "\x1a", 'F,"c\\"d",2017-01-01,5', "'F,x',c,2017-01-01,5", 'F,""c"",2017-01-01,5', 'F,"c"",2017-01-01,5',
    ), "unparseable line"),
    **dict.fromkeys((HEAD.strip(), "\ufeff" + HEAD.strip(), 'F,c,2017-01-01,5"'), "unparseable amount"),
    'F,"",2017-01-01,5': "missing customer",
    **dict.fromkeys((",,,", " , , , ", '"","","",""'), "blank row"),
    **dict.fromkeys(("Total,,,5", "Grand total,,,5", "SUMME,,,5", ",TOTAL,,5", "Sub-total,,,5"), "totals row"),
}  # fmt: skip

USED_LINES = (
    'F,c"1,2017-01-01,5', 'F,5" pipe,2017-01-01,5', 'F,"c\n1",2017-01-01,5', 'F,"c\r\n1",2017-01-01,5', 'F,"a ""b"" c",2017-01-01,5',
    '"F","c1","2017-01-01","5"', "F,c1,2017-01-01,5", " F , c1 , 2017-01-01 , 5 ", 'F,"c,1",2017-01-01,5', "F,c\u2028d,2017-01-01,5",
    "F," + "c" * 200_000 + ",2017-01-01,5",
    "F,c\x0bd,2017-01-01,5", "F,c\x0cd,2017-01-01,5", "F,c\x85d,2017-01-01,5", "F,c\x1cd,2017-01-01,5", 'F,"c\rd",2017-01-01,5',
    'F,"c,2017-01-01,5\nF,d",2017-01-01,5', '"F" ,c,2017-01-01,5', 'F,c,2017-01-01,"5" ', "F,c,2017-01-01,5\t", 'F,\\"c\\",2017-01-01,5', 'F,"""",2017-01-01,5',
)  # fmt: skip

FILES: dict[str, tuple[str, bytes, object]] = {
    # case -> (name, content, rows used or words of the refusal)
    "empty": ("o.csv", b"", "does not start with a line of column names"),
    "only a mark": ("o.csv", b"\xef\xbb\xbf", "does not start with a line of column names"),
    "only blank lines": ("o.csv", b"\n\n\n", "does not start with a line of column names"),
    "only a header": ("o.csv", HEAD.encode(), 0),
    "no header": ("o.csv", GOOD.encode() * 3, "has no column for"),
    "two columns": ("o.csv", b"firm,customer\nF,c\n", "has no column for order_time"),
    "utf-16 with its mark": ("o.csv", (HEAD + GOOD * 3).encode("utf-16"), 3),
    "utf-16-be with its mark": ("o.csv", b"\xfe\xff" + (HEAD + GOOD * 3).encode("utf-16-be"), 3),
    "utf-16-le without one": ("o.csv", (HEAD + GOOD * 3).encode("utf-16-le"), "utf-16-le or utf-16-be"),
    "utf-16-be without one": ("o.csv", (HEAD + GOOD * 3).encode("utf-16-be"), "utf-16-le or utf-16-be"),
    "utf-32 with its mark": ("o.csv", (HEAD + GOOD * 3).encode("utf-32"), 3),
    "utf-16 cut in a character": ("o.csv", (HEAD + GOOD * 3).encode("utf-16")[:-1], "cannot be read"),
    "utf-8 with its mark": ("o.csv", (HEAD + GOOD * 3).encode("utf-8-sig"), 3),
    "CR line ends": ("o.csv", (HEAD + GOOD * 3).replace("\n", "\r").encode(), 3),
    "CRLF line ends": ("o.csv", (HEAD + GOOD * 3).replace("\n", "\r\n").encode(), 3),
    "mixed line ends": ("o.csv", (HEAD + GOOD + GOOD.replace("\n", "\r\n") + GOOD.replace("\n", "\r")).encode(), 3),
    "no end of the last line": ("o.csv", (HEAD + GOOD * 3).rstrip().encode(), 3),
    "blank lines between": ("o.csv", (HEAD + "\n" + GOOD + "\n\n" + GOOD).encode(), 2),
    "gzip": ("o.csv.gz", gzip.compress((HEAD + GOOD * 3).encode()), 3),
    "two gzip members": ("o.csv.gz", gzip.compress((HEAD + GOOD).encode()) + gzip.compress(GOOD.encode()), 2),
    "empty gzip": ("o.csv.gz", gzip.compress(b""), "does not start with a line of column names"),
    "no gzip": ("o.csv.gz", b"this is no gzip", "cannot be read"),
    "gzip of no bytes": ("o.csv.gz", b"", "does not start with a line of column names"),
    "gzip cut off": ("o.csv.gz", gzip.compress((HEAD + GOOD * 5000).encode())[:-20], "cannot be read"),
    "gzip with a wrong checksum": ("o.csv.gz", gzip.compress((HEAD + GOOD * 500).encode())[:-8] + b"\0" * 8, "cannot be read"),
    "gzip with garbage after it": ("o.csv.gz", gzip.compress((HEAD + GOOD).encode()) + b"garbage", "cannot be read"),
    "no parquet": ("o.parquet", b"PAR1 this is no parquet", "cannot be read"),
    "empty parquet": ("o.parquet", b"", "cannot be read"),
    "no workbook": ("o.xlsx", b"this is no workbook", "cannot be read as a workbook"),
    "empty workbook": ("o.xlsx", b"", "cannot be read as a workbook"),
    "a header of 200 KiB": ("o.csv", (HEAD.strip() + "," + "n" * 200_000 + "\n" + GOOD.strip() + ",x\n").encode(), 1),
    "20,000 columns": ("o.csv", (HEAD.strip() + "," + ",".join(f"k{k}" for k in range(20_000)) + "\n"
                                 + (GOOD.strip() + "," * 20_000 + "\n") * 3).encode(), 3),
    "100,000 columns": ("o.csv", (HEAD.strip() + "," + ",".join(f"k{k}" for k in range(100_000)) + "\n"
                                  + GOOD.strip() + "," * 100_000 + "\n").encode(), 1),
    "a line of 11 MB": ("o.csv", (HEAD + GOOD + "F,c1,2017-01-01," + "5" * 11_000_000 + "\n" + GOOD).encode(), 2),
    "a column called _row": ("o.csv", ("_row," + HEAD + ("9," + GOOD) * 2).encode(), 2),
    "a column called read_time": ("o.csv", ("read_time," + HEAD + ("9," + GOOD) * 2).encode(), 2),
    "columns called row and reason": ("o.csv", ("row,reason,slug," + HEAD + ("9,x,y," + GOOD) * 2).encode(), 2),
    "columns called c0 and f_amount": ("o.csv", ("c0,f_amount,tail," + HEAD + ("9,x,y," + GOOD) * 2).encode(), 2),
    "a column twice": ("o.csv", ("note,note,Note," + HEAD + ("1,2,3," + GOOD) * 2).encode(), 2),
    "columns without names": ("o.csv", (",," + HEAD + (",," + GOOD) * 2).encode(), 2),
    "names in capitals": ("o.csv", (HEAD.upper() + GOOD * 2).encode(), 2),
    "names with blanks": ("o.csv", (HEAD.replace(",", " , ") + GOOD * 2).encode(), 2),
    "every line ends with a comma": ("o.csv", (HEAD + GOOD.replace("\n", ",\n") * 3).encode(), 3),
    "gzip called .csv": ("o.csv", gzip.compress((HEAD + GOOD * 3).encode()), "is no text but compressed"),
    "gzip in gzip": ("o.csv.gz", gzip.compress(gzip.compress((HEAD + GOOD * 3).encode())), "is no text but compressed"),
    "zip called .csv": ("o.csv", b"PK\x03\x04" + b"\0" * 50, "is no text but a workbook (.xlsx) or a zip archive"),
    "parquet called .csv": ("o.csv", b"PAR1" + b"\0" * 50, "is no text but Parquet"),
    "old workbook called .txt": ("o.txt", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 50, "is no text but a workbook (.xls)"),
    "csv called .parquet": ("o.parquet", (HEAD + GOOD).encode(), "cannot be read"),
    "zero bytes only": ("o.csv", b"\0" * 100_000, "holds zero bytes"),
    "20 MB without a line end": ("o.csv", b"a" * 20_000_000, "does not start with a line of column names"),
    "an amount column twice": ("o.csv", ("amount," + HEAD + "9," + GOOD).encode(), "more than one column called 'amount'"),
    "amount and Amount": ("o.csv", ("Amount," + HEAD + ("9," + GOOD) * 2).encode(), 2),
    "Amount and AMOUNT": ("o.csv", ("Amount," + HEAD.replace("amount", "AMOUNT") + "9," + GOOD).encode(), "has no column for amount"),
    "a mark twice": ("o.csv", b"\xef\xbb\xbf\xef\xbb\xbf" + (HEAD + GOOD).encode(), "has no column for firm"),
    "a line end within a column's name": ("o.csv", ('"no\nte",' + HEAD + "x," + GOOD).encode(), 1),
    "a header whose quote is never closed": ("o.csv", ('"' + HEAD + GOOD).encode(), "has no column for"),
    "sep= above the header": ("o.csv", ("sep=,\n" + HEAD + GOOD).encode(), "has no column for"),
    "JSON called .csv": ("o.csv", b'[{"firm": "F", "customer": "c", "amount": 5}]', "has no column for"),
    "5,000 quotes as a header": ("o.csv", b'"' * 5000, "has no column for"),
    "a line of a million commas": ("o.csv", (HEAD + "," * 1_000_000 + "\n" + GOOD).encode(), 1),
    "utf-16 and gzip": ("o.csv.gz", gzip.compress((HEAD + GOOD * 3).encode("utf-16")), 3),
    "a suffix in capitals": ("O.CSV", (HEAD + GOOD * 3).encode(), 3),
    "a name like a pattern": ("o[1]*?.csv", (HEAD + GOOD * 3).encode(), 3),
    "a name with a line end": ("o\nx.csv", (HEAD + GOOD * 3).encode(), 3),
    "a name like SQL": ("o'; DROP TABLE x;--.csv", (HEAD + GOOD * 3).encode(), 3),
    "a firm in a folder's name": ("firm=..%2F..%2Fx/o.csv", b"customer,order_time,amount\nc,2017-01-01,5\n", 1),
    "latin-1 bytes in one line": ("o.csv", (HEAD + GOOD).encode() + b"F,\xff,2017-01-01,5\n" + GOOD.encode(), 2),
}  # fmt: skip
TYPES: list[tuple[str, str | None]] = [
    # columns of a Parquet file -> words of the refusal
    ("true AS amount, DATE '2017-01-01' AS order_time", "is BOOLEAN and cannot be the amount"),
    ("DATE '2017-01-01' AS amount, DATE '2017-01-01' AS order_time", "is DATE and cannot be the amount"),
    ("[1] AS amount, DATE '2017-01-01' AS order_time", "cannot be the amount"),
    ("5 AS amount, true AS order_time", "is BOOLEAN and cannot be the order_time"),
    ("5 AS amount, 1500000000 AS order_time", "cannot be the order_time"),
    ("5 AS amount, TIME '10:00' AS order_time", "cannot be the order_time"),
    ("5 AS amount, TIMESTAMP '2017-01-01' AS order_time, 7 AS _row, 'x' AS read_time", None),
    ("5 AS amount, TIMESTAMP '2017-01-01' AS order_time, 7 AS file_row_number", None),
    ("5 AS amount, TIMESTAMP_NS '2017-01-01' AS order_time", None),
    ("5 AS amount, CAST(TIMESTAMPTZ '2017-01-01 00:00:00+00' AS TIMESTAMPTZ_NS) AS order_time", None),
    ("5 AS amount, TIMESTAMPTZ '2017-01-01 00:00:00+00' AS order_time", None),
    ("CAST(5 AS HUGEINT) AS amount, DATE '2017-01-01' AS order_time", None),
    ("CAST(5 AS FLOAT) AS amount, '2017-01-01' AS order_time", None),
]
STRAYS = ("1985-05-05", "1995-01-01", "2045-01-01", "2099-12-31")
FLIPPED = 12
"""Gzip files with one bit flipped."""
ENDS = ("\n", "\r\n")
VALUES = len(AMOUNTS) + len(COMMA_AMOUNTS) + len(TIMES) + len(FIRMS)
CASES = VALUES + len(LINES) * len(ENDS) + len(USED_LINES) + len(FILES) + len(TYPES) + len(STRAYS) + FLIPPED
