"""How often, and by how much, a model chosen from backtests beats always planning with the first one.

    python bench/choice.py data/choice                                   forecasts are made once and kept there
    python bench/choice.py data/choice --models cohort_glm ssw_v3        other candidates, the default first

Simulated firms of full size over six years, forecast a year ahead from every quarter. At each quarter a model is chosen
from the backtests known by then, and judged on the year that follows, which no choice has seen. The constants of the
rule were chosen on economies 9101 and 9102; 9103 was used once, to confirm them. The prior of `cbmt_plus` is learned
from the weeks up to the first quarter.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from datetime import date
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from panel_results.document import table
from threadpoolctl import threadpool_limits

from cbmt_core import duck
from cbmt_core.backtest import choice
from cbmt_core.compose import compose
from cbmt_core.design import StudyDesign
from cbmt_core.evaluation import Relations
from cbmt_core.metrics import smape
from cbmt_core.models import build
from cbmt_core.models.contract import CannotFit
from cbmt_core.models.plus import PathPriors, learn_priors, weekly_series
from cbmt_core.panel import FirmPanel
from cbmt_core.simulate import Economy, sample_cohorts
from cbmt_core.timeline import HORIZON, Origin

SEED = 9101
DESIGN = StudyDesign.for_span(date(2016, 1, 1), date(2022, 2, 26))
ORIGINS = DESIGN.backtest_origins()
PLUS = "cbmt_plus"
SHRINKAGES = (0, 1, 2, 4, 8, 16, 1000)
MARGINS = (0.0, 0.05, 0.1)
BACKTESTS = ((1, 2), (3, 5), (6, 20))
"""Groups of choices, by how many backtests of the firm they rest on."""

HEADER = [
    "choices",
    "SMAPE of the first",
    "of the chosen",
    "of the best, in hindsight",
    "not the first",
    "of these better",
    "error against the first's, geometric mean",
]


@cache
def panels(firms: int, seed: int) -> list[FirmPanel]:
    economy = Economy(firms=firms, seed=seed, design=DESIGN)
    return [sample_cohorts(economy, spec).panel() for spec in economy.specs()]


@cache
def priors(firms: int, seed: int) -> PathPriors:
    series = [weekly_series(panel.until(ORIGINS[0].week), seed=1) for panel in panels(firms, seed)]
    return learn_priors(pd.concat(series), DESIGN.country)


def forecasts(model: str, firms: int, seed: int) -> pd.DataFrame:
    """Rows of `forecast_week` from every origin, with the columns that are needed."""
    frames = []
    for k, panel in enumerate(panels(firms, seed)):
        for origin in ORIGINS:
            seen = panel.until(origin.week)
            try:
                options = {"priors": priors(firms, seed)} if model == PLUS else {}
                made = build(model, **options).fit(seen, seed=1).forecast(HORIZON)
            except CannotFit as error:
                print(error, file=sys.stderr)
                continue
            composed = compose(seen, made)
            keys = {"firm": panel.firm, "model": model, "origin": origin.week, "purpose": "backtest"}
            frames.append(pd.DataFrame({**keys, "week": composed.weeks, "sales": composed.S}))
        print(f"{model}: firm {k + 1} of {firms}", file=sys.stderr, flush=True)
    return pd.concat(frames)


def judged(con: duck.duckdb.DuckDBPyConnection, models: list[str], errors: pd.DataFrame) -> pd.DataFrame:
    """Each choice with the error of the year that followed: the chosen model's and every model's."""
    frames = []
    for origin in ORIGINS:
        if origin.target.last <= DESIGN.panel.last:
            rows = choice.forecast_choices(con, Relations(), Origin(origin.week, HORIZON, "backtest"), models)
            frames.append(rows[rows["backtests"] > 0])
    rows = pd.concat(frames).assign(origin=lambda r: pd.to_datetime(r["origin"]))
    return rows.merge(errors, left_on=["firm", "origin"], right_index=True)


def summary(rows: pd.DataFrame, models: list[str]) -> list[str]:
    chosen = np.array([row[row["model"]] for _, row in rows.iterrows()])
    change = pd.Series(np.log(chosen / rows[models[0]].to_numpy()), index=rows["firm"])
    other = change != 0
    by_firm = change.groupby(level=0).mean()
    best = rows[models].min(axis=1)
    spread = by_firm.std() / np.sqrt(len(by_firm))
    return [
        str(len(rows)),
        f"{rows[models[0]].mean():.2f}",
        f"{chosen.mean():.2f}",
        f"{best.mean():.2f}",
        f"{100 * other.mean():.0f} %",
        f"{100 * (change[other] < 0).mean():.0f} %" if other.any() else "",
        f"{100 * np.expm1(change.mean()):+.1f} ± {100 * spread:.1f} %",
    ]


def tell(folder: Path, models: list[str], firms: int, seed: int) -> None:
    made = pd.concat([pd.read_parquet(folder / f"{model}.parquet") for model in models])
    actual = pd.concat(
        [pd.DataFrame({"firm": p.firm, "week": p.weeks, "sales": p.S}) for p in panels(firms, seed)]
    )
    made = made[made["firm"].isin(actual["firm"])]
    fits = made[["firm", "model", "origin", "purpose"]].drop_duplicates().assign(succeeded=True)
    names = actual[["firm"]].drop_duplicates().assign(segment=None, industry=None, currency="USD")
    con = duck.connect()
    for name, frame in {
        "forecast_week": made,
        "firm_week": actual,
        "model_fit": fits,
        "firm": names,
    }.items():
        con.register("rows", frame)
        con.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")
        con.unregister("rows")
    for name in ("forecast_week", "model_fit"):
        con.execute(f"ALTER TABLE {name} ALTER origin TYPE DATE")
    both = made.merge(actual, on=["firm", "week"], suffixes=("", "_actual"))
    errors = (
        both.assign(origin=pd.to_datetime(both["origin"]))
        .groupby(["firm", "origin", "model"])[["sales_actual", "sales"]]
        .apply(lambda rows: smape(*rows.to_numpy().T))
        .reset_index(name="smape")
        .pivot_table(index=["firm", "origin"], columns="model", values="smape")
    )
    rows = judged(con, models, errors)
    print(f"{firms} firms of economy {seed}; default {models[0]}, others {', '.join(models[1:])}\n")
    groups = [
        ("all", rows),
        *((f"{low} to {high}", rows[rows["backtests"].between(low, high)]) for low, high in BACKTESTS),
    ]
    print(
        table(["backtests", *HEADER], [[name, *summary(part, models)] for name, part in groups if len(part)])
    )
    lines = []
    for choice.PRIOR_BACKTESTS in SHRINKAGES:
        for choice.MARGIN in MARGINS:
            kept = summary(judged(con, models, errors), models)
            lines.append([str(choice.PRIOR_BACKTESTS), f"{100 * choice.MARGIN:g} %", *kept[4:], kept[2]])
    print("\nother constants: all choices\n")
    print(table(["K", "margin", *HEADER[4:], HEADER[2]], lines))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where forecasts are kept")
    parser.add_argument("--firms", type=int, default=30, help="firms of the economy [%(default)s]")
    parser.add_argument("--seed", type=int, default=SEED, help="seed of the economy [%(default)s]")
    parser.add_argument("--models", nargs="+", default=[PLUS, "cohort_glm", "seasonal_naive"])
    asked = parser.parse_args()
    folder = asked.folder / f"{asked.firms}-{asked.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for model in asked.models:
            if not (folder / f"{model}.parquet").exists():
                forecasts(model, asked.firms, asked.seed).to_parquet(folder / f"{model}.parquet")
        tell(folder, asked.models, asked.firms, asked.seed)


if __name__ == "__main__":
    main()
