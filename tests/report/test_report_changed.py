"""A page is written again exactly when what it shows has changed."""

from pathlib import Path

import duckdb
import pytest
from helpers.published import publish

from cbmt_core import duck
from cbmt_core.report.pages import write_report

FIRMS = ("Alpha", "Beta", "Gamma")


@pytest.fixture(scope="module")
def con():
    with duck.connect() as connection:
        publish(connection, FIRMS, models=("cohort_glm", "seasonal_naive"), backtests=1, scale=0.01)
        yield connection


def written(con: duckdb.DuckDBPyConnection, folder: Path) -> set[str]:
    """Firms whose page was written; the pages for all firms always are."""
    before = {path: path.stat().st_ino for path in folder.rglob("*.html")}
    pages = write_report(con, folder)
    assert all(path.exists() for path in pages)
    new = {path for path in pages if before.get(path) != path.stat().st_ino}
    assert {path for path in pages if path.parent == folder} <= new
    return {path.stem for path in new if path.parent != folder}


def test_only_pages_that_changed_are_written(con, tmp_path):
    slugs = dict(con.execute("SELECT firm, slug FROM firm").fetchall())
    assert written(con, tmp_path) == set(slugs.values())
    assert written(con, tmp_path) == set()
    con.execute("UPDATE cohort_week SET ropc = ropc + 1 WHERE firm = 'Beta'")
    con.execute("UPDATE forecast_week SET sales = sales * 1.01 WHERE firm = 'Gamma'")
    assert written(con, tmp_path) == {slugs["Beta"], slugs["Gamma"]}
    assert written(con, tmp_path) == set()


def test_a_kept_page_is_the_one_that_would_be_written(con, tmp_path):
    write_report(con, tmp_path / "kept")
    con.execute("UPDATE firm SET industry = 'Toys' WHERE firm = 'Alpha'")
    write_report(con, tmp_path / "kept")
    fresh = write_report(con, tmp_path / "fresh")
    for page in fresh:
        assert (tmp_path / "kept" / page.relative_to(tmp_path / "fresh")).read_text() == page.read_text()


def test_a_page_that_is_gone_or_of_unknown_content_is_written(con, tmp_path):
    slugs = dict(con.execute("SELECT firm, slug FROM firm").fetchall())
    write_report(con, tmp_path)
    (tmp_path / "firms" / f"{slugs['Beta']}.html").unlink()
    assert written(con, tmp_path) == {slugs["Beta"]}
    (tmp_path / ".pages.json").write_text("{")
    assert written(con, tmp_path) == set(slugs.values())
