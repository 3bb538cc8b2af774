"""Measures of a firm at the study's origin: co-movement of its drivers, features of difficulty, history."""

from cbmt_core.schema import DIAGNOSTIC_TABLES, TABLES
from cbmt_pipeline.plan import Step
from cbmt_pipeline.work import Made, Work


def make(work: Work) -> Made:
    from cbmt_core.diagnostics.measured import measure_firm

    first = work.project.timeline().panel.first
    orders = work.project.lake.relation(TABLES["transactions"], unit=work.firm)
    ((washout,),) = work.con.execute(
        f"SELECT coalesce(sum(amount), 0) FROM {orders} WHERE week < DATE '{first}'"
    ).fetchall()
    return Made(dict(measure_firm(work.panel(customers=True), float(washout))))


STEP = Step(
    name="firm_measures",
    make=make,
    description="What is known of a firm at the origin: comovement_measure, difficulty_feature, firm_history.",
    group="diagnostics",
    writes=tuple(
        DIAGNOSTIC_TABLES[name] for name in ("comovement_measure", "difficulty_feature", "firm_history")
    ),
    needs=("transactions", "cohort_week", "firm"),
    code=(
        "cbmt_core.diagnostics.measured",
        "cbmt_core.diagnostics.comovement",
        "cbmt_core.diagnostics.difficulty",
    ),
    version="2",
    purposes=("study",),
    batch=40,
)
