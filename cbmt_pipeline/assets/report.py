"""The report that people read: one page for the panel, one for each firm."""

import dagster as dg
import duckdb

from cbmt_core.report import write_report
from cbmt_pipeline.assets.warehouse import warehouse
from cbmt_pipeline.resources import ProjectResource

__all__ = ["report"]


@dg.asset(
    deps=[warehouse],
    group_name="publish",
    kinds={"html"},
    automation_condition=dg.AutomationCondition.eager(),
    description="data/report/index.html and a page for each firm, each one file that needs no network.",
)
def report(context: dg.AssetExecutionContext, project: ProjectResource) -> dg.MaterializeResult:
    here = project.open()
    with duckdb.connect(str(here.warehouse), read_only=True) as con:
        pages = write_report(con, here.report.parent)
    return dg.MaterializeResult(
        metadata={
            "path": dg.MetadataValue.path(str(here.report)),
            "pages": len(pages),
            "bytes": sum(page.stat().st_size for page in pages),
        }
    )
