"""Sales bridges: of the study's holdout, and from the last year to the next."""

import pandas as pd

from cbmt_core.bridge import BridgeWindows, bridge_errors, bridge_table
from cbmt_core.evaluation import whole_firms
from cbmt_core.schema import TABLES
from cbmt_pipeline.plan import Step
from cbmt_pipeline.steps.accuracy import FORECASTS, study_relations
from cbmt_pipeline.work import Made, Work


def make(work: Work) -> Made:
    if work.at.purpose == "live":
        return Made({"bridge": _next_year(work)})
    relations = study_relations(work)
    rows = bridge_table(work.con, relations, BridgeWindows.of(work.study))
    errors = bridge_errors(rows, whole_firms(work.con, relations))
    return Made({"bridge": rows, "bridge_mae": errors.mae, "bridge_method": errors.methods})


def _next_year(work: Work) -> pd.DataFrame:
    """The bridge from the last 52 weeks to the next 52 by each live model, and the realised one of the year
    before."""
    relations, ahead = work.relations(), BridgeWindows.ahead(work.at.week, work.at.horizon)
    before = BridgeWindows(
        ahead.baseline.shifted(-work.at.horizon), ahead.target.shifted(-work.at.horizon), work.at.week
    )
    rows = [bridge_table(work.con, relations, ahead, "live")]
    if before.baseline.first >= work.project.timeline().panel.first:
        rows.append(bridge_table(work.con, relations, before, "live", forecasts=False))
    return pd.concat(rows, ignore_index=True)


STEP = Step(
    name="bridge",
    make=make,
    description="Where sales change, as it happened and as models forecast it: of the study and the next year.",
    group="evaluation",
    writes=tuple(TABLES[name] for name in ("bridge", "bridge_mae", "bridge_method")),
    needs=(*FORECASTS, "live_forecasts", "firm", "firm_week", "cohort_week"),
    code=("cbmt_core.bridge",),
    by_firm=False,
    purposes=("live", "study"),
    sees_target=True,
    kinds=frozenset({"duckdb"}),
)
