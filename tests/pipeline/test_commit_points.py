"""Killed at every commit point: the resumed run ends like one that was never stopped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from in_process import bring_up_to_date, content, leftovers
from small_project import new_project

from cbmt_core import quality
from cbmt_core.timeline import Timeline
from cbmt_pipeline.plan import State, the_plan
from cbmt_pipeline.project import Project

pytestmark = pytest.mark.slow

FIRMS = ("A, B & Söhne", "two")
KILLED = 9
WITHOUT = (
    *("tuned_models", "neural_forecasts", "report"),
    *("comovement", "difficulty", "routing", "external_calibration", "exhibits"),
)
"""Steps that commit like the others and take longer."""
STRIDE = int(os.environ.get("CBMT_KILL_STRIDE", "11"))
"""Commit points between two kills; 1 tries every one of them."""


def in_child(action: Callable[[], object]) -> int:
    """Exit code of a process of its own that does `action`: what a kill leaves, no cleaning up included."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            action()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed_before(number: int, action: Callable[[], object]) -> Callable[[], object]:
    """`action` in a process that dies just before its so many-th file is put in its place."""

    def run() -> object:
        true, seen = os.replace, 0

        def counted(*args: object) -> None:
            nonlocal seen
            seen += 1
            if seen == number:
                os._exit(KILLED)
            true(*args)  # type: ignore[arg-type]

        os.replace = counted  # type: ignore[assignment]
        return action()

    return run


@pytest.fixture(scope="module")
def ingested(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = new_project(tmp_path_factory.mktemp("ingested"), FIRMS)
    text = (project.root / "cbmt.toml").read_text()
    (project.root / "cbmt.toml").write_text(text + '[forecast]\nmodels = ["cohort_glm", "seasonal_naive"]\n')
    # Imported once here, so that the processes that are forked need not.
    assert quality.Verdict
    return Project(project.root)


def test_a_run_killed_at_any_commit_point_ends_like_one_that_was_not(
    ingested: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One backtest is enough here.
    all_of_them = Timeline.backtest_origins
    monkeypatch.setattr(Timeline, "backtest_origins", lambda self: all_of_them(self)[-1:])
    whole = Project(Path(shutil.copytree(ingested.root, tmp_path / "whole")))
    assert in_child(lambda: bring_up_to_date(whole, without=WITHOUT)) == 0
    expected = content(whole)
    assert {path.split("/")[0] for path in expected} >= {"firm_week", "forecast_week", "bridge", "accuracy"}
    tried = survived = 0
    number = 1
    while True:
        project = Project(Path(shutil.copytree(ingested.root, tmp_path / "killed")))
        code = in_child(
            killed_before(number, lambda project=project: bring_up_to_date(project, without=WITHOUT))
        )
        if code == 0:
            break
        assert code == KILLED
        tried += 1
        assert in_child(lambda project=project: bring_up_to_date(project, without=WITHOUT)) == 0
        assert content(project) == expected, f"killed before commit point {number}"
        assert not [
            task
            for step in the_plan()
            if step.name not in (*WITHOUT, "path_priors")
            for task in State(project, the_plan()).todo(step)
            if step.items is None
        ]
        survived += 1
        shutil.rmtree(project.root)
        # The first step's points one by one, later ones in strides: the same code commits every step.
        number += 1 if number < 8 else STRIDE
    assert tried >= 10
    assert survived == tried
    print(f"{tried} kills tried, {survived} survived, {tried - survived} lost")


def test_an_error_while_writing_leaves_nothing_behind(ingested: Project, tmp_path: Path) -> None:
    project = Project(Path(shutil.copytree(ingested.root, tmp_path / "full")))

    def full_disk() -> None:
        true, seen = os.replace, 0

        def replace(*args: object) -> object:
            nonlocal seen
            seen += 1
            if seen == 4:
                raise OSError(28, "No space left on device")
            return true(*args)  # type: ignore[arg-type]

        os.replace = replace  # type: ignore[assignment]
        with pytest.raises(OSError, match="No space left"):
            bring_up_to_date(project, without=WITHOUT)

    assert in_child(full_disk) == 0
    assert not leftovers(project.root)
    assert in_child(lambda: bring_up_to_date(project, without=WITHOUT)) == 0
    whole = Project(Path(shutil.copytree(ingested.root, tmp_path / "whole")))
    assert in_child(lambda: bring_up_to_date(whole, without=WITHOUT)) == 0
    assert content(project) == content(whole)
