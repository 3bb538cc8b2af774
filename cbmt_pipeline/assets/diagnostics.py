"""Across firms: when joint forecasting helps, how hard a firm is, which model to deploy, how analysts do."""

from collections.abc import Iterator

import dagster as dg
import pandas as pd

from cbmt_core import duck
from cbmt_core.diagnostics.data import DiagnosticData, State, gather_diagnostics
from cbmt_core.errors import BadTable, CbmtError
from cbmt_core.evaluation import Relations, reference_of
from cbmt_core.names import Unit
from cbmt_pipeline.assets.evaluation import relations_of, store
from cbmt_pipeline.assets.forecasts import panel_of
from cbmt_pipeline.batches import BATCH, for_each_firm
from cbmt_pipeline.metadata import rows_metadata
from cbmt_pipeline.partitions import firm_partitions
from cbmt_pipeline.project import Project
from cbmt_pipeline.resources import ProjectResource

__all__ = ["comovement", "difficulty", "external_calibration", "firm_measures", "routing"]

GROUP = "diagnostics"


@dg.multi_asset(
    specs=[
        dg.AssetSpec(
            "firm_measures",
            deps=["transactions", "cohort_week", "firm"],
            group_name=GROUP,
            kinds={"python", "parquet"},
            description="What is known of a firm at the origin: comovement_measure, difficulty_feature, firm_history.",
            skippable=True,
        )
    ],
    partitions_def=firm_partitions,
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=BATCH),
)
def firm_measures(
    context: dg.AssetExecutionContext, project: ProjectResource
) -> Iterator[dg.MaterializeResult]:
    from cbmt_core.diagnostics.measured import measure_firm

    here = project.open()

    def make(unit: Unit) -> None:
        with duck.connect(here.spill, threads=1) as con:
            panel = panel_of(con, here, unit, customers=True)
            washout = con.execute(f"SELECT washout_sales FROM {here.lake.relation('firm', unit)}").fetchall()
            rows = {}
            for table, frame in measure_firm(panel, float(washout[0][0])).items():
                con.register("made", frame)
                rows[table] = here.lake.write(con, table, unit, "made", here.forecast_stamp(unit, 0))
                con.unregister("made")
        context.log_event(
            dg.AssetMaterialization("firm_measures", partition=unit.slug, metadata=rows_metadata(rows))
        )

    for_each_firm(context, make)
    yield from ()  # Every firm was recorded one by one above; there is no other output.


@dg.asset(
    deps=["accuracy", firm_measures],
    group_name=GROUP,
    kinds={"python", "duckdb"},
    description="Whether joint forecasting wins where a firm's drivers move together: score, five tests, columns.",
)
def comovement(context: dg.AssetExecutionContext, project: ProjectResource) -> dg.MaterializeResult:
    from cbmt_core.diagnostics.results import comovement_tables

    here = project.open()
    return _stored(context, here, *comovement_tables(_data(here)))


@dg.asset(
    deps=["accuracy", firm_measures],
    group_name=GROUP,
    kinds={"python", "duckdb"},
    description="How hard each firm is to forecast, told beforehand: predicted error, its drivers, win rates.",
)
def difficulty(context: dg.AssetExecutionContext, project: ProjectResource) -> dg.MaterializeResult:
    from cbmt_core.diagnostics.results import difficulty_tables

    here = project.open()
    return _stored(context, here, *difficulty_tables(_data(here)))


@dg.asset(
    deps=["accuracy", firm_measures],
    group_name=GROUP,
    kinds={"python", "duckdb"},
    description="Whether a rule can choose between joint and single-task forecasts better than always the one.",
)
def routing(context: dg.AssetExecutionContext, project: ProjectResource) -> dg.MaterializeResult:
    from cbmt_core.diagnostics.routing import routing_tables

    def on_split(done: int, total: int) -> None:
        if done % 10 == 0:
            context.log.info(f"split {done}/{total}")

    here = project.open()
    return _stored(context, here, *routing_tables(_data(here), on_split=on_split))


@dg.asset(
    deps=["accuracy"],
    group_name=GROUP,
    kinds={"python", "duckdb"},
    description="Errors by fiscal quarter beside those of analysts, from the tables of [calibration] in cbmt.toml.",
)
def external_calibration(context: dg.AssetExecutionContext, project: ProjectResource) -> dg.MaterializeResult:
    from cbmt_core.diagnostics.calibration import calibrate, calibration_tables, read_tables, weekly_sales

    here = project.open()
    made, wanted = None, here.config.calibration
    if wanted is not None:
        paths = (wanted.tickers, wanted.quarters, wanted.forecasts)
        try:
            tables = read_tables(*(here.root / path for path in paths))
        except BadTable as error:
            _stored(context, here, *calibration_tables(None, str(error)))
            raise
        relations = relations_of(here)
        with duck.connect(here.spill) as con:
            names = con.execute(f"SELECT DISTINCT model FROM {here.lake.whole('accuracy')}").fetchall()
            model = reference_of(name for (name,) in names)
            made = calibrate(tables, weekly_sales(con, relations, here.design(), model), here.design(), model)
    return _stored(context, here, *calibration_tables(made))


def _data(here: Project) -> DiagnosticData:
    """All that is known of the firms, from the lake."""
    for table, asset in (("comovement_measure", "firm_measures"), ("firm", "firm")):
        if not here.lake.units(table):
            raise CbmtError(f"no firm has a {table} yet; materialise {asset} for some firms first")
    names = ("firm", "firm_week", "cohort_week", "model_fit", "forecast_week", "forecast_cohort_week")
    relations = Relations(**{name: here.lake.glob(name) for name in names})
    with duck.connect(here.spill) as con:
        return gather_diagnostics(
            con,
            relations,
            here.design(),
            con.execute(f"FROM {here.lake.whole('accuracy')}").df(),
            measures=here.lake.glob("comovement_measure"),
            features=here.lake.glob("difficulty_feature"),
            history=here.lake.glob("firm_history"),
        )


def _stored(
    context: dg.AssetExecutionContext, here: Project, frames: dict[str, pd.DataFrame], state: State
) -> dg.MaterializeResult:
    """Store the tables of one diagnostic and its row of `diagnostic`; say what it rests on."""
    with duck.connect(here.spill) as con:
        rows = store(con, here, frames)
        store(con, here, {"diagnostic": state.frame()}, part=state.diagnostic)
    context.log.info(f"{state.diagnostic}: {state.note}")
    return dg.MaterializeResult(
        metadata={"firms": state.firms, "made": state.made, "note": state.note, **rows_metadata(rows)}
    )
