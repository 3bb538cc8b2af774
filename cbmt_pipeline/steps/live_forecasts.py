"""Forecasts of the next 52 weeks from all data up to the last complete week: one vintage a week."""

from cbmt_pipeline.forecast_steps import forecast_step

STEP = forecast_step(
    "live_forecasts",
    "live",
    lambda project: project.live_models(),
    "The next 52 weeks by the models of [forecast] in cbmt.toml, fitted on all weeks; earlier vintages stay.",
    needs=("transactions", "cohort_week", "path_priors"),
    batch=25,
    version="2",
)
