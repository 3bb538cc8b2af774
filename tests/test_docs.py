"""Pages made from code are current."""

from __future__ import annotations

from pathlib import Path

from cbmt_core.report.dictionary import exhibit_list, table_dictionary

DOCS = Path(__file__).parents[1] / "docs"


def test_the_table_dictionary_is_current() -> None:
    assert (DOCS / "tables.md").read_text() == table_dictionary(), "run `make docs`"


def test_the_list_of_exhibits_is_current() -> None:
    assert (DOCS / "exhibits.md").read_text() == exhibit_list(), "run `make docs`"
