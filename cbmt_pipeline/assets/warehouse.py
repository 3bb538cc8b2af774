"""The published DuckDB file that analysts open."""

import dagster as dg

from cbmt_core.firm_tables import DATA_TABLES
from cbmt_pipeline.metadata import rows_metadata
from cbmt_pipeline.publish import publish
from cbmt_pipeline.resources import ProjectResource

__all__ = ["warehouse"]

DIAGNOSTICS = ("firm_measures", "comovement", "difficulty", "routing", "external_calibration")


@dg.asset(
    deps=[
        *DATA_TABLES,
        "benchmark_forecasts",
        "neural_forecasts",
        "plus_forecasts",
        "accuracy",
        "bridge",
        *DIAGNOSTICS,
        "exhibits",
    ],
    group_name="publish",
    kinds={"duckdb"},
    automation_condition=dg.AutomationCondition.eager().without(
        # Waiting for every firm would mean waiting for the one that is broken.
        ~dg.AutomationCondition.any_deps_missing()
    ),
    description="data/cbmt.duckdb: a snapshot of every table, replaced whole; open connections keep the old one.",
)
def warehouse(context: dg.AssetExecutionContext, project: ProjectResource) -> dg.MaterializeResult:
    here = project.open()
    published = publish(here)
    return dg.MaterializeResult(
        metadata={
            "path": dg.MetadataValue.path(str(here.warehouse)),
            "bytes": here.warehouse.stat().st_size,
            "firms": len(here.lake.units("firm")),
            **rows_metadata(published),
        }
    )
