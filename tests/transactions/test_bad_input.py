"""Every bad value and file has its stated outcome: used, set aside with a reason, or refused in words."""

import os
import unicodedata
from datetime import date, datetime, timedelta
from decimal import Decimal

import duckdb
import pytest
from helpers import bad_input
from helpers.bad_input import (
    AMOUNTS,
    CASES,
    COMMA_AMOUNTS,
    ENDS,
    FILES,
    FIRMS,
    FLIPPED,
    GOOD,
    HEAD,
    LINES,
    STRAYS,
    TIMES,
    TYPES,
    USED_LINES,
)
from helpers.sources import Shop


def quoted(text):
    return '"' + text.replace('"', '""') + '"'


def test_the_corpus_is_large_enough():
    assert CASES >= 400


def test_amounts(shop):
    shop.put("o.csv", HEAD + "".join(f"F,c1,2017-01-01,{quoted(text)}\n" for text in AMOUNTS))
    assert shop.update().failed == {}
    found = dict(zip(AMOUNTS, shop.rows("amount, reason"), strict=True))
    expected = {text: (Decimal(a) if a else None, reason) for text, (a, reason) in AMOUNTS.items()}
    assert {t: found[t] for t in found if found[t] != expected[t]} == {}


def test_amounts_with_a_decimal_comma(shop):
    shop.config({"decimal_separator": ",", "currency": "EUR"})
    shop.put("o.csv", HEAD + "".join(f"F,c1,2017-01-01,{quoted(text)}\n" for text in COMMA_AMOUNTS))
    shop.update()
    found = dict(zip(COMMA_AMOUNTS, (amount for (amount,) in shop.rows("amount")), strict=True))
    expected = {text: Decimal(amount) if amount else None for text, amount in COMMA_AMOUNTS.items()}
    assert {t: found[t] for t in found if found[t] != expected[t]} == {}


def test_times(shop):
    shop.put("o.csv", HEAD + "".join(f"F,c1,{quoted(text)},5\n" for text in TIMES))
    shop.update()
    found = dict(zip(TIMES, shop.rows("ordered_at, reason"), strict=True))
    expected = {
        text: (datetime.fromisoformat(t) if t else None, reason) for text, (t, reason) in TIMES.items()
    }
    assert {t: found[t] for t in found if found[t] != expected[t]} == {}


def test_firms(shop):
    shop.put("o.csv", HEAD + GOOD + "".join(f'"{name}",c1,2017-01-01,5\n' for name in FIRMS))
    shop.update()
    found = dict(zip(FIRMS, shop.rows("firm, reason")[1:], strict=True))
    wrong = {name: seen for name, seen in found.items() if seen[1] != FIRMS[name]}
    assert wrong == {}
    names = {
        unicodedata.normalize("NFC", name).replace('""', '"').strip()
        for name, why in FIRMS.items()
        if not why
    }
    assert {unit.firm for unit in shop.intake.units()} == names | {"F"}
    assert not list(shop.root.parent.glob("x*"))


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("line", LINES)
def test_a_bad_line_costs_itself_only(tmp_path, line, end):
    shop = Shop(tmp_path)
    shop.put("o.csv", (HEAD + GOOD * 2 + line + "\n" + GOOD * 3).replace("\n", end))
    assert shop.update().failed == {}
    assert shop.rows("row, reason") == [
        (1, None),
        (2, None),
        (3, LINES[line]),
        (4, None),
        (5, None),
        (6, None),
    ]


@pytest.mark.parametrize("line", USED_LINES, ids=range(len(USED_LINES)))
def test_an_odd_line_is_used(shop, line):
    shop.put("o.csv", HEAD + GOOD + line + "\n" + GOOD)
    assert shop.update().failed == {}
    assert shop.reasons() == [None, None, None]


@pytest.mark.parametrize("case", FILES)
def test_a_file_is_read_or_refused_in_words(shop, case):
    name, content, outcome = FILES[case]
    shop.put(name, content)
    failed = shop.update().failed
    if isinstance(outcome, str):
        assert outcome in failed["shop"]
        assert shop.intake.ledger() == []
    else:
        assert failed == {}
        assert shop.reasons().count(None) == outcome
    assert not [path for path in shop.intake.folder.iterdir() if path.name.startswith((".reading", ".o"))]


def test_a_gzip_file_with_any_byte_flipped_is_refused_or_read_whole(tmp_path):
    whole = bad_input.gzip.compress((HEAD + GOOD * 400).encode(), mtime=0)
    for k in range(FLIPPED):
        place = len(whole) * k // FLIPPED
        shop = Shop(tmp_path)
        shop.put("o.csv.gz", whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        failed = shop.update().failed
        assert failed or shop.reasons() == [None] * 400


@pytest.mark.parametrize(("columns", "words"), TYPES)
def test_types_of_a_parquet_file(shop, columns, words):
    with duckdb.connect() as con:
        con.execute(f"COPY (SELECT 'F' AS firm, 'c' AS customer, {columns}) TO '{shop.orders / 'o.parquet'}'")
    failed = shop.update().failed
    if words:
        assert words in failed["shop"]
    else:
        assert failed == {}
        assert shop.rows("row, ordered_at, amount") == [(1, datetime(2017, 1, 1), 5)]


def test_a_file_name_that_is_not_utf_8_is_refused_in_words(shop):
    with open(os.fsencode(shop.orders) + b"/\xff.csv", "wb") as handle:
        handle.write((HEAD + GOOD).encode())
    assert "is not UTF-8; rename the file" in shop.update().failed["shop"]


def test_every_line_of_quotes_alone_is_set_aside(shop):
    shop.put("o.csv", HEAD + GOOD + '"\n' * 500 + GOOD)
    shop.update()
    assert shop.reasons() == [None, *["unparseable line"] * 500, None]


def test_a_link_that_leads_nowhere_is_refused(shop):
    shop.put("o.csv", HEAD + GOOD)
    (shop.orders / "p.csv").symlink_to(shop.root / "gone.csv")
    assert "p.csv leads nowhere" in shop.update().failed["shop"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"leave_out": {"state": ["x"]}}, "no column for leave_out = 'state'"),
        ({"time_format": "%Q"}, "Unrecognized format"),
        ({"header_line": 9}, "does not start with a line of column names"),
        ({"delimiter": "-"}, "has no column for"),
        ({"path": "/dev/zero"}, "there is no file at /dev/zero"),
        ({"path": "["}, "there is no file at ["),
        ({"path": "\0"}, "there is no file at"),
        ({"encoding": "utf-16"}, "cannot be read"),
        ({"encoding": "cp037"}, "has no column for"),
    ],
)
def test_settings_that_fit_no_file_are_reported_in_words(shop, settings, words):
    shop.config(settings)
    shop.put("o.csv", HEAD + GOOD)
    assert words in shop.update().failed["shop"]


@pytest.mark.parametrize("stray", STRAYS)
def test_one_stray_date_moves_nothing_in_a_small_shop(shop, con, stray):
    days = [date(2016, 1, 3) + timedelta(days=3 * k) for k in range(120)]
    shop.put(
        "o.csv", HEAD + "".join(f"F,c{k % 9},{day},5\n" for k, day in enumerate(days)) + f"F,c1,{stray},5\n"
    )
    shop.update()
    assert shop.intake.span() == (days[0], days[-1])
    shop.make(con)
    assert con.execute("SELECT reason FROM quarantine").fetchall() == [("stray date",)]
