"""Left alone for four weeks: a late firm, a corrupt file put right, a new firm, a killed daemon, a new version.

Clock and files are the test's; scheduler, backfill daemon, retries and runs are Dagster's own. In the end every table
is the same as in a project that was made from all files at once, and the four vintages are there.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import dagster as dg
import duckdb
import pytest
from dagster._core.execution.backfill import BulkActionStatus
from dagster._core.storage.partition_status_cache import get_and_update_asset_status_cache_value
from helpers import TESTS
from helpers.daemon import Daemon, daemon
from helpers.in_process import content

from cbmt_pipeline.partitions import firm_partitions
from cbmt_pipeline.plan import State, the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.runner import fail_orphaned_runs

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("left_alone")]

FIRST, HISTORY = date(2016, 1, 3), 42
"""The last of the weeks that are there in the beginning: 13 of washout, then enough for a first live forecast."""
FIRMS = ("Alder", "Birch", "Cedar", "Dogwood", "Elm")
NEW = "Fir"
CONFIG = """
[[sources]]
name = "shop"
path = "orders"
currency = "EUR"
timezone = "UTC"
[design]
washout_weeks = 13
[delivery]
share = 0.6
[quality]
min_customers = 5
[forecast]
models = ["cohort_glm"]
[networks]
models = []
[bands]
draws = 100
"""
JUDGED = ("band_coverage", "band_pit")
"""Tables that judge earlier vintages, of which a project made at once has none."""
MONDAY = datetime(2026, 7, 6, 6, 0, 30, tzinfo=UTC)
KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[2])
from datetime import datetime
from pathlib import Path
import cbmt_pipeline.transaction as transaction
from helpers.daemon import daemon

begun, real = [], transaction._store

def store(one, *rest):
    begun.append(one)
    if len(begun) == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(one, *rest)

transaction._store = store
with daemon(Path(sys.argv[1])) as clock:
    clock.schedules(datetime.fromisoformat(sys.argv[3]))
    clock.finish()
"""
"""The daemon, which is killed in the middle of a run: the files are read and three firms made."""


def orders(firm: str, first: int, last: int, *, bad: bool = False) -> str:
    """Orders of the weeks `first` to `last`, one a day and a new customer each week, as a CSV file."""
    lines = ["firm,customer,order_time,amount"]
    for day in range(7 * first, 7 * (last + 1)):
        week = day // 7
        customer = max(0, week - (day * 7 + len(firm)) % 9) if day % 7 else week
        amount = "oops" if bad and day % 2 else f"{10 + (day * 13 + len(firm)) % 17}.50"
        lines.append(f"{firm},c{customer},{FIRST + timedelta(days=day)},{amount}")
    return "\n".join(lines) + "\n"


def put(root: Path, name: str, text: str) -> None:
    (root / "orders").mkdir(parents=True, exist_ok=True)
    (root / "orders" / f"{name}.csv").write_text(text)


def week(monday: int) -> date:
    """The last week that the data hold on a Monday, counted from 0."""
    return FIRST + timedelta(weeks=HISTORY + monday)


def weeks(*mondays: int) -> list[date]:
    return [week(monday) for monday in mondays]


def states(project: Project) -> dict[str, str]:
    """What the published file says of each firm."""
    with duckdb.connect(str(project.warehouse), read_only=True) as con:
        return dict(con.execute("SELECT firm, state FROM firm_state").fetchall())


def vintages(project: Project) -> dict[str, list[date]]:
    """The origins of each firm's published live forecasts."""
    with duckdb.connect(str(project.warehouse), read_only=True) as con:
        rows = con.execute(
            "SELECT firm, list(DISTINCT origin ORDER BY origin) FROM forecast_week WHERE purpose = 'live' GROUP BY firm"
        ).fetchall()
    return dict(rows)


def to_make(project: Project) -> set[tuple[str, str]]:
    """Steps and firms of the year ahead that are not up to date, as `cbmt status` sees it."""
    opened = Project(project.root)
    state = State(opened, the_plan())
    tasks = [task for step in the_plan() for task in state.todo(step, purposes=("live",))]
    return {(task.step.name, task.unit.name if task.unit else "") for task in tasks}


def at_once(root: Path, of: Project) -> Project:
    """A project made from all files at once."""
    root.mkdir()
    (root / "cbmt.toml").write_text(CONFIG)
    for file in sorted((of.root / "orders").iterdir()):
        put(root, file.stem, file.read_text())
    with daemon(root) as clock:
        clock.switch_on("weekly_schedule", MONDAY - timedelta(minutes=1))
        clock.schedules(MONDAY)
        clock.finish()
    return Project(root)


def without_past(found: dict[str, str], last: date) -> dict[str, str]:
    """Tables without the vintages before `last`."""
    return {
        name: digest for name, digest in found.items() if "origin=" not in name or f"origin={last}" in name
    }


def bad_rows(project: Project) -> dict[str, int]:
    """Rows that cannot be read, by firm, as the published file counts them."""
    with duckdb.connect(str(project.warehouse), read_only=True) as con:
        return dict(
            con.execute(
                "SELECT firm, sum(rows)::INT FROM quarantine_summary WHERE reason LIKE 'unparseable%' GROUP BY firm"
            ).fetchall()
        )


def red(clock: Daemon) -> set[str]:
    """Partitions of `transactions` that the UI shows as failed."""
    found = get_and_update_asset_status_cache_value(
        clock.instance, dg.AssetKey("transactions"), firm_partitions, clock.instance
    )
    assert found
    return set(found.deserialize_failed_partition_subsets(firm_partitions).get_partition_keys())


def last_title(clock: Daemon) -> tuple[str | None, BulkActionStatus]:
    newest = clock.backfills()[0]
    return newest.title, newest.status


def test_four_weeks_by_themselves_end_as_all_files_at_once(tmp_path: Path) -> None:
    root = tmp_path / "weeks"
    root.mkdir()
    (root / "cbmt.toml").write_text(CONFIG)
    project = Project(root)
    for firm in FIRMS:
        put(root, firm, orders(firm, 0, HISTORY))

    with daemon(root) as clock:
        clock.switch_on("weekly_schedule", MONDAY - timedelta(minutes=1))
        clock.schedules(MONDAY)
        clock.finish()
        assert last_title(clock) == ("weekly: 5 firms", BulkActionStatus.COMPLETED_SUCCESS)
        assert states(project) == dict.fromkeys(FIRMS, "current")
        assert to_make(project) == set()
        first = {k: v for k, v in content(project).items() if f"origin={week(0)}" in k}
        assert first

        # The second Monday: one firm is late, and of one the whole file arrives corrupt.
        for firm in FIRMS[:3]:
            put(root, f"{firm}-1", orders(firm, HISTORY + 1, HISTORY + 1))
        put(root, "Dogwood", orders("Dogwood", 0, HISTORY + 1, bad=True))
        clock.schedules(MONDAY + timedelta(weeks=1))
        clock.finish()
        assert last_title(clock) == ("weekly: 5 firms (the rest)", BulkActionStatus.COMPLETED_SUCCESS)
        failed = clock.instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]))
        assert len(failed) == 1, "the bad firm fails in one run, and nothing else does"
        expected = dict.fromkeys(FIRMS[:3], "current") | {"Dogwood": "untrusted", "Elm": "late"}
        assert states(project) == expected
        assert to_make(project) == {("firm_data", "Dogwood")}
        assert set(bad_rows(project)) == red(clock) == {"Dogwood"}
        assert vintages(project)["Alder"] == weeks(0, 1)
        assert vintages(project)["Elm"] == vintages(project)["Dogwood"] == weeks(0)

    # The third: the file is put right, the late firm catches up, a firm is new, and the daemon is killed.
    for firm in FIRMS[:3]:
        put(root, f"{firm}-2", orders(firm, HISTORY + 2, HISTORY + 2))
    put(root, "Dogwood", orders("Dogwood", 0, HISTORY + 2))
    put(root, "Elm-2", orders("Elm", HISTORY + 1, HISTORY + 2))
    put(root, NEW, orders(NEW, 0, HISTORY + 2))
    monday = MONDAY + timedelta(weeks=2)
    command = [sys.executable, "-c", KILLED, str(root), str(TESTS), monday.isoformat()]
    environment = {k: v for k, v in os.environ.items() if k not in ("DAGSTER_HOME", "CBMT_PROJECT")}
    killed = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert to_make(project), "it was killed in the middle"
    assert states(project) == expected, "what is published is what was whole"

    with daemon(root) as clock:
        fail_orphaned_runs(project)  # as `cbmt ui` does when it starts
        for run in clock.instance.get_runs(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])):
            clock.instance.report_run_failed(
                run, "its process is gone"
            )  # what else run monitoring says of it
        clock.schedules(monday + timedelta(minutes=5))
        clock.finish()
        everyone = (*FIRMS, NEW)
        assert states(project) == dict.fromkeys(everyone, "current")
        assert to_make(project) == set()
        assert bad_rows(project) == {}
        assert red(clock) == set(), "put right, it is green again"
        third = {k: v for k, v in content(project).items() if f"origin={week(2)}" in k}

        # The fourth: a new version of a step, whose results are the same.
        step = the_plan()["firm_data"]
        before = step.version
        object.__setattr__(step, "version", "next")
        try:
            for firm in everyone:
                put(root, f"{firm}-3", orders(firm, HISTORY + 3, HISTORY + 3))
            clock.schedules(MONDAY + timedelta(weeks=3))
            clock.finish()
            assert states(project) == dict.fromkeys(everyone, "current")
            assert to_make(project) == set()
            whole = at_once(tmp_path / "at_once", project)
            assert to_make(whole) == set()
        finally:
            object.__setattr__(step, "version", before)

    last = week(3)
    made = content(project)
    assert without_past(content(project, JUDGED), last) == without_past(content(whole, JUDGED), last)
    assert states(whole) == states(project)
    assert first.items() <= made.items(), "a vintage is never rewritten"
    assert third.items() <= made.items()
    assert vintages(project) == {
        **{key: weeks(0, 1, 2, 3) for key in FIRMS[:3]},
        **{key: weeks(0, 2, 3) for key in FIRMS[3:]},
        NEW: weeks(2, 3),
    }
