"""The paper's tables, and the data of its figures."""

from cbmt_core.diagnostics.tables import DIAGNOSTIC_TABLES
from cbmt_core.exhibits import EXHIBITS, gather
from cbmt_core.exhibits import exhibits as make_exhibits
from cbmt_pipeline.plan import Step
from cbmt_pipeline.steps.accuracy import study_relations
from cbmt_pipeline.work import Made, Work


def make(work: Work) -> Made:
    lake, week = work.project.lake, work.at.week
    results = {
        name: work.frame(name)
        for name, table in DIAGNOSTIC_TABLES.items()
        if not table.partitioned and any(lake.folder(name, week).glob("*.parquet"))
    }
    bridges = work.frame("bridge")
    evidence = gather(
        work.con,
        study_relations(work),
        work.study,
        work.frame("accuracy"),
        bridges[bridges["purpose"] == "study"],
        results,
    )
    return Made(dict(make_exhibits(evidence)))


STEP = Step(
    name="exhibits",
    version="3",
    make=make,
    description="The paper's tables, and the data of its figures, as relations exhibit.*.",
    group="publish",
    writes=tuple(exhibit.table for exhibit in EXHIBITS.values()),
    needs=("accuracy", "bridge", "comovement", "difficulty", "routing", "external_calibration"),
    code=("cbmt_core.exhibits",),
    by_firm=False,
    purposes=("study",),
    sees_target=True,
    kinds=frozenset({"duckdb"}),
)
