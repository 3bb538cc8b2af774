"""How the ranges of the study's forecasts held in the holdout, model by model."""

from cbmt_core.schema import TABLES
from cbmt_pipeline.plan import Step
from cbmt_pipeline.steps.band_coverage import coverage_tables
from cbmt_pipeline.work import Made, Work


def make(work: Work) -> Made:
    from cbmt_core.bands import judged_bands

    relations, last = work.relations(), work.at.target.last
    rows = judged_bands(work.con, relations, last, ("study",), work.at.horizon)
    return coverage_tables(work, relations, last, rows)


STEP = Step(
    name="study_band_coverage",
    make=make,
    description="How often the ranges of every model held what happened in the study's holdout.",
    group="evaluation",
    writes=(TABLES["band_coverage"], TABLES["band_pit"]),
    needs=("firm", "firm_week", "cohort_week", "study_bands"),
    code=("cbmt_core.bands.coverage", "cbmt_core.bands.judged"),
    by_firm=False,
    purposes=("study",),
    sees_target=True,
)
