"""Across firms: accuracy, the sales bridge and the exhibits, from every forecast in the lake."""

import dagster as dg
import duckdb
import pandas as pd

from cbmt_core import duck
from cbmt_core.bridge import BridgeWindows, bridge_errors, bridge_table
from cbmt_core.diagnostics.tables import DIAGNOSTIC_TABLES
from cbmt_core.errors import CbmtError
from cbmt_core.evaluation import Relations, compare, failures, whole_firms
from cbmt_core.evaluation import accuracy as errors_of
from cbmt_core.exhibits import exhibits as make_exhibits
from cbmt_core.exhibits import gather
from cbmt_pipeline.metadata import rows_metadata
from cbmt_pipeline.project import Project
from cbmt_pipeline.resources import ProjectResource

__all__ = ["accuracy", "bridge", "exhibits", "relations_of", "store"]


@dg.asset(
    deps=["benchmark_forecasts", "neural_forecasts", "plus_forecasts", "firm", "firm_week", "cohort_week"],
    group_name="evaluation",
    kinds={"duckdb"},
    description="Errors of every model, firm, outcome and horizon, and their comparison across firms.",
)
def accuracy(context: dg.AssetExecutionContext, project: ProjectResource) -> dg.MaterializeResult:
    here = project.open()
    relations = relations_of(here)
    design = here.design()
    with duck.connect(here.spill) as con:
        rows = errors_of(con, relations)
        firms = whole_firms(con, relations)
        at_origin = rows[pd.to_datetime(rows["origin"]) == pd.Timestamp(design.origin)]
        frames = {
            "accuracy": rows,
            "accuracy_failure": failures(con, relations, rows, design.origin),
            "accuracy_summary": compare(at_origin, firms),
        }
        return dg.MaterializeResult(metadata=rows_metadata(store(con, here, frames)))


@dg.asset(
    deps=["benchmark_forecasts", "neural_forecasts", "plus_forecasts", "firm", "firm_week", "cohort_week"],
    group_name="evaluation",
    kinds={"duckdb"},
    description="Where the change in sales comes from, as it happened and as each model forecasts it.",
)
def bridge(context: dg.AssetExecutionContext, project: ProjectResource) -> dg.MaterializeResult:
    here = project.open()
    relations = relations_of(here)
    with duck.connect(here.spill) as con:
        rows = bridge_table(con, relations, BridgeWindows.of(here.design()))
        told = bridge_errors(rows, whole_firms(con, relations))
        frames = {"bridge": rows, "bridge_mae": told.mae, "bridge_method": told.methods}
        return dg.MaterializeResult(metadata=rows_metadata(store(con, here, frames)))


@dg.asset(
    deps=[accuracy, bridge, "comovement", "difficulty", "routing", "external_calibration"],
    group_name="evaluation",
    kinds={"duckdb"},
    description="The paper's tables, and the data of its figures, as exhibit_* relations.",
)
def exhibits(context: dg.AssetExecutionContext, project: ProjectResource) -> dg.MaterializeResult:
    here = project.open()
    with duck.connect(here.spill) as con:
        rows, bridges = (con.execute(f"FROM {here.lake.whole(name)}").df() for name in ("accuracy", "bridge"))
        results = {
            name: con.execute(f"FROM {here.lake.whole(name)}").df()
            for name, table in DIAGNOSTIC_TABLES.items()
            if not table.partitioned and here.lake.has_whole(name)
        }
        evidence = gather(con, relations_of(here), here.design(), rows, bridges, results)
        return dg.MaterializeResult(metadata=rows_metadata(store(con, here, make_exhibits(evidence))))


def relations_of(here: Project) -> Relations:
    """Every firm's rows in the lake."""
    if not here.lake.units("forecast_week"):
        raise CbmtError("no firm has a forecast yet; materialise benchmark_forecasts for some firms first")
    names = ("firm", "firm_week", "cohort_week", "model_fit", "forecast_week", "forecast_cohort_week")
    return Relations(**{name: here.lake.glob(name) for name in names})


def store(
    con: duckdb.DuckDBPyConnection, here: Project, frames: dict[str, pd.DataFrame], part: str = "all"
) -> dict[str, int]:
    """Put the frames in the place of tables made across firms; how many rows each has."""
    rows = {}
    for table, frame in frames.items():
        con.register("made", frame)
        rows[table] = here.lake.write_whole(con, table, "made", here.evaluation_stamp(), part)
        con.unregister("made")
    return rows
