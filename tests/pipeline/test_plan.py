"""The plan: what becomes stale when code, data or settings change, and what a new step costs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
from helpers.in_process import bring_up_to_date
from helpers.small_project import FIRMS, new_project, orders_csv

from cbmt_core.schema import FIRM, Column, Table
from cbmt_pipeline.assets import assets_of
from cbmt_pipeline.plan import Plan, State, Step, the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.transaction import carry_out
from cbmt_pipeline.work import Made, Work

pytestmark = pytest.mark.xdist_group("plan")

STUDY = {"accuracy", "bridge", "comovement", "difficulty", "external_calibration", "routing", "exhibits"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = new_project(tmp_path_factory.mktemp("plan"))
    (project.root / "cbmt.toml").write_text(
        (project.root / "cbmt.toml").read_text() + '[forecast]\nmodels = ["cohort_glm", "seasonal_naive"]\n'
    )
    project.__dict__.pop("config", None)
    bring_up_to_date(project)
    return project


def stale(project: Project, plan: Plan) -> set[str]:
    """Steps with something to make; models that were never asked for, and the prior of one of them, are left out."""
    state = State(project, plan)
    found = set()
    for step in plan:
        for task in state.todo(step):
            if step.items is None or {"cohort_glm", "seasonal_naive"} & set(task.items):
                found.add(step.name)
    return found - {"report", "path_priors"}


def with_version(name: str) -> Plan:
    """The plan as if somebody had changed what one step computes."""
    return Plan(replace(step, version="changed") if step.name == name else step for step in the_plan())


def test_nothing_is_stale_after_a_run(made: Project) -> None:
    assert stale(made, the_plan()) == set()


@pytest.mark.parametrize("name", ["accuracy", "bridge", "firm_measures", "live_forecasts", "forecast_choice"])
def test_a_changed_step_is_made_again_and_nothing_else_until_its_output_differs(
    made: Project, name: str
) -> None:
    plan = with_version(name)
    assert stale(made, plan) == {name}
    tasks = State(made, plan).todo(plan[name])
    firms = len(FIRMS) if plan[name].by_firm else 1
    assert len(tasks) == firms * len(plan[name].at(made))


def test_a_changed_step_that_makes_the_same_leaves_what_needs_it_alone(made: Project) -> None:
    plan = with_version("accuracy")
    (task,) = State(made, plan).todo(plan["accuracy"])
    carry_out(made, plan, task)
    assert stale(made, plan) == set()
    (task,) = State(made, the_plan()).todo(the_plan()["accuracy"])
    carry_out(made, the_plan(), task)


def test_new_weeks_make_a_vintage_and_leave_the_study_alone(made: Project) -> None:
    project = made
    for k, firm in enumerate(FIRMS):
        (project.root / "orders" / f"{k}.csv").write_text(orders_csv(firm, weeks=94))
    assert State(project, the_plan()).todo(the_plan()["intake"])
    done = bring_up_to_date(project)
    steps = {step for step, _, _ in done}
    assert {"firm_data", "live_forecasts", "forecast_choice", "bridge"} <= steps
    assert not steps & {"benchmark_forecasts", "firm_measures", *(STUDY - {"bridge"})}
    assert {origin for step, origin, _ in done if step == "bridge"} == {
        f"live {project.timeline().panel.last}"
    }
    for k, firm in enumerate(FIRMS):
        (project.root / "orders" / f"{k}.csv").write_text(orders_csv(firm))
    bring_up_to_date(project)


def test_a_setting_makes_stale_what_reads_it(made: Project) -> None:
    path = made.root / "cbmt.toml"
    before = path.read_text()
    path.write_text(before.replace("min_customers = 5", "min_customers = 6"))
    made.__dict__.pop("config", None)
    assert stale(made, the_plan()) == {"firm_data"}
    path.write_text(before)
    made.__dict__.pop("config", None)
    assert stale(made, the_plan()) == set()


TABLE = Table(
    "best_week", "The best week of each firm.", ("firm",), (FIRM, Column("sales", "DOUBLE", "its sales"))
)


def _best_week(work: Work) -> Made:
    relation = work.project.lake.relation(work.plan.tables["firm_week"], unit=work.firm)
    frame = work.con.execute(f"SELECT firm, max(sales)::DOUBLE AS sales FROM {relation} GROUP BY firm").df()
    return Made({"best_week": frame})


NEW = Step("best_week", _best_week, "The best week.", "data", writes=(TABLE,), needs=("firm_week",), batch=40)


def test_a_new_step_is_an_asset_is_run_and_is_published(made: Project, tmp_path: Path) -> None:
    plan = Plan([*the_plan(), NEW])
    keys = {key.to_user_string() for asset in assets_of(plan) for key in asset.keys}
    assert "best_week" in keys
    assert NEW in plan.needed(plan["warehouse"])
    assert [step.name for step in plan].index("best_week") < [step.name for step in plan].index("warehouse")
    done = bring_up_to_date(made, plan)
    assert [step for step, *_ in done] == ["best_week"] * len(FIRMS) + ["warehouse"]
    with duckdb.connect(str(made.warehouse), read_only=True) as con:
        rows = con.execute("SELECT firm, sales FROM best_week ORDER BY firm").fetchall()
        expected = con.execute(
            "SELECT firm, max(sales)::DOUBLE FROM firm_week GROUP BY firm ORDER BY firm"
        ).fetchall()
    assert rows == expected
    assert len(rows) == len(FIRMS)
    bring_up_to_date(made)


def test_a_plan_with_a_hole_or_a_circle_is_refused() -> None:
    with pytest.raises(ValueError, match="best_week needs nowhere, which no step makes"):
        Plan([*the_plan(), replace(NEW, needs=("nowhere",))])
    other = replace(NEW, name="other", needs=("best_week",))
    with pytest.raises(ValueError, match="in a circle"):
        Plan([replace(NEW, needs=("other",)), other])
