"""Scenarios, plan and value in a project: made from the stored draws, made again when their settings change."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from click.testing import CliRunner
from helpers.demo_project import FIRM

from cbmt_core.bands import read_draws
from cbmt_core.config import ProjectConfig
from cbmt_core.scenarios import Scenario, baseline_of, outcome_of
from cbmt_pipeline.cli import main
from cbmt_pipeline.plan import State, the_plan
from cbmt_pipeline.project import Project

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("demo")]


def with_settings(project: Project, **sections: object) -> Project:
    """The project as if its cbmt.toml had these sections too."""
    held = project.config.model_dump(mode="json", by_alias=True, exclude_none=True)
    other = Project(project.root)
    other.__dict__["config"] = ProjectConfig.from_mapping({**held, **sections}, "cbmt.toml")
    return other


def stale(project: Project) -> set[str]:
    state = State(project, the_plan())
    return {step.name for step in the_plan() if state.todo(step)} - {"warehouse", "report"}


def test_a_setting_makes_its_own_step_stale_and_no_other(demo: Project) -> None:
    before = stale(demo)
    change = {"weak": {"acquisition": "-10%", "firms": [FIRM]}}
    assert stale(with_settings(demo, scenario=change)) - before == {"scenarios"}
    assert stale(with_settings(demo, plan={"firms": {FIRM: 1e6}})) - before == {"scenarios"}
    assert stale(with_settings(demo, value={"margin": 0.4})) - before == {"customer_value"}
    about = [
        task.unit.name
        for task in State(with_settings(demo, scenario=change), the_plan()).todo(the_plan()["scenarios"])
        if task.unit
    ]
    assert about == [FIRM], "firms that a scenario is not about stay as they are"


def test_stored_draws_compose_to_what_is_published(demo: Project) -> None:
    with duckdb.connect(str(demo.warehouse), read_only=True) as con:
        drawn = con.execute("FROM forecast_draw WHERE firm = ? ORDER BY draw, week", [FIRM]).df()
        model, origin = drawn["model"].iloc[0], drawn["origin"].iloc[0].date()
        cells = con.execute(
            "FROM forecast_cohort_week WHERE firm = ? AND model = ? AND origin = ? AND purpose = 'live'",
            [FIRM, model, origin],
        ).df()
        baseline = baseline_of(read_draws(drawn, cells, origin))
        same = outcome_of(baseline, Scenario("nothing"))
        assert np.array_equal(same.draws.sales.ravel(), drawn["sales"].to_numpy()), "to the last bit"
        weeks = con.execute(
            "SELECT s.sales, f.sales, s.difference FROM scenario_week AS s JOIN forecast AS f USING (firm, week) "
            "WHERE firm = ? AND scenario = 'baseline' ORDER BY week",
            [FIRM],
        ).fetchnumpy()
        assert weeks["sales"] == pytest.approx(weeks["sales_1"], rel=1e-12)
        assert not weeks["difference"].any()
        ((total,),) = con.execute("SELECT sum(sales) FROM forecast WHERE firm = ?", [FIRM]).fetchall()
        parts = dict(
            con.execute("SELECT part, sales FROM customer_base_value WHERE firm = ?", [FIRM]).fetchall()
        )
        assert parts["total"] == pytest.approx(total)
        assert parts["existing"] + parts["to_come"] == pytest.approx(total)
        ((low, high, ends),) = con.execute(
            "SELECT sales_low, sales_high, [low, high] FROM scenario JOIN forecast_band USING (firm, model, origin) "
            "WHERE firm = ? AND scenario = 'baseline' AND purpose = 'live' AND outcome = 'sales' AND period = 'year' "
            "AND level = 80",
            [FIRM],
        ).fetchall()
        assert [low, high] == ends, "a range is the same number wherever it stands"
        bridge = con.execute(
            "SELECT any_value(b.order_volume), any_value(s.amount) FROM bridge AS b JOIN scenario_bridge AS s "
            "USING (firm, model, origin) WHERE firm = ? AND b.purpose = 'live' AND scenario = 'baseline' "
            "AND source = 'order_volume'",
            [FIRM],
        ).fetchall()[0]
        assert bridge[0] == pytest.approx(bridge[1], rel=1e-9)


def run(project: Project, *arguments: str) -> str:
    result = CliRunner().invoke(main, ["--project", str(project.root), *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_commands_answer(demo: Project) -> None:
    said = run(demo, "scenario", FIRM, "--acquisition", "-10%", "--from", "2020-06", "--aov", "+3%")
    assert "acquisition -10% from 2020-06-01, aov +3% from 2020-06-01" in said
    assert "net customer-base replenishment" in said
    with duckdb.connect(str(demo.warehouse), read_only=True) as con:
        ((sales,),) = con.execute("SELECT sum(sales) FROM forecast WHERE firm = ?", [FIRM]).fetchall()
    assert f"{sales:,.0f}" in said
    said = run(demo, "target", FIRM, "--sales", f"{1.2 * sales:.0f}", "--probability", "80%")
    assert "as things stand" in said
    assert "all of them together" in said
    said = run(demo, "target", FIRM, "--sales", f"{0.01 * sales:.0f}")
    assert "reached with more than 99 % as things stand" in said
    assert "reached even without it" in said
    said = run(demo, "value", FIRM)
    assert "customers to come" in said
    assert f"{sales:,.0f}" in said


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["scenario", FIRM], "state at least one change"),
        (["scenario", FIRM, "--aov", "3"], "write -10%"),
        (["scenario", FIRM, "--aov", "+3%", "--from", "2031-01"], "changes no week of the forecast"),
        (["scenario", "Keldevar Clothng", "--aov", "+3%"], "did you mean Keldevar Clothing"),
        (["target", FIRM, "--sales", "lots"], "9M"),
        (["target", FIRM, "--sales", "9M", "--probability", "200%"], "between 0 and 100"),
    ],
)
def test_what_cannot_be_meant_is_answered(demo: Project, arguments: list[str], printed: str) -> None:
    result = CliRunner().invoke(main, ["--project", str(demo.root), *arguments])
    assert result.exit_code != 0
    assert printed in result.output.replace("\n", " ")
