"""Dagster's own scheduler, backfill daemon and sensors, turned by hand in this process with a clock of the test's."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path

import dagster as dg
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus, PartitionBackfill
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.test_utils import freeze_time
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import WorkspaceLoadTarget
from dagster._daemon.auto_run_reexecution.auto_run_reexecution import (
    consume_new_runs_for_automatic_reexecution,
)
from dagster._daemon.backfill import execute_backfill_iteration
from dagster._daemon.sensor import execute_sensor_iteration
from dagster._scheduler.scheduler import launch_scheduled_runs

LOG = logging.getLogger("daemon")
INSTANCE = """
telemetry: {enabled: false}
run_launcher:
  module: dagster._core.launcher.sync_in_memory_run_launcher
  class: SyncInMemoryRunLauncher
run_coordinator:
  module: dagster._core.run_coordinator
  class: DefaultRunCoordinator
run_retries:
  enabled: true
  max_retries: 2
  retry_on_asset_or_op_failure: false
"""


class _InThisProcess(WorkspaceLoadTarget):
    def create_origins(self) -> list[InProcessCodeLocationOrigin]:
        target = LoadableTargetOrigin(
            python_file=None, module_name="cbmt_pipeline.definitions", attribute="defs"
        )
        return [InProcessCodeLocationOrigin(target, location_name="cbmt_pipeline.definitions")]


class Daemon:
    """A daemon on a project: `tick` is one turn of everything it does."""

    def __init__(self, instance: dg.DagsterInstance, workspace: WorkspaceProcessContext) -> None:
        self.instance, self.workspace = instance, workspace

    def schedules(self, now: datetime) -> None:
        """What the scheduler does at this time."""
        with freeze_time(now):
            self._done(launch_scheduled_runs(self.workspace, LOG, now, {}))

    def sensors(self) -> None:
        self._done(execute_sensor_iteration(self.workspace, LOG, None, None))

    def switch_on(self, schedule: str, at: datetime) -> None:
        """What the switch on the page Automation does."""
        location = next(iter(self.workspace.create_request_context().code_locations))
        with freeze_time(at):
            self.instance.start_schedule(location.get_repository("__repository__").get_schedule(schedule))
        self.schedules(at)

    def turn(self) -> None:
        """One iteration of the backfill daemon; runs are carried out at once, in this process."""
        lost = self.instance.get_run_records(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]))
        self._done(consume_new_runs_for_automatic_reexecution(self.workspace, lost, LOG))
        self._done(execute_backfill_iteration(self.workspace, LOG))

    def backfills(self, *statuses: BulkActionStatus) -> list[PartitionBackfill]:
        chosen = BulkActionsFilter(statuses=list(statuses)) if statuses else None
        return list(self.instance.get_backfills(filters=chosen))

    def finish(self, turns: int = 40) -> None:
        """Turn until no backfill is in progress and none is started for the rest of another."""
        from cbmt_pipeline.automation import finish_backfills

        cursor = None
        for _ in range(turns):
            if not self.backfills(BulkActionStatus.REQUESTED):
                context = dg.build_sensor_context(instance=self.instance, cursor=cursor)
                finish_backfills(context)
                cursor = context.cursor
                if not self.backfills(BulkActionStatus.REQUESTED):
                    return
            self.turn()
        raise AssertionError(f"backfills go on after {turns} turns")

    def _done(self, iteration: object) -> None:
        for error in iteration:  # type: ignore[attr-defined]
            assert not hasattr(error, "message"), error.message


@contextmanager
def daemon(root: Path) -> Iterator[Daemon]:
    """The daemon of the project at `root`, with the history in its Dagster home."""
    home = root / "data/dagster"
    home.mkdir(parents=True, exist_ok=True)
    (home / "dagster.yaml").write_text(INSTANCE)
    before = {name: os.environ.get(name) for name in ("DAGSTER_HOME", "CBMT_PROJECT")}
    os.environ |= {"DAGSTER_HOME": str(home), "CBMT_PROJECT": str(root)}
    try:
        with ExitStack() as stack:
            instance = stack.enter_context(dg.DagsterInstance.get())
            workspace = stack.enter_context(WorkspaceProcessContext(instance, _InThisProcess()))
            yield Daemon(instance, workspace)
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
