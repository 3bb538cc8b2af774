"""Intake: read every source file once, check each row, and store the rows as Parquet sorted by firm.

The ledger is the commit point: readers use only the intake files it names, and it is replaced atomically.
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
from cbmt_core.config import ProjectConfig, QualityConfig, SourceConfig
from cbmt_core.duck import parquet, path_literal
from cbmt_core.errors import CbmtError, UnreadableSource
from cbmt_core.names import Unit
from cbmt_core.timeline import week_sql
from cbmt_core.transactions.intake_file import FileReport, file_digest, read_source_file, stem_of
from cbmt_core.transactions.reader import files_of
from cbmt_core.transactions.reasons import MISSING_TIME, STRAY_DATE, UNPARSEABLE_TIME
from cbmt_core.transactions.refusal import refuse_unusable
from cbmt_core.transactions.span import SPAN_RULES, span_of

__all__ = ["Intake", "IntakeReport"]

FEW_UNREADABLE = 0.01
"""A smaller share of rows whose time cannot be read does not make a history too short."""


@dataclass
class IntakeReport:
    """Result of one pass over the sources."""

    read: list[FileReport] = field(default_factory=list)
    unchanged: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    """Source name -> why it could not be read; its earlier data are as they were."""


@dataclass(frozen=True)
class Intake:
    """The folder of checked rows, and its ledger."""

    folder: Path

    # -- writing ---------------------------------------------------------------------------------

    def update(
        self,
        project: ProjectConfig,
        root: Path,
        on_file: Callable[[str, int, int], None] | None = None,
    ) -> IntakeReport:
        """Read the files that are new or changed. A source is ingested completely or not at all.

        `on_file(file, done, total)` is called before each file is read.
        """
        report = IntakeReport()
        with atomic.only_one(self.folder / ".lock"):
            atomic.sweep_below(self.folder)
            self._forget({source.name for source in project.sources})
            for source in project.sources:
                try:
                    self._update_source(source, root, report, project.quality, on_file)
                except (CbmtError, duckdb.Error, OSError, UnicodeDecodeError) as error:
                    report.failed[source.name] = str(error).strip()
        return report

    def _forget(self, sources: set[str]) -> None:
        """Drop the rows of sources that the project no longer has."""
        entries = self.ledger()
        kept = [entry for entry in entries if entry.source in sources]
        if len(kept) < len(entries):
            self._write_ledger(kept)

    def _update_source(
        self,
        source: SourceConfig,
        root: Path,
        report: IntakeReport,
        quality: QualityConfig,
        on_file: Callable[[str, int, int], None] | None,
    ) -> None:
        """Read one source. Rows stay when their file is deleted, unless the source has another path now; the rows of
        a changed file are replaced."""
        before = self.ledger()
        kept = {e.file: e for e in before if e.source == source.name}
        changed: dict[str, tuple[Path, os.stat_result, str]] = {}
        files = files_of(source, root)
        labels = {_label(file, root) for file in files}
        kept = {
            label: entry
            for label, entry in kept.items()
            if label in labels or entry.path in ("", source.path)
        }
        for file in files:
            label, seen = _label(file, root), file.stat()
            if _unchanged(kept.get(label), source, seen):
                report.unchanged += 1
                continue
            digest = file_digest(file)
            if label in kept and kept[label].stem == stem_of(digest, source):
                report.unchanged += 1
                kept[label] = replace(kept[label], size=seen.st_size, modified_ns=seen.st_mtime_ns)
                continue
            changed[label] = file, seen, digest
            kept.pop(label, None)
        # Only files still in the ledger count as known: a rotated log is read again under its new name.
        known = {e.stem for e in kept.values()}
        fresh: list[FileReport] = []
        for label, (file, seen, digest) in changed.items():
            if stem_of(digest, source) in known:
                report.unchanged += 1
                continue
            if on_file:
                on_file(label, len(files) - len(changed) + len(fresh), len(files))
            fresh.append(read_source_file(self.folder, source, file, seen, label, digest, quality))
            known.add(fresh[-1].stem)
        if fresh:
            # Judged by source, not by file: one bad firm among the files of a folder must not stop the others.
            with duck.connect() as con:
                rows = parquet(self.path(entry) for entry in [*kept.values(), *fresh])
                where = fresh[0].file if len(files) == 1 else source.path
                refuse_unusable(con, rows, source.name, where, quality.max_unusable_share)
        after = [e for e in before if e.source != source.name] + [*kept.values(), *fresh]
        if set(after) != set(before):
            self._write_ledger(after)
        report.read += fresh

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
        """The ledger's entries and the version of the rows, cached because they are needed often."""
        try:
            seen = self._ledger_path.stat()
        except FileNotFoundError:
            return (), ""
        return _parsed_ledger(self._ledger_path, seen.st_ino, seen.st_mtime_ns, seen.st_size)

    def _write_ledger(self, entries: Iterable[FileReport]) -> None:
        ordered = sorted(entries, key=lambda e: (e.source, e.file))
        # Files of the previous ledger stay, for readers that still use it.
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

    def rows_of(self, unit: Unit) -> int:
        """Rows that name the unit's firm."""
        return _rows_of_firms(self, self.version).get(Unit(unit.firm).slug, 0)

    def waiting(self, project: ProjectConfig, root: Path) -> str:
        """A digest of the files that `update` would read; empty if there are none."""
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

        Cached in a file beside the ledger, because every run of every firm needs it and it depends on all files.
        """
        version = self.version
        if not version:
            raise CbmtError("nothing has been ingested yet; run `cbmt ingest` first")
        kept = self.folder / "span.json"
        try:
            seen = json.loads(kept.read_text())
        except FileNotFoundError:
            seen = {}
        mark = f"{SPAN_RULES}/{version}"
        if seen.get("version") != mark:
            first, last = self._span()
            seen = {"version": mark, "first": first.isoformat(), "last": last.isoformat()}
            atomic.write_text(kept, json.dumps(seen))
        return date.fromisoformat(seen["first"]), date.fromisoformat(seen["last"])

    def _span(self) -> tuple[date, date]:
        with duck.connect() as con:
            weeks = con.execute(
                f"WITH of_firm AS (SELECT {week_sql('day')} AS week, slug, min(day) AS first, max(day) AS last, "
                f"sum(rows) AS rows FROM {self.index()} WHERE day IS NOT NULL GROUP BY ALL), "
                "usual AS (SELECT slug, median(rows) AS usual FROM of_firm GROUP BY slug) "
                "SELECT week, min(first), max(last), sum(rows), coalesce(sum(usual), 'inf'::DOUBLE) FROM of_firm "
                "LEFT JOIN usual USING (slug) GROUP BY week ORDER BY week"
            ).fetchall()
        if not weeks:
            raise CbmtError(f"no row that was ingested has a readable time{self.unreadable_times()}")
        return span_of(weeks)

    def unreadable_times(self) -> str:
        """How many rows have a time that cannot be read, in words; empty where they are too few to matter."""
        return _unreadable_times_of(self, self.version)


def _label(file: Path, root: Path) -> str:
    """The name of a file in every table: relative to the project if it lies inside it."""
    return str(file.relative_to(root)) if file.is_relative_to(root) else str(file)


def _unchanged(entry: FileReport | None, source: SourceConfig, seen: os.stat_result) -> bool:
    state = (seen.st_size, seen.st_mtime_ns, source.reading_digest)
    return entry is not None and (entry.size, entry.modified_ns, entry.reading) == state


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


@lru_cache(maxsize=4)
def _rows_of_firms(intake: Intake, version: str) -> dict[str, int]:
    """Slug of a firm -> number of its rows."""
    if not version:
        return {}
    with duck.connect() as con:
        rows = con.execute(f"SELECT slug, CAST(sum(rows) AS BIGINT) FROM {intake.index()} GROUP BY slug")
        return dict(rows.fetchall())


@lru_cache(maxsize=4)
def _unreadable_times_of(intake: Intake, version: str) -> str:
    if not version:
        return ""
    with duck.connect() as con:
        total, unread, sample = con.execute(
            f"SELECT count(*), count(*) FILTER (reason IN ('{UNPARSEABLE_TIME}', '{STRAY_DATE}', '{MISSING_TIME}')), "
            f"min_by(detail, row) FILTER (reason IN ('{UNPARSEABLE_TIME}', '{STRAY_DATE}', '{MISSING_TIME}')) "
            f"FROM {parquet(map(intake.path, intake.ledger()))}"
        ).fetchall()[0]
    if unread < FEW_UNREADABLE * total or not unread:
        return ""
    return (
        f". The time of {unread:,} of {total:,} ingested rows cannot be read, such as {sample}: state their format "
        "with --time-format, or time_format of the source in cbmt.toml"
    )
