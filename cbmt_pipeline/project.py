"""A project on disk: its configuration, its folders, its weeks and origins."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from urllib.parse import quote

import tomlkit

from cbmt_core import atomic
from cbmt_core.config import ProjectConfig
from cbmt_core.design import StudyDesign
from cbmt_core.errors import CbmtError, ConfigError, HistoryTooShort
from cbmt_core.models import MODELS, networks
from cbmt_core.names import Unit
from cbmt_core.timeline import Origin, Purpose, Timeline
from cbmt_core.transactions import Deliveries, Intake, deliveries, firm_timeline, project_timeline
from cbmt_pipeline.lake import Lake
from cbmt_pipeline.manifest import Manifests

__all__ = ["CONFIG_FILE", "LAKE_SCHEMA", "SEED", "Link", "Project"]

CONFIG_FILE = "cbmt.toml"
SEED = 20260626
"""Seed of every fit unless a run says otherwise."""
LAKE_SCHEMA = 2
"""Layout version of the lake. 1 (0.4 and earlier) had no origins."""


@dataclass(frozen=True)
class Link:
    """A link to a page."""

    url: str


@dataclass(frozen=True)
class Project:
    """Everything below one folder that holds a `cbmt.toml`."""

    root: Path

    @cached_property
    def config(self) -> ProjectConfig:
        return ProjectConfig.load(self.root / CONFIG_FILE)

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def intake(self) -> Intake:
        return Intake(self.data / "lake" / "intake")

    @property
    def lake(self) -> Lake:
        return Lake(self.data / "lake")

    @property
    def manifests(self) -> Manifests:
        return Manifests(self.data / "lake" / "manifest")

    @property
    def warehouse(self) -> Path:
        return self.data / "cbmt.duckdb"

    @property
    def report(self) -> Path:
        """The report's first page."""
        return self.data / "report" / "index.html"

    def page_of(self, unit: Unit) -> Path:
        """A firm's page of the report; a project of one firm has one page."""
        alone = len(self.intake.units()) == 1
        return self.report if alone else self.report.parent / "firms" / f"{unit.slug}.html"

    def link(self, page: Path) -> Link | Path:
        """A page of the report as people open it: by its address where cbmt.toml states one, else by its path."""
        if not self.config.report.address:
            return page
        place = quote(page.relative_to(self.report.parent).as_posix())
        return Link(f"{self.config.report.address.rstrip('/')}/{place}")

    @property
    def dagster_home(self) -> Path:
        return self.data / "dagster"

    @property
    def spill(self) -> Path:
        return self.data / "spill"

    @property
    def task_locks(self) -> Path:
        """Folder of lock files, one for each task in progress."""
        return self.data / "lake" / "lock"

    def committing(self) -> AbstractContextManager[None]:
        """Lock held while outputs are renamed into place: shared by processes, but excluded while the lake is
        published."""
        return atomic.only_one(self.data / "lake" / ".commit.lock", or_shared=True)

    def publishing(self) -> AbstractContextManager[None]:
        """Lock held while the lake is published: no process renames outputs into place."""
        return atomic.only_one(self.data / "lake" / ".commit.lock")

    def with_profile(self, profile: str) -> Project:
        """The project with another network profile than `cbmt.toml` states."""
        other = Project(self.root)
        networks = self.config.networks.model_copy(update={"profile": profile})
        other.__dict__["config"] = self.config.model_copy(update={"networks": networks})
        return other

    # -- weeks and origins -----------------------------------------------------------------------

    def timeline(self) -> Timeline:
        """The weeks of the ingested data."""
        try:
            return project_timeline(self.intake, self.config)
        except HistoryTooShort as error:
            raise error.because(self.intake.unreadable_times()) from None

    def timeline_of(self, unit: Unit) -> Timeline:
        """The weeks that one firm has delivered."""
        return firm_timeline(self.intake, self.config, unit)

    def deliveries(self) -> Deliveries:
        """Which firms have delivered which weeks."""
        return deliveries(self.intake, self.config.delivery)

    def study(self) -> StudyDesign:
        """The pinned study, or the one that would be made now. Raises HistoryTooShort where there is too little
        data."""
        return self.config.study_design(self.timeline())

    def why_no_study(self) -> str:
        """Why there is no study yet; empty where there is one."""
        try:
            self.study()
        except HistoryTooShort as error:
            return str(error.because(self.intake.unreadable_times()))
        return ""

    def origins(self, purpose: Purpose) -> list[Origin]:
        """The present origins of a purpose, oldest first; none where the history is too short."""
        if purpose == "live":
            return self.timeline().live_origins()
        if purpose == "backtest":
            return self.timeline().backtest_origins()
        try:
            return [self.study().forecast_origin]
        except HistoryTooShort:
            return []

    def pin_study(self) -> None:
        """Write the study and its washout into `cbmt.toml` unless they are there, so that new weeks do not restart
        it."""
        if not self.config.study:
            self._write_study(self.study(), replace=False)

    def move_study(self) -> StudyDesign:
        """Pin the study again, so that its holdout ends with the last complete week."""
        moved = StudyDesign.over(self.timeline(), holdout_weeks=self.config.design.holdout_weeks)
        self._write_study(moved, replace=True)
        return moved

    def _write_study(self, study: StudyDesign, *, replace: bool) -> None:
        path = self.root / CONFIG_FILE
        with atomic.only_one(self.data / ".pin.lock"):
            text = tomlkit.parse(path.read_text(encoding="utf-8"))
            if replace or "study" not in text:
                text["study"] = _study_section(study.origin, study.holdout_weeks)
                text.setdefault("design", tomlkit.table()).setdefault("washout_weeks", study.washout_weeks)
                atomic.write_text(path, tomlkit.dumps(text))
        self.__dict__.pop("config", None)

    # -- models ----------------------------------------------------------------------------------

    def live_models(self, named: Sequence[str] | None = None) -> list[str]:
        """Models of live forecasts and backtests: those named, or the project's."""
        models = list(self.config.forecast.models if named is None else named)
        if unknown := [name for name in models if name not in MODELS]:
            raise ConfigError(
                f"not models: {', '.join(unknown)} ([forecast] models in {CONFIG_FILE}); "
                f"there are {', '.join(MODELS)}"
            )
        return models

    def networks(self, named: Sequence[str] | None = None) -> list[str]:
        """The networks to train: those named, or the project's, or all."""
        models = self.config.networks.models if named is None else named
        models = networks() if models is None else list(models)
        if unknown := [name for name in models if name not in networks()]:
            raise ConfigError(f"not networks: {', '.join(unknown)}; there are {', '.join(networks())}")
        return models

    def model_folder(self, origin: date, unit: Unit, model: str) -> Path:
        """Where a firm's fitted network is kept."""
        return self._networks(origin, unit) / model

    def search_lock(self, origin: date, unit: Unit) -> Path:
        """The file that is locked while a firm's networks are tuned."""
        return self._networks(origin, unit) / ".lock"

    def search_storage(self, origin: date, unit: Unit) -> str | Path:
        """Where a firm's searches are kept: a database for all, or a journal file of its own."""
        return self.config.networks.storage or self._networks(origin, unit) / "search.journal"

    def _networks(self, origin: date, unit: Unit) -> Path:
        return self.data / "models" / f"origin={origin}" / f"firm={unit.slug}"

    # -- layout ----------------------------------------------------------------------------------

    @property
    def _schema_file(self) -> Path:
        return self.data / "lake" / "schema.json"

    def lake_schema(self) -> int | None:
        """Layout version of the lake; None before anything was ingested."""
        if self._schema_file.exists():
            return int(json.loads(self._schema_file.read_text())["schema"])
        return 1 if (self.data / "lake" / "intake" / "ledger.json").exists() else None

    def mark_schema(self) -> None:
        atomic.write_text(self._schema_file, json.dumps({"schema": LAKE_SCHEMA}))

    def check_schema(self) -> None:
        """Raise where the lake was written by another version of this program."""
        found = self.lake_schema()
        if found is None:
            self.mark_schema()
        elif found < LAKE_SCHEMA:
            raise CbmtError(
                f"{self.data} was made by version 0.4 or earlier: run `cbmt upgrade`, which keeps what was "
                "ingested and the networks' searches, and makes the tables again"
            )
        elif found > LAKE_SCHEMA:
            raise CbmtError(
                f"{self.data} was made by a newer version (lake layout {found}, this one knows {LAKE_SCHEMA}): "
                "install that version"
            )


def _study_section(origin: date, holdout_weeks: int) -> tomlkit.items.Table:
    section = tomlkit.table()
    section.comment("pinned when first made: `cbmt study --refresh` moves it to the newest weeks")
    section["origin"] = origin
    section["holdout_weeks"] = holdout_weeks
    return section
