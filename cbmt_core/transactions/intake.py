"""The intake: every source file read once, judged row by row, and kept as Parquet sorted by firm.

The ledger is the commit point: readers use only the intake files it names, and it is replaced whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path

import duckdb

from cbmt_core import atomic, duck
from cbmt_core.config import ProjectConfig, SourceConfig
from cbmt_core.design import StudyDesign
from cbmt_core.duck import literal
from cbmt_core.errors import CbmtError, UnreadableSource
from cbmt_core.names import Unit
from cbmt_core.transactions.reader import files_of, judged_rows, rejected_lines

__all__ = ["FileReport", "Intake", "IntakeReport"]

THIN_WEEK = 0.05
"""A week at either end of the data with less than this share of the median week's rows is a stray."""


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
    segmented: bool

    @property
    def stem(self) -> str:
        return f"{self.digest}-{self.reading}"


@dataclass
class IntakeReport:
    """What one pass over the sources did."""

    read: list[FileReport] = field(default_factory=list)
    unchanged: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    """Source name -> why it could not be read; its earlier data are as they were."""


class Intake:
    """The folder of judged rows, and its ledger."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # -- writing ---------------------------------------------------------------------------------

    def update(
        self,
        project: ProjectConfig,
        root: Path,
        on_file: Callable[[str, int, int], None] | None = None,
    ) -> IntakeReport:
        """Read the files that are new or changed. A source is taken whole or not at all.

        `on_file(file, done, total)` is called before each file is read.
        """
        report = IntakeReport()
        for source in project.sources:
            try:
                self._update_source(source, root, report, on_file)
            except (CbmtError, duckdb.Error, OSError, UnicodeDecodeError) as error:
                report.failed[source.name] = str(error).strip()
        return report

    def _update_source(
        self,
        source: SourceConfig,
        root: Path,
        report: IntakeReport,
        on_file: Callable[[str, int, int], None] | None,
    ) -> None:
        entries = {(e.source, e.file): e for e in self.ledger()}
        known = {e.stem for e in entries.values() if e.source == source.name}
        files = files_of(source, root)
        fresh: list[FileReport] = []
        for done, file in enumerate(files):
            label = _label(file, root)
            if _unchanged(entries.get((source.name, label)), source, file):
                report.unchanged += 1
                continue
            digest = _digest(file)
            if f"{digest}-{source.reading_digest}" in known:
                report.unchanged += 1
                continue
            if on_file:
                on_file(label, done, len(files))
            fresh.append(self._read_file(source, file, label, digest))
            known.add(fresh[-1].stem)
        if fresh:
            entries.update({(e.source, e.file): e for e in fresh})
            self._write_ledger(entries.values())
            report.read += fresh

    def _read_file(self, source: SourceConfig, file: Path, label: str, digest: str) -> FileReport:
        stat = file.stat()
        stem = f"{digest}-{source.reading_digest}"
        spill = self.folder / ".spill"
        with duck.connect(spill) as con, atomic.replacing(self.folder / f"{stem}.parquet") as target:
            try:
                con.execute(f"CREATE TEMP TABLE judged AS {judged_rows(con, source, file, label)}")
            except duckdb.Error as error:
                raise UnreadableSource(f"source {source.name!r}: {file} cannot be read: {error}") from error
            lines = rejected_lines(con, source, label)
            # A line that is no row shifts the numbers of the rows after it.
            rows_sql = "FROM judged"
            if lines:
                con.execute(
                    "CREATE TEMP TABLE gap AS SELECT row - n + 1 AS row, n FROM "
                    "(SELECT row, row_number() OVER (ORDER BY row) AS n FROM rejected)"
                )
                rows_sql = (
                    "SELECT judged.* REPLACE (judged.row + coalesce(n, 0) AS row) "
                    "FROM judged ASOF LEFT JOIN gap ON judged.row >= gap.row UNION ALL FROM rejected"
                )
            con.execute(
                f"COPY (FROM ({rows_sql}) ORDER BY slug, row) TO {literal(str(target))} "
                "(FORMAT parquet, COMPRESSION zstd)"
            )
            rows, bad = con.execute(
                f"SELECT count(*), count(reason) FROM read_parquet({literal(str(target))})"
            ).fetchall()[0]
            with atomic.replacing(self.folder / f"{stem}.index.parquet") as index:
                con.execute(
                    f"COPY (SELECT slug, any_value(firm) AS firm, segment, CAST(ordered_at AS DATE) AS day, "
                    f"count(*) AS rows FROM read_parquet({literal(str(target))}) WHERE slug IS NOT NULL "
                    f"GROUP BY ALL ORDER BY ALL) TO {literal(str(index))} (FORMAT parquet)"
                )
        return FileReport(
            source=source.name,
            file=label,
            digest=digest,
            reading=source.reading_digest,
            size=stat.st_size,
            modified_ns=stat.st_mtime_ns,
            rows=rows,
            bad_rows=bad,
            segmented=source.columns.segment is not None,
        )

    # -- reading ---------------------------------------------------------------------------------

    @property
    def _ledger_path(self) -> Path:
        return self.folder / "ledger.json"

    def ledger(self) -> list[FileReport]:
        if not self._ledger_path.exists():
            return []
        return [FileReport(**entry) for entry in json.loads(self._ledger_path.read_text())]

    def _write_ledger(self, entries: Iterable[FileReport]) -> None:
        ordered = sorted(entries, key=lambda e: (e.source, e.file))
        atomic.write_text(self._ledger_path, json.dumps([asdict(e) for e in ordered], indent=1))
        named = {e.stem for e in ordered}
        for path in self.folder.glob("*.parquet"):
            if path.name.split(".")[0] not in named:
                path.unlink()

    @property
    def version(self) -> str:
        """Changes when the intake does."""
        if not self._ledger_path.exists():
            return ""
        return hashlib.sha256(self._ledger_path.read_bytes()).hexdigest()[:16]

    def _index(self) -> str:
        return " UNION ALL ".join(
            f"SELECT *, {literal(e.stem)} AS stem, {e.segmented} AS segmented "
            f"FROM read_parquet({literal(str(self.folder / (e.stem + '.index.parquet')))})"
            for e in self.ledger()
        )

    def units(self) -> dict[Unit, str]:
        """Every firm, and every segment of a segmented one, with a digest of the files that name it."""
        if not self.ledger():
            return {}
        with duck.connect() as con:
            rows = con.execute(
                f"WITH i AS ({self._index()}), stems AS (SELECT slug, any_value(firm) AS firm, "
                "string_agg(DISTINCT stem, ',' ORDER BY stem) AS stems FROM i GROUP BY slug), "
                "cuts AS (SELECT DISTINCT slug, segment FROM i WHERE segmented AND segment IS NOT NULL) "
                "SELECT firm, NULL, stems FROM stems UNION ALL "
                "SELECT firm, segment, stems FROM stems JOIN cuts USING (slug) ORDER BY 1, 2 NULLS FIRST"
            ).fetchall()
        return {Unit(f, s): hashlib.sha256(stems.encode()).hexdigest()[:16] for f, s, stems in rows}

    def files_for(self, unit: Unit) -> list[FileReport]:
        """The ledger's entries that hold rows of the unit's firm."""
        if not self.ledger():
            return []
        with duck.connect() as con:
            slug = literal(Unit(unit.firm).slug)
            stems = con.execute(f"SELECT DISTINCT stem FROM ({self._index()}) WHERE slug = {slug}").fetchall()
        wanted = {stem for (stem,) in stems}
        return [e for e in self.ledger() if e.stem in wanted]

    def waiting(self, project: ProjectConfig, root: Path) -> str:
        """A digest of the files that `update` would look at; empty when there are none."""
        entries = {(e.source, e.file): e for e in self.ledger()}
        found = []
        for source in project.sources:
            try:
                files = files_of(source, root)
            except UnreadableSource:
                continue
            for file in files:
                label = _label(file, root)
                if not _unchanged(entries.get((source.name, label)), source, file):
                    found.append(f"{source.name}/{label}/{file.stat().st_mtime_ns}/{source.reading_digest}")
        return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16] if found else ""

    def path(self, entry: FileReport) -> Path:
        return self.folder / f"{entry.stem}.parquet"

    def span(self) -> tuple[date, date]:
        """First and last day of the data, stray weeks at the ends left out."""
        if not self.ledger():
            raise CbmtError("nothing has been ingested yet; run `cbmt ingest` first")
        with duck.connect() as con:
            weeks = con.execute(
                "SELECT day - CAST(dayofweek(day) AS INTEGER) AS week, min(day), max(day), sum(rows) "
                f"FROM ({self._index()}) WHERE day IS NOT NULL GROUP BY week ORDER BY week"
            ).fetchall()
        if not weeks:
            raise CbmtError("no row that was ingested has a readable time; see the quarantine for why")
        counts = sorted(row[3] for row in weeks)
        median = counts[len(counts) // 2]
        # A row dated 1970 or 2099 must not stretch the study: the ends are where the data are thick.
        thick = [row for row in weeks if row[3] >= THIN_WEEK * median]
        return thick[0][1], thick[-1][2]

    def design(self, project: ProjectConfig) -> StudyDesign:
        return project.design.design(*self.span())


def _label(file: Path, root: Path) -> str:
    """How a file is called in every table: relative to the project where it lies inside it."""
    return str(file.relative_to(root)) if file.is_relative_to(root) else str(file)


def _unchanged(entry: FileReport | None, source: SourceConfig, file: Path) -> bool:
    stat = file.stat()
    seen = (stat.st_size, stat.st_mtime_ns, source.reading_digest)
    return entry is not None and (entry.size, entry.modified_ns, entry.reading) == seen


def _digest(file: Path) -> str:
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()[:16]
