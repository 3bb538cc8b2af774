"""Retention of Dagster's history: runs older than `[history] keep_days` are removed, with their events."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import sqlalchemy as sql
from dagster._core.storage.event_log import SqlEventLogStorage, SqliteEventLogStorage
from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable, SqlEventLogStorageTable

from cbmt_pipeline.instance import shared_home
from cbmt_pipeline.project import Project

__all__ = ["forget_old_runs"]

ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def forget_old_runs(instance: dg.DagsterInstance, project: Project, now: datetime | None = None) -> int:
    """Remove runs that ended more than `[history] keep_days` ago, and return their number.

    A run stays as long as it is the last one that made or checked some firm's table: without it the firm would look
    unmaterialised. Runs of other projects on a shared DAGSTER_HOME are not removed.
    """
    days, log = project.config.history.keep_days, instance.event_log_storage
    if not days or shared_home(project) or not isinstance(log, SqlEventLogStorage):
        return 0
    before = (now or datetime.now(UTC)) - timedelta(days=days)
    old = instance.get_runs(dg.RunsFilter(statuses=ENDED, updated_before=before))
    needed = _newest_runs(log) if old else set()
    forgotten = [run.run_id for run in old if run.run_id not in needed]
    for run_id in forgotten:
        _forget(instance, log, run_id)
    return len(forgotten)


def _newest_runs(log: SqlEventLogStorage) -> set[str]:
    """Runs that hold the last materialisation, or the last verdict of a check, of some asset and partition."""
    events, checks = SqlEventLogStorageTable.c, AssetCheckExecutionsTable.c
    made = (
        sql.select(sql.func.max(events.id))
        .where(events.dagster_event_type == dg.DagsterEventType.ASSET_MATERIALIZATION.value)
        .group_by(events.asset_key, events.partition)
    )
    checked = sql.select(sql.func.max(checks.id)).group_by(
        checks.asset_key, checks.check_name, checks.partition
    )
    with log.index_connection() as conn:
        runs = conn.execute(sql.select(events.run_id).where(events.id.in_(made)).distinct()).scalars().all()
        more = (
            conn.execute(sql.select(checks.run_id).where(checks.id.in_(checked)).distinct()).scalars().all()
        )
    return {*runs, *more}


def _forget(instance: dg.DagsterInstance, log: SqlEventLogStorage, run_id: str) -> None:
    instance.delete_run(run_id)
    with log.index_connection() as conn:
        conn.execute(
            sql.delete(AssetCheckExecutionsTable).where(AssetCheckExecutionsTable.c.run_id == run_id)
        )
    if isinstance(log, SqliteEventLogStorage):
        # A run's events lie in a file of their own, which Dagster only empties.
        file = Path(log.path_for_shard(run_id))
        for path in (file, file.with_name(f"{file.name}-wal"), file.with_name(f"{file.name}-shm")):
            with suppress(FileNotFoundError):
                path.unlink()
