"""The intake: every source file read once, judged row by row, and kept as Parquet sorted by firm.

The ledger is the commit point: readers use only the intake files it names, and it is replaced whole.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from functools import lru_cache
from pathlib import Path

import duckdb

from cbmt_core import atomic, duck
from cbmt_core.config import ProjectConfig, SourceConfig
from cbmt_core.duck import literal, parquet, path_literal
from cbmt_core.errors import CbmtError, UnreadableSource
from cbmt_core.names import Unit
from cbmt_core.transactions.csv_file import rejected_lines
from cbmt_core.transactions.reader import files_of, judged_rows

__all__ = ["FileReport", "Intake", "IntakeReport"]

THIN_WEEK = 0.05
"""A week at either end of the data with less than this share of the median week's rows is a stray."""
STRAY_GAP = 4
"""At the beginning it is a stray only when more weeks than this lie between it and the next one."""


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

    @property
    def stem(self) -> str:
        """Name of its intake files: the same bytes, source and way of reading give the same rows."""
        return f"{self.digest}-{self.reading}"


@dataclass
class IntakeReport:
    """What one pass over the sources did."""

    read: list[FileReport] = field(default_factory=list)
    unchanged: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    """Source name -> why it could not be read; its earlier data are as they were."""


@dataclass(frozen=True)
class Intake:
    """The folder of judged rows, and its ledger."""

    folder: Path

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
        with atomic.only_one(self.folder / ".lock"):
            self._forget({source.name for source in project.sources})
            for source in project.sources:
                try:
                    self._update_source(source, root, report, on_file)
                except (CbmtError, duckdb.Error, OSError, UnicodeDecodeError) as error:
                    report.failed[source.name] = str(error).strip()
        return report

    def _forget(self, sources: set[str]) -> None:
        """Drop what came from sources that the project no longer has."""
        entries = self.ledger()
        kept = [entry for entry in entries if entry.source in sources]
        if len(kept) < len(entries):
            self._write_ledger(kept)

    def _update_source(
        self,
        source: SourceConfig,
        root: Path,
        report: IntakeReport,
        on_file: Callable[[str, int, int], None] | None,
    ) -> None:
        """Rows stay when their file has gone; a file that changed stands for its new content only."""
        before = self.ledger()
        kept = {e.file: e for e in before if e.source == source.name}
        changed: dict[str, tuple[Path, os.stat_result, str]] = {}
        files = files_of(source, root)
        for file in files:
            label, seen = _label(file, root), file.stat()
            if _unchanged(kept.get(label), source, seen):
                report.unchanged += 1
                continue
            digest = _digest(file)
            if label in kept and kept[label].stem == _stem(digest, source):
                report.unchanged += 1
                kept[label] = replace(kept[label], size=seen.st_size, modified_ns=seen.st_mtime_ns)
                continue
            changed[label] = file, seen, digest
            kept.pop(label, None)
        # Known bytes are told by what is still kept: a rotated log is read again under its new name.
        known = {e.stem for e in kept.values()}
        fresh: list[FileReport] = []
        for label, (file, seen, digest) in changed.items():
            if _stem(digest, source) in known:
                report.unchanged += 1
                continue
            if on_file:
                on_file(label, len(files) - len(changed) + len(fresh), len(files))
            fresh.append(self._read_file(source, file, seen, label, digest))
            known.add(fresh[-1].stem)
        after = [e for e in before if e.source != source.name] + [*kept.values(), *fresh]
        if set(after) != set(before):
            self._write_ledger(after)
        report.read += fresh

    def _read_file(
        self, source: SourceConfig, file: Path, seen: os.stat_result, label: str, digest: str
    ) -> FileReport:
        stem = _stem(digest, source)
        spill = self.folder / ".spill"
        with duck.connect(spill) as con, atomic.replacing(self.folder / f"{stem}.parquet") as target:
            _read_rows(con, source, file, label)
            rows_sql = "FROM judged"
            if rejected := rejected_lines(con):
                firm = "NULL" if source.firm is None else literal(source.firm)
                slug = "NULL" if source.firm is None else literal(Unit(source.firm).slug)
                rows_sql = f"""
                    SELECT judged.* REPLACE (judged.row + coalesce(shift, 0) AS row)
                    FROM judged ASOF LEFT JOIN gap ON judged.row >= gap.row
                    UNION ALL BY NAME SELECT {literal(source.name)} AS source, {literal(label)} AS file, row,
                        CAST({slug} AS VARCHAR) AS slug, CAST({firm} AS VARCHAR) AS firm,
                        'unparseable line' AS reason, detail FROM rejected"""
            con.execute(
                f"COPY (FROM ({rows_sql}) ORDER BY slug, row) TO {literal(str(target))} "
                "(FORMAT parquet, COMPRESSION zstd)"
            )
            rows, bad = con.execute(f"SELECT count(*), count(reason) FROM {parquet([target])}").fetchall()[0]
            if rejected == rows > 0:
                ((first,),) = con.execute("SELECT detail FROM rejected ORDER BY row LIMIT 1").fetchall()
                raise UnreadableSource(
                    f"source {source.name!r}: no line of {file} can be read; the first: {first!r}. "
                    "Are its delimiter and its encoding those of the source?"
                )
            with atomic.replacing(self.folder / f"{stem}.index.parquet") as index:
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
        )

    # -- reading ---------------------------------------------------------------------------------

    def bad_rows(self, entry: FileReport) -> dict[str, int]:
        """Reasons why rows of a file cannot be used, with their numbers, the most frequent first."""
        with duck.connect() as con:
            rows = con.execute(
                f"SELECT reason, count(*) AS n FROM {parquet([self.path(entry)])} WHERE reason IS NOT NULL "
                "GROUP BY reason ORDER BY n DESC, reason"
            ).fetchall()
        return dict(rows)

    @property
    def _ledger_path(self) -> Path:
        return self.folder / "ledger.json"

    def ledger(self) -> list[FileReport]:
        """The files that were read, by source and name."""
        return list(self._read_ledger()[0])

    def _read_ledger(self) -> tuple[tuple[FileReport, ...], str]:
        """The ledger's entries and the version of the rows. It is asked for often, and replaced whole."""
        try:
            seen = self._ledger_path.stat()
        except FileNotFoundError:
            return (), ""
        return _parsed_ledger(self._ledger_path, seen.st_ino, seen.st_mtime_ns, seen.st_size)

    def _write_ledger(self, entries: Iterable[FileReport]) -> None:
        ordered = sorted(entries, key=lambda e: (e.source, e.file))
        # Files of the ledger before this one stay for readers that hold it.
        named = {e.stem for e in [*self.ledger(), *ordered]}
        atomic.write_text(self._ledger_path, json.dumps([asdict(e) for e in ordered], indent=1))
        for path in self.folder.glob("*.parquet"):
            if path.name.split(".")[0] not in named:
                path.unlink()

    @property
    def version(self) -> str:
        """Changes when the rows do; empty before the first."""
        return self._read_ledger()[1]

    def index(self) -> str:
        """The relation of (slug, firm, segment, day, rows, filename) over all files of the ledger."""
        paths = [self.folder / f"{e.stem}.index.parquet" for e in self.ledger()]
        return (
            f"read_parquet([{', '.join(map(path_literal, paths))}], hive_partitioning=false, filename=true)"
        )

    def units(self) -> dict[Unit, str]:
        """Every firm, and every segment of a segmented one, with a digest of the files that name it."""
        return dict(_units_of(self, self.version))

    def files_for(self, unit: Unit) -> list[FileReport]:
        """The ledger's entries that hold rows of the unit's firm."""
        stems = _stems_of_firms(self, self.version).get(Unit(unit.firm).slug, frozenset())
        return [e for e in self.ledger() if e.stem in stems]

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
                seen = file.stat()
                if not _unchanged(entries.get((source.name, label)), source, seen):
                    found.append(f"{source.name}/{label}/{seen.st_mtime_ns}/{source.reading_digest}")
        return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16] if found else ""

    def path(self, entry: FileReport) -> Path:
        return self.folder / f"{entry.stem}.parquet"

    def span(self) -> tuple[date, date]:
        """First and last day of the data, stray weeks at the ends left out.

        Kept in a file beside the ledger: every run of every firm asks, and the answer rests on all files.
        """
        version = self.version
        if not version:
            raise CbmtError("nothing has been ingested yet; run `cbmt ingest` first")
        kept = self.folder / "span.json"
        try:
            seen = json.loads(kept.read_text())
        except FileNotFoundError:
            seen = {}
        if seen.get("version") != version:
            first, last = self._span()
            seen = {"version": version, "first": first.isoformat(), "last": last.isoformat()}
            atomic.write_text(kept, json.dumps(seen))
        return date.fromisoformat(seen["first"]), date.fromisoformat(seen["last"])

    def _span(self) -> tuple[date, date]:
        with duck.connect() as con:
            weeks = con.execute(
                "SELECT day - CAST(dayofweek(day) AS INTEGER) AS week, min(day), max(day), sum(rows) "
                f"FROM {self.index()} WHERE day IS NOT NULL GROUP BY week ORDER BY week"
            ).fetchall()
        if not weeks:
            raise CbmtError("no row that was ingested has a readable time; see the quarantine for why")
        counts = sorted(row[3] for row in weeks)
        thin = THIN_WEEK * counts[len(counts) // 2]
        first, *_, last = [k for k, row in enumerate(weeks) if row[3] >= thin] * 2
        # A row dated 1970 must not stretch the study, but the slow first weeks of a young firm belong to it.
        while first and (weeks[first][0] - weeks[first - 1][0]).days <= 7 * STRAY_GAP:
            first -= 1
        return weeks[first][1], weeks[last][2]


def _label(file: Path, root: Path) -> str:
    """How a file is called in every table: relative to the project where it lies inside it."""
    return str(file.relative_to(root)) if file.is_relative_to(root) else str(file)


def _unchanged(entry: FileReport | None, source: SourceConfig, seen: os.stat_result) -> bool:
    state = (seen.st_size, seen.st_mtime_ns, source.reading_digest)
    return entry is not None and (entry.size, entry.modified_ns, entry.reading) == state


def _stem(digest: str, source: SourceConfig) -> str:
    return f"{digest}-{source.reading_digest}"


def _stem_of(index: str) -> str:
    return Path(index).name.split(".")[0]


@lru_cache(maxsize=4)
def _parsed_ledger(path: Path, inode: int, modified: int, size: int) -> tuple[tuple[FileReport, ...], str]:
    entries = tuple(FileReport(**entry) for entry in json.loads(path.read_text()))
    names = sorted((e.source, e.file, e.stem) for e in entries)
    return entries, hashlib.sha256(json.dumps(names).encode()).hexdigest()[:16] if names else ""


@lru_cache(maxsize=4)
def _units_of(intake: Intake, version: str) -> dict[Unit, str]:
    """`Intake.units`, once for each version: with many firms this is asked for often."""
    if not version:
        return {}
    with duck.connect() as con:
        rows = con.execute(
            f"SELECT slug, any_value(firm), list(DISTINCT filename), "
            f"list(DISTINCT segment) FILTER (segment IS NOT NULL) FROM {intake.index()} GROUP BY slug"
        ).fetchall()
    found: dict[Unit, str] = {}
    for _, firm, files, segments in rows:
        digest = hashlib.sha256(",".join(sorted(map(_stem_of, files))).encode()).hexdigest()[:16]
        found |= {Unit(firm, segment): digest for segment in [None, *(segments or [])]}
    return dict(sorted(found.items(), key=lambda item: (item[0].firm, item[0].segment or "")))


@lru_cache(maxsize=4)
def _stems_of_firms(intake: Intake, version: str) -> dict[str, frozenset[str]]:
    """Slug of a firm -> stems of the files that name it. With many firms this is asked for often."""
    if not version:
        return {}
    with duck.connect() as con:
        rows = con.execute(f"SELECT slug, list(DISTINCT filename) FROM {intake.index()} GROUP BY slug")
        return {slug: frozenset(map(_stem_of, files)) for slug, files in rows.fetchall()}


def _read_rows(con: duckdb.DuckDBPyConnection, source: SourceConfig, file: Path, label: str) -> None:
    """Make the table `judged`. A CSV file that breaks the standard, say in its line ends, is read leniently."""
    try:
        try:
            con.execute(f"CREATE TEMP TABLE judged AS {judged_rows(con, source, file, label)}")
        except duckdb.InvalidInputException as error:
            if "strict_mode" not in str(error):
                raise
            con.execute("DROP TABLE IF EXISTS _rejects; DROP TABLE IF EXISTS _reject_scans")
            con.execute(f"CREATE TEMP TABLE judged AS {judged_rows(con, source, file, label, strict=False)}")
    except duckdb.Error as error:
        raise UnreadableSource(f"source {source.name!r}: {file} cannot be read: {error}") from error


def _digest(file: Path) -> str:
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()[:16]
