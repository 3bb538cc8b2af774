"""Holdout forecasts of the study by `cbmt_plus`."""

from cbmt_pipeline.forecast_steps import forecast_step

STEP = forecast_step(
    "plus_forecasts",
    "study",
    lambda project: ["cbmt_plus"],
    "Holdout forecasts by cbmt_plus: cohorts that age, in weeks whose paths follow the prior firms have learned.",
    needs=("cohort_week", "path_priors"),
    batch=10,
)
