"""Slugs: safe in paths and URLs, the same in SQL and in Python. Keys: readable. Both lead back to the name."""

import re

import duckdb
import pytest
from dagster._core.definitions.partitions.utils.base import INVALID_PARTITION_SUBSTRINGS
from hypothesis import example, given
from hypothesis import strategies as st

from cbmt_core.errors import BadFirmData
from cbmt_core.names import Unit, slug_sql

PRINTABLE = st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=40)
NASTY = [
    "A, B & Söhne",
    'say "hi"',
    "O'Neil",
    "a/b\\c",
    "..",
    "...",
    "....",
    ".hidden",
    "50% off + more",
    "a~b",
    "~",
    "naïve 店 🛒",
    "firm=x",
    "%7E",
    "+",
    " lead and trail ",
    "*?[x]",
    "a:b|c<d>",
]


@given(PRINTABLE, st.none() | PRINTABLE)
@example("..", None)
@example("a~b", "~")
@example("...", "....")
def test_a_slug_leads_back_to_its_unit(firm, segment):
    unit = Unit(firm, segment)
    assert Unit.from_slug(unit.slug) == unit


@given(st.lists(st.tuples(PRINTABLE, st.none() | PRINTABLE), min_size=2, max_size=5, unique=True))
def test_different_units_have_different_slugs(units):
    assert len({Unit(*unit).slug for unit in units}) == len(units)


@given(PRINTABLE, st.none() | PRINTABLE)
@example("...", "..")
def test_a_slug_is_safe_in_paths_and_urls(firm, segment):
    slug = Unit(firm, segment).slug
    assert re.fullmatch(r"[A-Za-z0-9_.%+~-]+", slug)
    assert "..." not in slug
    assert slug.count("~") == (segment is not None)


CON = duckdb.connect()


@given(PRINTABLE)
@example("...")
@example("a~b c")
@example("\N{NO-BREAK SPACE}x")
def test_sql_and_python_agree_on_the_slug(name):
    assert CON.execute(f"SELECT {slug_sql('n')} FROM (SELECT ? AS n)", [name]).fetchall() == [
        (Unit(name).slug,)
    ]


@pytest.mark.parametrize("name", NASTY)
def test_nasty_names_become_folders_and_come_back(tmp_path, name):
    folder = tmp_path / f"firm={Unit(name).slug}"
    folder.mkdir()
    assert folder.parent == tmp_path
    (found,) = tmp_path.iterdir()
    assert Unit.from_slug(found.name.removeprefix("firm=")) == Unit(name)


def test_a_segment_is_set_apart_by_a_tilde():
    assert Unit("ACME", "online").name == "ACME~online"
    assert Unit("ACME", "online").slug == "ACME~online"
    assert Unit("AC~ME").slug == "AC%7EME"


@pytest.mark.parametrize("slug", ["a~b~c", "a b", "%ff", "a/b", "a%7eb"])
def test_what_is_no_slug_is_refused_with_its_text(slug):
    with pytest.raises(BadFirmData, match="not the slug"):
        Unit.from_slug(slug)


@given(PRINTABLE | st.text(min_size=1, max_size=8), st.none() | PRINTABLE)
@example("...", "%2E")
@example("a~b", "~")
@example("%7E%...%25", " ")
@example("%2\u200b", None)
def test_a_key_leads_back_to_its_unit_and_dagster_takes_it(firm, segment):
    unit = Unit(firm, segment)
    assert Unit.from_key(unit.key) == unit
    assert unit.key.isprintable()
    assert unit.key == unit.key.strip()
    assert not any(refused in unit.key for refused in INVALID_PARTITION_SUBSTRINGS)
    assert unit.key.count("~") == (segment is not None)


@given(st.lists(st.tuples(PRINTABLE, st.none() | PRINTABLE), min_size=2, max_size=5, unique=True))
def test_different_units_have_different_keys(units):
    assert len({Unit(*unit).key for unit in units}) == len(units)


@pytest.mark.parametrize(
    ("name", "key"),
    [
        *(
            (same, same)
            for same in ("A, B & Söhne", 'say "hi"', "50% off + more", "a/b\\c", "naïve 店 🛒", "*?[x]")
        ),
        ("wait...", "wait%2E%2E%2E"),
        ("a~b", "a%7Eb"),
        ("%7E", "%257E"),
        (" a b ", "%20a b%20"),
        ("a\u202eb", "a%E2%80%AEb"),
    ],
)
def test_a_key_is_the_name_but_for_what_a_key_cannot_hold(name, key):
    assert Unit(name).key == key


@pytest.mark.parametrize("key", ["a~b~c", " a", "%FF", "%41", "a...b", "a\n"])
def test_what_is_no_key_is_refused_with_its_text(key):
    with pytest.raises(BadFirmData, match="not the partition key"):
        Unit.from_key(key)
