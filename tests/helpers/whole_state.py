"""Everything a project holds, as digests that two equal projects share: tables, manifests, networks, published file,
pages. What tells the time is left out: seconds of fits, the moment of publishing."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import duckdb

from cbmt_core.duck import parquet
from cbmt_core.report.changed import PAGES
from cbmt_pipeline.plan import the_plan
from cbmt_pipeline.project import Project

__all__ = ["differences", "whole_state"]

NOT_COMPARED = re.compile(
    r"^(dagster/|lake/manifest/intake/|lake/intake/\.lock|lake/\.commit\.lock|\.(run|ui|pin)\.lock|raw/)|/\.lock$|\.journal"
)
"""Run history, locks, a manifest that nothing reads, and the journal of a search, whose lines carry times."""
TIMES = r"Published on [0-9: -]+ UTC|published on [0-9-]+"
INCIDENTAL = {table.name for table in the_plan().tables.values() if table.incidental}
"""Tables some of whose columns are no content: their manifests hold digests of the others."""
SECONDS = ("seconds", "datetime_start", "datetime_complete")


def whole_state(project: Project, *, without: str = "") -> dict[str, str]:
    """Path below the data folder -> digest of the content. Temporary files are in it: none should be there.

    Args:
        without: a text that the published file and the pages may say, and that is not compared.
    """
    data = project.data
    paths = [path for path in sorted(data.rglob("*")) if path.is_file()]
    found = {str(path.relative_to(data)): path for path in paths}
    return {
        name: _digest(data, path, without) for name, path in found.items() if not NOT_COMPARED.search(name)
    }


def differences(one: dict[str, str], other: dict[str, str]) -> list[str]:
    """Paths that are in only one of two states, or differ."""
    return sorted(path for path in {*one, *other} if one.get(path) != other.get(path))


_KNOWN: dict[tuple[bytes, str], str] = {}
"""SHA-256 of a file, what is not compared -> its digest: the copies of a project have most files in common."""


def _digest(data: Path, path: Path, without: str) -> str:
    if "/manifest/" in str(path):
        return _of(_manifest(data, json.loads(path.read_text())))
    if path.suffix == ".duckdb":
        return _published(path, without)  # Some of its tables are views of files beside it.
    content = hashlib.sha256(path.read_bytes()).digest()
    if (content, without) not in _KNOWN:
        _KNOWN[content, without] = _read(path, without)
    return _KNOWN[content, without]


def _read(path: Path, without: str) -> str:
    if path.suffix == ".parquet":
        with duckdb.connect() as con:
            return _rows(f"FROM {parquet([path])}", con)
    if path.name == PAGES:
        # Which pages there are; the digests beside their names hold the seconds of fits.
        return _of(sorted(json.loads(path.read_text())))
    if path.suffix == ".json":
        return _of(_timeless(json.loads(path.read_text())))
    if path.suffix == ".html":
        return _of(re.sub(TIMES, "", path.read_text()).replace(without, ""))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _of(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


def _manifest(data: Path, made: dict[str, object]) -> object:
    """A manifest without the digests that hold seconds, once these were seen to be those of the files."""
    files = made["files"]
    assert isinstance(files, dict)
    for name, digest in files.items():
        if name.split("/")[1] in INCIDENTAL:
            continue
        with (data / name).open("rb") as handle:
            assert hashlib.file_digest(handle, "sha256").hexdigest()[:16] == digest, (
                f"{name} is not its manifest's"
            )
    return {**made, "files": sorted(files), "inputs": sorted(made["inputs"])}  # type: ignore[call-overload]


def _timeless(value: object) -> object:
    if isinstance(value, dict):
        return {key: _timeless(one) for key, one in value.items() if key not in (*SECONDS, "modified_ns")}
    return [_timeless(one) for one in value] if isinstance(value, list) else value


def _published(path: Path, without: str) -> str:
    with duckdb.connect(str(path), read_only=True) as con:
        names = con.execute(
            "SELECT schema_name || '.' || table_name FROM duckdb_tables() UNION ALL SELECT schema_name || '.' || "
            "view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
        ).fetchall()
        return _of([(name, _rows(f"FROM {name}", con, without)) for (name,) in names])


def _rows(query: str, con: duckdb.DuckDBPyConnection, without: str = "") -> str:
    columns = [name for name, *_ in con.execute(f"DESCRIBE {query}").fetchall()]
    kept = [f'"{name}"' for name in columns if name not in SECONDS and not name.endswith("published_at")]
    rows = con.execute(f"SELECT {', '.join(kept)} {query} ORDER BY ALL").fetchall()
    return hashlib.sha256(repr((columns, rows)).replace(without, "").encode()).hexdigest()
