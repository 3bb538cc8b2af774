"""A disk that fills up during a run: a short error, nothing left behind, and a rerun with room ends alike."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from helpers.accidents import cbmt_with_accident, commit_points, in_child, limited, on_replace, spread
from helpers.hooks.sitecustomize import _fill as fill
from helpers.in_process import bring_up_to_date, leftovers
from helpers.small_project import delivered
from helpers.whole_state import differences, whole_state

from cbmt_pipeline.plain_errors import plain
from cbmt_pipeline.plan import the_plan
from cbmt_pipeline.project import Project

STEPS = ("intake", "firm_data", "warehouse", "report")
WITHOUT = tuple(step.name for step in the_plan() if step.name not in STEPS)
POINTS = 8


def fails_when_full(project: Project, number: int, message_file: Path) -> None:
    """Bring the project up to date on a disk that is full from the so many-th commit on."""
    seen = 0

    def count() -> None:
        nonlocal seen
        seen += 1
        if seen == number:
            fill(project.data)

    on_replace(count)
    try:
        failed: list[str] = []
        bring_up_to_date(project, without=WITHOUT, failed=failed)
        message_file.write_text("\n".join(failed))
    except Exception as error:
        message_file.write_text(plain(error, project.data) or f"no plain error: {type(error)} {error}")


def meet_full_disks(tmp_path: Path, chosen: slice) -> str:
    """Fill the disk at some of eight commit points, resume each with room; the counts."""
    project = delivered(tmp_path / "project")
    seen = tmp_path / "points"

    def counted() -> None:
        on_replace(lambda: seen.write_text(seen.read_text() + ".") and None)
        bring_up_to_date(project, without=WITHOUT)

    seen.write_text("")
    in_child(counted)
    expected, message_file = whole_state(project), tmp_path / "told"
    tried = spread(len(seen.read_text()), POINTS)[chosen]
    for number in tried:
        shutil.rmtree(project.data)
        with limited(project.data, 24):
            in_child(lambda number=number: fails_when_full(project, number, message_file))
            said = message_file.read_text()
            assert not leftovers(project.root), f"full from commit point {number} on"
            (project.data / "ballast").unlink()
            if not said:
                # All that was left to do was to rename files, which takes no room.
                assert differences(whole_state(project), expected) == []
                continue
            assert "No space left" in said or "the disk is full" in said, said
            in_child(lambda: bring_up_to_date(project, without=WITHOUT))
            assert differences(whole_state(project), expected) == [], f"full from commit point {number} on"
    return f"full disk, writers: tried {len(tried)}, survived {len(tried)}, lost 0"


@pytest.mark.slow
def test_a_writer_meets_a_full_disk(tmp_path: Path) -> None:
    """The published file: the other writers have their turn in the soak."""
    print(meet_full_disks(tmp_path, slice(-4, -3)))


@pytest.mark.soak
def test_every_writer_meets_a_full_disk(tmp_path: Path) -> None:
    """The intake, the tables, the published file and the pages, each without an orchestrator."""
    print(meet_full_disks(tmp_path, slice(None)))


@pytest.mark.soak
@pytest.mark.parametrize("full", ["data", "data/dagster"])
def test_cbmt_run_on_a_full_disk(tmp_path: Path, full: str) -> None:
    """The lake's disk, and one that holds Dagster's history alone."""
    counter = tmp_path / "counter"
    command = ("run", "--live-only", "--workers", "1")
    project = delivered(tmp_path / "project")
    assert cbmt_with_accident(project.root, *command, counter=counter).returncode == 0
    expected, points = whole_state(project), commit_points(counter)
    tried = spread(points, POINTS)
    lines = 0
    for number in tried:
        shutil.rmtree(project.data)
        folder = project.root / full
        with limited(folder, 64):
            met = cbmt_with_accident(
                project.root, *command, number=number, kind="fill", folder=folder, counter=counter
            )
            said = met.stdout + met.stderr
            if met.returncode:  # At the last point the history may have had room enough.
                assert "the disk is full" in said, said
            assert "Traceback" not in said, said
            lines = max(lines, len(met.stderr.splitlines()))
            assert not leftovers(project.root)
            os.remove(folder / "ballast")
            again = cbmt_with_accident(project.root, *command, counter=counter)
            assert again.returncode == 0, again.stdout + again.stderr
            assert differences(whole_state(project), expected) == [], f"full from commit point {number} on"
        print(f"full disk, {full}: survived at commit point {number} of {points}", flush=True)
    print(
        f"full disk, {full}: {points} commit points, tried {len(tried)}, survived {len(tried)}, lost 0; "
        f"at most {lines} lines of error"
    )
