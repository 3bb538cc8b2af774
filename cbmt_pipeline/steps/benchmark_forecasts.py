"""Holdout forecasts of the study by every benchmark."""

from cbmt_core.models import benchmarks
from cbmt_pipeline.forecast_steps import forecast_step

STEP = forecast_step(
    "benchmark_forecasts",
    "study",
    lambda project: benchmarks(),
    "Holdout forecasts by every benchmark: model_fit, forecast_week, forecast_cohort_week.",
    needs=("transactions", "cohort_week"),
)
