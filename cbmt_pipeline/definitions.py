"""The Dagster code location."""

from __future__ import annotations

import dagster as dg

from cbmt_pipeline.assets.diagnostics import (
    comovement,
    difficulty,
    external_calibration,
    firm_measures,
    routing,
)
from cbmt_pipeline.assets.evaluation import accuracy, bridge, exhibits
from cbmt_pipeline.assets.firm_data import firm_data
from cbmt_pipeline.assets.forecasts import benchmark_forecasts
from cbmt_pipeline.assets.intake import intake
from cbmt_pipeline.assets.networks import neural_forecasts, tuned_models
from cbmt_pipeline.assets.plus import path_priors, plus_forecasts, weekly_series
from cbmt_pipeline.assets.report import report
from cbmt_pipeline.assets.warehouse import warehouse
from cbmt_pipeline.automation import firms_sensor, new_files_sensor, read_new_files, refresh_firms
from cbmt_pipeline.resources import ProjectResource

defs = dg.Definitions(
    assets=[
        intake,
        firm_data,
        benchmark_forecasts,
        tuned_models,
        neural_forecasts,
        weekly_series,
        path_priors,
        plus_forecasts,
        accuracy,
        bridge,
        firm_measures,
        comovement,
        difficulty,
        routing,
        external_calibration,
        exhibits,
        warehouse,
        report,
    ],
    jobs=[read_new_files, refresh_firms],
    sensors=[new_files_sensor, firms_sensor],
    resources={"project": ProjectResource(root=dg.EnvVar("CBMT_PROJECT"))},
    # Parallelism is concurrent runs; a process per step costs more than most steps.
    executor=dg.in_process_executor,
)
