"""DuckDB connections with limited memory, and quoting for SQL."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import duckdb

from cbmt_core import atomic

__all__ = ["connect", "identifier", "literal", "parquet", "path_literal"]


def connect(
    spill: Path | None = None, *, memory: str = "4GB", threads: int | None = None
) -> duckdb.DuckDBPyConnection:
    """An in-memory database with a memory limit, which spills to its own folder beside `spill`.

    If the process is killed, a later one recognises the folder by its name and removes it.
    Row order is kept, and DuckDB's progress bar is off: the program shows progress by firm and file.
    """
    con = duckdb.connect()
    con.execute(f"SET memory_limit = {literal(memory)}")
    with suppress(
        duckdb.InvalidInputException
    ):  # Fails in Jupyter without ipywidgets, where there is no bar anyway.
        con.execute("SET enable_progress_bar = false")
    if threads:
        con.execute(f"SET threads = {int(threads)}")
    if spill:
        con.execute(f"SET temp_directory = {literal(str(atomic.temporary_name(spill)))}")
    return con


def literal(text: str) -> str:
    """`text` as an SQL string."""
    return "'" + text.replace("'", "''") + "'"


def path_literal(path: Path) -> str:
    """The path of one file as an SQL string, with glob characters escaped."""
    return literal(re.sub(r"([*?[])", r"[\1]", str(path)))


def parquet(paths: Iterable[Path]) -> str:
    """The relation of the rows in exactly these files: no globs, no columns taken from folder names."""
    return f"read_parquet([{', '.join(map(path_literal, paths))}], hive_partitioning = false)"


def parquet_below(folder: Path, pattern: str, *, by_name: bool = False) -> str:
    """The relation of the rows in every file below `folder` that `pattern` matches.

    Args:
        by_name: whether the files may differ in their columns.
    """
    escaped = re.sub(r"([*?[])", r"[\1]", str(folder))
    named = ", union_by_name = true" if by_name else ""
    return f"read_parquet({literal(f'{escaped}/{pattern}')}, hive_partitioning = false{named})"


def identifier(name: str) -> str:
    """`name` as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'
