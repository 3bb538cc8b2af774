"""Snapshot: the live origin and the study that are published together, and the state of each firm."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

from cbmt_core.duck import literal
from cbmt_core.schema import STUDY, Table
from cbmt_core.timeline import Origin, Purpose
from cbmt_pipeline.plan import Plan, State
from cbmt_pipeline.project import LAKE_SCHEMA, Project

__all__ = ["Snapshot", "firm_states"]

FORECASTS_REST_ON = ("forecast_choice", "bridge")
"""Steps across firms without which a live origin is not published; failures of other steps do not delay it."""
BEFORE = "before"
"""Name under which the file published before is attached."""


@dataclass(eq=False)
class Snapshot:
    """The part of a project's lake that can be published together.

    A live origin is published once every step across firms is up to date for it; until then the vintage before is the
    newest. The study's tables are taken from the lake while all are up to date, and otherwise from the file published
    before.
    """

    project: Project
    plan: Plan
    con: duckdb.DuckDBPyConnection
    scratch: ExitStack = field(default_factory=ExitStack)
    """Removes temporary files when closed."""

    @cached_property
    def state(self) -> State:
        return State(self.project, self.plan)

    @cached_property
    def unfinished_origin(self) -> Origin | None:
        """The live origin, while steps across firms have not been made for it and an earlier one can be shown."""
        return next(
            (
                at
                for at in self.project.origins("live")
                if not self._is_complete(at) and self._has_earlier(at)
            ),
            None,
        )

    def _has_earlier(self, origin: Origin) -> bool:
        vintages = (self.project.lake.root / "manifest" / "live_forecasts").glob("origin=*")
        return any(folder.name < f"origin={origin.week}" for folder in vintages)

    @cached_property
    def study_is_complete(self) -> bool:
        return all(self._is_complete(at, or_never_made=True) for at in self.project.origins("study"))

    def _is_complete(self, origin: Origin, *, or_never_made: bool = False) -> bool:
        purpose: Purpose = origin.purpose
        for step in self.plan:
            if step.by_firm or purpose not in step.purposes or not step.writes:
                continue
            if purpose == "live" and step.name not in FORECASTS_REST_ON:
                continue
            if or_never_made and self.state.manifest(step, origin, None) is None:
                continue
            if not self.state.is_current(step, origin, None):
                return False
        return True

    def attach_before(self) -> None:
        """Attach the file published before, where the study's tables come from it."""
        path = self.project.warehouse
        if self.study_is_complete or not path.exists():
            return
        attach = "ATTACH {} AS " + BEFORE + " (READ_ONLY)"
        try:
            self.con.execute(attach.format(literal(str(path))))
        except duckdb.IOException:
            # An analyst has it open for writing; a copy can still be read.
            copy = Path(self.scratch.enter_context(TemporaryDirectory())) / "before.duckdb"
            shutil.copyfile(path, copy)
            self.con.execute(attach.format(literal(str(copy))))
        if not self._before_serves():
            self.con.execute(f"DETACH {BEFORE}")

    def _before_serves(self) -> bool:
        """Whether the file published before has the same study and the same layout."""
        try:
            [(layout,)] = self.con.execute(f"SELECT layout FROM {BEFORE}.snapshot").fetchall()
            held = self.con.execute(
                f"SELECT first_week, washout_weeks, training_weeks, holdout_weeks FROM {BEFORE}.{STUDY.name}"
            ).fetchall()
        except duckdb.Error:
            return False
        study = self.project.study()
        present = (study.first_week, study.washout_weeks, study.training_weeks, study.holdout_weeks)
        return layout == LAKE_SCHEMA and held == [present]

    @cached_property
    def study_from_before(self) -> bool:
        return bool(
            self.con.execute(f"SELECT 1 FROM duckdb_databases() WHERE database_name = '{BEFORE}'").fetchall()
        )

    def study_rows(self, table: Table) -> str | None:
        """The study's rows of a table from the file published before; None where the lake's are to be taken."""
        if self.study_is_complete:
            return None
        if not self.study_from_before or not self._known_before(table):
            return table.empty()
        where = " WHERE purpose = 'study'" if "purpose" in table.column_names else ""
        return f"(SELECT * FROM {BEFORE}.{table.relation}{where})"

    def _known_before(self, table: Table) -> bool:
        schema, _, name = table.relation.rpartition(".")
        held = self.con.execute(
            "SELECT column_name FROM duckdb_columns() WHERE database_name = ? AND schema_name = ? AND table_name = ?",
            [BEFORE, schema or "main", name],
        ).fetchall()
        return {column for (column,) in held} == set(table.column_names)

    # -- what the file says of itself -------------------------------------------------------------

    def row(self, states: list[tuple[object, ...]]) -> tuple[object, ...]:
        """The row of the table `snapshot`."""
        project = self.project
        ledger = project.intake.ledger()
        now = datetime.now(UTC).replace(tzinfo=None, microsecond=0)
        studied: datetime | None = now if project.origins("study") else None
        if self.study_from_before:
            [(studied,)] = self.con.execute(f"SELECT study_published_at FROM {BEFORE}.snapshot").fetchall()
        elif not self.study_is_complete:
            studied = None
        last = self.project.deliveries().last_week
        [(live,)] = self.con.execute(
            "SELECT max(origin) FROM forecast_choice WHERE purpose = 'live'"
        ).fetchall()
        current = sum(state[2] == "current" for state in states)
        rows = sum(entry.rows for entry in ledger)
        return (
            now, version("cbmt-pipeline"), LAKE_SCHEMA, project.intake.version, len(ledger), rows, len(states),
            current, last, live, studied,
        )  # fmt: skip

    def firm_states(self) -> list[tuple[object, ...]]:
        """Rows of the table `firm_state`."""
        newest = self.con.execute(
            "SELECT firm, max(origin) FROM forecast_choice WHERE purpose = 'live' GROUP BY firm"
        ).fetchall()
        return firm_states(self.state, dict(newest))


def firm_states(state: State, newest: Mapping[str, date]) -> list[tuple[object, ...]]:
    """Rows of the table `firm_state`: every firm that a source names, also those without any tables.

    Args:
        newest: firm -> origin of its newest live forecast.
    """
    project, step = state.project, state.plan["firm_data"]
    made, found, live = state.of_firms(step, None), project.deliveries(), project.origins("live")
    rows = []
    for unit in project.intake.units():
        tables, delivery, origin = made.get(unit), found.firms.get(unit.firm), newest.get(unit.name)
        kind, reason = "current", ""
        if tables is not None and tables.rejected:
            kind, reason = "untrusted", tables.rejected
        elif tables is None or not state.is_current(step, None, unit):
            kind, reason = "waiting", "its tables are to be made from newer orders: cbmt run"
        elif delivery and unit.firm in found.stopped:
            kind, reason = "stopped", f"nothing was delivered after {delivery.through}"
        elif delivery and unit.firm in found.late:
            kind = "late"
            reason = f"delivered through {delivery.through}; the week of {found.last_week} is missing"
        elif live and origin != live[0].week:
            kind, reason = "waiting", f"its forecast of {live[0].week} is to be made: cbmt run"
        last = date.fromisoformat(max(tables.as_of)) if tables and tables.as_of else None
        behind = (found.last_week - origin).days // 7 if origin else None
        days = (delivery.last, delivery.through) if delivery else (None, None)
        rows.append((unit.name, unit.slug, kind, reason, *days, last, origin, behind))
    return rows
