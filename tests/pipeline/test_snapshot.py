"""The published file holds what belongs together, and says when, from what and for whom it was made."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import duckdb
import pytest
from helpers.in_process import bring_up_to_date
from helpers.projects import corrupt_amounts
from helpers.small_project import CONFIG, orders_csv

from cbmt_pipeline.plan import State, the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.publish import publish
from cbmt_pipeline.transaction import carry_out

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("snapshot")]

FIRMS = ("good", "fine", "bad", "never")
FLOOR = ("seasonal_naive",)
WITHOUT = (
    *("tuned_models", "neural_forecasts", "plus_forecasts", "path_priors", "backtest_forecasts"),
    *("firm_measures", "comovement", "difficulty", "routing", "external_calibration", "exhibits", "report"),
)


def query(project: Project, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(project.warehouse), read_only=True) as con:
        return con.execute(sql).fetchall()


def states(project: Project) -> dict[object, tuple[object, ...]]:
    return {firm: rest for firm, *rest in query(project, "SELECT firm, state, reason FROM firm_state")}  # type: ignore


def refresh(project: Project, *without: str) -> list[str]:
    failed: list[str] = []
    bring_up_to_date(Project(project.root), models=FLOOR, without=(*WITHOUT, *without), failed=failed)
    return failed


def put(project: Project, firm: str, weeks: int, **more: str) -> Path:
    file = project.root / "orders" / f"{firm}.csv"
    file.write_text(orders_csv(firm, weeks, **more))
    return file


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Four firms, one of which never was any good."""
    root = tmp_path_factory.mktemp("snapshot")
    (root / "orders").mkdir()
    (root / "cbmt.toml").write_text(CONFIG + '[forecast]\nmodels = ["seasonal_naive"]\n')
    made = Project(root)
    for firm in FIRMS:
        put(made, firm, 90)
    corrupt_amounts(root / "orders" / "never.csv")
    refresh(made)
    return Project(root)


def test_the_file_says_when_by_whom_and_from_what_it_was_made(project: Project) -> None:
    [row] = query(
        project,
        "SELECT files, rows, firms, firms_current, last_week, live_origin, data_version, "
        "published_at = study_published_at FROM snapshot",
    )
    last = project.timeline().panel.last
    rows = sum(entry.rows for entry in project.intake.ledger())
    assert row == (4, rows, 4, 3, last, last, project.intake.version, True)


def test_a_firm_that_never_was_usable_is_published_as_untrusted_with_its_reason(project: Project) -> None:
    found = states(project)
    assert {firm for firm, (state, _) in found.items() if state == "current"} == {"good", "fine", "bad"}
    state, reason = found["never"]
    assert state == "untrusted"
    assert "at most 5% of its rows are bad" in str(reason)
    assert query(project, "SELECT count(*) FROM firm WHERE firm = 'never'") == [(0,)]


def test_a_repaired_file_leaves_no_trace_of_what_was_bad(project: Project) -> None:
    file = project.root / "orders" / "bad.csv"
    good = file.read_text()
    corrupt_amounts(file)
    assert len(refresh(project)) == 2
    assert states(project)["bad"][0] == "untrusted"
    assert query(project, "SELECT sum(rows) > 50 FROM quarantine_summary WHERE firm = 'bad'") == [(True,)]
    # What was published of it before stays.
    assert query(project, "SELECT count(*) FROM forecast WHERE firm = 'bad'") == [(52,)]
    file.write_text(good)
    assert len(refresh(project)) == 1
    assert states(project)["bad"] == ["current", ""]
    assert query(project, "SELECT count(*) FROM quarantine_summary WHERE firm = 'bad'") == [(0,)]
    waiting = State(Project(project.root), the_plan()).todo(the_plan()["firm_data"])
    assert [task.unit.name for task in waiting if task.unit] == ["never"]


def test_a_new_origin_is_published_when_it_is_whole(project: Project) -> None:
    """In the middle of a refresh the newest vintage is the one before, for all firms and tables."""
    before = project.timeline().panel.last
    for firm in FIRMS:
        put(project, firm, 91)
    refresh(project, "forecast_choice", "bridge", "accuracy", "warehouse")
    now = Project(project.root)
    after = now.timeline().panel.last
    assert after == before + timedelta(weeks=1)
    publish(now, the_plan())
    origins = "SELECT DISTINCT origin FROM {} WHERE purpose = 'live' ORDER BY origin"
    for table in ("forecast_week", "forecast_choice", "bridge", "model_fit"):
        assert query(now, origins.format(table)) == [(before,)], table
    assert {state for state, _ in states(now).values()} == {"waiting"}
    assert query(now, "SELECT live_origin, last_week FROM snapshot") == [(before, after)]
    refresh(now)
    for table in ("forecast_week", "forecast_choice", "bridge", "model_fit"):
        assert query(now, origins.format(table)) == [(before,), (after,)], table


def test_the_study_stays_the_published_one_until_all_of_it_is_made_again(project: Project) -> None:
    """A late order in an old week changes the holdout's actual sales: errors from before and after do not mix."""
    now = Project(project.root)
    tables = ("accuracy", "bridge WHERE purpose = 'study'", "forecast_week WHERE purpose = 'study'")
    before = [query(now, f"FROM {table} ORDER BY ALL") for table in tables]
    [(first,)] = query(now, "SELECT study_published_at FROM snapshot")
    put(now, "good", 91, amount="12.00")
    plan = the_plan()
    assert now.intake.update(now.config, now.root).failed == {}
    for step in ("firm_data", "benchmark_forecasts"):
        for task in State(now, plan).todo(plan[step]):
            if task.unit and task.unit.name == "good":
                items = tuple(item for item in task.items if item in FLOOR)
                carry_out(now, plan, type(task)(task.step, task.origin, task.unit, items))
    publish(now, plan)
    assert [query(now, f"FROM {table} ORDER BY ALL") for table in tables] == before
    assert query(now, "SELECT study_published_at FROM snapshot") == [(first,)]
    refresh(now)
    after = [query(now, f"FROM {table} ORDER BY ALL") for table in tables]
    assert all(one != two for one, two in zip(before, after, strict=True))
