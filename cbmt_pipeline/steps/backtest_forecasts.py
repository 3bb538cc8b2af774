"""Backtests: the live forecast as it would have been made in every 13th week of the past."""

from cbmt_core.timeline import Origin
from cbmt_pipeline.forecast_steps import forecast_step
from cbmt_pipeline.project import Project


def _serves(project: Project, origin: Origin) -> list[Origin]:
    """The backtests at and before an origin."""
    return [own for own in project.origins("backtest") if own.week < origin.week or own == origin]


STEP = forecast_step(
    "backtest_forecasts",
    "backtest",
    lambda project: project.live_models(),
    "52 weeks ahead from every 13th week back, by the models of the live forecast: what it is chosen and judged by.",
    needs=("transactions", "cohort_week", "path_priors"),
    batch=10,
    version="2",
    serves=_serves,
)
