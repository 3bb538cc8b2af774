"""Ranges of the study's forecasts by every model, from what was known at the study's origin."""

from cbmt_core.names import Unit
from cbmt_core.schema import TABLES
from cbmt_core.timeline import Origin
from cbmt_pipeline.plan import Step
from cbmt_pipeline.project import Project
from cbmt_pipeline.steps.accuracy import FORECASTS
from cbmt_pipeline.steps.forecast_bands import make


def _settings(project: Project, unit: Unit | None, origin: Origin | None) -> dict[str, str]:
    return {"draws": str(project.config.bands.draws)}


STEP = Step(
    name="study_bands",
    make=make,
    description="Ranges of the study's forecasts by every model; those without backtests borrow the errors of others.",
    group="evaluation",
    writes=(TABLES["forecast_band"],),
    needs=("cohort_week", "path_priors", *FORECASTS, "band_factors"),
    code=("cbmt_core.bands", "cbmt_core.compose", "cbmt_core.uncertainty"),
    purposes=("study",),
    batch=20,
    options=("seed",),
    settings=_settings,
)
