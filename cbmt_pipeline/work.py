"""Work and Made: a step's inputs (up to the origin) and its results (tables and metadata)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd

from cbmt_core.design import StudyDesign
from cbmt_core.errors import BadFirmData
from cbmt_core.evaluation import Relations
from cbmt_core.names import Unit
from cbmt_core.panel import FirmPanel
from cbmt_core.quality import Verdict
from cbmt_core.schema import TABLES
from cbmt_core.stored_panel import read_panel
from cbmt_core.timeline import Origin
from cbmt_pipeline.plan import Plan, State, Step
from cbmt_pipeline.project import SEED, Project

__all__ = ["Made", "Options", "Picture", "Records", "Work"]


@dataclass(frozen=True)
class Options:
    """Settings of a run. A step uses those that its `options` name."""

    models: tuple[str, ...] | None = None
    """Names of models; all that the step makes unless stated."""
    profile: str | None = None
    """smoke, demo, quick, standard or paper: how much work networks may be; cbmt.toml's unless stated."""
    seed: int = SEED
    """Seed of every fit."""
    fresh: bool = False
    """Make again what is up to date, and delete the trials of earlier searches."""


@dataclass(frozen=True)
class Picture:
    """A PNG shown with the materialisation."""

    png: bytes
    alt: str


@dataclass(frozen=True)
class Records:
    """A small table shown with the materialisation."""

    rows: list[dict[str, Any]]


@dataclass(frozen=True)
class Made:
    """The result of a step's `make`: tables, and facts about them."""

    tables: Mapping[str, pd.DataFrame | str] = field(default_factory=dict)
    """Table -> rows, as a frame or as the name of a relation on the work's connection."""
    items: Mapping[str, str] = field(default_factory=dict)
    """Items made -> what they were made with. An item that failed is left out, so that the next run tries again."""
    files: Mapping[Path, Path] = field(default_factory=dict)
    """Further files: final path -> temporary path."""
    gone: tuple[Path, ...] = ()
    """Files to remove before the new ones are renamed into place."""
    as_of: Mapping[str, str] = field(default_factory=dict)
    """As in Manifest."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Numbers, texts, Picture or Records."""
    attempted: tuple[str, ...] | None = None
    """Items that were tried, successful or not; all that were asked for unless stated."""
    verdicts: tuple[Verdict, ...] = ()
    """Verdicts of the data checks."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """As in Manifest."""
    warnings: Mapping[str, str] = field(default_factory=dict)
    """As in Manifest."""
    rejected: str = ""
    """Why the outputs cannot be trusted: the tables given are stored, but the step counts as not done."""


@dataclass(eq=False)
class Work:
    """The inputs of a step's code."""

    project: Project
    plan: Plan
    state: State
    step: Step
    con: duckdb.DuckDBPyConnection
    origin: Origin | None
    unit: Unit | None
    items: tuple[str, ...]
    options: Options
    tell: Callable[[str, float], None]
    """Takes what is being done now, and the share of it that is done."""
    log: Callable[[str], None]
    prepared: Any = None
    """What `Step.prepare` has left for `Step.make`."""

    @property
    def at(self) -> Origin:
        assert self.origin is not None, f"{self.step.name} has no origin"
        return self.origin

    @property
    def firm(self) -> Unit:
        assert self.unit is not None, f"{self.step.name} is made across firms"
        return self.unit

    @property
    def study(self) -> StudyDesign:
        return self.project.study()

    def panel(
        self, unit: Unit | None = None, *, customers: bool = False, until: date | None = None
    ) -> FirmPanel:
        """The firm's panel up to the origin: nothing later is in it."""
        unit = unit or self.firm
        lake = self.project.lake
        if not lake.folder("cohort_week", unit=unit).exists():
            raise BadFirmData(unit.name, "its cohort tables do not exist; materialise them first")
        panel = read_panel(
            self.con,
            unit.name,
            self.project.timeline(),
            cohort_week=lake.relation(TABLES["cohort_week"], unit=unit),
            orders=lake.relation(TABLES["transactions"], unit=unit) if customers else None,
        )
        week = until or self.at.week
        if panel.origin < week:
            raise BadFirmData(unit.name, f"it has delivered weeks up to {panel.origin}, not {week}")
        return panel.until(week)

    def relations(self) -> Relations:
        """The relations that the step may read: data up to the origin (or through its target), and forecasts made
        there. Firms that have not delivered the weeks needed at the origin are left out: they would look as if they
        had no sales.
        """
        lake, at = self.project.lake, self.at
        last = at.target.last if self.step.sees_target else at.week
        data = {
            name: f"(SELECT * FROM {lake.relation(TABLES[name])} WHERE week <= DATE '{last}' AND {self.delivered()})"
            for name in ("firm_week", "cohort_week")
        }
        forecasts = {
            name: f"(SELECT * FROM {lake.relation(TABLES[name], at.week)} WHERE purpose = '{at.purpose}')"
            for name in ("model_fit", "forecast_week", "forecast_cohort_week", "forecast_band")
        }
        return Relations(firm=self.firms(), **data, **forecasts)

    def delivered(self) -> str:
        """SQL condition: the firm's tables extend to the last week needed at the origin."""
        weeks = self.project.lake.relation(TABLES["firm_week"])
        self.con.execute(
            f"CREATE TEMP TABLE IF NOT EXISTS _delivered AS SELECT firm FROM {weeks} "
            f"WHERE week = DATE '{self.at.needed_week}'"
        )
        return "firm IN (FROM _delivered)"

    def firms(self) -> str:
        """The relation `firm`, limited to firms that have delivered the weeks needed at the origin."""
        return f"(SELECT * FROM {self.project.lake.relation(TABLES['firm'])} WHERE {self.delivered()})"

    def frame(self, table: str) -> pd.DataFrame:
        """A table made across firms at the same origin."""
        spec = self.plan.tables[table]
        return self.con.execute(f"FROM {self.project.lake.relation(spec, self.at.week)}").df()
