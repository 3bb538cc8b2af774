"""The report: one page for the panel, one for each firm."""

import duckdb

from cbmt_core.names import Unit
from cbmt_core.timeline import Origin
from cbmt_pipeline.plan import Step
from cbmt_pipeline.project import Project
from cbmt_pipeline.work import Made, Work


def make(work: Work) -> Made:
    from cbmt_core.report.pages import write_report

    project = work.project
    with duckdb.connect(str(project.warehouse), read_only=True) as con:
        ((firms,),) = con.execute("SELECT count(*) FROM firm").fetchall()
        done = 0

        def on_page(_: object) -> None:
            nonlocal done
            done += 1
            work.tell(f"page {done} of {firms + 2}", done / (firms + 2))

        pages = write_report(con, project.report.parent, on_page)
    return Made(
        metadata={
            "report": project.link(project.report),
            "pages": len(pages),
            "bytes": sum(page.stat().st_size for page in pages),
        }
    )


def _settings(project: Project, unit: Unit | None, origin: Origin | None) -> dict[str, str]:
    """Digest of the code that makes pages: a changed chart or sentence makes the report stale by itself."""
    from cbmt_core.report.changed import code_digest

    return {"code": code_digest()}


STEP = Step(
    name="report",
    version="5",
    make=make,
    description="data/report/index.html and a page for each firm, each one file that needs no network.",
    group="publish",
    needs=("warehouse",),
    settings=_settings,
    stands=lambda project: project.report.exists(),
    by_firm=False,
    kinds=frozenset({"html"}),
)
