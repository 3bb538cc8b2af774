"""`cbmt_plus`: forecasts from earlier origins of each firm, weights learned across firms, forecasts of each firm."""

import dagster as dg
from threadpoolctl import threadpool_limits

from cbmt_core import duck
from cbmt_core.errors import BadFirmData, CbmtError
from cbmt_core.fits import fit_model, load_fit
from cbmt_core.forecasting import forecast_fit
from cbmt_core.names import Unit
from cbmt_pipeline.assets.forecasts import panel_of, runs_metadata, store_runs
from cbmt_pipeline.metadata import rows_metadata
from cbmt_pipeline.partitions import firm_partitions
from cbmt_pipeline.project import PLUS, PLUS_MODEL, SEED
from cbmt_pipeline.resources import ProjectResource

__all__ = ["expert_weights", "inner_forecast", "plus_forecasts"]

# The model is imported where it runs: Torch takes seconds, and whoever only lists the assets needs none of it.


@dg.asset(
    deps=["transactions", "cohort_week"],
    partitions_def=firm_partitions,
    group_name="forecasts",
    kinds={"python", "parquet"},
    description="Forecasts of quick models from origins inside the calibration, beside what then happened.",
)
def inner_forecast(context: dg.AssetExecutionContext, project: ProjectResource) -> dg.MaterializeResult:
    from cbmt_core.models.plus import inner_forecasts

    here = project.open()
    unit = Unit.from_slug(context.partition_key)
    with duck.connect(here.spill, threads=1) as con, threadpool_limits(1):
        panel = panel_of(con, here, unit, customers=True).until(here.design().origin)
        con.register("made", inner_forecasts(panel, seed=SEED))
        rows = here.lake.write(con, "inner_forecast", unit, "made", here.forecast_stamp(unit, SEED))
    return dg.MaterializeResult(metadata=rows_metadata({"inner_forecast": rows}))


@dg.asset(
    deps=[inner_forecast],
    group_name="forecasts",
    kinds={"python", "duckdb"},
    description="How far cbmt_plus follows each expert, learned from the inner forecasts of all firms.",
)
def expert_weights(context: dg.AssetExecutionContext, project: ProjectResource) -> dg.MaterializeResult:
    from cbmt_core.models.plus import learn_weights

    here = project.open()
    with duck.connect(here.spill) as con:
        weights = learn_weights(con.execute(f"FROM {here.lake.glob('inner_forecast')}").df())
        con.register("made", weights.frame())
        rows = here.lake.write_whole(con, "expert_weight", "made", here.evaluation_stamp())
    return dg.MaterializeResult(metadata={"firms": weights.firms, **rows_metadata({"expert_weight": rows})})


@dg.asset(
    deps=["neural_forecasts", "transactions", expert_weights],
    partitions_def=firm_partitions,
    group_name="forecasts",
    kinds={"python", "parquet"},
    description="Holdout forecasts by cbmt_plus: cohort_glm corrected as the weights say, and the cbmt network.",
)
def plus_forecasts(context: dg.AssetExecutionContext, project: ProjectResource) -> dg.MaterializeResult:
    from cbmt_core.models.plus import ExpertWeights

    here = project.open()
    unit = Unit.from_slug(context.partition_key)
    design = here.design()
    if "cbmt" not in here.network_forecasts(unit):
        raise BadFirmData(
            unit.name,
            "no cbmt was trained on its present data; materialise tuned_models and neural_forecasts",
        )
    if not here.lake.has_whole("expert_weight"):
        raise CbmtError("nothing was learned across firms yet; materialise expert_weights first")
    network = load_fit(here.model_folder(unit, "cbmt"))
    with duck.connect(here.spill, threads=1) as con, threadpool_limits(1):
        frame = con.execute(f"FROM {here.lake.whole('expert_weight')}").df()
        panel = panel_of(con, here, unit, customers=True).until(design.origin)
        weights = ExpertWeights.from_frame(frame)
        options = {"profile": network.profile, "weights": weights, "network": network.fitted}
        fit = fit_model(PLUS_MODEL, panel, SEED, **options)
        runs = [forecast_fit(fit, panel, design.holdout_weeks)]
        store_runs(con, here, unit, runs, PLUS, here.plus_stamp(unit))
    return dg.MaterializeResult(metadata=runs_metadata(runs))
