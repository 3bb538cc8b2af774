"""Errors of the study's forecasts, and the comparison of models across firms."""

import pandas as pd

from cbmt_core.errors import CbmtError
from cbmt_core.evaluation import Relations, compare, failures, whole_firms
from cbmt_core.evaluation import accuracy as errors_of
from cbmt_core.schema import TABLES
from cbmt_pipeline.plan import Step
from cbmt_pipeline.work import Made, Work

FORECASTS = ("benchmark_forecasts", "neural_forecasts", "plus_forecasts")


def study_relations(work: Work) -> Relations:
    """Every firm's data and forecasts of the study, as SQL relations."""
    relations = work.relations()
    ((known,),) = work.con.execute(f"SELECT count(*) FROM {relations.forecast_week}").fetchall()
    if not known:
        raise CbmtError("no firm has a forecast yet; materialise benchmark_forecasts for some firms first")
    return relations


def make(work: Work) -> Made:
    relations, origin = study_relations(work), work.at.week
    rows = errors_of(work.con, relations)
    at_origin = rows[pd.to_datetime(rows["origin"]) == pd.Timestamp(origin)]
    return Made(
        {
            "accuracy": rows,
            "accuracy_failure": failures(work.con, relations, rows, origin),
            "accuracy_summary": compare(at_origin, whole_firms(work.con, relations)),
        }
    )


STEP = Step(
    name="accuracy",
    make=make,
    description="Errors of every model, firm, outcome and horizon of the study, and their comparison across firms.",
    group="evaluation",
    writes=tuple(TABLES[name] for name in ("accuracy", "accuracy_failure", "accuracy_summary")),
    needs=(*FORECASTS, "firm", "firm_week", "cohort_week"),
    code=("cbmt_core.evaluation", "cbmt_core.metrics"),
    by_firm=False,
    purposes=("study",),
    sees_target=True,
    kinds=frozenset({"duckdb"}),
)
