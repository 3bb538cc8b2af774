"""Forecasts of one firm by the benchmarks, one firm a run; what is common to every asset of forecasts."""

import dagster as dg
import duckdb
from pydantic import Field

from cbmt_core import duck
from cbmt_core.customers import read_panel
from cbmt_core.errors import BadFirmData, CbmtError
from cbmt_core.forecasting import ModelRun, forecast_tables, run_models
from cbmt_core.models import benchmarks
from cbmt_core.names import Unit
from cbmt_core.panel import FirmPanel
from cbmt_pipeline.lake import Stamp
from cbmt_pipeline.partitions import firm_partitions
from cbmt_pipeline.progress import tell
from cbmt_pipeline.project import BENCHMARKS, SEED, Project
from cbmt_pipeline.resources import ProjectResource

__all__ = ["benchmark_forecasts", "panel_of", "runs_metadata", "store_runs"]


class ForecastConfig(dg.Config):
    """Which models to run. A run of some models leaves the stored forecasts of the others as they are."""

    models: list[str] = Field(default_factory=benchmarks, description="Names of benchmarks.")
    seed: int = Field(default=SEED, description="Of every fit.")


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
    unknown = [name for name in config.models if name not in benchmarks()]
    if unknown or not config.models:
        raise CbmtError(
            f"not benchmarks: {', '.join(unknown) or 'none named'}; there are {', '.join(benchmarks())}"
        )
    design = here.design()
    done = 0

    def on_model(run: ModelRun) -> None:
        nonlocal done
        done += 1
        context.log.info(f"{run.model}: {run.reason or 'done'} in {run.seconds:.1f} s")
        tell(unit.slug, config.models[min(done, len(config.models) - 1)], done / len(config.models))

    with duck.connect(here.spill, threads=1) as con:
        panel = panel_of(con, here, unit, customers=True)
        runs = run_models(
            panel, config.models, design.origin, design.holdout_weeks, seed=config.seed, on_model=on_model
        )
        store_runs(con, here, unit, runs, BENCHMARKS)
    return dg.MaterializeResult(metadata=runs_metadata(runs))


def panel_of(con: duckdb.DuckDBPyConnection, here: Project, unit: Unit, *, customers: bool) -> FirmPanel:
    """The firm's panel out of the lake."""
    if unit not in here.lake.units("cohort_week"):
        raise BadFirmData(unit.name, "its cohort tables do not exist; materialise them first")
    return read_panel(
        con,
        unit.name,
        here.design(),
        cohort_week=here.lake.relation("cohort_week", unit),
        orders=here.lake.relation("transactions", unit) if customers else None,
    )


def store_runs(
    con: duckdb.DuckDBPyConnection,
    here: Project,
    unit: Unit,
    runs: list[ModelRun],
    part: str,
    stamp: Stamp | None = None,
) -> None:
    """Write the runs' rows; rows that other models made from the same data are kept."""
    models = ", ".join(duck.literal(run.model) for run in runs)
    stamp = stamp or here.forecast_stamp(unit, runs[0].seed)
    for table, frame in forecast_tables(runs).items():
        con.register("new_rows", frame)
        relation = "new_rows"
        if here.lake.stamp(table, unit, part) == stamp:
            old = duck.parquet([here.lake.path(table, unit, part)])
            relation = f"(FROM {old} WHERE model NOT IN ({models}) UNION ALL BY NAME FROM new_rows)"
        here.lake.write(con, table, unit, relation, stamp, part)
        con.unregister("new_rows")


def runs_metadata(runs: list[ModelRun]) -> dict[str, object]:
    return {
        "models": len(runs),
        "failed": sum(run.forecast is None for run in runs),
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
