"""Two Celery workers on Redis and PostgreSQL, one killed in the middle: the same tables as on one machine."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import dagster as dg
import psutil
import pytest
from dagster._core.execution.backfill import BulkActionStatus
from helpers.in_process import content
from helpers.servers import need, postgres, redis
from helpers.small_project import new_project

from cbmt_pipeline.backfills import Target, launch
from cbmt_pipeline.instance import PROCESS
from cbmt_pipeline.plan import State, the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.transaction import carry_out
from cbmt_pipeline.work import Options

pytest.importorskip("dagster_celery", reason="needs the extra [celery]")
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("celery"), need("postgresql", "redis-server")]

FIRMS = tuple(f"firm {k}" for k in range(6))
DEPLOY = Path(__file__).parents[2] / "deploy/celery/dagster.yaml"
QUICKER = {"max_concurrent_runs: 8": 2, "poll_interval_seconds: 30": 3, "start_timeout_seconds: 600": 25}
STEPS = ("firm_data", "live_forecasts")
T = TypeVar("T")


def settings() -> str:
    """The file that is shipped, with shorter waits."""
    text = DEPLOY.read_text()
    for line, value in QUICKER.items():
        assert text.count(line) == 1
        text = text.replace(line, re.sub(r"\d+", str(value), line))
    return text


def one_machine(root: Path) -> Project:
    project = Project(root)
    for name in STEPS:
        for task in State(project, the_plan()).todo(the_plan()[name]):
            carry_out(project, the_plan(), task, Options())
    return project


@contextmanager
def process(*command: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process with a group of its own, so that it can be killed with its children."""
    with log.open("wb") as out:
        started = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        yield started
    finally:
        kill(started)


def kill(started: subprocess.Popen[bytes]) -> None:
    if started.poll() is None:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait(timeout=20)


def spent(started: subprocess.Popen[bytes]) -> float:
    """Processor seconds of a process that lives, and of those it has started."""
    process = psutil.Process(started.pid)
    return float(sum(sum(one.cpu_times()[:2]) for one in (process, *process.children(recursive=True))))


def wait_until(condition: Callable[[], T], what: str, seconds: float = 600) -> T:
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"{what} did not happen in {seconds:.0f} s"
        time.sleep(0.2)
    return found


def test_a_killed_worker_changes_nothing_in_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = new_project(tmp_path / "many", FIRMS).root
    with (root / "cbmt.toml").open("a") as file:
        file.write('[forecast]\nmodels = ["cohort_glm", "wg_pnbd_pp"]\n')
    before = time.process_time()
    alone = one_machine(Path(shutil.copytree(root, tmp_path / "alone")))
    by_one = time.process_time() - before
    home, bin_folder = tmp_path / "home", Path(sys.executable).parent
    home.mkdir()
    (home / "dagster.yaml").write_text(settings())
    keys = frozenset(unit.key for unit in Project(root).intake.units())
    with ExitStack() as stack:
        store = stack.enter_context(postgres())
        broker = f"redis://{stack.enter_context(redis(tmp_path))}/0"
        monkeypatch.setenv("CBMT_REDIS", broker)
        monkeypatch.setenv("CBMT_POSTGRES", f"postgresql+psycopg2://cbmt@{store}/postgres")
        monkeypatch.setenv("DAGSTER_HOME", str(home))
        monkeypatch.setenv("CBMT_PROJECT", str(root))
        celery = (
            str(bin_folder / "celery"),
            "-A",
            "dagster_celery.app",
            "-b",
            broker,
            "--result-backend",
            broker,
        )
        work = ("worker", "--prefetch-multiplier=1", "--concurrency=1", "-l", "INFO", "-n")
        workers = {
            name: stack.enter_context(process(*celery, *work, name, log=tmp_path / f"{name}.log"))
            for name in ("w1", "w2")
        }
        daemon = (str(bin_folder / "dagster-daemon"), "run", "-m", "cbmt_pipeline.definitions")
        stack.enter_context(process(*daemon, log=tmp_path / "daemon.log"))
        instance = stack.enter_context(dg.DagsterInstance.get())
        instance.add_dynamic_partitions("firm", sorted(keys))
        from cbmt_pipeline.definitions import defs

        started = time.monotonic()
        backfills = [
            launch(
                instance,
                defs.resolve_asset_graph(),
                the_plan(),
                Target(dict.fromkeys(STEPS, frozenset(pair)), frozenset()),
                title="two firms",
                tags={},
            )
            for pair in zip(sorted(keys)[::2], sorted(keys)[1::2], strict=True)
        ]

        def runs(*statuses: dg.DagsterRunStatus) -> list[dg.DagsterRun]:
            return list(instance.get_runs(dg.RunsFilter(statuses=list(statuses))))

        def at_work() -> str:
            """A worker in the middle of a run; it is halted, so that the run cannot end before the worker is killed."""
            for run in runs(dg.DagsterRunStatus.STARTED):
                number = run.tags.get(PROCESS, "").rpartition(":")[2]
                with suppress(ProcessLookupError):
                    group = os.getpgid(int(number)) if number else None
                    for name in [name for name, worker in workers.items() if worker.pid == group]:
                        os.killpg(workers[name].pid, signal.SIGSTOP)
                        if run.run_id in {other.run_id for other in runs(dg.DagsterRunStatus.STARTED)}:
                            return name
                        os.killpg(workers[name].pid, signal.SIGCONT)
            return ""

        def ended() -> list[BulkActionStatus]:
            found = [instance.get_backfill(backfill) for backfill in backfills]
            return [one.status for one in found if one and one.status != BulkActionStatus.REQUESTED]

        wait_until(lambda: runs(dg.DagsterRunStatus.SUCCESS), "a first run")
        killed = wait_until(at_work, "a run on a worker")
        cost = spent(workers[killed])
        kill(workers.pop(killed))
        wait_until(lambda: len(ended()) == len(backfills), "the end of the backfills")
        cost += sum(map(spent, workers.values()))
        print(f"{time.monotonic() - started:.1f} s", Counter(run.status for run in runs()))
        print(f"processor seconds: workers {cost:.1f}, {len(keys)} firms in one process {by_one:.1f}")
        assert set(ended()) == {BulkActionStatus.COMPLETED_SUCCESS}
        lost = runs(dg.DagsterRunStatus.FAILURE)
        assert lost, f"the run of {killed} was given up"
        for name in STEPS:
            for asset in the_plan()[name].asset_needs:
                assert instance.get_materialized_partitions(dg.AssetKey(asset)) == keys
        assert not runs(dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.QUEUED)
    assert content(Project(root)) == content(alone)
    assert content(alone)
