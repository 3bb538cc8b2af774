"""One source file as a DuckDB table of mapped, parsed and judged rows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import duckdb

from cbmt_core.config import SourceConfig
from cbmt_core.duck import identifier, literal, path_literal
from cbmt_core.errors import UnreadableSource
from cbmt_core.transactions.amounts import is_number
from cbmt_core.transactions.csv_file import CSV_SUFFIXES, TRAILING, CsvFile, open_csv
from cbmt_core.transactions.judge import judged_sql
from cbmt_core.transactions.spreadsheet import SHEET_SUFFIXES
from cbmt_core.transactions.times import is_time

__all__ = ["DUCKDB", "PARQUET", "SUFFIXES", "files_of", "passed_over", "read_rows"]

PARQUET = (".parquet",)
DUCKDB = (".duckdb", ".db")
SUFFIXES = CSV_SUFFIXES + PARQUET + SHEET_SUFFIXES


def files_of(source: SourceConfig, root: Path) -> list[Path]:
    """The files a source names, sorted: one file, a folder (searched through), or a glob."""
    base, there, suffixes = _visible(source, root)
    files = sorted(p for p in there if p.name.lower().endswith(suffixes))
    home = base.resolve()
    for file in files:
        if not file.exists():
            raise UnreadableSource(
                f"source {source.name!r}: the link {file} leads nowhere; remove it, or put back the file that it names"
            )
        if suffixes != ("",) and not file.resolve().is_relative_to(home):
            raise UnreadableSource(
                f"source {source.name!r}: the link {file} leads out of {base}; copy the file there, or name it in a "
                "source of its own"
            )
        try:
            str(file).encode()
        except UnicodeEncodeError:
            shown = str(file).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
            raise UnreadableSource(
                f"source {source.name!r}: the name of {shown} is not UTF-8; rename the file"
            ) from None
    if not files:
        raise UnreadableSource(
            f"source {source.name!r}: there is no file at {source.path} "
            f"(a file, a folder or a glob of {', '.join(SUFFIXES)}, or a DuckDB file and its table)"
        )
    return files


def passed_over(source: SourceConfig, root: Path) -> list[Path]:
    """Files that lie where a source looks and are of a kind that is not read, sorted."""
    _, there, suffixes = _visible(source, root)
    return sorted(p for p in there if not p.name.lower().endswith(suffixes))


def _visible(source: SourceConfig, root: Path) -> tuple[Path, list[Path], tuple[str, ...]]:
    """The folder that a source searches, the files and links in it but hidden ones, and how names of those end that
    are read."""
    path = Path(source.path)
    path = path if path.is_absolute() else root / path
    if path.is_file():
        return path.parent, [path], ("",)
    found: Iterable[Path]
    if path.is_dir():
        base, found = path, path.rglob("*")
    else:
        base = Path(*path.parts[: next((k for k, part in enumerate(path.parts) if _globs(part)), -1)])
        found = base.glob(str(path.relative_to(base))) if path != base else ()
    there = [
        p
        for p in found
        if (p.is_file() or p.is_symlink())
        and not any(part.startswith((".", "~$")) for part in p.relative_to(base).parts)
    ]
    return base, there, SUFFIXES + DUCKDB if source.table else SUFFIXES


def _globs(part: str) -> bool:
    return any(mark in part for mark in "*?[")


@dataclass(frozen=True)
class Scan:
    """A file as a relation, with the names of its columns there, which cannot collide with ours."""

    relation: str
    row: str
    """SQL for the number of the row."""
    columns: Mapping[str, tuple[str, str]]
    """Name of a column -> its SQL and its type."""


def read_rows(
    con: duckdb.DuckDBPyConnection, source: SourceConfig, file: Path, label: str, scratch: Path
) -> int:
    """Make the tables `judged` of every row of the file and `rejected` of the lines that are no rows; count the latter.

    Args:
        label: how the file is called in the tables.
        scratch: an empty folder for copies.
    """
    con.execute("CREATE OR REPLACE TEMP TABLE rejected (row BIGINT, detail VARCHAR)")
    name = file.name.lower()
    try:
        if name.endswith(CSV_SUFFIXES + SHEET_SUFFIXES):
            _read_csv(con, source, file, label, scratch)
        elif name.endswith(PARQUET):
            scan = f"read_parquet({path_literal(file)}, hive_partitioning=false)"
            columns = _described(con, f"FROM {scan}")
            row = "row_number() OVER ()"
            if "file_row_number" not in {column.lower() for column in columns}:
                scan = f"read_parquet({path_literal(file)}, file_row_number=true, hive_partitioning=false)"
                row = "file_row_number + 1"
            _judge(con, source, file, label, Scan(scan, row, columns))
        elif name.endswith(DUCKDB):
            _judge(con, source, file, label, _table(con, source, file))
        else:
            raise UnreadableSource(
                f"source {source.name!r}: {file} is none of {', '.join(SUFFIXES + DUCKDB)}"
            )
    except duckdb.Error as error:
        raise UnreadableSource(f"source {source.name!r}: {file} cannot be read: {error}") from error
    return int(con.execute("SELECT count(*) FROM rejected").fetchall()[0][0])


def _described(con: duckdb.DuckDBPyConnection, query: str) -> dict[str, tuple[str, str]]:
    rows = con.execute(f"SELECT column_name, column_type FROM (DESCRIBE {query})").fetchall()
    return {name: (identifier(name), kind) for name, kind in rows}


def _table(con: duckdb.DuckDBPyConnection, source: SourceConfig, file: Path) -> Scan:
    if not source.table:
        raise UnreadableSource(f"source {source.name!r}: say which table of {file} to read (table = ...)")
    con.execute(f"ATTACH IF NOT EXISTS {literal(str(file))} AS _source (READ_ONLY, TYPE duckdb)")
    table = "_source." + ".".join(identifier(part) for part in source.table.split("."))
    return Scan(table, "row_number() OVER ()", _described(con, f"FROM {table}"))


def _read_csv(
    con: duckdb.DuckDBPyConnection, source: SourceConfig, file: Path, label: str, scratch: Path
) -> None:
    """Let DuckDB read a clean file; read any other record by record."""
    opened = open_csv(source, file, _wanted(source), scratch)
    columns = {name: (f"c{place}", "VARCHAR") for place, name in enumerate(opened.names)}
    if opened.can_be_scanned() and _scanned(
        con, opened, Scan(opened.scan(), "row_number() OVER ()", columns), label
    ):
        return
    con.execute("DROP TABLE IF EXISTS judged")
    mapping = _mapped(source, file, columns)
    wanted = {int(sql[1:]) for sql, _ in mapping.values() if sql.startswith("c")} | {0}
    _judge(con, source, file, label, Scan(opened.rewrite(con, wanted), "row", columns))


def _scanned(con: duckdb.DuckDBPyConnection, opened: CsvFile, scan: Scan, label: str) -> bool:
    """Whether DuckDB could read the file, and its records account for every line."""
    try:
        _judge(con, opened.source, opened.file, label, scan, opened.tail())
        counts = dict(con.execute("SELECT tail, count(*) FROM judged GROUP BY tail").fetchall())
    except (duckdb.InvalidInputException, duckdb.ConversionException, duckdb.InternalException):
        return False
    trailing = [sum(n for tail, n in counts.items() if tail >= level) for level in range(1, TRAILING + 1)]
    return opened.agrees(sum(counts.values()), trailing[: len(opened.names)])


def _wanted(source: SourceConfig) -> list[str]:
    columns = source.columns.model_dump()
    if source.firm is not None:
        columns["firm"] = None
    return [*filter(None, columns.values()), *source.leave_out, *source.refund_where]


def _mapped(
    source: SourceConfig, file: Path, columns: Mapping[str, tuple[str, str]]
) -> dict[str, tuple[str, str]]:
    """Our name of a column, or the index of one to leave rows out by -> its SQL and its type."""
    folders = dict(part.split("=", 1) for part in file.parent.parts if "=" in part)
    wanted = {ours: theirs for ours, theirs in source.columns.model_dump().items() if theirs}
    if source.firm is not None:
        wanted.pop("firm", None)
    wanted |= {f"leave_out_{k}": theirs for k, theirs in enumerate(source.leave_out)}
    wanted |= {f"refund_where_{k}": theirs for k, theirs in enumerate(source.refund_where)}
    found, missing = {}, []
    for ours, theirs in wanted.items():
        same = [name for name in columns if name.casefold() == theirs.casefold()]
        if theirs in columns:
            found[ours] = columns[theirs]
        elif len(same) == 1:
            found[ours] = columns[same[0]]
        elif theirs in folders:
            found[ours] = (literal(unquote(folders[theirs])), "VARCHAR")
        else:
            missing.append(f"{re.sub('_[0-9]+$', '', ours)} = {theirs!r}")
    if missing:
        there = ", ".join(map(repr, list(columns)[:50])) + (", ..." if len(columns) > 50 else "")
        raise UnreadableSource(
            f"source {source.name!r}: {file} has no column for {', '.join(missing)}; it has {there}. "
            "Say which column is which: `--column OURS=THEIRS` of `cbmt ingest`, or [sources.columns] in cbmt.toml"
        )
    for ours in ("amount", "quantity", "discount", "refunded"):
        if ours in found and found[ours][1] != "VARCHAR" and not is_number(found[ours][1]):
            raise UnreadableSource(
                f"source {source.name!r}: the column {wanted[ours]!r} of {file} is {found[ours][1]} and cannot be "
                f"the {ours}: numbers or text can"
            )
    kind = found["order_time"][1]
    if not (kind == "VARCHAR" or is_time(kind) or (is_number(kind) and source.time_format)):
        raise UnreadableSource(
            f"source {source.name!r}: the column {wanted['order_time']!r} of {file} is {kind} and cannot be the "
            "order_time: dates, times and text can, and numbers whose time_format is stated (epoch, epoch_ms, excel, "
            "%Y%m%d)"
        )
    return found


def _judge(
    con: duckdb.DuckDBPyConnection,
    source: SourceConfig,
    file: Path,
    label: str,
    scan: Scan,
    tail: str = "0",
) -> None:
    """Make the table `judged` of a scan's rows."""
    mapped = _mapped(source, file, scan.columns)
    first = next(iter(scan.columns.values()))[0]
    con.execute(
        "CREATE OR REPLACE TEMP TABLE judged AS "
        + judged_sql(source, label, scan.relation, scan.row, mapped, first, tail)
    )
