"""A run killed in the middle of a search, then losing a worker: it ends as if nothing had happened."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import dagster as dg
import duckdb
import psutil
import pytest
from helpers.materialised import Materialised

from cbmt_core.schema import TABLES
from cbmt_core.simulate import Economy
from cbmt_pipeline.project import Project

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("networks")]

MODELS = ["direct", "lstm"]
RUN = """
import sys
from pathlib import Path
from cbmt_pipeline.project import Project
from cbmt_pipeline.runner import Workers, run_firms

if __name__ == "__main__":
    root, models, *firms = sys.argv[1:]
    settings = {"models": models.split(","), "only_missing": True}
    failures = []
    with Workers(2) as pool:
        for step, more in (("tuned_models", {"profile": "smoke"}), ("neural_forecasts", {})):
            outcomes = run_firms(
                Project(Path(root)),
                [step],
                firms,
                pool=pool,
                batch=1,
                on_batch=lambda outcome: None,
                config=lambda _: {"ops": {step: {"config": settings | more}}},
            )
            failures += [outcome.failure for outcome in outcomes]
    sys.exit("".join(failures) or 0)
"""
"""What `cbmt run` does for the networks, without the rest of it."""
DONE = b'"state":1'
"""How a search's journal notes a finished trial."""


def wait_until(condition: Callable[[], object], what: str, seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"{what} did not happen"
        time.sleep(0.005)


def workers(run: subprocess.Popen[str]) -> list[psutil.Process]:
    """The processes that do the run's work."""
    children = psutil.Process(run.pid).children()
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


def begin(project: Project, firms: list[str]) -> subprocess.Popen[str]:
    script = project.root / "run.py"
    script.write_text(RUN)
    environment = {k: v for k, v in os.environ.items() if k not in ("DAGSTER_HOME", "CBMT_PROJECT")}
    command = [sys.executable, str(script), str(project.root), ",".join(MODELS), *firms]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)


def forecasts(project: Project) -> list[tuple[object, ...]]:
    with duckdb.connect() as con:
        return con.execute(
            "SELECT firm, model, week, acquired, sales FROM "
            f"{project.lake.relation(TABLES['forecast_week'])} ORDER BY ALL"
        ).fetchall()


def test_finished_trials_are_kept_and_the_end_is_that_of_an_undisturbed_run(tmp_path: Path) -> None:
    economy = Economy(firms=2, scale=0.003, seed=33)
    undisturbed = Materialised(tmp_path / "undisturbed", economy)
    project = Project(shutil.copytree(undisturbed.project.root, tmp_path / "killed"))
    for unit in undisturbed.units:
        undisturbed.make(
            ["tuned_models", "neural_forecasts"],
            unit,
            tuned_models={"models": MODELS, "profile": "smoke"},
            neural_forecasts={"models": MODELS},
        )

    firms = [unit.key for unit in undisturbed.units]
    origin = project.study().origin
    journals = [Path(project.search_storage(origin, unit)) for unit in undisturbed.units]

    def trials() -> int:
        return sum(path.read_bytes().count(DONE) for path in journals if path.exists())

    run = begin(project, firms)
    wait_until(lambda: trials() >= 3, "three trials")
    orphans = workers(run)
    run.kill()
    run.wait()
    assert orphans
    psutil.wait_procs(orphans, timeout=20)
    assert not any(worker.is_running() for worker in orphans), "no worker outlives its run"
    kept = {path: path.read_bytes() for path in journals if path.exists()}
    assert trials() < 18, "it was killed before the end"

    run = begin(project, firms)
    before = trials()
    wait_until(lambda: trials() > before, "another trial")
    workers(run)[0].kill()
    _, err = run.communicate(timeout=300)
    assert run.returncode == 0, err

    for path, text in kept.items():
        whole = text[: text.rfind(b"\n") + 1]
        assert path.read_bytes().startswith(whole), "finished trials stay as they were"
    assert forecasts(project) == forecasts(undisturbed.project)
    with dg.DagsterInstance.from_config(str(project.dagster_home)) as instance:
        runs = instance.get_runs()
        assert not [r for r in runs if not r.is_finished], "no run looks as if it went on"
        assert [r for r in runs if r.status == dg.DagsterRunStatus.FAILURE]
