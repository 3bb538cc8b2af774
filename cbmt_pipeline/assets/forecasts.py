"""Forecasts of one firm by many models, one firm a run."""

import dagster as dg
import duckdb
from pydantic import Field

from cbmt_core import duck
from cbmt_core.customers import read_panel
from cbmt_core.errors import BadFirmData, CbmtError
from cbmt_core.forecasting import ModelRun, forecast_tables, run_models
from cbmt_core.models import benchmarks
from cbmt_core.names import Unit
from cbmt_pipeline.partitions import firm_partitions
from cbmt_pipeline.project import BENCHMARKS, SEED, Project
from cbmt_pipeline.resources import ProjectResource

__all__ = ["benchmark_forecasts"]


class ForecastConfig(dg.Config):
    """Which models to run. A run of some models leaves the stored forecasts of the others as they are."""

    models: list[str] = Field(default_factory=benchmarks)
    seed: int = SEED


@dg.asset(
    deps=["transactions", "cohort_week"],
    partitions_def=firm_partitions,
    group_name="forecasts",
    kinds={"python", "parquet"},
    description="Holdout forecasts by every benchmark: model_fit, forecast_week, forecast_cohort_week.",
)
def benchmark_forecasts(
    context: dg.AssetExecutionContext, config: ForecastConfig, project: ProjectResource
) -> dg.MaterializeResult:
    here = project.open()
    unit = Unit.from_slug(context.partition_key)
    if unit not in here.lake.units("cohort_week"):
        raise BadFirmData(unit.name, "its cohort tables do not exist; materialise them first")
    unknown = [name for name in config.models if name not in benchmarks()]
    if unknown or not config.models:
        raise CbmtError(
            f"not benchmarks: {', '.join(unknown) or 'none named'}; there are {', '.join(benchmarks())}"
        )
    design = here.design()
    with duck.connect(here.spill, threads=1) as con:
        panel = read_panel(
            con,
            unit.name,
            design,
            cohort_week=here.lake.relation("cohort_week", unit),
            orders=here.lake.relation("transactions", unit),
        )
        runs = run_models(
            panel,
            config.models,
            design.origin,
            design.holdout_weeks,
            seed=config.seed,
            on_model=lambda run: context.log.info(_told(run)),
        )
        _store(con, here, unit, runs)
    failed = [run for run in runs if run.reason]
    return dg.MaterializeResult(
        metadata={
            "models": len(runs),
            "failed": len(failed),
            "seconds": sum(run.seconds for run in runs),
            "fits": dg.MetadataValue.table(
                records=[
                    dg.TableRecord(
                        {
                            "model": run.model,
                            "seconds": round(run.seconds, 2),
                            "holdout sales": f"{run.forecast.S.sum():,.0f}" if run.forecast else "",
                            "note": run.reason or (run.record.diagnosis if run.record else ""),
                        }
                    )
                    for run in runs
                ]
            ),
        }
    )


def _told(run: ModelRun) -> str:
    return f"{run.model}: {run.reason or 'done'} in {run.seconds:.1f} s"


def _store(con: duckdb.DuckDBPyConnection, here: Project, unit: Unit, runs: list[ModelRun]) -> None:
    """Write the runs' rows; rows that other models made from the same data are kept."""
    models = ", ".join(duck.literal(run.model) for run in runs)
    stamp = here.forecast_stamp(unit, runs[0].seed)
    for table, frame in forecast_tables(runs).items():
        con.register("new_rows", frame)
        relation = "new_rows"
        if here.lake.stamp(table, unit, BENCHMARKS) == stamp:
            old = duck.parquet([here.lake.path(table, unit, BENCHMARKS)])
            relation = f"(FROM {old} WHERE model NOT IN ({models}) UNION ALL BY NAME FROM new_rows)"
        here.lake.write(con, table, unit, relation, stamp, BENCHMARKS)
        con.unregister("new_rows")
