"""Coverage of the bands of backtests and earlier live forecasts, up to the last complete week."""

from datetime import date

import pandas as pd

from cbmt_core.evaluation import Relations
from cbmt_core.schema import TABLES
from cbmt_pipeline.plan import Step
from cbmt_pipeline.work import Made, Work


def make(work: Work) -> Made:
    from cbmt_core.bands import judged_bands

    lake, week = work.project.lake, work.at.week
    relations = Relations(
        **{name: f"(SELECT * FROM {lake.relation(TABLES[name])} WHERE week <= DATE '{week}')"
           for name in ("firm_week", "cohort_week")},
        forecast_band=lake.relation(TABLES["forecast_band"]),
    )  # fmt: skip
    return coverage_tables(work, relations, week, judged_bands(work.con, relations, week))


def coverage_tables(work: Work, relations: Relations, last: date, rows: pd.DataFrame) -> Made:
    """`band_coverage` and `band_pit` of judged bands; `last` is the last week that was observed."""
    from cbmt_core.bands import band_coverage, band_pit

    keys = {"origin": work.at.week, "purpose": work.at.purpose}
    coverage = band_coverage(work.con, relations, last, rows).assign(**keys)
    held = coverage[
        (coverage["level"] == 80) & (coverage["outcome"] == "sales") & (coverage["group_by"] == "all")
    ]
    names = held["model"] + "_" + held["of_purpose"] + "_" + held["ahead"]
    known = dict(zip(names, held["coverage"].astype(float), strict=True))
    return Made({"band_coverage": coverage, "band_pit": band_pit(rows).assign(**keys)}, metadata=known)


STEP = Step(
    name="band_coverage",
    make=make,
    description="How often 50, 80 and 95 % bands held what happened, by weeks ahead, size and volatility.",
    group="live",
    writes=(TABLES["band_coverage"], TABLES["band_pit"]),
    needs=("firm_week", "cohort_week", "forecast_bands"),
    code=("cbmt_core.bands.coverage", "cbmt_core.bands.judged"),
    by_firm=False,
    purposes=("live",),
)
