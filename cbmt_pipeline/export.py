"""A copy of the published tables that needs nothing else: one DuckDB file, or a folder of Parquet files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import duckdb

from cbmt_core import atomic, duck
from cbmt_core.duck import literal
from cbmt_core.errors import CbmtError
from cbmt_core.names import Unit
from cbmt_core.schema import FILE_TABLES, SCHEMAS, VIEWS, Table
from cbmt_pipeline.plan import Plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.publish import READABLE_SINCE, create, create_views, retrying

__all__ = ["DICTIONARY", "export", "is_database"]

DICTIONARY = "dictionary.csv"
"""The file of a Parquet folder that says what each column means."""

Progress = Callable[[str, int, int], None]


def is_database(target: Path) -> bool:
    """Whether the target is to be a DuckDB file; otherwise it is a folder."""
    return target.suffix.lower() in (".duckdb", ".db")


def export(
    project: Project,
    plan: Plan,
    target: Path,
    *,
    firms: Sequence[Unit] | None = None,
    on_table: Progress | None = None,
) -> dict[str, int]:
    """Write every published table to `target`, also those that the published file reads from the lake.

    The target appears when it is complete. One that is there already is replaced.

    Args:
        target: a DuckDB file (`.duckdb`, `.db`) or, with any other name, a folder.
        firms: only rows of these; tables made across firms are left whole.
        on_table: called with a table's name, tables done and tables to do, before each is written.

    Returns:
        The number of rows of each table.
    """
    tables = (*plan.tables.values(), *FILE_TABLES)
    with duck.connect(project.spill) as con:
        con.execute(f"ATTACH {literal(str(project.warehouse))} AS published (READ_ONLY)")
        _check(con, tables, project)
        if is_database(target):
            return _to_database(con, tables, target, firms, on_table)
        return _to_folder(con, tables, target, firms, on_table)


def _check(con: duckdb.DuckDBPyConnection, tables: Sequence[Table], project: Project) -> None:
    """The published file must hold what this version publishes."""
    found = con.execute(
        "SELECT CASE schema WHEN 'main' THEN name ELSE schema || '.' || name END, column_names "
        "FROM (SHOW ALL TABLES) WHERE database = 'published'"
    ).fetchall()
    has = {name: set(columns) for name, columns in found}
    missing = [table.relation for table in tables if table.relation not in has]
    missing += [
        f"{table.relation}.{column}"
        for table in tables
        for column in table.column_names
        if column not in has.get(table.relation, table.column_names)
    ]
    if missing:
        raise CbmtError(
            f"{project.warehouse} has no {', '.join(missing[:3])}: it was published by another version; "
            "run `cbmt run` first"
        )


def _rows(table: Table, firms: Sequence[Unit] | None) -> str:
    """SQL of a table's rows, in the declared columns and types."""
    where = ""
    if firms is not None and "firm" in table.column_names:
        where = f" WHERE firm IN ({', '.join(literal(unit.name) for unit in firms)})"
    return f"SELECT {table.select()} FROM published.{_qualified(table.relation)}{where}"


def _qualified(relation: str) -> str:
    return relation if "." in relation else f"main.{relation}"


def _to_database(
    con: duckdb.DuckDBPyConnection,
    tables: Sequence[Table],
    target: Path,
    firms: Sequence[Unit] | None,
    on_table: Progress | None,
) -> dict[str, int]:
    rows: dict[str, int] = {}
    target.parent.mkdir(parents=True, exist_ok=True)
    with atomic.replacing(target) as file:
        con.execute(f"ATTACH {literal(str(file))} AS w (STORAGE_VERSION {literal(READABLE_SINCE)}); USE w")
        for schema in SCHEMAS:
            con.execute(f"CREATE SCHEMA {schema}")
        for k, table in enumerate(tables):
            if on_table:
                on_table(table.relation, k, len(tables))
            # An index on the largest tables would take more space than their rows.
            create(con, table, keyed=table.native)
            insert = f"INSERT INTO {table.relation} {_rows(table, firms)}"
            retrying(partial(con.execute, insert))
            rows[table.relation] = _count(con, table.relation)
        create_views(con)
        con.execute("USE memory; DETACH w")
    return rows


def _to_folder(
    con: duckdb.DuckDBPyConnection,
    tables: Sequence[Table],
    target: Path,
    firms: Sequence[Unit] | None,
    on_table: Progress | None,
) -> dict[str, int]:
    rows: dict[str, int] = {}
    # Views are computed from the exported tables, so they cover the same firms.
    for schema in SCHEMAS:
        con.execute(f"CREATE SCHEMA {schema}")
    for table in tables:
        # Other Parquet readers see DuckDB's JSON type as bytes.
        text = [f"CAST({c.name} AS VARCHAR) AS {c.name}" for c in table.columns if c.type == "JSON"]
        plain = f"SELECT * REPLACE ({', '.join(text)})" if text else "SELECT *"
        con.execute(f"CREATE VIEW {table.relation} AS {plain} FROM ({_rows(table, firms)})")
    create_views(con)
    names = [*(table.relation for table in tables), *(view.name for view in VIEWS)]
    folder = atomic.temporary_name(target)
    try:
        for k, name in enumerate(names):
            if on_table:
                on_table(name, k, len(names))
            file = folder / f"{name.replace('.', '/')}.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            copy = f"COPY (FROM {name}) TO {literal(str(file))} (FORMAT parquet, COMPRESSION zstd)"
            rows[name] = int(retrying(partial(con.execute, copy)).fetchall()[0][0])
        con.execute(f"COPY ({_dictionary(tables)}) TO {literal(str(folder / DICTIONARY))} (HEADER)")
        if target.exists():
            shutil.rmtree(target)
        folder.rename(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return rows


def _dictionary(tables: Sequence[Table]) -> str:
    """SQL of what each column means."""
    meanings = {table.relation: table.meanings for table in tables}
    meanings |= {view.name: dict(view.columns) for view in VIEWS}
    rows = [
        f"({literal(name)}, {literal(column)}, {literal(meaning)})"
        for name, columns in meanings.items()
        for column, meaning in columns.items()
    ]
    return f'FROM (VALUES {", ".join(rows)}) AS dictionary("table", "column", meaning)'


def _count(con: duckdb.DuckDBPyConnection, relation: str) -> int:
    return int(con.execute(f"SELECT count(*) FROM {relation}").fetchall()[0][0])
