"""Digests of everything that a firm's page is made from, to see which pages are up to date."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

import duckdb

from cbmt_core import atomic
from cbmt_core.duck import identifier
from cbmt_core.report.story import Stories

__all__ = ["PAGES", "Pages", "code_digest", "page_digests"]

PAGES = ".pages.json"
"""File beside the pages, with the digest each was made from."""
NOT_SHOWN = ("snapshot",)
"""Tables that change with every publication and are shown on no firm's page."""


def page_digests(con: duckdb.DuckDBPyConnection, stories: Stories) -> dict[str, str]:
    """Firm -> digest of its rows in every published table, of the tables about all firms, and of the report's code.

    Of the two tables that are views of the lake, only what pages show counts: `report_layer` and `report_track`.
    """
    rows: dict[str, list[object]] = {}
    shared: list[object] = [code_digest(), stories.weeks, stories.newest]
    for database, schema, table, by_firm in con.execute("""
        SELECT database_name, schema_name, table_name, bool_or(column_name = 'firm') FROM duckdb_columns()
        JOIN duckdb_tables() USING (database_name, schema_name, table_name)
        WHERE NOT duckdb_columns.internal GROUP BY ALL ORDER BY ALL""").fetchall():
        if table in NOT_SHOWN:
            continue
        name = ".".join(map(identifier, (database, schema, table)))
        key = "firm" if by_firm else "NULL"
        for firm, count, total in con.execute(
            f"SELECT {key}, count(*), CAST(sum(hash(t)) AS VARCHAR) FROM {name} AS t GROUP BY ALL"
        ).fetchall():
            (shared if firm is None else rows.setdefault(firm, [])).append((schema, table, count, total))
    return {firm: hashlib.sha256(repr((shared, own)).encode()).hexdigest()[:16] for firm, own in rows.items()}


@cache
def code_digest() -> str:
    """Digest of the code and templates that make pages."""
    found = hashlib.sha256(duckdb.__version__.encode())
    package = Path(str(files("cbmt_core.report")))
    for path in sorted(path for path in package.rglob("*") if path.suffix in (".py", ".html", ".css", ".js")):
        found.update(path.read_bytes())
    return found.hexdigest()


class Pages:
    """The record of what a folder's pages were made from."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / PAGES
        try:
            self._made: dict[str, str] = json.loads(self._path.read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            self._made = {}

    def is_current(self, page: Path, digest: str) -> bool:
        return self._made.get(page.name) == digest and page.exists()

    def forget(self) -> None:
        """Remove the record; call it before pages are replaced, so that a killed run writes them again."""
        self._path.unlink(missing_ok=True)

    def keep(self, made: Mapping[str, str]) -> None:
        atomic.write_text(self._path, json.dumps(dict(made), indent=0, sort_keys=True))
