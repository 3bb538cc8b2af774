"""`cbmt_plus`: weekly series of each firm, priors of their paths learned across firms, forecasts of each firm."""

from collections.abc import Iterator
from datetime import timedelta

import dagster as dg
from threadpoolctl import threadpool_limits

from cbmt_core import duck
from cbmt_core.errors import BadFirmData, CbmtError
from cbmt_core.fits import fit_model, load_fit
from cbmt_core.forecasting import forecast_fit
from cbmt_core.names import Unit
from cbmt_pipeline.assets.forecasts import panel_of, runs_metadata, store_runs
from cbmt_pipeline.batches import BATCH, for_each_firm
from cbmt_pipeline.metadata import picture, rows_metadata
from cbmt_pipeline.partitions import firm_partitions
from cbmt_pipeline.progress import tell
from cbmt_pipeline.project import PLUS, PLUS_MODEL, SEED
from cbmt_pipeline.resources import ProjectResource

__all__ = ["path_priors", "plus_forecasts", "weekly_series"]

# The model is imported where it runs: Torch takes seconds, and whoever only lists the assets needs none of it.


@dg.multi_asset(
    specs=[
        dg.AssetSpec(
            "weekly_series",
            deps=["cohort_week"],
            group_name="forecasts",
            kinds={"python", "parquet"},
            description="Logs of the drivers without their cohorts' ageing, and of sales, week by week.",
            skippable=True,
        )
    ],
    partitions_def=firm_partitions,
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=BATCH),
)
def weekly_series(
    context: dg.AssetExecutionContext, project: ProjectResource
) -> Iterator[dg.MaterializeResult]:
    from cbmt_core.models.plus import weekly_series as series_of_panel

    here = project.open()
    origin = here.design().origin

    def make(unit: Unit) -> None:
        with duck.connect(here.spill, threads=1) as con, threadpool_limits(1):
            panel = panel_of(con, here, unit, customers=False).until(origin)
            con.register("made", series_of_panel(panel, seed=SEED))
            rows = here.lake.write(con, "weekly_series", unit, "made", here.forecast_stamp(unit, SEED))
        context.log_event(
            dg.AssetMaterialization(
                "weekly_series", partition=unit.slug, metadata=rows_metadata({"weekly_series": rows})
            )
        )

    for_each_firm(context, make)
    yield from ()  # Every firm was recorded one by one above; there is no other output.


@dg.asset(
    deps=["weekly_series"],
    group_name="forecasts",
    kinds={"python", "torch", "duckdb"},
    description="How weekly series of firms move, learned from all of them: the prior of cbmt_plus.",
)
def path_priors(context: dg.AssetExecutionContext, project: ProjectResource) -> dg.MaterializeResult:
    from cbmt_core.models.plus import learn_priors
    from cbmt_core.report.prior_figures import priors_picture

    here = project.open()

    def progress(step: int, steps: int) -> None:
        tell("", f"step {step} of {steps}", step / steps)
        if step % 20 == 0:
            context.log.info(f"step {step} of {steps}")

    with duck.connect(here.spill) as con, threadpool_limits(1):
        series = con.execute(f"FROM {here.lake.glob('weekly_series')}").df()
        priors = learn_priors(series, here.design().country, progress)
        con.register("made", priors.frame())
        rows = here.lake.write_whole(con, "path_prior", "made", here.evaluation_stamp())
    title = f"what {priors.firms} firms have in common"
    year = here.design().origin - timedelta(weeks=51)
    shown = picture(priors_picture(priors, year, title), title)
    return dg.MaterializeResult(
        metadata={"firms": priors.firms, **rows_metadata({"path_prior": rows}), "priors": shown}
    )


@dg.asset(
    deps=["neural_forecasts", path_priors],
    partitions_def=firm_partitions,
    group_name="forecasts",
    kinds={"python", "parquet"},
    description="Holdout forecasts by cbmt_plus: cohorts, paths under the learned priors, and the cbmt network.",
)
def plus_forecasts(context: dg.AssetExecutionContext, project: ProjectResource) -> dg.MaterializeResult:
    from cbmt_core.models.plus import PathPriors

    here = project.open()
    unit = Unit.from_slug(context.partition_key)
    design = here.design()
    if "cbmt" not in here.network_forecasts(unit):
        raise BadFirmData(
            unit.name,
            "no cbmt was trained on its present data; materialise tuned_models and neural_forecasts",
        )
    if not here.lake.has_whole("path_prior"):
        raise CbmtError("nothing was learned across firms yet; materialise path_priors first")
    network = load_fit(here.model_folder(unit, "cbmt"))
    with duck.connect(here.spill, threads=1) as con, threadpool_limits(1):
        frame = con.execute(f"FROM {here.lake.whole('path_prior')}").df()
        panel = panel_of(con, here, unit, customers=False).until(design.origin)
        priors = PathPriors.from_frame(frame, design.country)
        options = {"profile": network.profile, "priors": priors, "network": network.fitted}
        fit = fit_model(PLUS_MODEL, panel, SEED, **options)
        runs = [forecast_fit(fit, panel, design.holdout_weeks)]
        store_runs(con, here, unit, runs, PLUS, here.plus_stamp(unit))
    return dg.MaterializeResult(metadata=runs_metadata(runs))
