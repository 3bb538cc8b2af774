"""The whole plan carried out in this process, without an orchestrator: fast enough to do it many times."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path

import duckdb

from cbmt_core.duck import parquet
from cbmt_pipeline.plan import Plan, State, the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.transaction import carry_out

WITHOUT = ("tuned_models", "neural_forecasts", "report")
"""Networks take long and the report has tests of its own."""
FAST = ("cohort_glm", "seasonal_naive")


def bring_up_to_date(
    project: Project,
    plan: Plan | None = None,
    *,
    models: Collection[str] = FAST,
    without: Collection[str] = WITHOUT,
    failed: list[str] | None = None,
) -> list[tuple[str, str, str]]:
    """Carry out what is missing or stale; returns (step, origin, firm) of each task in order."""
    plan = plan or the_plan()
    done = []
    for step in plan:
        if step.name in without or (step.only_for and not set(step.only_for) & set(models)):
            continue
        for task in State(project, plan).todo(step):
            items = tuple(name for name in task.items if name in models)
            if step.items is not None and not items:
                continue
            outcome = carry_out(project, plan, type(task)(step, task.origin, task.unit, items))
            if outcome.rejected:
                assert failed is not None, outcome.rejected
                failed.append(outcome.rejected)
            origin = f"{task.origin.purpose} {task.origin.week}" if task.origin else ""
            done.append((step.name, origin, task.unit.name if task.unit else ""))
    return done


def content(project: Project, but: Collection[str] = ()) -> dict[str, str]:
    """Path -> digest of every table file's rows; the seconds that fits took are left out."""
    found = {}
    for path in sorted(project.lake.root.glob("*/**/*.parquet")):
        name = str(path.relative_to(project.lake.root))
        table = name.split("/")[0]
        if table in ("intake", *but):
            continue
        if table != "model_fit":
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
            continue
        with duckdb.connect() as con:
            rows = con.execute(f"SELECT * EXCLUDE (seconds) FROM {parquet([path])} ORDER BY ALL").fetchall()
        found[name] = hashlib.sha256(repr(rows).encode()).hexdigest()
    return found


def leftovers(root: Path) -> list[Path]:
    """Temporary files that nobody will rename any more."""
    return list(root.glob("data/**/.*.tmp"))
