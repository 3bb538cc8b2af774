"""The Dagster code location: assets from the plan, jobs, schedules and sensors."""

from __future__ import annotations

import os
from pathlib import Path

import dagster as dg

from cbmt_pipeline.assets import assets_of
from cbmt_pipeline.automation import (
    automation_sensor,
    finish_backfills,
    firms_sensor,
    new_files_sensor,
    read_new_files,
    refresh_firms,
)
from cbmt_pipeline.notices import failure_notice_sensor
from cbmt_pipeline.plan import the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.resources import ProjectResource
from cbmt_pipeline.schedules import read_schedules, schedules_of, study, weekly

_schedule = read_schedules(Project(Path(os.environ.get("CBMT_PROJECT", "."))))

defs = dg.Definitions(
    assets=assets_of(the_plan(), _schedule),
    jobs=[weekly, study, read_new_files, refresh_firms],
    schedules=schedules_of(_schedule),
    sensors=[new_files_sensor, firms_sensor, automation_sensor, finish_backfills, failure_notice_sensor],
    resources={"project": ProjectResource(root=dg.EnvVar("CBMT_PROJECT"))},
    # Parallelism is concurrent runs; a process per step costs more than most steps.
    executor=dg.in_process_executor,
)
