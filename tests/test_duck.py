"""Connections with limited memory, and quoting that no name or path can break."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from cbmt_core import duck

HARD = ("it's", "a*b?[c]", "50% off; DROP TABLE x --", 'say "hi"', "Söhne & Töchter")


@pytest.mark.parametrize("text", [*HARD, "", "'", "''", "\\'", "a\nb", "🛒"])
def test_a_literal_is_the_text_and_nothing_else(text: str) -> None:
    with duckdb.connect() as con:
        assert con.execute(f"SELECT {duck.literal(text)}").fetchall() == [(text,)]


@pytest.mark.parametrize("name", HARD)
def test_an_identifier_names_a_column_whatever_is_in_it(name: str) -> None:
    with duckdb.connect() as con:
        columns = con.execute(f"SELECT 1 AS {duck.identifier(name)}").description
    assert columns is not None
    assert [column[0] for column in columns] == [name]


def write(path: Path, sql: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as con:
        con.execute(f"COPY ({sql}) TO {duck.literal(str(path))} (FORMAT parquet)")
    return path


@pytest.mark.parametrize("name", HARD)
def test_parquet_reads_exactly_the_named_file(tmp_path: Path, name: str) -> None:
    """A neighbour that the name would match as a pattern is not read, and folders give no columns."""
    file = write(tmp_path / "origin=2020-01-05" / f"{name}.parquet", "SELECT 1 AS x")
    write(file.with_name("aXbYc.parquet"), "SELECT 2 AS x")
    with duckdb.connect() as con:
        rows = con.execute(f"SELECT * FROM {duck.parquet([file])}")
        assert rows.fetchall() == [(1,)]
        assert [column[0] for column in rows.description or []] == ["x"]


def test_parquet_below_reads_matching_files_of_a_folder_with_pattern_characters(tmp_path: Path) -> None:
    folder = tmp_path / "it's [1]"
    write(folder / "firm=a" / "x.parquet", "SELECT 1 AS x")
    write(folder / "firm=b" / "x.parquet", "SELECT 2 AS x, 'later' AS y")
    write(folder / "firm=b" / "other.parquet", "SELECT 3 AS x")
    write(tmp_path / "it's 1" / "firm=c" / "x.parquet", "SELECT 4 AS x")
    with duckdb.connect() as con:
        relation = duck.parquet_below(folder, "*/x.parquet", by_name=True)
        assert con.execute(f"SELECT x, y FROM {relation} ORDER BY x").fetchall() == [(1, None), (2, "later")]


def test_a_query_beyond_the_memory_limit_spills_beside_the_given_path(tmp_path: Path) -> None:
    target = tmp_path / "firm.parquet"
    query = "SELECT count(*) FROM (SELECT DISTINCT md5(range::VARCHAR) FROM range(2000000))"
    with duck.connect(target, memory="60MB", threads=1) as con:
        (spill,) = con.execute("SELECT current_setting('temp_directory')").fetchall()[0]
        assert Path(spill).parent == tmp_path
        assert con.execute(query).fetchall() == [(2_000_000,)]
    with duck.connect(memory="60MB", threads=1) as con:
        con.execute("SET temp_directory = ''")
        with pytest.raises(duckdb.OutOfMemoryException):
            con.execute(query)
