"""One source file, read once: its checked rows as Parquet sorted by firm, and its entry in the ledger."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from cbmt_core import atomic, duck
from cbmt_core.config import QualityConfig, SourceConfig
from cbmt_core.duck import literal, parquet
from cbmt_core.names import Unit
from cbmt_core.transactions.reader import read_rows
from cbmt_core.transactions.refusal import refuse_unusable

__all__ = ["FileReport", "file_digest", "read_source_file", "stem_of"]


@dataclass(frozen=True)
class FileReport:
    """One source file as it was read: the ledger's entry."""

    source: str
    file: str
    digest: str
    reading: str
    size: int
    modified_ns: int
    rows: int
    bad_rows: int
    """Rows that cannot be used; refunds, guests and the like are not counted against the file."""
    path: str = ""
    """Path of the source when the file was read; empty in ledgers of earlier versions."""

    @property
    def stem(self) -> str:
        """Name of its intake files: the same bytes, source and way of reading give the same rows."""
        return f"{self.digest}-{self.reading}"


def read_source_file(
    folder: Path,
    source: SourceConfig,
    file: Path,
    seen: os.stat_result,
    label: str,
    digest: str,
    quality: QualityConfig,
) -> FileReport:
    """Read one file of a source into the intake's folder.

    Args:
        folder: the intake's folder.
        seen: the file's state when it was looked at.
        label: name of the file in every table.
        digest: digest of the file's bytes.
    """
    stem = stem_of(digest, source)
    folder.mkdir(parents=True, exist_ok=True)
    with (
        atomic.temporary_folder(folder, "reading") as scratch,
        duck.connect(folder / "spill") as con,
        atomic.replacing(folder / f"{stem}.parquet") as target,
    ):
        rows_sql = "SELECT * EXCLUDE (tail) FROM judged"
        # Rows of a single firm are already in order; sorting them again would be expensive.
        order = "" if source.firm is not None else "ORDER BY slug, row"
        if read_rows(con, source, file, label, scratch):
            order = "ORDER BY slug, row"
            firm = "NULL" if source.firm is None else literal(source.firm)
            slug = "NULL" if source.firm is None else literal(Unit(source.firm).slug)
            rows_sql = f"""
                {rows_sql} UNION ALL BY NAME
                SELECT {literal(source.name)} AS source, {literal(label)} AS file, row,
                    CAST({slug} AS VARCHAR) AS slug, CAST({firm} AS VARCHAR) AS firm,
                    'unparseable line' AS reason, detail, detail AS problems FROM rejected"""
        ((lines, unread),) = con.execute(
            f"SELECT count(*), count(*) FILTER (reason = 'unparseable line') FROM ({rows_sql})"
        ).fetchall()
        if lines == unread:
            refuse_unusable(con, f"({rows_sql})", source.name, str(file), quality.max_unusable_share)
        con.execute(
            f"COPY (FROM ({rows_sql}) {order}) TO {literal(str(target))} (FORMAT parquet, COMPRESSION zstd)"
        )
        rows, bad = con.execute(f"SELECT count(*), count(reason) FROM {parquet([target])}").fetchall()[0]
        with atomic.replacing(folder / f"{stem}.index.parquet") as index:
            con.execute(
                f"COPY (SELECT slug, any_value(firm) AS firm, segment, CAST(ordered_at AS DATE) AS day, "
                f"count(*) AS rows FROM {parquet([target])} WHERE slug IS NOT NULL "
                f"GROUP BY ALL ORDER BY ALL) TO {literal(str(index))} (FORMAT parquet)"
            )
    return FileReport(
        source=source.name,
        file=label,
        digest=digest,
        reading=source.reading_digest,
        size=seen.st_size,
        modified_ns=seen.st_mtime_ns,
        rows=rows,
        bad_rows=bad,
        path=source.path,
    )


def stem_of(digest: str, source: SourceConfig) -> str:
    """FileReport.stem of a file before it is read."""
    return f"{digest}-{source.reading_digest}"


def file_digest(file: Path) -> str:
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()[:16]
