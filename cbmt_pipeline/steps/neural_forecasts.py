"""Holdout forecasts of the study by the networks that were trained for it."""

from threadpoolctl import threadpool_limits

from cbmt_core.errors import BadFirmData
from cbmt_core.forecast_checks import PROMISES
from cbmt_core.forecasting import FORECAST_TABLES, forecast_fit
from cbmt_core.schema import TABLES
from cbmt_pipeline.forecast_steps import forecasts_made
from cbmt_pipeline.plan import Step
from cbmt_pipeline.steps import tuned_models
from cbmt_pipeline.work import Made, Work


def make(work: Work) -> Made:
    tuned = work.state.is_current(work.plan["tuned_models"], work.origin, work.unit)
    # A network that failed has no item but a fit with the reason, which is recorded like a forecast.
    absent = [name for name in work.items if not (tuned and tuned_models.was_tried(work, tuned, name))]
    if absent:
        names = ", ".join(absent)
        raise BadFirmData(
            work.firm.name, f"no {names} was trained on its present data; materialise tuned_models"
        )
    panel = work.panel()
    with threadpool_limits(1):
        runs = [
            forecast_fit(tuned_models.load_tuned(work, name), panel, work.at.horizon) for name in work.items
        ]
    trained = dict(tuned.items) if tuned else {}
    return forecasts_made(work, panel, runs, {name: trained[name] for name in work.items if name in trained})


STEP = Step(
    name="neural_forecasts",
    make=make,
    description="Holdout forecasts by the trained networks: model_fit, forecast_week, forecast_cohort_week.",
    group="forecasts",
    writes=tuple(TABLES[table] for table in FORECAST_TABLES),
    needs=("tuned_models",),
    code=("cbmt_core.forecasting", "cbmt_core.compose"),
    purposes=("study",),
    kinds=frozenset({"python", "pytorch", "parquet"}),
    options=("models", "seed"),
    items=tuned_models.wanted,
    enough=tuned_models.STEP.enough,
    promises=PROMISES,
)
