"""Coverage, interval scores and CRPS of bands on simulated firms nobody tuned on.

    python bench/bands.py data/bands                       60 firms of economy 8811; goes on where it was stopped
    python bench/bands.py data/bands --topline PYTHON      also MSTL and AutoETS, by a Python that has statsforecast

Firms of full size over five years are forecast a year ahead from every quarter that has a year of history. At each
quarter the factors are learned from the other firms' backtests that had been observed by then, as the pipeline does
it, and the bands are judged on the weeks that follow. Compared with the raw posterior, with split conformal bands
around the same forecasts (quantiles of past errors by week ahead), with conformal bands of the seasonal naive forecast
and, if asked, with statsforecast's own bands. The pipeline learns the prior of `cbmt_plus` every quarter. So does this
bench while the data are young; from two years on, when a prior hardly changes any more, once a year, to save time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from panel_results.document import table
from threadpoolctl import threadpool_limits

from cbmt_core import duck
from cbmt_core.bands import (
    SALES,
    BandFactors,
    BridgeBaseline,
    FirmBands,
    band_coverage,
    band_tables,
    error_paths,
    judged_bands,
    learn_factors,
    realised_errors,
)
from cbmt_core.bands.coverage import interval_score, weighted_interval_score
from cbmt_core.bands.factors import history_scale
from cbmt_core.design import StudyDesign
from cbmt_core.evaluation import Relations
from cbmt_core.fits import fit_model
from cbmt_core.forecasting import forecast_fit, forecast_tables
from cbmt_core.models.plus import PathPriors, learn_priors, weekly_series
from cbmt_core.panel import FirmPanel
from cbmt_core.simulate import Economy, sample_cohorts
from cbmt_core.timeline import HORIZON, Origin
from cbmt_core.uncertainty import DRIVERS

SEED = 8811
DESIGN = StudyDesign.for_span(date(2016, 1, 1), date(2021, 2, 27))
ORIGINS = [origin for origin in DESIGN.backtest_origins() if origin.target.last <= DESIGN.panel.last]
"""Quarters whose year ahead is in the data."""
PLUS = "cbmt_plus"
MODELS = (PLUS, "cohort_glm", "seasonal_naive")
PRIOR_EVERY = 4
LEVELS = (50, 80, 95)
AHEAD = ("1-4", "5-13", "14-26", "27-52", "year")


@cache
def panels(firms: int, seed: int) -> list[FirmPanel]:
    economy = Economy(firms=firms, seed=seed, design=DESIGN)
    return [sample_cohorts(economy, spec).panel() for spec in economy.specs()]


def priors(folder: Path, k: int, firms: int, seed: int) -> PathPriors:
    """The prior learned at the quarter itself in the first year, later at the last of every `PRIOR_EVERY` quarters."""
    origin = ORIGINS[k if k < PRIOR_EVERY else k - k % PRIOR_EVERY]
    kept = folder / f"prior-{origin.week}.parquet"
    if not kept.exists():
        series = [weekly_series(panel.until(origin.week), seed=1) for panel in panels(firms, seed)]
        learn_priors(pd.concat(series), DESIGN.country).frame().to_parquet(kept)
    return PathPriors.from_frame(pd.read_parquet(kept), DESIGN.country)


def forecasts(folder: Path, k: int, firms: int, seed: int) -> None:
    """Rows of `forecast_spread` and `forecast_cohort_week` at one origin, kept in the folder."""
    origin, started = ORIGINS[k], time.monotonic()
    kept = folder / f"forecast_cohort_week-{origin.week}.parquet"
    if kept.exists():
        return
    found: dict[str, list[pd.DataFrame]] = {"forecast_spread": [], "forecast_cohort_week": []}
    known = priors(folder, k, firms, seed)
    for panel in panels(firms, seed):
        seen = panel.until(origin.week)
        runs = [
            forecast_fit(fit_model(m, seen, 1, **({"priors": known} if m == PLUS else {})), seen, HORIZON)
            for m in MODELS
        ]
        tables = forecast_tables(runs, "backtest")
        for name, frames in found.items():
            frames.append(tables[name])
    for name, frames in found.items():
        pd.concat(frames).to_parquet(folder / f"{name}-{origin.week}.parquet")
    print(f"{origin.week}: forecasts in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)


def connection(folder: Path, firms: int, seed: int) -> duck.duckdb.DuckDBPyConnection:
    """The relations that calibration and judging read."""
    con = duck.connect()
    weeks, cells = [], []
    for p in panels(firms, seed):
        orders = p.orders.sum(axis=0)
        weeks.append(
            pd.DataFrame(
                {
                    "firm": p.firm,
                    "week": p.weeks,
                    "sales": p.S,
                    "acquired": p.A,
                    "orders": orders,
                    "repeat_orders": orders - p.A,
                    "cumulative_customers": p.size[p.birth < 0].sum() + np.cumsum(p.A),
                }
            )
        )
        i, t = np.nonzero(p.born)
        initial = p.is_birth[i, t] * p.size[i] * np.nan_to_num(p.V[i, t])
        cells.append(
            pd.DataFrame(
                {
                    "firm": p.firm,
                    "cohort": p.weeks[0] + 7 * p.birth[i],
                    "week": p.weeks[t],
                    "repeat_orders": p.size[i] * p.R[i, t],
                    "sales": p.Y[i, t],
                    "initial_sales": initial,
                    "repeat_sales": p.Y[i, t] - initial,
                }
            )
        )
    for name, frames in (("firm_week", weeks), ("cohort_week", cells)):
        con.register("rows", pd.concat(frames))
        con.execute(f"CREATE TABLE {name} AS SELECT * REPLACE (CAST(week AS DATE) AS week) FROM rows")
        con.unregister("rows")
    con.execute("ALTER TABLE cohort_week ALTER cohort TYPE DATE")
    spreads = duck.literal(str(folder / "forecast_spread-*.parquet"))
    con.execute(f"CREATE TABLE forecast_spread AS FROM read_parquet({spreads})")
    for column in ("origin", "week"):
        con.execute(f"ALTER TABLE forecast_spread ALTER {column} TYPE DATE")
    return con


def factor_rows(found: dict[str, BandFactors]) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {"firm": firm, "model": PLUS, "driver": driver, "lasting": f.lasting[d], "weekly": f.weekly[d],
             "own": f.own, "source": f.source, "firms": f.firms}
            for firm, f in found.items() for d, driver in enumerate(DRIVERS)
        ],
        columns=["firm", "model", "driver", "lasting", "weekly", "own", "source", "firms"],
    )  # fmt: skip


def bands(folder: Path, k: int, firms: int, seed: int, con: duck.duckdb.DuckDBPyConnection) -> None:
    """Bands of every firm at one origin: calibrated as the pipeline does it, and of the raw posterior."""
    origin, started = ORIGINS[k], time.monotonic()
    kept = folder / f"band-{origin.week}.parquet"
    if kept.exists():
        return
    at = Origin(origin.week, HORIZON, "backtest")
    errors = {m: realised_errors(con, Relations(), origin.week, m) for m in MODELS}
    learned = factor_rows(learn_factors(errors[PLUS])) if len(errors[PLUS]) else factor_rows({})
    paths = [
        error_paths(con, Relations(), errors[m], HORIZON).assign(model=m)
        for m in MODELS[1:]
        if len(errors[m])
    ]
    paths.append(pd.DataFrame(columns=["model", "firm", "backtest", "horizon", *DRIVERS, *SALES]))
    rows = pd.read_parquet(folder / f"forecast_cohort_week-{origin.week}.parquet")
    known, frames, seconds = priors(folder, k, firms, seed), [], 0.0
    for panel in panels(firms, seed):
        seen = panel.until(origin.week)
        last = seen.weeks[-HORIZON:]
        ((q, s, i),) = con.execute(
            "SELECT sum(repeat_orders), sum(repeat_sales), sum(initial_sales) FROM cohort_week "
            "WHERE firm = ? AND week BETWEEN ? AND ?",
            [panel.firm, last[0].item(), last[-1].item()],
        ).fetchall()
        own = rows[rows["firm"] == panel.firm]
        firm = FirmBands(seen, BridgeBaseline(q, s, i), own, learned[learned["firm"] == panel.firm],
                         pd.concat(paths), priors=known)  # fmt: skip
        clock = time.process_time()
        frames.append(band_tables(firm, MODELS, at)["forecast_band"])
        seconds += time.process_time() - clock
        history = seen.since_first_order().n_weeks
        plain = BandFactors(np.ones(3) / history_scale(history), np.ones(3), "raw")
        unchanged = replace(firm, factors=factor_rows({panel.firm: plain}))
        vars(unchanged)["uncertainty"] = firm.uncertainty
        raw = band_tables(unchanged, MODELS[:1], at)["forecast_band"]
        frames.append(raw.assign(model="raw posterior"))
    pd.concat(frames).to_parquet(kept)
    print(
        f"{origin.week}: bands in {time.monotonic() - started:.0f} s, {seconds / firms:.2f} core-seconds a firm",
        file=sys.stderr, flush=True,
    )  # fmt: skip


def conformal(rows: pd.DataFrame, model: str, name: str) -> pd.DataFrame:
    """Split conformal bands over origins: the forecast times quantiles of past ratios of other firms' backtests.

    By week ahead for weeks, over whole years for the year; only ratios observed by the origin.
    """
    own = rows[(rows["model"] == model) & (rows["outcome"] == "sales")].copy()
    own["ratio"] = np.log((own["actual"] + 1) / (own["median"] + 1))
    own["horizon"] = np.where(own["period"] == "year", 0, (own["week"] - own["origin"]).dt.days // 7)
    own["known"] = own["week"] + pd.to_timedelta(np.where(own["period"] == "year", 51 * 7, 0), "D")
    made = []
    for (origin, horizon), part in own.groupby(["origin", "horizon"]):
        past = own[(own["horizon"] == horizon) & (own["known"] <= origin)]
        if past["origin"].nunique() < 1:
            continue
        part = part.copy()
        for level in LEVELS:
            low, high = np.quantile(past["ratio"], [0.5 - level / 200, 0.5 + level / 200])
            part[f"low{level}"], part[f"high{level}"] = (
                part["median"] * np.exp(low),
                part["median"] * np.exp(high),
            )
        made.append(part)
    return pd.concat(made).drop(columns=["ratio", "horizon", "known"]).assign(model=name)


def tell(folder: Path, firms: int, seed: int, con: duck.duckdb.DuckDBPyConnection) -> None:
    files = duck.literal(str(folder / "band-*.parquet"))
    con.execute(
        f"CREATE OR REPLACE TABLE forecast_band AS SELECT * REPLACE (CAST(origin AS DATE) AS origin, "
        f"CAST(week AS DATE) AS week, CAST(weeks AS INTEGER) AS weeks) FROM read_parquet({files})"
    )
    last = DESIGN.panel.last
    rows = judged_bands(con, Relations(), last)
    topline = folder / "topline.parquet"
    extra = [
        conformal(rows, "seasonal_naive", "seasonal naive, conformal"),
        conformal(rows, PLUS, "split conformal"),
    ]
    if topline.exists():
        peers = _with_topline(pd.read_parquet(topline), rows)
        extra += [peers, *(conformal(peers, name, f"{name}, conformal") for name in ("mstl", "auto_ets"))]
    every = pd.concat([rows, *extra], ignore_index=True)
    # Factors need a year of backtests before they can be learned.
    first = pd.Timestamp(ORIGINS[PRIOR_EVERY].week)
    judged = every[every["origin"] >= first]
    cover = band_coverage(con, Relations(), last, judged)
    cover = cover[cover["outcome"] == "sales"]
    whole = cover[cover["group_by"] == "all"]
    names = [PLUS, "raw posterior", "split conformal", "cohort_glm", "seasonal_naive", "seasonal naive, conformal",
             "mstl", "mstl, conformal", "auto_ets", "auto_ets, conformal"]  # fmt: skip
    names = [name for name in names if name in set(whole["model"])]

    def cell(model: str, ahead: str, column: str, level: int) -> float:
        found = whole[(whole["model"] == model) & (whole["ahead"] == ahead) & (whole["level"] == level)]
        return float(found[column].iloc[0]) if len(found) else float("nan")

    print(
        f"\n{firms} firms of economy {seed}, origins from {first.date()}: per cent of total sales inside bands\n"
    )
    print(table(["bands", "level", *AHEAD], [
        [name, f"{level} %", *(f"{cell(name, ahead, 'coverage', level):.1f}" for ahead in AHEAD)]
        for name in names for level in LEVELS]))  # fmt: skip
    print("\nmean interval score of 80 % bands, CRPS (by seven quantiles) and width, per cent of sales\n")
    print(table(["bands", "score, weeks", "score, year", "CRPS, weeks", "CRPS, year", "width, year"], [
        [name, *(f"{v:.1f}" for v in _summary(judged[(judged["model"] == name) & (judged["outcome"] == "sales")]))]
        for name in names]))  # fmt: skip
    sizes = cover[(cover["group_by"] == "size") & (cover["model"] == PLUS) & (cover["level"] == 80)]
    print(f"\n{PLUS}, 80 % bands by size of firm (from nine firms on)\n")
    print(table(["size", *AHEAD], [
        [size, *(f"{sizes[(sizes['group'] == size) & (sizes['ahead'] == a)]['coverage'].iloc[0]:.1f}" for a in AHEAD)]
        for size in ("low", "middle", "high") if len(sizes)]))  # fmt: skip
    years = band_coverage(
        con, Relations(), last, judged[(judged["ahead"] == "year") & (judged["model"] == PLUS)]
    )
    years = years[years["group_by"] == "all"]
    print(f"\n{PLUS}, bands of the year and of the bridge\n")
    print(table(["outcome", *(f"{level} %" for level in LEVELS), "years"], [
        [outcome, *(f"{part[part['level'] == level]['coverage'].iloc[0]:.1f}" for level in LEVELS),
         str(int(part["outcomes"].iloc[0]))]
        for outcome, part in years.groupby("outcome")]))  # fmt: skip


def _summary(rows: pd.DataFrame) -> list[float]:
    """Scores over firms, each firm counting the same."""
    made = []
    for score in (
        lambda r: interval_score(r["low80"].to_numpy(), r["high80"].to_numpy(), r["actual"].to_numpy(), 80),
        weighted_interval_score,
    ):
        for year in (False, True):
            part = rows[(rows["period"] == "year") == year]
            by_firm = pd.DataFrame({"firm": part["firm"], "score": score(part), "sales": part["actual"]})
            sums = by_firm.groupby("firm")[["score", "sales"]].sum()
            made.append(float(100 * (sums["score"] / sums["sales"]).mean()))
    years = rows[rows["period"] == "year"]
    return [*made, float(100 * ((years["high80"] - years["low80"]) / years["actual"]).median())]


TOPLINE = """
import sys, numpy as np, pandas as pd, warnings
warnings.simplefilter("ignore")
from statsforecast.models import MSTL, AutoETS
rows = pd.read_parquet(sys.argv[1]); made = []
for (firm, origin), part in rows.groupby(["firm", "origin"]):
    y = np.log1p(part.sort_values("week")["sales"].to_numpy())
    seasonal = MSTL(season_length=52, trend_forecaster=AutoETS(model="ZZN"))
    for name, model in (("mstl", seasonal), ("auto_ets", AutoETS(season_length=52))):
        got = model.forecast(y=y, h=52, level=[50, 80, 95])
        frame = {"firm": firm, "origin": origin, "model": name, "horizon": np.arange(1, 53)}
        frame["median"] = np.expm1(got["mean"])
        for level in (50, 80, 95):
            frame[f"low{level}"] = np.expm1(got[f"lo-{level}"])
            frame[f"high{level}"] = np.expm1(got[f"hi-{level}"])
        made.append(pd.DataFrame(frame))
pd.concat(made).to_parquet(sys.argv[2])
"""
"""Of logs, so that their bands are positive. AutoETS leaves out a season of more than 24 weeks, and says so."""


def _with_topline(made: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Bands of the libraries beside the same outcomes; of the year, weeks summed as if they went together."""
    ours = rows[(rows["model"] == PLUS) & (rows["outcome"] == "sales")]
    weeks = ours[ours["period"] == "week"].drop(columns=["median", *_ENDS, "model"])
    weeks = weeks.assign(horizon=(weeks["week"] - weeks["origin"]).dt.days // 7)
    made = made.assign(origin=pd.to_datetime(made["origin"]).astype(weeks["origin"].dtype))
    joined = weeks.merge(made, on=["firm", "origin", "horizon"]).drop(columns="horizon")
    sums = made.groupby(["firm", "origin", "model"])[["median", *_ENDS]].sum().reset_index()
    years = ours[ours["period"] == "year"].drop(columns=["median", *_ENDS, "model"])
    return pd.concat([joined, years.merge(sums, on=["firm", "origin"])])


_ENDS = [f"{end}{level}" for level in LEVELS for end in ("low", "high")]


def run_topline(folder: Path, python: str, firms: int, seed: int) -> None:
    """Ask another Python, which has statsforecast, for its bands of the same series."""
    if (folder / "topline.parquet").exists():
        return
    frames = [
        pd.DataFrame({"firm": p.firm, "origin": str(o.week), "week": p.until(o.week).weeks, "sales": p.until(o.week).S})
        for p in panels(firms, seed) for o in ORIGINS
    ]  # fmt: skip
    pd.concat(frames).to_parquet(folder / "series.parquet")
    command = [python, "-c", TOPLINE, str(folder / "series.parquet"), str(folder / "topline.parquet")]
    subprocess.run(command, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where forecasts and bands are kept")
    parser.add_argument("--firms", type=int, default=60, help="firms of the economy [%(default)s]")
    parser.add_argument("--seed", type=int, default=SEED, help="seed of the economy [%(default)s]")
    parser.add_argument("--topline", help="a Python with statsforecast, for MSTL and AutoETS")
    asked = parser.parse_args()
    folder = asked.folder / f"{asked.firms}-{asked.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for k in range(len(ORIGINS)):
            forecasts(folder, k, asked.firms, asked.seed)
        con = connection(folder, asked.firms, asked.seed)
        for k in range(len(ORIGINS)):
            bands(folder, k, asked.firms, asked.seed, con)
        if asked.topline:
            run_topline(folder, asked.topline, asked.firms, asked.seed)
        tell(folder, asked.firms, asked.seed, con)


if __name__ == "__main__":
    main()
