"""Cost that does not depend on the size of firms: processor seconds of each stage for 1,000 and 5,000 tiny firms.

    python bench/many_firms.py data/many                    1,000 firms, then 5,000; goes on where it was stopped
    python bench/many_firms.py data/many --firms 100 500    other sizes
    python bench/many_firms.py data/many --some 200         tables and forecasts of 200 of the firms only

A firm has 40 weeks of three orders, and is forecast by `seasonal_naive`. Each stage runs in a forked process; a step
by firm has one worker, whose start is taken off. Growth is the ratio of two sizes: that of the firms where a stage is
linear. With `--some` tables, forecasts and what is published are of as many firms in each size: growth is 1 where what
a firm costs does not depend on the others.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import traceback
from contextlib import suppress
from pathlib import Path

import dagster as dg
import duckdb
from dagster._core.execution.backfill import BulkActionStatus
from panel_results.document import table

from cbmt_core import atomic
from cbmt_core.duck import literal
from cbmt_pipeline.automation import firms_sensor
from cbmt_pipeline.backfills import launch, stale_target
from cbmt_pipeline.cli_run import Job, read_new_files
from cbmt_pipeline.cli_status import status
from cbmt_pipeline.definitions import defs
from cbmt_pipeline.instance import open_instance
from cbmt_pipeline.plan import State, the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.resources import ProjectResource

WEEKS, ORDERS = 40, 3
STEPS = ("firm_data", "live_forecasts", "forecast_choice", "bridge", "warehouse", "report")
BY_FIRM = ("firm_data", "live_forecasts")
STAGES = ("start", "read", *STEPS, "idle", "status", "weekly", "firms_sensor", "automation")
CONFIG = """
[[sources]]
name = "shop"
path = "orders"
currency = "GBP"
timezone = "Europe/London"
[design]
washout_weeks = 0
[forecast]
models = ["seasonal_naive"]
[networks]
models = []
[quality]
min_customers = 1
"""


def prepare(folder: Path, firms: int) -> None:
    """Orders of all firms in one file; a firm's customers come twice."""
    if (folder / "cbmt.toml").exists():
        return
    (folder / "orders").mkdir(parents=True)
    with atomic.replacing(folder / "orders" / "all.parquet") as target:
        duckdb.sql(
            f"""COPY (
                SELECT printf('Firm %05d & Söhne', f) AS firm, printf('c%d', (w * {ORDERS} + k) // 2) AS customer,
                    TIMESTAMP '2019-01-06 12:00:00'
                        + INTERVAL (w * 7 + CASE WHEN w = {WEEKS - 1} THEN 6 ELSE 2 * k END) DAY
                        + INTERVAL (k) MINUTE AS order_time,
                    CAST(10 + hash(f, w, k) % 90 AS DECIMAL(18, 2)) AS amount
                FROM range({firms}) firms(f), range({WEEKS}) weeks(w), range({ORDERS}) orders(k)
            ) TO {literal(str(target))} (FORMAT parquet)"""
        )
    atomic.write_text(folder / "cbmt.toml", CONFIG)


def do(folder: Path, stage: str, some: int | None) -> None:
    """Carry out one stage; in a process of its own."""
    project, plan = Project(folder), the_plan()
    if stage == "start":
        subprocess.run(
            [sys.executable, "-c", "import cbmt_pipeline.runner, cbmt_pipeline.definitions"], check=True
        )
    if stage in ("read", "idle"):
        read_new_files(project)
    if stage in (*STEPS, "idle"):
        wanted = STEPS if stage == "idle" else (stage,)
        without = tuple(step.name for step in plan if step.name not in wanted)
        units = list(project.intake.units())[:some] if some else None
        with Job(project, plan, units, workers=1, without=without) as job:
            job.bring_up_to_date(["live"])
        assert not job.failures, job.failures
        assert bool(job.runs) == (stage != "idle"), f"{stage}: {job.runs} steps were made"
    if stage == "status":
        with suppress(SystemExit):
            status.main(args=[], obj=project, standalone_mode=False)
    if stage in ("weekly", "firms_sensor", "automation"):
        with open_instance(project) as instance:
            _tick(project, instance, stage)


def _tick(project: Project, instance: dg.DagsterInstance, stage: str) -> None:
    """What the daemon asks of the project: the job `weekly` without its runs, or one look of a sensor."""
    if stage == "weekly":
        target = stale_target(State(project, the_plan()), ("live",))
        started = launch(instance, defs.resolve_asset_graph(), the_plan(), target, title="bench", tags={})
        instance.update_backfill(instance.get_backfill(started).with_status(BulkActionStatus.CANCELED))
    elif stage == "firms_sensor":
        resources = {"project": ProjectResource(root=str(project.root))}
        firms_sensor(dg.build_sensor_context(instance=instance, resources=resources))
    else:
        dg.evaluate_automation_conditions(defs=defs, instance=instance)


def measure(folder: Path, firms: int, some: int | None) -> dict[str, float]:
    """Processor seconds of every stage; kept in the project's folder."""
    kept = folder / "many_firms.json"
    found: dict[str, float] = json.loads(kept.read_text()) if kept.exists() else {}
    prepare(folder, firms)
    for stage in STAGES:
        if stage not in found:
            found[stage] = _seconds(folder, stage, some)
            print(f"{firms} firms: {stage} {found[stage]:.1f}", file=sys.stderr, flush=True)
            atomic.write_text(kept, json.dumps(found))
    return found


def _seconds(folder: Path, stage: str, some: int | None) -> float:
    """Of a process forked from this one, and of its workers."""
    log = folder / f"{stage}.log"
    child = os.fork()
    if not child:
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        code = 1
        try:
            do(folder, stage, some)
            code = 0
        except BaseException:
            traceback.print_exc()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    _, status, spent = os.wait4(child, 0)
    if status:
        sys.exit(f"{stage} failed:\n{log.read_text()[-3000:]}")
    return spent.ru_utime + spent.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the projects are kept")
    parser.add_argument("--firms", type=int, nargs="+", default=[1000, 5000])
    parser.add_argument("--some", type=int, help="how many firms have tables and forecasts; default: all")
    asked = parser.parse_args()
    name = f"some{asked.some}of" if asked.some else "firms"
    seconds = {firms: measure(asked.folder / f"{name}{firms}", firms, asked.some) for firms in asked.firms}
    few, many = min(seconds), max(seconds)
    rows = []
    for stage in STAGES[1:]:
        starts = {firms: seconds[firms]["start"] if stage in BY_FIRM else 0.0 for firms in asked.firms}
        own = {firms: max(seconds[firms][stage] - starts[firms], 0.05) for firms in asked.firms}
        cells = [f"{own[firms]:.1f}" for firms in asked.firms]
        rows.append([stage, *cells, f"{1000 * own[many] / many:.1f}", f"{own[many] / own[few]:.1f}"])
    print(f"processor seconds ({many / few:.0f} times the firms):\n")
    print(table(["stage", *(f"{firms:,} firms" for firms in asked.firms), "ms a firm", "growth"], rows))


if __name__ == "__main__":
    main()
