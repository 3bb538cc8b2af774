"""Calibration of the bands at each origin: factors and error paths, from backtests observed by then."""

import pandas as pd

from cbmt_core.evaluation import Relations
from cbmt_core.schema import TABLES
from cbmt_core.uncertainty import DRIVERS
from cbmt_pipeline.plan import Step
from cbmt_pipeline.work import Made, Work


def make(work: Work) -> Made:
    from cbmt_core.bands import SALES, error_paths, learn_factors, realised_errors, sales_errors

    lake, week = work.project.lake, work.at.week
    relations = Relations(
        firm_week=f"(SELECT * FROM {lake.relation(TABLES['firm_week'])} WHERE week <= DATE '{week}')",
        cohort_week=f"(SELECT * FROM {lake.relation(TABLES['cohort_week'])} WHERE week <= DATE '{week}')",
        forecast_spread=lake.relation(TABLES["forecast_spread"]),
        forecast_week=lake.relation(TABLES["forecast_week"]),
    )
    keys = {"origin": week, "purpose": work.at.purpose}
    factors, paths = [], []
    models = work.project.live_models()
    # At the study's origin models without backtests borrow the error paths of those that have them.
    lends = work.at.purpose == "study"
    for k, model in enumerate(models):
        work.tell(model, k / len(models))
        errors = realised_errors(work.con, relations, week, model)
        alone = sales_errors(work.con, relations, week, model) if errors.empty or lends else None
        if errors.empty and alone is not None and len(alone):
            found_paths = error_paths(work.con, relations, alone, work.at.horizon, SALES)
            paths.append(found_paths.assign(model=model, **keys))
        if errors.empty:
            continue
        knows_its_errors = errors[f"{DRIVERS[0]}_lasting"].notna().any()
        if knows_its_errors:
            for firm, found in learn_factors(errors).items():
                for d, driver in enumerate(DRIVERS):
                    factors.append(
                        {"firm": firm, "model": model, **keys, "driver": driver, "lasting": found.lasting[d],
                         "weekly": found.weekly[d], "own": found.own, "source": found.source, "firms": found.firms}
                    )  # fmt: skip
        if alone is not None:
            errors = errors.merge(alone, on=["firm", "origin", "horizon"], how="left")
        if lends or not knows_its_errors:
            outcomes = (*DRIVERS, *SALES) if lends else DRIVERS
            found_paths = error_paths(work.con, relations, errors, work.at.horizon, outcomes)
            paths.append(found_paths.assign(model=model, **keys))
    made = {
        "band_factor": pd.DataFrame(factors, columns=TABLES["band_factor"].column_names),
        "error_path": pd.concat(paths, ignore_index=True)
        if paths
        else pd.DataFrame(columns=TABLES["error_path"].column_names),
    }
    firms = made["band_factor"]["firm"].nunique()
    return Made(
        made,
        metadata={"firms": int(firms), "error_paths": len(made["error_path"]) // max(work.at.horizon, 1)},
    )


STEP = Step(
    name="band_factors",
    version="3",
    make=make,
    description="How far bands reach: factors and error paths learned from backtests that were observed by the origin.",
    group="live",
    writes=(TABLES["band_factor"], TABLES["error_path"]),
    needs=("firm_week", "cohort_week", "backtest_forecasts"),
    code=("cbmt_core.bands.factors", "cbmt_core.bands.errors", "cbmt_core.bands.error_paths"),
    by_firm=False,
    purposes=("live", "backtest", "study"),
)
