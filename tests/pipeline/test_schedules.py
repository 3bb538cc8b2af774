"""Scheduled backfills: what the jobs ask for, that one bad firm stops nobody else, and how they are switched on."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from helpers.in_process import bring_up_to_date
from helpers.small_project import FIRMS, new_project, orders_csv

from cbmt_core.config import ProjectConfig
from cbmt_core.errors import ConfigError
from cbmt_core.names import Unit
from cbmt_core.operation import ScheduleConfig, is_cron
from cbmt_pipeline.backfills import stale_target
from cbmt_pipeline.plan import State, the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.schedules import CRON, schedules_of

pytestmark = pytest.mark.xdist_group("schedules")

SETTINGS = """
[forecast]
models = ["cohort_glm"]
[networks]
models = []
"""


def test_a_backfill_holds_what_is_stale_and_what_rests_on_it(tmp_path: Path) -> None:
    new_project(tmp_path)
    with (tmp_path / "cbmt.toml").open("a") as file:
        file.write(SETTINGS)
    project = Project(tmp_path)
    keys = {Unit(firm).key for firm in FIRMS}
    first = stale_target(State(project, the_plan()), ("live",))
    assert all(of == keys for of in first.firms.values())
    assert {"firm_data", "live_forecasts"} <= set(first.firms)
    assert not {"benchmark_forecasts", "firm_measures"} & set(first.firms)
    assert {"forecast_choice", "bridge", "warehouse", "report"} <= first.across
    assert not {"accuracy", "exhibits", "intake"} & first.across
    bring_up_to_date(project, models=("cohort_glm",), without=())
    assert not stale_target(State(project, the_plan()), ("live",))
    (tmp_path / "orders/1.csv").write_text(orders_csv(FIRMS[1], amount="11.00"))
    project.intake.update(project.config, project.root)
    changed = stale_target(State(project, the_plan()), ("live",))
    assert changed.firms["firm_data"] == changed.firms["live_forecasts"] == {Unit(FIRMS[1]).key}
    assert "warehouse" in changed.across


def test_a_schedule_is_off_until_the_project_states_its_time() -> None:
    off = {schedule.name: schedule for schedule in schedules_of(ScheduleConfig())}
    assert set(off) == {"weekly_schedule", "study_schedule"}
    assert {schedule.default_status for schedule in off.values()} == {dg.DefaultScheduleStatus.STOPPED}
    assert off["weekly_schedule"].cron_schedule == CRON["weekly"]
    on = schedules_of(ScheduleConfig(weekly="30 5 * * 2", timezone="America/New_York"))[0]
    assert on.default_status == dg.DefaultScheduleStatus.RUNNING
    assert (on.cron_schedule, on.execution_timezone) == ("30 5 * * 2", "America/New_York")


@pytest.mark.parametrize(
    "text", ["0 6 * * 1", "*/15 0-6,22 1 1,4,7,10 *", "59 23 31 12 7", "0 0 1-31/2 * 1-5"]
)
def test_cron_times_are_known(text: str) -> None:
    assert is_cron(text)


@pytest.mark.parametrize(
    "text", ["", "monday", "0 6 * *", "60 6 * * 1", "0 24 * * 1", "0 6 0 * 1", "0 6 * * 1 *", "*/0 * * * *"]
)
def test_other_texts_are_no_cron_times(text: str) -> None:
    assert not is_cron(text)


@pytest.mark.parametrize(
    ("setting", "says"), [('weekly = "at six"', "no cron time"), ('timezone = "Mars"', "not a time zone")]
)
def test_a_wrong_schedule_is_reported_with_its_place(setting: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "cbmt.toml"
    source = '[[sources]]\nname = "shop"\npath = "orders"\ncurrency = "GBP"\ntimezone = "UTC"\n'
    file.write_text(f"{source}[schedule]\n{setting}\n")
    with pytest.raises(ConfigError, match=f"schedule.*{says}"):
        ProjectConfig.load(file)
