"""Publishing: a fresh DuckDB file from the lake, put in the place of the old one in one step."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import astuple
from functools import partial
from typing import TypeVar

import duckdb

from cbmt_core import atomic, duck
from cbmt_core.design import StudyDesign
from cbmt_core.duck import identifier, literal
from cbmt_core.schema import STUDY, STUDY_WINDOW, VIEWS, Table
from cbmt_pipeline.lake import ALL_TABLES
from cbmt_pipeline.project import Project

__all__ = ["publish"]

READABLE_SINCE = "v1.2.0"
"""The oldest DuckDB that can open the published file: analysts' tools are seldom as new as the pipeline."""

T = TypeVar("T")


def publish(project: Project) -> dict[str, int]:
    """Build and publish the warehouse; return the number of rows of each table."""
    rows: dict[str, int] = {}
    with atomic.replacing(project.warehouse) as target, duck.connect(project.spill) as con:
        con.execute(f"ATTACH {literal(str(target))} AS w (STORAGE_VERSION {literal(READABLE_SINCE)}); USE w")
        for table in ALL_TABLES.values():
            if table.native:
                _create(con, table)
                rows[table.name] = _retrying(partial(_fill, con, table, project))
            elif project.lake.units(table.name):
                _view(con, table, project)
        _describe_study(con, project.design())
        for view in VIEWS:
            con.execute(f"CREATE VIEW {view.name} AS {view.sql}")
            con.execute(f"COMMENT ON VIEW {view.name} IS {literal(view.meaning)}")
            _comment_columns(con, view.name, view.columns)
        con.execute("USE memory; DETACH w")
    return rows


def _create(con: duckdb.DuckDBPyConnection, table: Table) -> None:
    columns = [f"{identifier(c.name)} {c.type}{'' if c.nullable else ' NOT NULL'}" for c in table.columns]
    key = ", ".join(identifier(name) for name in table.key)
    con.execute(f"CREATE TABLE {table.name} ({', '.join(columns)}, PRIMARY KEY ({key}))")
    con.execute(f"COMMENT ON TABLE {table.name} IS {literal(table.meaning)}")
    _comment_columns(con, table.name, table.meanings)


def _comment_columns(con: duckdb.DuckDBPyConnection, relation: str, meanings: Mapping[str, str]) -> None:
    for name, meaning in meanings.items():
        con.execute(f"COMMENT ON COLUMN {relation}.{identifier(name)} IS {literal(meaning)}")


def _fill(con: duckdb.DuckDBPyConnection, table: Table, project: Project) -> int:
    con.execute(f"DELETE FROM {table.name}")
    parts = []
    if not table.partitioned and project.lake.has_whole(table.name):
        parts.append(f"SELECT {table.select()} FROM {project.lake.whole(table.name)}")
    elif project.lake.units(table.name):
        parts.append(f"SELECT {table.select()} FROM {project.lake.glob(table.name)}")
    if table.name == "quarantine":
        # Rows that name no firm belong to no partition; they come from the intake itself.
        intake = duck.parquet(map(project.intake.path, project.intake.ledger()))
        parts.append(
            f"SELECT {table.select()} FROM (SELECT * REPLACE (coalesce(firm, '') AS firm) "
            f"FROM {intake} WHERE slug IS NULL)"
        )
    if parts:
        con.execute(f"INSERT INTO {table.name} {' UNION ALL '.join(parts)}")
    return int(con.execute(f"SELECT count(*) FROM {table.name}").fetchall()[0][0])


def _retrying(action: Callable[[], T], attempts: int = 5) -> T:
    """A read may meet a file just as it is replaced; the next try sees the new one."""
    for attempt in range(1, attempts):
        try:
            return action()
        except (duckdb.IOException, duckdb.HTTPException):
            time.sleep(0.2 * attempt)
    return action()


def _describe_study(con: duckdb.DuckDBPyConnection, design: StudyDesign) -> None:
    windows = {
        "washout": design.washout,
        "training": design.training,
        "validation": design.validation,
        "calibration": design.calibration,
        "holdout": design.holdout,
        "bridge_baseline": design.bridge_baseline,
        "bridge_target": design.bridge_target,
    }
    for table, rows in (
        (STUDY, [astuple(design)]),
        (STUDY_WINDOW, [(name, w.first, w.last, len(w)) for name, w in windows.items() if len(w)]),
    ):
        _create(con, table)
        con.executemany(f"INSERT INTO {table.name} VALUES ({', '.join('?' * len(table.columns))})", rows)


def _view(con: duckdb.DuckDBPyConnection, table: Table, project: Project) -> None:
    """The largest tables stay in the lake: copying them would be most of the work of publishing."""
    con.execute(f"CREATE VIEW {table.name} AS FROM {project.lake.glob(table.name)}")
    meaning = f"{table.meaning} Read from the lake as it is now, not from the snapshot."
    con.execute(f"COMMENT ON VIEW {table.name} IS {literal(meaning)}")
    _comment_columns(con, table.name, table.meanings)
