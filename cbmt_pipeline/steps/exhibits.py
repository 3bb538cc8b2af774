"""The paper's tables, the data of its figures, and scores of ranges."""

from cbmt_core.exhibits import EXHIBITS, gather
from cbmt_core.exhibits import exhibits as make_exhibits
from cbmt_core.schema import DIAGNOSTIC_TABLES
from cbmt_pipeline.plan import Step
from cbmt_pipeline.steps.accuracy import study_relations
from cbmt_pipeline.work import Made, Work


def make(work: Work) -> Made:
    from cbmt_core.bands import judged_bands

    lake, week = work.project.lake, work.at.week
    results = {
        name: work.frame(name)
        for name, table in DIAGNOSTIC_TABLES.items()
        if not table.partitioned and any(lake.folder(name, week).glob("*.parquet"))
    }
    bridges = work.frame("bridge")
    relations = study_relations(work)
    evidence = gather(
        work.con,
        relations,
        work.study,
        work.frame("accuracy"),
        bridges[bridges["purpose"] == "study"],
        results,
        judged_bands(work.con, relations, work.at.target.last, ("study",), work.at.horizon),
    )
    return Made(dict(make_exhibits(evidence)))


STEP = Step(
    name="exhibits",
    version="3",
    make=make,
    description="The paper's tables, and the data of its figures, as relations exhibit.*.",
    group="publish",
    writes=tuple(exhibit.table for exhibit in EXHIBITS.values()),
    needs=(
        "accuracy",
        "bridge",
        "comovement",
        "difficulty",
        "routing",
        "external_calibration",
        "study_bands",
    ),
    code=("cbmt_core.exhibits", "cbmt_core.bands.judged", "cbmt_core.bands.scores"),
    by_firm=False,
    purposes=("study",),
    sees_target=True,
    kinds=frozenset({"duckdb"}),
)
