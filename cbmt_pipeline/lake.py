"""The lake: one Parquet file per table, firm, origin and step, from which everything published is made."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from contextlib import suppress
from datetime import date
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from cbmt_core import atomic
from cbmt_core.duck import literal, parquet_below
from cbmt_core.names import Unit
from cbmt_core.schema import Table

__all__ = ["Lake"]


class Lake:
    """Files `<root>/<table>/[origin=<week>/][firm=<slug>/]<part>.parquet`.

    No two firms write the same file. A table that several steps write has one file (part) for each of them.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, table: str, origin: date | None = None, unit: Unit | None = None) -> Path:
        folder = self.root / table
        if origin:
            folder /= f"origin={origin}"
        return folder / f"firm={unit.slug}" if unit else folder

    def path(self, table: str, part: str, origin: date | None = None, unit: Unit | None = None) -> Path:
        return self.folder(table, origin, unit) / f"{part}.parquet"

    def relation(self, table: Table, origin: date | None = None, unit: Unit | None = None) -> str:
        """The SQL relation of a table's rows: all of them, or those of one origin or firm. Without files it has no
        rows."""
        folder = self.folder(table.name, origin, unit)
        if next(folder.glob("**/*.parquet"), None) is None:
            return table.empty()
        if table.native:
            # A rejected firm keeps its earlier tables, which may be of a version with fewer columns.
            files = parquet_below(folder, "**/*.parquet", by_name=True)
            return f"(FROM {table.empty()} UNION ALL BY NAME FROM {files})"
        return parquet_below(folder, "**/*.parquet")

    def units(self, table: str) -> list[Unit]:
        """Units with a file of this table, in the order of their slugs."""
        folders = {path.parent.name for path in (self.root / table).glob("**/firm=*/*.parquet")}
        return [Unit.from_slug(name.removeprefix("firm=")) for name in sorted(folders)]

    def keep_only(self, units: Collection[Unit]) -> list[Unit]:
        """Remove the files of all other units, and return these units."""
        kept = {f"firm={unit.slug}" for unit in units}
        gone = [
            folder for folder in self.root.glob("**/firm=*") if folder.is_dir() and folder.name not in kept
        ]
        for folder in gone:
            with suppress(FileNotFoundError):  # Another process may have removed it already.
                shutil.rmtree(folder)
        slugs = sorted({folder.name.removeprefix("firm=") for folder in gone})
        return [Unit.from_slug(slug) for slug in slugs]

    def keep_newest(self, table: str, origins: int) -> list[Path]:
        """Remove a table's files of all but the newest `origins` origins, and return their folders."""
        old = sorted((self.root / table).glob("origin=*"))[:-origins]
        for folder in old:
            with suppress(FileNotFoundError):  # Another process may have removed it already.
                shutil.rmtree(folder)
        return old

    def stage(
        self, con: duckdb.DuckDBPyConnection, table: Table, relation: str, target: Path
    ) -> tuple[Path, int]:
        """Write `relation`, in the table's declared columns and order, under a temporary name beside `target`."""
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = atomic.temporary_name(target)
        order = ", ".join(f'"{name}"' for name in table.key)
        con.execute(
            f"COPY (SELECT {table.select()} FROM {relation} ORDER BY {order}) TO {literal(str(temporary))} "
            "(FORMAT parquet, COMPRESSION zstd)"
        )
        return temporary, int(pq.read_metadata(temporary).num_rows)
