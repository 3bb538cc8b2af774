"""Rename partition keys of earlier versions in Dagster's history.

Up to 0.6 a firm's key was its slug (`A%2C+B`); now it is its name (`A, B`). The history is rewritten once, so that
earlier materialisations still count. Logs of single runs, which lie in files of their own, stay as they were
written.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import Any

import dagster as dg
import sqlalchemy as sql
from dagster._core.storage.event_log import SqlEventLogStorage
from dagster._core.storage.event_log import schema as events
from dagster._core.storage.runs import SqlRunStorage
from dagster._core.storage.runs import schema as runs

from cbmt_core.errors import BadFirmData
from cbmt_core.names import Unit
from cbmt_pipeline.partitions import FIRM_PARTITIONS

__all__ = ["rename_old_keys"]

RUNS_DONE, EVENTS_DONE = "cbmt_partition_keys_of_runs", "cbmt_partition_keys_of_events"
"""Marks in Dagster's own list of migrations, so that none is renamed twice: a slug and a key can look alike. In
PostgreSQL the lists of runs and events are one table."""
AT_A_TIME = 1000
"""Rows read in one query."""

logger = logging.getLogger(__name__)


def rename_old_keys(instance: dg.DagsterInstance) -> int:
    """Rename the keys of an instance that an earlier version wrote, and log how many; does nothing if that was done
    before.

    May be stopped and repeated, and begun by two processes: runs and events are each renamed in one transaction, which
    starts with the mark that it was done.
    """
    log, storage = instance.event_log_storage, instance.run_storage
    if not isinstance(log, SqlEventLogStorage) or not isinstance(storage, SqlRunStorage):
        return 0
    with log.index_connection() as conn:
        if _is_done(conn, events.SecondaryIndexMigrationTable, EVENTS_DONE):
            return 0
    old = instance.get_dynamic_partitions(FIRM_PARTITIONS)
    keys = {slug: key for slug in old if (key := _key_of(slug)) != slug}
    if keys:
        logger.info(
            "writing the partition keys of %d firms as their names, once; this may take minutes", len(keys)
        )
    try:
        # The old keys are read from the events' database: it comes last.
        with _transaction(storage.connect()) as conn:
            if not _is_done(conn, runs.SecondaryIndexMigrationTable, RUNS_DONE):
                _mark(conn, runs.SecondaryIndexMigrationTable, RUNS_DONE)
                _rename_in_runs(conn, keys)
        with _transaction(log.index_connection()) as conn:
            _mark(conn, events.SecondaryIndexMigrationTable, EVENTS_DONE)
            _rename_in_events(conn, keys, old)
    except sql.exc.IntegrityError:
        return 0  # Another process has done it: its mark was there once it released the database.
    return len(keys)


@contextmanager
def _transaction(connected: AbstractContextManager[sql.Connection]) -> Iterator[sql.Connection]:
    """A connection of Dagster's inside a transaction: with PostgreSQL it would commit every statement."""
    with connected as conn:
        if conn.in_transaction():
            yield conn
            return
        conn.execution_options(isolation_level="READ COMMITTED")
        with conn.begin():
            yield conn


def _key_of(slug: str) -> str:
    try:
        return Unit.from_slug(slug).key
    except BadFirmData:
        return slug  # A sensor of this version has added the key already.


def _is_done(conn: sql.Connection, table: sql.Table, mark: str) -> bool:
    return bool(conn.execute(sql.select(table.c.id).where(table.c.name == mark)).first())


def _mark(conn: sql.Connection, table: sql.Table, mark: str) -> None:
    now = datetime.now(UTC).replace(tzinfo=None)
    conn.execute(sql.insert(table).values(name=mark, migration_completed=now))


def _rename_in_runs(conn: sql.Connection, keys: Mapping[str, str]) -> None:
    tags = runs.RunTagsTable
    of_a_key = sql.or_(
        tags.c.key.like("dagster/partition%"), tags.c.key.like("dagster/asset_partition_range_%")
    )
    _rewrite(conn, tags, ["value"], keys, of_a_key)
    _rewrite(conn, runs.RunsTable, ["partition", "run_body"], keys)
    _rewrite(conn, runs.BulkActionsTable, ["body"], keys)


def _rename_in_events(conn: sql.Connection, keys: Mapping[str, str], old: Sequence[str]) -> None:
    log, checks, assets = (
        events.SqlEventLogStorageTable,
        events.AssetCheckExecutionsTable,
        events.AssetKeyTable,
    )
    _rewrite(conn, log, ["partition", "event"], keys, log.c.partition.is_not(None))
    _rewrite(conn, checks, ["partition", "evaluation_event"], keys, checks.c.partition.is_not(None))
    _rewrite(conn, assets, ["last_materialization"], keys)
    # Dagster counts materialised partitions again if it finds no cached count.
    conn.execute(sql.update(assets).values(cached_status_data=None))
    known = events.DynamicPartitionsTable
    conn.execute(sql.delete(known).where(known.c.partitions_def_name == FIRM_PARTITIONS))
    for key in dict.fromkeys(keys.get(slug, slug) for slug in old):
        conn.execute(sql.insert(known).values(partitions_def_name=FIRM_PARTITIONS, partition=key))


def _rewrite(
    conn: sql.Connection,
    table: sql.Table,
    columns: Sequence[str],
    keys: Mapping[str, str],
    where: sql.ColumnElement[bool] | None = None,
) -> None:
    """Rename keys in columns of a table, which hold a key or JSON with keys in it."""
    if not keys:
        return
    chosen = (
        sql.select(table.c.id, *(table.c[name] for name in columns)).order_by(table.c.id).limit(AT_A_TIME)
    )
    if where is not None:
        chosen = chosen.where(where)
    last = -1
    while rows := conn.execute(chosen.where(table.c.id > last)).fetchall():
        last = rows[-1][0]
        for number, *values in rows:
            renamed = [_renamed(value, keys) for value in values]
            if renamed != values:
                change = dict(zip(columns, renamed, strict=True))
                conn.execute(sql.update(table).where(table.c.id == number).values(change))


def _renamed(value: Any, keys: Mapping[str, str]) -> Any:
    """A value with every text that is an old key replaced, also inside JSON and inside JSON that JSON holds."""
    if isinstance(value, str):
        if value in keys:
            return keys[value]
        if value[:1] not in ("{", "["):
            return value
        try:
            inside = json.loads(value)
        except ValueError:
            return value
        after = _renamed(inside, keys)
        return value if after == inside else json.dumps(after)
    if isinstance(value, list):
        return [_renamed(one, keys) for one in value]
    if isinstance(value, dict):
        return {name: _renamed(one, keys) for name, one in value.items()}
    return value
