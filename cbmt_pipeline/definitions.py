"""The Dagster code location: assets from the plan, jobs and sensors."""

from __future__ import annotations

import dagster as dg

from cbmt_pipeline.assets import assets_of
from cbmt_pipeline.automation import (
    firms_sensor,
    move_study,
    move_study_schedule,
    new_files_sensor,
    read_new_files,
    refresh_firms,
)
from cbmt_pipeline.plan import the_plan
from cbmt_pipeline.resources import ProjectResource

defs = dg.Definitions(
    assets=assets_of(the_plan()),
    jobs=[read_new_files, refresh_firms, move_study],
    schedules=[move_study_schedule],
    sensors=[new_files_sensor, firms_sensor],
    resources={"project": ProjectResource(root=dg.EnvVar("CBMT_PROJECT"))},
    # Parallelism is concurrent runs; a process per step costs more than most steps.
    executor=dg.in_process_executor,
)
