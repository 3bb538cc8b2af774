"""Two at once on one project: a second `cbmt run` says who is at work, a backfill in the UI shares the work."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections import Counter
from pathlib import Path

import dagster as dg
import pytest
from helpers.daemon import daemon
from helpers.in_process import leftovers
from helpers.projects import cbmt
from helpers.small_project import delivered
from helpers.whole_state import differences, whole_state

from cbmt_core.timeline import PURPOSES
from cbmt_pipeline.backfills import ONLY_MISSING, PURPOSES_TAG, launch, stale_target
from cbmt_pipeline.partitions import FIRM_PARTITIONS
from cbmt_pipeline.plan import State, the_plan
from cbmt_pipeline.project import Project

pytestmark = pytest.mark.soak

RUN = ("run", "--no-networks")


def begin(root: Path) -> subprocess.Popen[str]:
    environment = {k: v for k, v in os.environ.items() if k not in ("DAGSTER_HOME", "CBMT_PROJECT")}
    command = [sys.executable, "-m", "cbmt_pipeline.cli", "--project", str(root), *RUN]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    )


def made_by_firm(instance: dg.DagsterInstance) -> Counter[tuple[str, str]]:
    """How often each asset of each firm was made; what was found up to date is not counted."""
    found: Counter[tuple[str, str]] = Counter()
    for step in the_plan():
        for asset in step.asset_needs if step.by_firm else ():
            records = instance.fetch_materializations(dg.AssetKey(asset), limit=1000).records
            for record in records:
                made = record.asset_materialization
                if made and made.partition and "note" not in made.metadata:
                    found[asset, made.partition] += 1
    return found


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What one run by itself makes."""
    project = delivered(tmp_path_factory.mktemp("alone") / "project")
    cbmt(project.root, *RUN)
    return whole_state(project)


def test_the_second_of_two_runs_says_which_process_it_waits_for(
    tmp_path: Path, expected: dict[str, str]
) -> None:
    project = delivered(tmp_path / "project")
    runs = [begin(project.root), begin(project.root)]
    said = [run.communicate()[0] for run in runs]
    assert sorted(run.returncode for run in runs) == [0, 1], said
    refused, worked = (0, 1) if runs[0].returncode else (1, 0)
    printed = re.search(r"process (\d+) on (\S+), since (\d{4}-\d\d-\d\d)", said[refused])
    assert printed, said[refused]
    assert (int(printed[1]), printed[2]) == (runs[worked].pid, socket.gethostname())
    assert differences(whole_state(project), expected) == []
    print("two `cbmt run`: one refused with host, process and time, the other whole; doubled 0")


def test_a_run_beside_a_backfill_of_the_ui(tmp_path: Path, expected: dict[str, str]) -> None:
    project, plan = delivered(tmp_path / "project"), the_plan()
    project.check_schema()
    assert project.intake.update(project.config, project.root).failed == {}
    with daemon(project.root) as turning:
        from cbmt_pipeline.definitions import defs

        keys = [unit.key for unit in project.intake.units()]
        turning.instance.add_dynamic_partitions(FIRM_PARTITIONS, keys)
        without = ["tuned_models", "neural_forecasts"]
        target = stale_target(State(Project(project.root), plan), PURPOSES, without)
        launch(
            turning.instance,
            defs.resolve_asset_graph(),
            plan,
            target,
            title="beside cbmt run",
            tags={ONLY_MISSING: "true", PURPOSES_TAG: ",".join(PURPOSES)},
        )
        run = begin(project.root)
        turning.finish()
        said, _ = run.communicate()
        assert run.returncode == 0, said
        twice = {key: n for key, n in made_by_firm(turning.instance).items() if n > 1}
        runs = turning.instance.get_runs()
    wrong = differences(whole_state(project), expected)
    assert not leftovers(project.root)
    assert all(one.is_finished for one in runs)
    assert wrong == []
    print(f"`cbmt run` beside a backfill: {len(runs)} runs, made more than once {len(twice)}: {twice}")
