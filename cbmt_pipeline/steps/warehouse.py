"""The published DuckDB file that analysts open."""

from pathlib import Path

from cbmt_core.names import Unit
from cbmt_core.timeline import Origin
from cbmt_pipeline.manifest import digest_of
from cbmt_pipeline.plan import ALL, Step
from cbmt_pipeline.project import Project
from cbmt_pipeline.publish import publish, published_here
from cbmt_pipeline.work import Made, Work


def make(work: Work) -> Made:
    project = work.project
    published = publish(project, work.plan)
    project.lake.keep_newest("forecast_draw", project.config.bands.keep_draws)
    return Made(
        metadata={
            "path": Path(project.warehouse),
            "bytes": project.warehouse.stat().st_size,
            "firms": len(project.lake.units("firm")),
            "rows": sum(published.values()),
        }
    )


def _settings(project: Project, unit: Unit | None, origin: Origin | None) -> dict[str, str]:
    """Digests of published facts that no step makes: rows of the intake without a firm, late firms."""
    return {
        "intake": project.intake.version,
        "delivery": digest_of(project.config.delivery.model_dump()),
    }


STEP = Step(
    name="warehouse",
    make=make,
    version="4",
    description="data/cbmt.duckdb: a snapshot of every table, replaced whole; open connections keep the old one.",
    group="publish",
    needs=(ALL,),
    by_firm=False,
    kinds=frozenset({"duckdb"}),
    code=("cbmt_core.schema",),
    settings=_settings,
    stands=published_here,
)
