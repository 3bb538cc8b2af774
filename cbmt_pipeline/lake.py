"""The lake: one Parquet file per table and firm, replaced whole, stamped with what it was made from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from cbmt_core import atomic
from cbmt_core.diagnostics.tables import DIAGNOSTIC_TABLES
from cbmt_core.duck import literal, parquet_below
from cbmt_core.exhibits import EXHIBITS
from cbmt_core.names import Unit
from cbmt_core.schema import TABLES, Table

__all__ = ["ALL_TABLES", "Lake", "Stamp"]

ALL_TABLES: dict[str, Table] = {
    **TABLES,
    **DIAGNOSTIC_TABLES,
    **{name: exhibit.table for name, exhibit in EXHIBITS.items()},
}
"""Every table the lake may hold."""


@dataclass(frozen=True)
class Stamp:
    """What a file was made from; carried in the file's own metadata."""

    code: str
    config: str
    inputs: str
    seed: int = 0


class Lake:
    """Files `<root>/<table>/firm=<slug>/<part>.parquet`. Firms never contend; a killed writer leaves the
    earlier file whole. A table that several assets write has one part for each of them."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, table: str, unit: Unit, part: str = "part") -> Path:
        return self.root / table / f"firm={unit.slug}" / f"{part}.parquet"

    def glob(self, table: str) -> str:
        """The SQL relation of every firm's rows of one table."""
        return parquet_below(self.root / table, "firm=*/*.parquet")

    def relation(self, table: str, unit: Unit) -> str:
        """The SQL relation of one firm's rows."""
        return parquet_below(self.path(table, unit).parent, "*.parquet")

    def units(self, table: str) -> list[Unit]:
        """Units with a file of this table, in the order of their slugs."""
        folders = {path.parent.name for path in (self.root / table).glob("firm=*/*.parquet")}
        return [Unit.from_slug(name.removeprefix("firm=")) for name in sorted(folders)]

    def keep_only(self, units: Collection[Unit]) -> list[Unit]:
        """Remove the files of all other units, and say whose they were."""
        kept = {f"firm={unit.slug}" for unit in units}
        gone = [folder for folder in self.root.glob("*/firm=*") if folder.name not in kept]
        for folder in gone:
            with suppress(FileNotFoundError):  # Another process found it gone as well.
                shutil.rmtree(folder)
        slugs = sorted({folder.name.removeprefix("firm=") for folder in gone})
        return [Unit.from_slug(slug) for slug in slugs]

    def whole_path(self, table: str, part: str = "all") -> Path:
        """The file of a table made across firms, or of the part of it that one asset writes."""
        return self.root / table / f"{part}.parquet"

    def has_whole(self, table: str) -> bool:
        """Whether a table made across firms has been written."""
        return any((self.root / table).glob("*.parquet"))

    def whole(self, table: str) -> str:
        """The SQL relation of a table made across firms."""
        return parquet_below(self.root / table, "*.parquet")

    def write(
        self,
        con: duckdb.DuckDBPyConnection,
        table: str,
        unit: Unit,
        relation: str,
        stamp: Stamp,
        part: str = "part",
    ) -> int:
        """Put `relation`, in the table's declared columns and order, in the place of the unit's file."""
        return _write(con, table, relation, stamp, self.path(table, unit, part))

    def write_whole(
        self, con: duckdb.DuckDBPyConnection, table: str, relation: str, stamp: Stamp, part: str = "all"
    ) -> int:
        """The same for a table made across firms."""
        return _write(con, table, relation, stamp, self.whole_path(table, part))

    def stamp(self, table: str, unit: Unit, part: str = "part") -> Stamp | None:
        """The stamp of the unit's file, or None without a file."""
        try:
            notes = pq.read_metadata(self.path(table, unit, part)).metadata or {}
        except FileNotFoundError:
            return None
        return Stamp(**json.loads(notes[b"cbmt"])) if b"cbmt" in notes else None


def _write(con: duckdb.DuckDBPyConnection, table: str, relation: str, stamp: Stamp, path: Path) -> int:
    spec = ALL_TABLES[table]
    metadata = f"{{cbmt: {literal(json.dumps(asdict(stamp)))}}}"
    order = ", ".join(f'"{name}"' for name in spec.key)
    with atomic.replacing(path) as target:
        con.execute(
            f"COPY (SELECT {spec.select()} FROM {relation} ORDER BY {order}) TO {literal(str(target))} "
            f"(FORMAT parquet, COMPRESSION zstd, KV_METADATA {metadata})"
        )
        return int(pq.read_metadata(target).num_rows)
