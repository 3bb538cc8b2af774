"""The published DuckDB file that analysts open."""

from pathlib import Path

from cbmt_pipeline.plan import ALL, Step
from cbmt_pipeline.publish import publish
from cbmt_pipeline.work import Made, Work


def make(work: Work) -> Made:
    project = work.project
    published = publish(project, work.plan)
    return Made(
        metadata={
            "path": Path(project.warehouse),
            "bytes": project.warehouse.stat().st_size,
            "firms": len(project.lake.units("firm")),
            "rows": sum(published.values()),
        }
    )


STEP = Step(
    name="warehouse",
    make=make,
    description="data/cbmt.duckdb: a snapshot of every table, replaced whole; open connections keep the old one.",
    group="publish",
    needs=(ALL,),
    by_firm=False,
    kinds=frozenset({"duckdb"}),
    code=("cbmt_core.schema",),
)
