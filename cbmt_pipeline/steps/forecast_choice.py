"""The model to plan with, chosen from backtests over weeks that were observed at the origin."""

from cbmt_core.evaluation import Relations
from cbmt_core.schema import TABLES
from cbmt_pipeline.plan import Step
from cbmt_pipeline.work import Made, Work


def make(work: Work) -> Made:
    from cbmt_core.backtest import forecast_choices

    lake, models = work.project.lake, work.project.live_models()
    weeks = f"(SELECT * FROM {lake.relation(TABLES['firm_week'])} WHERE week <= DATE '{work.at.week}')"
    relations = Relations(
        firm=work.firms(),
        firm_week=weeks,
        model_fit=lake.relation(TABLES["model_fit"]),
        forecast_week=lake.relation(TABLES["forecast_week"]),
    )
    frame = forecast_choices(work.con, relations, work.at, models)
    chosen = frame["model"].value_counts()
    return Made(
        {"forecast_choice": frame},
        metadata={"firms": len(frame), **{f"firms_with_{name}": int(n) for name, n in chosen.items()}},
    )


STEP = Step(
    name="forecast_choice",
    version="2",
    make=make,
    description="The model to plan with for each firm, why, and the evidence: backtests of weeks before the origin.",
    group="live",
    writes=(TABLES["forecast_choice"],),
    needs=("firm_week", "live_forecasts", "backtest_forecasts", "plus_forecasts", "benchmark_forecasts"),
    code=("cbmt_core.backtest.choice",),
    by_firm=False,
    purposes=("live", "study"),
)
