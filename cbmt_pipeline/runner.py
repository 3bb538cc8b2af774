"""Runs without a daemon: the same assets on the same instance, driven by a pool of worker processes."""

from __future__ import annotations

import logging
import multiprocessing
import os
import queue
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import connection
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run_iterator
from dagster._core.launcher import DefaultRunLauncher
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin
from dagster._core.storage.tags import CODE_LOCATION_TAG, MAX_RETRIES_TAG, RETRY_NUMBER_TAG

from cbmt_core.atomic import lives
from cbmt_core.names import Unit
from cbmt_pipeline import progress
from cbmt_pipeline.batches import contiguous_batches
from cbmt_pipeline.instance import ATTENDED, LOCATION, PROCESS, REPOSITORY, open_instance, this_process
from cbmt_pipeline.partitions import FIRM_PARTITIONS
from cbmt_pipeline.plain_errors import plain_text
from cbmt_pipeline.progress import News
from cbmt_pipeline.project import Project

__all__ = [
    "RunOutcome",
    "Workers",
    "fail_orphaned_runs",
    "materialise_intake",
    "orphaned_runs",
    "run_assets",
    "run_firms",
]

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
DEATHS = 3
"""Number of worker processes that may die during a batch before it is given up."""

UNDER_WAY = [
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]

HERE = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin(LOCATION), REPOSITORY)
"""The code location of `cbmt ui`."""

Batch = tuple[str, ...]


@dataclass(frozen=True)
class RunOutcome:
    """One Dagster run: whether it succeeded and, if not, why."""

    run_id: str
    firms: Batch
    success: bool
    failure: str = ""
    warnings: tuple[str, ...] = ()
    """Warnings of checks."""


class Workers:
    """Worker processes, started when first needed and reused by later stages."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ProcessPoolExecutor | None = None
        self.news: Any = None

    def open(self) -> ProcessPoolExecutor:
        if self._pool is None:
            context = multiprocessing.get_context("spawn")
            self.news = context.Queue()
            self._pool = ProcessPoolExecutor(
                self.count, mp_context=context, initializer=_begin, initargs=(self.news,)
            )
        return self._pool

    def close(self, *, cancel: bool = False) -> None:
        """Stop the processes; the next `open` starts new ones."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=cancel)
            self._pool = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def run_assets(project: Project, assets: Sequence[str], config: dict[str, Any] | None = None) -> RunOutcome:
    """Materialise unpartitioned assets in one run in this process."""
    fail_orphaned_runs(project)
    outcome = _execute(project.root, tuple(assets), (), config or {})
    return outcome if outcome.success else replace(outcome, failure=f"{', '.join(assets)}: {outcome.failure}")


def materialise_intake(instance: dg.DagsterInstance, origin: RemoteJobOrigin | None) -> RunOutcome:
    """Materialise `intake` in a run of its own on an instance that is open.

    Args:
        origin: of the run that asks for it.
    """
    return _execute_on(instance, ("intake",), {}, {}, origin.repository_origin if origin else HERE)


def run_firms(
    project: Project,
    assets: Sequence[str],
    firms: Sequence[str],
    *,
    pool: Workers,
    batch: int,
    on_batch: Callable[[RunOutcome], None],
    on_news: Callable[[News], None] | None = None,
    config: Callable[[str], dict[str, Any]] | None = None,
) -> list[RunOutcome]:
    """Materialise firm-partitioned assets for the given firms (their partition keys), `batch` firms a run, as many
    runs at a time as `pool` has workers.

    `config(firm)` gives the run configuration of the run that begins with that firm. A worker process that
    dies (for want of memory, say) takes its pool with it; what was not done goes to a new pool.
    """
    fail_orphaned_runs(project)
    with open_instance(project) as instance:
        known = list(instance.get_dynamic_partitions(FIRM_PARTITIONS))
        instance.add_dynamic_partitions(FIRM_PARTITIONS, sorted(set(firms) - set(known)))
        keys = list(instance.get_dynamic_partitions(FIRM_PARTITIONS))
    # Batches small enough that every worker has something to do.
    size = max(1, min(batch, -(-len(firms) // pool.count)))
    waiting = [tuple(batch_keys) for batch_keys in contiguous_batches(keys, list(firms), size)]
    deaths: Counter[Batch] = Counter()
    outcomes = []
    while waiting:
        begun: set[str] = set()

        def hear(news: News, begun: set[str] = begun) -> None:
            begun.add(news.firm)
            if on_news:
                on_news(news)

        lost = []
        for done, outcome in _outcomes(project.root, tuple(assets), waiting, pool, hear, config):
            if outcome is None:
                lost.append(done)
                continue
            outcomes.append(outcome)
            on_batch(outcome)
        if lost:
            pool.close()
            fail_orphaned_runs(project)
        # Without a progress report, any of them may have killed its process.
        deaths.update([b for b in lost if b[0] in begun] or lost)
        waiting = [b for b in lost if deaths[b] < DEATHS]
        for b in lost:
            if b not in waiting:
                failure = f"{', '.join(b)}: its process died {DEATHS} times; is there enough memory?"
                outcomes.append(RunOutcome("", b, False, failure))
                on_batch(outcomes[-1])
    return outcomes


def _outcomes(
    root: Path,
    assets: tuple[str, ...],
    batches: Sequence[Batch],
    pool: Workers,
    hear: Callable[[News], None],
    config: Callable[[str], dict[str, Any]] | None,
) -> Iterator[tuple[Batch, RunOutcome | None]]:
    """Each batch with its outcome, as they end; None where the pool broke first."""
    executor = pool.open()
    futures: dict[Future[RunOutcome], Batch] = {
        executor.submit(_execute, root, assets, batch, config(batch[0]) if config else {}): batch
        for batch in batches
    }
    pending = set(futures)
    try:
        while pending:
            ended, pending = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
            while True:
                try:
                    hear(pool.news.get_nowait())
                except queue.Empty:
                    break
            for future in ended:
                broken = isinstance(future.exception(), BrokenProcessPool)
                yield futures[future], None if broken else future.result()
    except BaseException:
        # Interrupted: start nothing more; running batches are stopped or finish.
        pool.close(cancel=True)
        raise


def _begin(news: Any) -> None:
    """Start of a worker process: it reports to the process that started it, and exits with it."""
    news.cancel_join_thread()
    progress.listen(news.put)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    # The results are sent; exit without clean-up, which is slow and makes DuckDB complain about threads.
    Finalize(None, os._exit, args=(0,), exitpriority=-100)


def _execute(root: Path, assets: tuple[str, ...], firms: Batch, config: dict[str, Any]) -> RunOutcome:
    logging.getLogger("dagster").setLevel(logging.CRITICAL)
    tags: dict[str, str] = {}
    if firms:
        progress.tell(firms[0], "", 0.0)
    if len(firms) == 1:
        tags = {"dagster/partition": firms[0]}
    elif firms:
        tags = {
            "dagster/asset_partition_range_start": firms[0],
            "dagster/asset_partition_range_end": firms[-1],
        }
    with open_instance(Project(root)) as instance:
        return replace(_execute_on(instance, assets, tags, config), firms=firms)


def _execute_on(
    instance: dg.DagsterInstance,
    assets: tuple[str, ...],
    tags: dict[str, str],
    config: dict[str, Any],
    repository: RemoteRepositoryOrigin = HERE,
) -> RunOutcome:
    """Materialise assets in a run in this process, which the UI shows and executes again like those it started."""
    from cbmt_pipeline.definitions import defs

    job = defs.resolve_implicit_global_asset_job_def()
    chosen = frozenset(map(dg.AssetKey, assets))
    location = repository.code_location_origin.location_name
    own = {CODE_LOCATION_TAG: location, PROCESS: this_process(), ATTENDED: "true", MAX_RETRIES_TAG: "0"}
    run = instance.create_run_for_job(
        job.get_subset(asset_selection=chosen),
        run_config=QUIET | config,
        asset_selection=chosen,
        remote_job_origin=RemoteJobOrigin(repository, job.name),
        tags={**own, **tags},
    )
    events = list(execute_run_iterator(InMemoryJob(job), run, instance))
    failure = next((_why(event) for event in events if event.is_step_failure), "")
    done = instance.get_run_by_id(run.run_id)
    success = done is not None and done.is_success
    return RunOutcome(run.run_id, (), success, failure, _warnings(instance, run.run_id))


def _warnings(instance: dg.DagsterInstance, run_id: str) -> tuple[str, ...]:
    entries = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    checks = [entry.dagster_event.event_specific_data for entry in entries if entry.dagster_event]
    return tuple(
        f"{Unit.from_key(check.partition).name}: {check.description}"
        for check in checks
        if isinstance(check, dg.AssetCheckEvaluation)
        and check.partition
        and not check.passed
        and check.severity == dg.AssetCheckSeverity.WARN
    )


def _why(event: dg.DagsterEvent) -> str:
    """The cause of a step's failure: our own message if there is one, otherwise the innermost error."""
    data = event.step_failure_data
    if data.user_failure_data and data.user_failure_data.description:
        return data.user_failure_data.description
    error = data.error
    while error and error.cause:
        error = error.cause
    return plain_text(error.message) or error.message.strip() if error else "for an unknown reason"


def fail_orphaned_runs(project: Project, *, ui_is_gone: bool = False) -> None:
    """Mark runs whose process is gone as failed.

    Otherwise they would look unfinished for ever and block others in the queue.

    Args:
        ui_is_gone: whether no `cbmt ui` is running, so that runs without a process that it started are orphaned too.
    """
    with open_instance(project) as instance:
        for run in orphaned_runs(instance, ui_is_gone=ui_is_gone):
            who = run.tags.get(PROCESS, "").rpartition(":")[2] or "of the UI"
            instance.report_run_failed(run, f"process {who}, which did this run, was stopped")


def orphaned_runs(instance: dg.DagsterInstance, *, ui_is_gone: bool = False) -> list[dg.DagsterRun]:
    """Unfinished runs on this machine whose process is gone."""
    found = []
    for run in instance.get_runs(dg.RunsFilter(statuses=UNDER_WAY)):
        host, _, pid = _process_of(instance, run).partition(":")
        if pid:
            gone = host == socket.gethostname() and not lives(int(pid))
        else:
            # A backfill starts its own runs when the daemon is back. Nobody restarts a retry that never started,
            # and its backfill would wait for it for ever.
            begun = run.status != dg.DagsterRunStatus.NOT_STARTED or RETRY_NUMBER_TAG in run.tags
            gone = begun and ui_is_gone and isinstance(instance.run_launcher, DefaultRunLauncher)
        if gone:
            found.append(run)
    return found


def _process_of(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """The process that does a run; empty where it has not begun, and its tag is copied from the run it repeats."""
    process = run.tags.get(PROCESS, "")
    repeats = instance.get_run_by_id(run.parent_run_id) if process and run.parent_run_id else None
    return "" if repeats and repeats.tags.get(PROCESS) == process else process
