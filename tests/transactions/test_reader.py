"""Reading: every format, every dialect, every row judged."""

import gzip
from datetime import datetime
from decimal import Decimal

import duckdb
import pytest
from helpers.sources import HEAD, Shop

from cbmt_core.transactions.reader import UnreadableSource, files_of, passed_over

GOOD = "F,c1,2017-01-01 10:00:00,5\n"
NOON = datetime(2017, 1, 1, 10)


def write(kind, folder, rows):
    """The same rows, all text, in one of the formats."""
    text = HEAD + "".join(",".join(row) + "\n" for row in rows)
    if kind == "csv":
        (folder / "o.csv").write_text(text)
    elif kind == "csv.gz":
        (folder / "o.csv.gz").write_bytes(gzip.compress(text.encode()))
    elif kind == "tsv":
        (folder / "o.tsv").write_text(text.replace(",", "\t"))
    else:
        values = ", ".join(str(tuple(row)) for row in rows)
        relation = f"(VALUES {values}) t(firm, customer, order_time, amount)"
        if kind == "parquet":
            duckdb.sql(f"COPY (FROM {relation}) TO '{folder / 'o.parquet'}'")
        else:
            with duckdb.connect(str(folder / "o.duckdb")) as con:
                con.execute(f"CREATE SCHEMA raw; CREATE TABLE raw.orders AS FROM {relation}")


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "tsv", "parquet", "duckdb"])
@pytest.mark.parametrize("how", ["file", "folder"])
def test_every_format_gives_the_same_rows(tmp_path, kind, how):
    shop = Shop(tmp_path)
    write(kind, shop.orders, [("F", "c1", "2017-01-01 10:00:00", "5.25"), ("G", "c2", "2017-01-02", "x")])
    (file,) = shop.orders.iterdir()
    table = {"table": "raw.orders"} if kind == "duckdb" else {}
    shop.config({"path": str(file if how == "file" else shop.orders), **table})
    assert shop.update().failed == {}
    assert shop.rows() == [
        (1, "F", "c1", NOON, Decimal("5.2500"), None),
        (2, "G", "c2", datetime(2017, 1, 2), None, "unparseable amount"),
    ]


def test_a_mapping_finds_columns_of_other_names(shop):
    shop.put("o.csv", 'When,"Customer, No",Value,Ref,extra\n2017-01-01 10:00:00,c1,5,r1,x\n')
    columns = {
        "customer": "Customer, No",
        "order_time": "When",
        "amount": "Value",
        "order_id": "Ref",
        "firm": None,
    }
    shop.config({"firm": "Only, one", "columns": columns})
    shop.update()
    assert shop.rows("firm, customer, order_id, ordered_at, amount") == [("Only, one", "c1", "r1", NOON, 5)]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("F,c1,2017-01-01,5", None),
        (",c1,2017-01-01,5", "missing firm"),
        ("   ,c1,2017-01-01,5", "missing firm"),
        ("F\x07,c1,2017-01-01,5", "bad firm name"),
        ("x" * 201 + ",c1,2017-01-01,5", "bad firm name"),
        ("F,,2017-01-01,5", "missing customer"),
        ("F,c1,,5", "missing time"),
        ("F,c1,yesterday,5", "unparseable time"),
        ("F,c1,2017-02-30,5", "unparseable time"),
        ("F,c1,infinity,5", "unparseable time"),
        ("F,c1,20170-01-01,5", "stray date"),
        ("F,c1,17-01-01,5", "stray date"),
        ("F,c1,1900-01-01,5", "stray date"),
        ("F,c1,9999-12-31,5", "stray date"),
        ("F,c1,2017-01-01 10:00 PM,5", "unparseable time"),
        ("F,c1,2017-01-01,", "missing amount"),
        ("F,c1,2017-01-01,NaN", "missing amount"),
        ("F,c1,2017-01-01,inf", "infinite amount"),
        ("F,c1,2017-01-01,-Infinity", "infinite amount"),
        ("F,c1,2017-01-01,£5", None),
        ("F,c1,2017-01-01,€5", "unparseable amount"),
        ("F,c1,2017-01-01,1_000", "unparseable amount"),
        (",,,", "blank row"),
        ("Total,,,5", "totals row"),
        ("F,c1,2017-01-01,1e17", "unparseable amount"),
        ("F,c1,2017-01-01,5,", "unparseable line"),
        ("F,c1", "unparseable line"),
        ("F,c1,2017-01-01,5,6", "unparseable line"),
    ],
)
def test_a_bad_row_has_its_reason(shop, row, reason):
    shop.put("o.csv", HEAD + GOOD + row + "\n" + GOOD)
    report = shop.update()
    assert shop.reasons() == [None, reason, None]
    assert (report.read[0].rows, report.read[0].bad_rows) == (3, 1 if reason else 0)


def test_floating_point_columns_hold_nan_and_infinity(shop):
    duckdb.sql(
        "COPY (SELECT 'F' AS firm, CAST(c AS DOUBLE) AS customer, TIMESTAMP '2017-01-01' AS order_time, "
        "CAST(a AS DOUBLE) AS amount FROM (VALUES ('7', '2.5'), ('8', 'nan'), ('9', 'inf'), ('nan', '1'), (NULL, '1')) "
        f"t(c, a)) TO '{shop.orders / 'o.parquet'}'"
    )
    shop.update()
    assert shop.rows("customer, reason") == [
        ("7", None),
        ("8", "missing amount"),
        ("9", "infinite amount"),
        (None, "missing customer"),
        (None, "missing customer"),
    ]


def test_a_missing_order_id_or_segment_is_bad_only_where_there_is_such_a_column(shop):
    shop.put(
        "o.csv", "firm,customer,order_time,amount,no,area\n" + "F,c,2017-01-01,5,,\nF,c,2017-01-01,5,1,\n"
    )
    shop.config({"columns": {"order_id": "no", "segment": "area"}})
    shop.update()
    assert shop.reasons() == ["missing order id", "missing segment"]
    shop.config({})
    shop.update()
    assert shop.reasons() == [None, None]


@pytest.mark.parametrize("area", ["a~b", "a\x07", "x" * 199])
def test_a_segment_that_cannot_be_a_partition_is_bad(shop, area):
    shop.put("o.csv", f"firm,customer,order_time,amount,area\nF,c,2017-01-01,5,{area}\n")
    shop.config({"columns": {"segment": "area"}})
    shop.update()
    assert shop.rows("segment, reason") == [(None, "bad segment name")]
    assert [unit.slug for unit in shop.intake.units()] == ["F"]


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("2017-07-01 10:00:00", datetime(2017, 7, 1, 10)),  # no offset: local already
        ("2017-07-01", datetime(2017, 7, 1)),
        ("2017-07-01T10:00:00Z", datetime(2017, 7, 1, 11)),  # London is an hour ahead in July
        ("2017-01-01T10:00:00Z", datetime(2017, 1, 1, 10)),  # and not in January
        ("2017-07-01 10:00:00+02:00", datetime(2017, 7, 1, 9)),
        ("2017-07-01 10:00:00 +02:00", datetime(2017, 7, 1, 9)),
        ("2017-07-01 10:00:00+0200", datetime(2017, 7, 1, 9)),
        ("2017-07-01 10:00:00-05", datetime(2017, 7, 1, 16)),
        ("2017-07-01 10:00:00.250+05:30", datetime(2017, 7, 1, 5, 30, 0, 250000)),
        ("2017-07-01 10:00:00 UTC", datetime(2017, 7, 1, 11)),
        ("2017-07-01 10:00:00 America/New_York", datetime(2017, 7, 1, 15)),
        ("2017-01-01T00:30:00+01:00", datetime(2016, 12, 31, 23, 30)),  # another day, week and year
    ],
)
def test_offsets_are_converted_and_naive_times_are_local(shop, text, local):
    shop.put("o.csv", f"{HEAD}F,c,{text},5\n")
    shop.update()
    assert shop.rows("ordered_at, reason") == [(local, None)]


def test_a_zoned_column_is_converted(shop):
    duckdb.sql(
        "COPY (SELECT 'F' AS firm, 'c' AS customer, TIMESTAMPTZ '2017-07-01 10:00:00+00' AS order_time, 5 AS amount) "
        f"TO '{shop.orders / 'o.parquet'}'"
    )
    shop.update()
    assert shop.rows("ordered_at") == [(datetime(2017, 7, 1, 11),)]


@pytest.mark.parametrize(
    ("pattern", "text", "local"),
    [
        ("%d/%m/%Y %H:%M", "01/07/2017 10:00", datetime(2017, 7, 1, 10)),
        ("%Y%m%d", "20170701", datetime(2017, 7, 1)),
        ("%d/%m/%Y %H:%M %z", "01/07/2017 10:00 +0200", datetime(2017, 7, 1, 9)),
    ],
)
def test_a_stated_time_format_is_used(shop, pattern, text, local):
    shop.put("o.csv", f"{HEAD}F,c,{text},5\nF,c,2017-07-01 10:00:00,5\n")
    shop.config({"time_format": pattern})
    shop.update()
    assert shop.rows("ordered_at, reason") == [(local, None), (None, "unparseable time")]


def test_a_decimal_comma_is_for_text_only(shop):
    shop.put("o.csv", HEAD.replace(",", ";") + "F;c;2017-01-01;1.234,56\n")
    duckdb.sql(
        "COPY (SELECT 'F' AS firm, 'c' AS customer, DATE '2017-01-01' AS order_time, 1234.5 AS amount) "
        f"TO '{shop.orders / 'p.parquet'}'"
    )
    shop.config({"decimal_separator": ","})
    shop.update()
    assert shop.rows("amount") == [(Decimal("1234.5600"),), (Decimal("1234.5000"),)]


@pytest.mark.parametrize(
    ("text", "amount"),
    [("12,50", "12.5"), ("1.250", "1250"), ("1.250.000,5", "1250000.5"), ("7", "7"),
     ("12.50", None), ("1250.00", None), ("1.25,00", None), ("1,250.00", None)],
)  # fmt: skip
def test_a_point_among_decimal_commas_divides_thousands_or_nothing(shop, text, amount):
    shop.put("o.csv", HEAD.replace(",", ";") + f"F;c;2017-01-01;{text}\n")
    shop.config({"decimal_separator": ","})
    shop.update()
    expected = (Decimal(amount), None) if amount else (None, "unparseable amount")
    assert shop.rows("amount, reason") == [expected]


NAMES = [
    "A, B",
    'say ""hi""',
    "O'Neil",
    "a/b",
    "50% + ~ ..",
    "..",
    "...",
    ".dot",
    "naïve 店 🛒",
    "#1",
    "NULL",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_firm_may_be_called_anything_printable(shop, name):
    shop.put(
        "o.csv", f'{HEAD}"{name}",c1,2017-01-01 10:00:00,5\n' * 1 + f'"{name}",c2,2017-01-01 10:00:00,5\n'
    )
    shop.update()
    assert shop.rows("firm, reason") == [(name.replace('""', '"'), None)] * 2
    assert [unit.firm for unit in shop.intake.units()] == [name.replace('""', '"')]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("\ufeff" + HEAD + GOOD, 1),
        ((HEAD + GOOD * 2).replace("\n", "\r\n"), 2),
        (HEAD + GOOD + GOOD.replace("\n", "\r\n") + GOOD, 3),
        (HEAD + GOOD.rstrip("\n"), 1),
        (HEAD + "\n" + GOOD + "\n\n" + GOOD, 2),
        (HEAD, 0),
        (HEAD + "# no comment,c1,2017-01-01 10:00:00,5\n" * 30, 30),
        ("".join(f"{line};x\n".replace(",", ";") for line in (HEAD + GOOD * 3).splitlines()), 3),
        ((HEAD + GOOD * 3).replace(",", "|"), 3),
        (HEAD + 'F,"c\n1",2017-01-01 10:00:00,5\n' + GOOD, 2),
    ],
)
def test_dialects_of_csv_are_read(shop, text, rows):
    shop.put("o.csv", text)
    assert shop.update().failed == {}
    assert shop.reasons() == [None] * rows


def test_other_encodings_are_read_where_stated(shop):
    shop.put("o.csv", (HEAD + "Café,c,2017-01-01,5\n").encode("latin-1"))
    shop.config({"encoding": "latin-1"})
    shop.update()
    assert shop.rows("firm") == [("Café",)]


def test_bytes_of_another_encoding_spoil_their_line_only(shop):
    shop.put("o.csv", (HEAD + GOOD).encode() + b"F,\xff\xfe,2017-01-01,5\n" + GOOD.encode())
    shop.update()
    assert shop.reasons() == [None, "unparseable line", None]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_quote_that_is_never_closed_costs_its_own_line_only(shop, end):
    shop.put("o.csv", (HEAD + GOOD * 50 + 'F,"c1,2017-01-01,5\n' + GOOD * 300).replace("\n", end))
    report = shop.update()
    assert report.failed == {}
    assert shop.reasons() == [None] * 50 + ["unparseable line"] + [None] * 300
    assert [row for (row,) in shop.rows("row")] == list(range(1, 352))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("good", [[1, 0, 1], [0, 0, 0, 1, 1, 0, 0, 1], [1, 1, 1, 0, 0], [0, 1], [0, 1] * 20])
def test_row_numbers_are_places_in_the_file(shop, good, end):
    lines = [f"F,c{k},2017-01-01,5" if fine else "F,short" for k, fine in enumerate(good, 1)]
    shop.put("o.csv", (HEAD + "\n".join(lines) + "\n").replace("\n", end))
    shop.update()
    assert shop.rows("row, customer") == [(k, f"c{k}" if fine else None) for k, fine in enumerate(good, 1)]
    assert {detail for (detail,) in shop.rows("detail") if detail} == {"missing columns: F,short"}


def test_bad_lines_of_an_only_firm_are_its_own(shop):
    """They count against what may be bad of it."""
    shop.put("o.csv", HEAD.replace("firm,", "") + "c1,2017-01-01,5\n" + "c2,2017-01-01,1,000\n" * 2)
    shop.config({"firm": "Solo"})
    (entry,) = shop.update().read
    assert (
        shop.rows("slug, firm, reason")
        == [("Solo", "Solo", None)] + [("Solo", "Solo", "unparseable line")] * 2
    )
    assert shop.intake.bad_rows(entry) == {"unparseable line": 2}


def test_a_file_without_a_readable_line_fails_its_source(shop):
    shop.put("o.csv", HEAD.encode() + "Café,c,2017-01-01,5\n".encode("latin-1") * 3)
    shop.config({}, max_unusable_share=0.5)
    assert "3 of the 3 rows of" in (why := shop.update().failed["shop"])
    assert "encoding as stated" in why
    assert "row 1: invalid unicode: Caf" in why
    shop.config({"encoding": "ISO-8859-1"})
    assert shop.update().failed == {}
    assert shop.rows("firm") == [("Café",)] * 3


def test_brackets_in_a_file_name_are_no_pattern(shop):
    shop.put("x1.csv", HEAD + "wrong,c,2017-01-01,5\n")
    shop.put("x[1].csv", HEAD + "right,c,2017-01-01,5\n")
    shop.config({"path": "orders/x[1].csv"})
    shop.update()
    assert shop.rows("firm") == [("right",)]


def test_globs_and_folders_find_files_but_no_hidden_ones(shop):
    for name in ("a.csv", "deep/b.CSV", ".hidden.csv", ".cache/c.csv", "notes.md"):
        shop.put(name, HEAD + GOOD)
    (shop.orders / "deep/b.CSV").write_text(HEAD + GOOD * 2)
    assert len(shop.update().read) == 2
    shop.config({"path": "orders/*.csv", "name": "globbed"})
    assert [e.file for e in shop.update().read] == ["orders/a.csv"]


def test_folder_names_give_columns_that_the_file_lacks_and_change_none_it_has(shop):
    lacking = shop.orders / "firm=A%2C B" / "o.parquet"
    having = shop.orders / "firm=wrong" / "o.parquet"
    for file, firm in ((lacking, ""), (having, "'right' AS firm,")):
        file.parent.mkdir()
        duckdb.sql(
            f"COPY (SELECT {firm} 'c' AS customer, DATE '2017-01-01' AS order_time, 5 AS amount) TO '{file}'"
        )
    assert shop.update().failed == {}
    assert shop.rows("firm") == [("A, B",), ("right",)]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("o.csv", b"", "does not start with a line of column names"),
        (
            "o.csv",
            b"firm,customer\nF,c\n",
            "no column for order_time = 'order_time', amount = 'amount'; it has 'firm'",
        ),
        ("o.parquet", b"PAR1 this is no parquet", "cannot be read"),
        ("o.csv.gz", b"this is no gzip", "cannot be read"),
        ("o.csv.gz", gzip.compress((HEAD + GOOD * 5000).encode())[:-200], "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_fails_its_source_by_name(shop, name, content, words):
    file = shop.put(name, content)
    (why,) = shop.update().failed.values()
    assert str(file) in why
    assert words in why
    assert shop.intake.ledger() == []


def test_a_missing_path_and_a_missing_table_are_reported(shop):
    shop.config({"path": "nowhere"})
    assert "there is no file at nowhere" in shop.update().failed["shop"]
    write("duckdb", shop.orders, [("F", "c", "2017-01-01", "5")])
    shop.config({"path": "orders/o.duckdb"})
    assert "say which table" in shop.update().failed["shop"]
    shop.config({"path": "orders/o.duckdb", "table": "nothing"})
    assert "nothing" in shop.update().failed["shop"]


def test_files_of_other_kinds_are_known_by_name(shop):
    for name in ("a.csv", "b.zip", "deep/c.json", ".hidden", "~$d.xlsx", "e.db"):
        shop.put(name, HEAD)
    shop.config({}, {"name": "pattern", "path": "orders/*.csv"}, {"name": "one", "path": "orders/b.zip"})
    folder, pattern, one = shop.project.sources
    assert [file.name for file in passed_over(folder, shop.root)] == ["b.zip", "c.json", "e.db"]
    assert [file.name for file in files_of(folder, shop.root)] == ["a.csv"]
    # What a pattern or a path names is what its writer wants.
    assert passed_over(pattern, shop.root) == passed_over(one, shop.root) == []


def test_a_link_that_leads_out_of_a_source_folder_is_refused_by_name(shop, tmp_path):
    """Whoever may put files into the folder must not be able to read others with it."""
    secret = tmp_path / "elsewhere.csv"
    secret.write_text(HEAD + "F,c,2017-01-02,5\n")
    shop.put("a.csv", HEAD + "F,c,2017-01-02,5\n")
    (shop.orders / "inside.csv").symlink_to(shop.orders / "a.csv")
    assert len(files_of(shop.project.sources[0], shop.root)) == 2
    (shop.orders / "b.csv").symlink_to(secret)
    with pytest.raises(UnreadableSource, match=r"the link .*b\.csv leads out of .*orders"):
        files_of(shop.project.sources[0], shop.root)


def test_a_source_may_itself_be_a_link(shop, tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "a.csv").write_text(HEAD + "F,c,2017-01-02,5\n")
    (shop.root / "near").symlink_to(tmp_path / "far")
    shop.config({"path": "near"})
    assert [file.name for file in files_of(shop.project.sources[0], shop.root)] == ["a.csv"]
