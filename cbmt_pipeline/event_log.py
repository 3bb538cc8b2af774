"""Dagster's SQLite event log with connections that stay open.

Dagster's own class opens a new engine and connection for every event and looks up the tables' columns each time,
which is most of the cost of an event. Tables, files and everything read from them are Dagster's.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import sqlalchemy as sql
from dagster._core.storage.event_log import SqliteEventLogStorage
from dagster._core.storage.event_log.sqlite.sqlite_event_log import INDEX_SHARD_NAME
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS
from dagster._serdes import ConfigurableClassData
from sqlalchemy.pool import StaticPool

__all__ = ["OpenEventLog"]

MOST_OPEN = 8
"""Maximum number of open databases: the index and the most recently used runs."""


class OpenEventLog(SqliteEventLogStorage):
    """The event log of a project's own Dagster instance; named in dagster.yaml."""

    def __init__(self, base_dir: str, inst_data: ConfigurableClassData | None = None) -> None:
        self._engines: OrderedDict[str, sql.Engine] = OrderedDict()
        self._process = os.getpid()
        self._tables: set[str] = set()
        self._asset_columns: set[str] = set()
        super().__init__(base_dir, inst_data)

    @classmethod
    def from_config_value(  # type: ignore[override]
        cls, inst_data: ConfigurableClassData | None, config_value: dict[str, Any]
    ) -> Self:
        return cls(config_value["base_dir"], inst_data)

    @contextmanager
    def _connect(self, shard: str) -> Iterator[sql.Connection]:
        with self._db_lock:
            engine = self._engine(shard)
            if shard not in self._initialized_dbs:
                self._initdb(engine)
                self._initialized_dbs.add(shard)
            with engine.connect() as conn, conn.begin():
                yield conn

    def _engine(self, shard: str) -> sql.Engine:
        if self._process != os.getpid():
            # A connection must not be used by two processes.
            self._process, self._engines = os.getpid(), OrderedDict()
        if shard not in self._engines:
            self._engines[shard] = sql.create_engine(
                self.conn_string_for_shard(shard),
                # One connection, which a lock passes from thread to thread.
                poolclass=StaticPool,
                connect_args={"timeout": SQLITE_BUSY_TIMEOUT_SECONDS, "check_same_thread": False},
            )
            # A power failure may lose the last events; manifests, not history, prove that a step is done.
            sql.event.listen(self._engines[shard], "connect", _write_without_waiting)
        self._engines.move_to_end(shard)
        for old in [name for name in self._engines if name != INDEX_SHARD_NAME][:-MOST_OPEN]:
            self._engines.pop(old).dispose()
        return self._engines[shard]

    def has_table(self, table_name: str) -> bool:
        if table_name not in self._tables and super().has_table(table_name):
            self._tables.add(table_name)
        return table_name in self._tables

    def _has_asset_key_col_on_connection(self, conn: sql.Connection, column_name: str) -> bool:
        if column_name not in self._asset_columns and super()._has_asset_key_col_on_connection(
            conn, column_name
        ):
            self._asset_columns.add(column_name)
        return column_name in self._asset_columns

    def wipe(self) -> None:
        self._close()
        super().wipe()

    def dispose(self) -> None:
        super().dispose()
        self._close()

    def _close(self) -> None:
        with self._db_lock:
            for engine in self._engines.values() if self._process == os.getpid() else ():
                engine.dispose()
            self._engines.clear()


def _write_without_waiting(connection: Any, _: object) -> None:
    connection.execute("PRAGMA synchronous = NORMAL")
