"""Killed at every commit point: the step that was interrupted is made again, and ends as if nothing had happened.

A run copies the project each time before a file is put in its place: that is what a process killed there leaves. Then
each copy is resumed by another process until the interrupted task is done, and must equal, file by file, the project as
it was when the run had done that task. So every later task starts from the same state, and by induction all ends agree.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import dagster as dg
import pytest
from helpers.accidents import cbmt_with_accident, commit_points, in_child, on_replace, spread
from helpers.in_process import bring_up_to_date, leftovers
from helpers.small_project import CONFIG, orders_csv
from helpers.small_project import delivered as two_firms
from helpers.whole_state import differences, whole_state

import cbmt_pipeline.transaction
from cbmt_core import quality
from cbmt_core.timeline import Timeline
from cbmt_pipeline.holder import holding
from cbmt_pipeline.plan import Plan, Task, the_plan
from cbmt_pipeline.project import Project

FIRMS = ("A, B & Söhne", "two")
MODELS = ("cbmt_plus", "cohort_glm", "seasonal_naive", "direct")
SETTINGS = """
[forecast]
models = ["cbmt_plus", "cohort_glm", "seasonal_naive"]
[networks]
profile = "smoke"
models = ["direct"]
[plan]
firms = { "two" = 2000.0 }
"""
CI_STRIDE = 23
"""Commit points between two that are tried in every test run; the soak tries all."""


class Enough(Exception):
    """The interrupted task is done."""


def on_task_done(action: Callable[[Task], None]) -> None:
    true = cbmt_pipeline.transaction.carry_out

    def carry_out(project: Project, plan: Plan, task: Task) -> object:
        outcome = true(project, plan, task)
        action(task)
        return outcome

    from helpers import in_process

    in_process.carry_out = carry_out  # type: ignore[assignment]


def delivered(root: Path) -> Project:
    """A project whose files wait to be read."""
    (root / "orders").mkdir(parents=True)
    (root / "cbmt.toml").write_text(CONFIG + SETTINGS)
    for firm in FIRMS:
        (root / "orders" / f"{len(firm)}.csv").write_text(orders_csv(firm))
    # Imported once here, so that the processes that are forked need not.
    assert quality.Verdict

    return Project(root)


def copied_at_every_point(project: Project, folder: Path) -> None:
    """Carry out the plan; copies `<task>-<point>-<step>` before each commit and `<task>-done` after each task."""
    task = point = 0
    step = "intake"

    def copy(name: str) -> None:
        shutil.copytree(project.root, folder / name)

    def killed() -> None:
        nonlocal point
        point += 1
        copy(f"{task:03}-{point:04}")

    def done(made: Task) -> None:
        nonlocal task, step
        copy(f"{task:03}-done")
        (folder / f"{task:03}.step").write_text(made.step.name)
        task += 1

    on_replace(killed)
    on_task_done(done)
    with holding(project, "run"):
        bring_up_to_date(project, models=MODELS, without=())


def resume_one_task(project: Project, step: str) -> None:
    """Carry out the task that was interrupted, one of `step`."""

    def enough(made: Task) -> None:
        # The copy lies elsewhere: where it was published before the kill, that is done again first.
        if made.step.name == step or made.step.name != "warehouse":
            raise Enough

    on_task_done(enough)
    # As `cbmt run` begins: what the killed process left, the file of its task's lock among it, is removed.
    with suppress(Enough), holding(project, "run"):
        bring_up_to_date(project, models=MODELS, without=())


def try_points(tmp_path: Path, stride: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """Kill at every so many-th commit point and resume; the counts."""
    # One backtest is enough here.
    all_of_them = Timeline.backtest_origins
    monkeypatch.setattr(Timeline, "backtest_origins", lambda self: all_of_them(self)[-1:])
    project, copies = delivered(tmp_path / "project"), tmp_path / "copies"
    copies.mkdir()
    in_child(lambda: copied_at_every_point(project, copies))
    points = sorted(path.name for path in copies.glob("*-[0-9]*"))
    steps = {path.stem: path.read_text() for path in copies.glob("*.step")}
    assert set(steps.values()) == {step.name for step in the_plan()}, "every step was carried out"
    expected: dict[str, dict[str, str]] = {}
    lost = []
    tried: dict[str, int] = {}
    for name in points[::stride]:
        task = name.split("-")[0]
        if task not in expected:
            done = Project(copies / f"{task}-done")
            assert not leftovers(done.root)
            expected[task] = whole_state(done)
        killed = Project(copies / name)
        in_child(lambda killed=killed, step=steps[task]: resume_one_task(killed, step))
        tried[steps[task]] = tried.get(steps[task], 0) + 1
        found = whole_state(killed)
        if (wrong := differences(found, expected[task])) and steps[task] == "intake":
            # Its ledger may have been complete: then the next task was done.
            wrong = differences(found, whole_state(Project(copies / f"{int(task) + 1:03}-done")))
        print(f"point {name} of {steps[task]}: {'lost' if wrong else 'survived'}", flush=True)
        if wrong:
            lost.append(f"point {name} of {steps[task]}: {', '.join(wrong[:5])}")
            print(lost[-1])
        shutil.rmtree(killed.root)
    count = sum(tried.values())
    text = f"commit points: {len(points)} of {len(set(steps.values()))} steps, tried {count}"
    assert not lost, "\n".join([text, *lost])
    return f"{text}, survived {count}, lost 0"


@pytest.mark.slow
def test_a_run_killed_at_a_commit_point_goes_on_as_if_it_had_not_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(try_points(tmp_path, CI_STRIDE, monkeypatch))


@pytest.mark.soak
def test_every_commit_point_of_every_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    print(try_points(tmp_path, int(os.environ.get("CBMT_KILL_STRIDE", "1")), monkeypatch))


@pytest.mark.soak
@pytest.mark.parametrize("workers", ["1", "2"])
def test_cbmt_run_and_its_workers_killed(tmp_path: Path, workers: str) -> None:
    """The command and every process it has started, at points spread over a run; then the same command again."""
    counter, command = tmp_path / "counter", ("run", "--live-only", "--workers", workers)
    project = two_firms(tmp_path / "project")
    whole = cbmt_with_accident(project.root, *command, counter=counter)
    assert whole.returncode == 0, whole.stdout + whole.stderr
    expected, points = whole_state(project), commit_points(counter)
    tried = spread(points, int(os.environ.get("CBMT_KILL_RUNS", "8")))
    for number in tried:
        shutil.rmtree(project.data)
        killed = cbmt_with_accident(project.root, *command, number=number, kind="kill", counter=counter)
        assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr
        again = cbmt_with_accident(project.root, *command, counter=counter)
        assert again.returncode == 0, again.stdout + again.stderr
        assert differences(whole_state(project), expected) == [], f"killed at commit point {number}"
        assert not leftovers(project.root)
        with dg.DagsterInstance.from_config(str(project.dagster_home)) as instance:
            assert all(run.is_finished for run in instance.get_runs())
        print(f"`cbmt run --workers {workers}`: survived at commit point {number} of {points}", flush=True)
    print(
        f"`cbmt run --workers {workers}` killed: {points} commit points, tried {len(tried)}, "
        f"survived {len(tried)}, lost 0"
    )
