"""Publishing: build a new DuckDB file from the lake and replace the old one atomically."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TypeVar

import duckdb
import pandas as pd

from cbmt_core import atomic, duck
from cbmt_core.duck import identifier, literal
from cbmt_core.errors import HistoryTooShort
from cbmt_core.schema import FIRM_STATE, SCHEMAS, SNAPSHOT, STUDY, STUDY_WINDOW, TIMELINE, VIEWS, Table
from cbmt_core.timeline import Timeline
from cbmt_pipeline.lake import Lake
from cbmt_pipeline.plan import Plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.snapshot import Snapshot

__all__ = ["READABLE_SINCE", "create", "create_views", "publish", "published_here", "retrying"]

READABLE_SINCE = "v1.2.0"
"""The oldest DuckDB that can open the published file: analysts' tools are often older than the pipeline."""
COPIED = "this table is not in the file - for a copy of the file use cbmt export"
"""An empty folder of the lake, in the path of the views that read from it. If the lake is
missing, DuckDB's error shows this path and so the message."""
READS = re.compile(rf"'((?:[^']|'')*)/{re.escape(COPIED)}")
"""The lake that a view reads from."""

T = TypeVar("T")


def publish(project: Project, plan: Plan) -> dict[str, int]:
    """Build and publish the warehouse; return the number of rows of each table."""
    rows: dict[str, int] = {}
    with (
        atomic.replacing(project.warehouse) as target,
        ExitStack() as cleaning,
        duck.connect(project.spill) as con,
        project.publishing(),
    ):
        con.execute(f"ATTACH {literal(str(target))} AS w (STORAGE_VERSION {literal(READABLE_SINCE)}); USE w")
        for schema in SCHEMAS:
            con.execute(f"CREATE SCHEMA {schema}")
        snapshot = Snapshot(project, plan, con)
        cleaning.enter_context(snapshot.scratch)
        snapshot.attach_before()
        for table in plan.tables.values():
            if table.native:
                create(con, table)
                rows[table.name] = retrying(partial(_fill, con, table, snapshot))
            else:
                _view(con, table, snapshot)
        _describe_weeks(con, snapshot)
        create_views(con)
        con.execute("USE memory; DETACH w")
    return rows


def published_here(project: Project) -> bool:
    """Whether the published file is there and its views read this lake, not that of a project it was copied from."""
    if not project.warehouse.exists():
        return False
    try:
        with duckdb.connect(str(project.warehouse), read_only=True) as con:
            views = con.execute("SELECT sql FROM duckdb_views() WHERE NOT internal").fetchall()
    except duckdb.Error:
        return True  # Somebody has it open for writing; the next publish reports this if it cannot replace the file.
    places = {place.replace("''", "'") for (sql,) in views for place in READS.findall(sql)}
    lakes = {Path(re.sub(r"\[([*?[])\]", r"\1", place)) for place in places}  # Escaped as in a glob.
    return all(lake.resolve() == project.lake.root.resolve() for lake in lakes)


def create(con: duckdb.DuckDBPyConnection, table: Table, *, keyed: bool = True) -> None:
    """Make the empty table with its key, if `keyed`, and comments."""
    columns = [f"{identifier(c.name)} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in table.columns]
    if keyed:
        columns.append(f"PRIMARY KEY ({', '.join(identifier(name) for name in table.key)})")
    con.execute(f"CREATE TABLE {table.relation} ({', '.join(columns)})")
    con.execute(f"COMMENT ON TABLE {table.relation} IS {literal(table.meaning)}")
    _comment_columns(con, table.relation, table.meanings)


def create_views(con: duckdb.DuckDBPyConnection) -> None:
    """Make the views, once their tables are there."""
    for view in VIEWS:
        con.execute(f"CREATE VIEW {view.name} AS {view.sql}")
        con.execute(f"COMMENT ON VIEW {view.name} IS {literal(view.meaning)}")
        _comment_columns(con, view.name, view.columns)


def _comment_columns(con: duckdb.DuckDBPyConnection, relation: str, meanings: Mapping[str, str]) -> None:
    for name, meaning in meanings.items():
        con.execute(f"COMMENT ON COLUMN {relation}.{identifier(name)} IS {literal(meaning)}")


def _relation(table: Table, snapshot: Snapshot, lake: Lake, *, stored: bool = True) -> str:
    """The published rows of a table: every complete vintage and backtest, but only the present study.

    Args:
        stored: rows are copied, so that those of the study may come from the file published before.
    """
    project, plan = snapshot.project, snapshot.plan
    writers, relation = plan.writers(table.name), lake.relation(table)
    purposes = {purpose for step in writers for purpose in step.purposes}
    where, more = [], ""
    if "study" in purposes:
        studies = project.origins("study")
        before = snapshot.study_rows(table) if stored else None
        if purposes == {"study"} or "purpose" not in table.column_names:
            return before or (lake.relation(table, studies[0].week) if studies else table.empty())
        where.append("purpose <> 'study'")
        if not before and studies:
            # By its folder: what happened in the holdout has the holdout's last week as its origin.
            before = f"(SELECT * FROM {lake.relation(table, studies[0].week)} WHERE purpose = 'study')"
        more = f" UNION ALL BY NAME FROM {before}" if before else ""
    if "live" in purposes and (unfinished := snapshot.unfinished_origin):
        live = "" if purposes == {"live"} else " AND purpose = 'live'"
        where.append(f"NOT (origin = DATE '{unfinished.week}'{live})")
    if "live" in purposes and "firm" in table.column_names and not any(step.by_firm for step in writers):
        # Earlier vintages are never rewritten and may name firms that are no longer in any source.
        firms = ", ".join(literal(unit.name) for unit in project.intake.units())
        where.append(f"firm IN ({firms})")
    return f"(SELECT * FROM {relation} WHERE {' AND '.join(where)}{more})" if where else relation


def _fill(con: duckdb.DuckDBPyConnection, table: Table, snapshot: Snapshot) -> int:
    project = snapshot.project
    con.execute(f"DELETE FROM {table.relation}")
    parts = [f"SELECT {table.select()} FROM {_relation(table, snapshot, project.lake)}"]
    if table.name == "quarantine":
        # Rows that name no firm belong to no partition; they come from the intake itself.
        intake = duck.parquet(map(project.intake.path, project.intake.ledger()))
        parts.append(
            f"SELECT {table.select()} FROM (SELECT * REPLACE (coalesce(firm, '') AS firm) "
            f"FROM {intake} WHERE slug IS NULL)"
        )
    con.execute(f"INSERT INTO {table.relation} {' UNION ALL '.join(parts)}")
    return int(con.execute(f"SELECT count(*) FROM {table.relation}").fetchall()[0][0])


def retrying(action: Callable[[], T], attempts: int = 5) -> T:
    """Retry a read that failed because a file was being replaced."""
    for attempt in range(1, attempts):
        try:
            return action()
        except (duckdb.IOException, duckdb.HTTPException):
            time.sleep(0.2 * attempt)
    return action()


def _describe_weeks(con: duckdb.DuckDBPyConnection, snapshot: Snapshot) -> None:
    project = snapshot.project
    states = snapshot.firm_states()
    timeline = project.timeline()
    dates = tuple(getattr(timeline, field.name) for field in fields(Timeline))
    studies, windows = [], []
    try:
        study = project.study()
    except HistoryTooShort:
        windows.append(("washout", timeline.washout))
    else:
        studies.append((*dates, study.training_weeks, study.holdout_weeks))
        names = "washout training validation calibration holdout bridge_baseline bridge_target"
        windows += [(name, getattr(study, name)) for name in names.split()]
    if not snapshot.study_is_complete and not snapshot.study_from_before:
        studies.clear()
    for table, rows in (
        (SNAPSHOT, [snapshot.row(states)]),
        (FIRM_STATE, states),
        (TIMELINE, [dates]),
        (STUDY, studies),
        (STUDY_WINDOW, [(name, w.first, w.last, len(w)) for name, w in windows if len(w)]),
    ):
        create(con, table)
        if rows:
            con.register("described", pd.DataFrame(rows, columns=table.column_names, dtype=object))
            con.execute(f"INSERT INTO {table.relation} SELECT {table.select()} FROM described")
            con.unregister("described")


def _view(con: duckdb.DuckDBPyConnection, table: Table, snapshot: Snapshot) -> None:
    """SQL of a view of the lake, for the largest tables: copying them would be most of the work of publishing."""
    note = snapshot.project.lake.root / COPIED
    note.mkdir(parents=True, exist_ok=True)
    relation = _relation(table, snapshot, Lake(note / ".."), stored=False)
    con.execute(f"CREATE VIEW {table.relation} AS FROM {relation}")
    meaning = (
        f"{table.meaning} Read from the lake as it is now, not from the snapshot; `cbmt export` makes a file that "
        "holds it."
    )
    con.execute(f"COMMENT ON VIEW {table.relation} IS {literal(meaning)}")
    _comment_columns(con, table.relation, table.meanings)
