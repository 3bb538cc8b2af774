"""The command line tells the truth: who is at work, what is wrong with the machine, what is up to date."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import click
import dagster as dg
import duckdb
import pytest
from click.testing import CliRunner, Result
from dagster._core.definitions.selector import JobSubsetSelector
from dagster._core.execution.plan.resume_retry import ReexecutionStrategy
from helpers.daemon import daemon
from helpers.small_project import FIRMS, make_all, new_project

from cbmt_core.atomic import temporary_name
from cbmt_core.errors import CbmtError
from cbmt_pipeline import holder as holders
from cbmt_pipeline.assets import assets_of
from cbmt_pipeline.cli import main
from cbmt_pipeline.instance import PROCESS, REPOSITORY, open_instance, this_process
from cbmt_pipeline.partitions import FIRM_PARTITIONS
from cbmt_pipeline.plain_errors import plain
from cbmt_pipeline.plan import Task, the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.resources import ProjectResource
from cbmt_pipeline.runner import fail_orphaned_runs, orphaned_runs, run_assets
from cbmt_pipeline.transaction import carry_out, task_key

pytestmark = pytest.mark.xdist_group("true_state")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Firms whose tables are made, and nothing else."""
    project = new_project(tmp_path_factory.mktemp("true"))
    assert make_all(project) == {}
    return project


def cbmt(root: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["--project", str(root), *arguments])


HOLD = """
import sys, time
from pathlib import Path
from cbmt_pipeline.holder import hold
from cbmt_pipeline.project import Project
hold(Project(Path(sys.argv[1])), "run")
print("held", flush=True)
time.sleep(60)
"""


def test_a_second_run_names_the_process_at_work_and_a_killed_one_leaves_nothing(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (tmp_path / "cbmt.toml").write_text(
        '[[sources]]\nname = "a"\npath = "o"\ncurrency = "USD"\ntimezone = "UTC"\n'
    )
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        who = holders.holder(project, "run")
        assert f"process {other.pid} on {socket.gethostname()}, since 2" in who
        refused = cbmt(tmp_path, "run")
        assert refused.exit_code == 1
        assert who in refused.output
        assert who in cbmt(tmp_path, "status").output
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
    assert holders.holder(project, "run") == ""
    with holders.holding(project, "run"), pytest.raises(CbmtError, match="works on"):
        holders.hold(project, "run")
    holders.holding(project, "run")


def test_a_task_that_another_process_is_at_work_on_is_waited_for_and_not_made_twice(
    made: Project, tmp_path: Path
) -> None:
    plan, log = the_plan(), tmp_path / "log"
    unit = next(iter(made.intake.units()))
    task = Task(plan["firm_data"], None, unit)
    before = made.manifests.path("firm_data", None, unit).stat().st_mtime_ns
    with holders.holding_task(made, task_key(task), lambda _: None) as waited:
        assert not waited
        child = os.fork()
        if child == 0:
            code = 1
            try:
                outcome = carry_out(made, plan, task, log=lambda text: log.write_text(text) and None)
                code = 0 if "another process" in outcome.metadata["note"] else 2
            finally:
                os._exit(code)
        for _ in range(600):
            if log.exists() and log.read_text():
                break
            time.sleep(0.05)
        assert f"waiting for process {os.getpid()} on {socket.gethostname()}, since 2" in log.read_text()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert made.manifests.path("firm_data", None, unit).stat().st_mtime_ns == before
    assert not list(made.task_locks.iterdir())


def test_what_a_killed_run_left_is_removed_by_the_next_and_what_a_living_one_writes_is_not(
    tmp_path: Path,
) -> None:
    project = Project(tmp_path)
    gone = subprocess.Popen(["true"])
    gone.wait()
    mine = temporary_name(project.data / "lake/firm/x.parquet")
    dead = mine.with_name(mine.name.replace(f"-{os.getpid()}-", f"-{gone.pid}-"))
    elsewhere = mine.with_name(".x.parquet.000000-1-0123456789.tmp")
    mine.parent.mkdir(parents=True)
    for path in (mine, dead, elsewhere, Path(f"{dead}.wal")):
        path.write_text("x")
    spilled = temporary_name(project.spill)
    spilled = spilled.with_name(spilled.name.replace(f"-{os.getpid()}-", f"-{gone.pid}-"))
    spilled.mkdir()
    (spilled / "block").write_text("x")
    project.task_locks.mkdir()
    (project.task_locks / "of a killed one").write_text("{}")
    with holders.holding_task(project, "of a living one", lambda _: None), holders.holding(project, "run"):
        assert dead.exists(), "the last one was not killed"
        assert [lock.name for lock in project.task_locks.iterdir()] == ["of a living one"]
    (project.data / ".run.lock").write_text("{}")  # As a killed one leaves it.
    with holders.holding(project, "run"):
        assert sorted(mine.parent.iterdir()) == sorted([mine, elsewhere])
        assert not spilled.exists()


@pytest.mark.parametrize("command", ["status", "run", "doctor"])
def test_a_missing_folder_and_a_broken_file_are_errors(tmp_path: Path, command: str) -> None:
    assert cbmt(tmp_path / "nowhere", command).exit_code == 1
    (tmp_path / "cbmt.toml").write_text("[[sources]\n")
    broken = cbmt(tmp_path, command)
    assert broken.exit_code == 1
    assert "is not valid TOML" in broken.output


def test_status_says_what_is_not_made_and_what_rests_on_it(made: Project) -> None:
    shown = cbmt(made.root, "status")
    assert shown.exit_code == 0
    assert cbmt(made.root, "status", "--check").exit_code == 1
    lines = {line.split()[0]: line for line in shown.output.splitlines() if line.strip()}
    assert "3 of 3" in lines["firm_data"]
    assert "0 of 3" in lines["benchmark_forecasts"]
    assert "made again if its inputs change" in lines["exhibits"]
    assert lines["warehouse"].rstrip().endswith("made again if its inputs change")
    assert f"its forecast of {made.timeline().panel.last} is to be made" in shown.output


def test_doctor_finds_what_is_wrong_and_says_what_to_do(made: Project, tmp_path: Path) -> None:
    root = tmp_path / "copy"
    shutil.copytree(made.root, root)
    well = cbmt(root, "doctor")
    assert well.exit_code == 0, well.output
    assert "there is no" in well.output  # Nothing is published yet.
    for name in ("older.zip", "newer.json"):
        (root / "orders" / name).touch()
    beside = cbmt(root, "doctor")
    assert beside.exit_code == 0, beside.output
    assert "newer.json and 1 more" in " ".join(beside.output.split())
    for file in (root / "orders").glob("*.csv"):
        file.unlink()
    ill = cbmt(root, "doctor")
    assert ill.exit_code == 1
    assert "problem  sources:" in ill.output
    (root / "data" / "lake" / "schema.json").write_text('{"schema": 99}')
    assert "was made by a newer version" in cbmt(root, "doctor").output


def test_errors_of_the_machine_are_one_line_with_advice() -> None:
    full = OSError(28, "No space left on device", "data/lake/x")
    assert plain(full).startswith("data/lake/x: the disk is full")
    failed = RuntimeError("a step failed")
    failed.__cause__ = duckdb.IOException('IO Error: Could not write file "x": No space left on device')
    assert "the disk is full" in plain(failed)
    assert "may not read or write" in plain(PermissionError(13, "Permission denied", "data"))
    assert plain(ValueError("a bug")) == ""


def test_a_full_disk_and_a_read_only_folder_are_no_tracebacks(
    made: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, words in ((28, "the disk is full"), (30, "read-only file system")):

        def fails(*_: object, number: int = number) -> None:
            raise OSError(number, os.strerror(number), str(made.data))

        monkeypatch.setattr(Project, "check_schema", fails)
        shown = cbmt(made.root, "status")
        assert (shown.exit_code, type(shown.exception)) == (1, SystemExit)
        assert words in shown.output
        assert "Traceback" not in shown.output


def test_runs_of_a_killed_ui_are_failed_when_the_next_one_starts(made: Project) -> None:
    """Those that name a process that is gone at any time, those that name none once no UI is left."""
    with open_instance(made) as instance:

        @dg.job
        def anything() -> None: ...

        def started(tags: dict[str, str], status: dg.DagsterRunStatus = dg.DagsterRunStatus.STARTED) -> str:
            return instance.create_run_for_job(anything, status=status, tags=tags).run_id

        gone = subprocess.Popen(["true"])
        gone.wait()
        dead = started({PROCESS: f"{socket.gethostname()}:{gone.pid}"})
        elsewhere = started({PROCESS: f"another-{socket.gethostname()}:{gone.pid}"})
        alive = started({PROCESS: f"{socket.gethostname()}:{os.getpid()}"})
        of_the_ui = started({})
        of_a_backfill = started({}, dg.DagsterRunStatus.NOT_STARTED)
        retry = started({"dagster/retry_number": "1"}, dg.DagsterRunStatus.NOT_STARTED)
        assert [run.run_id for run in orphaned_runs(instance)] == [dead]
        fail_orphaned_runs(made)
        assert instance.get_run_by_id(dead).status == dg.DagsterRunStatus.FAILURE  # type: ignore[union-attr]
        fail_orphaned_runs(made, ui_is_gone=True)
        assert instance.get_run_by_id(of_the_ui).status == dg.DagsterRunStatus.FAILURE  # type: ignore[union-attr]
        assert instance.get_run_by_id(retry).status == dg.DagsterRunStatus.FAILURE  # type: ignore[union-attr]
        # The daemon submits these when it is back.
        assert instance.get_run_by_id(of_a_backfill).status == dg.DagsterRunStatus.NOT_STARTED  # type: ignore[union-attr]
        instance.delete_run(of_a_backfill)
        for run_id in (elsewhere, alive):
            assert instance.get_run_by_id(run_id).status == dg.DagsterRunStatus.STARTED  # type: ignore[union-attr]
            instance.delete_run(run_id)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_what_a_killed_ui_left_running_is_named_and_ended_by_the_next(tmp_path: Path) -> None:
    project = new_project(tmp_path)
    ours = os.environ | {holders.UI_PROCESS: "1", "CBMT_PROJECT": str(tmp_path)}
    others = ours | {"CBMT_PROJECT": str(tmp_path / "other")}
    with (
        subprocess.Popen(["sleep", "60"], env=ours) as left,
        subprocess.Popen(["sleep", "60"], env=others) as other,
    ):
        with holders.holding(project, "ui"):
            assert holders.left_by_ui(project) == [], "the UI is there"
        assert f"processes of a killed cbmt ui go on working ({left.pid}" in cbmt(tmp_path, "doctor").output
        assert holders.end_left_by_ui(project) == 1
        assert left.wait() == -signal.SIGTERM
        assert holders.left_by_ui(project) == []
        assert other.poll() is None
        other.kill()


def test_a_run_of_the_command_is_one_that_the_ui_can_place_and_execute_again(tmp_path: Path) -> None:
    """Its target, its code location, and, once it is executed again, the process that does that."""
    project = new_project(tmp_path)
    with daemon(tmp_path) as clock:
        done = run_assets(project, ("intake",))
        assert done.success
        run = clock.instance.get_run_by_id(done.run_id)
        assert run
        assert run.asset_selection == {dg.AssetKey("intake")}
        assert run.remote_job_origin
        workspace = clock.workspace.create_request_context()
        location = workspace.get_code_location(run.remote_job_origin.location_name)
        gone = subprocess.Popen(["true"])
        gone.wait()
        clock.instance.add_run_tags(run.run_id, {PROCESS: f"{socket.gethostname()}:{gone.pid}"})
        again = clock.instance.create_reexecuted_run(
            parent_run=clock.instance.get_run_by_id(run.run_id),
            request_context=workspace,
            code_location=location,
            remote_job=location.get_job(
                JobSubsetSelector(
                    location_name=location.name,
                    repository_name=REPOSITORY,
                    job_name=run.job_name,
                    op_selection=None,
                    asset_selection=list(run.asset_selection),
                )
            ),
            strategy=ReexecutionStrategy.ALL_STEPS,
            use_parent_run_tags=True,
        )
        assert again.tags[PROCESS].endswith(f":{gone.pid}")
        assert orphaned_runs(clock.instance) == [], "the process is the first run's, not this one's"
        clock.instance.submit_run(again.run_id, workspace)
        ended = clock.instance.get_run_by_id(again.run_id)
        assert ended
        assert ended.is_success
        assert ended.tags[PROCESS] == this_process()


def test_a_second_project_on_a_dagster_home_leaves_the_partitions_of_the_first(
    made: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    intake = next(asset for asset in assets_of(the_plan()) if dg.AssetKey("intake") in asset.keys)
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(FIRM_PARTITIONS, ["of another project"])

        def read() -> set[str]:
            done = dg.materialize(
                [intake], instance=instance, resources={"project": ProjectResource(root=str(made.root))}
            )
            assert done.success
            return set(instance.get_dynamic_partitions(FIRM_PARTITIONS))

        monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
        assert "of another project" in read()
        assert len(read()) == 1 + len(FIRMS)
        monkeypatch.delenv("DAGSTER_HOME")
        assert "of another project" not in read()


def test_our_own_errors_stay_as_they_are() -> None:
    with pytest.raises(click.ClickException, match="there is no project file"):
        main.main(["--project", "/nowhere", "status"], standalone_mode=False)
