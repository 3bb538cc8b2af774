"""Ranges of every model side by side, on firms nobody tuned on: interval score and CRPS at the paper's origin.

    python bench/band_models.py data/bands --seed 9307                     60 firms, every model but trees and networks
    python bench/band_models.py data/bands --seed 9307 --slow-firms 20     trees and networks too, of the first 20 firms
    python bench/band_models.py data/bands --seed 9307 --only-tell         the tables alone

Firms and design are those of bench/bands.py. Ranges are made as the study's are: `cbmt_plus` has its own distribution,
with factors learned from the backtests before; models with two earlier backtests of every firm have errors of their
own; the others borrow the errors of the default models. Each model is compared with `cbmt_plus` on the firms it has.
Because borrowed ranges may be too wide or too narrow for a model, its CRPS is also given for the one width, common
to all firms, that would have been best in hindsight.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import bands as bench
import numpy as np
import pandas as pd
from panel_results.document import table
from threadpoolctl import threadpool_limits

from cbmt_core import duck
from cbmt_core.bands import (
    LEVELS,
    SALES,
    BridgeBaseline,
    FirmBands,
    band_scores,
    band_tables,
    error_paths,
    judged_bands,
    learn_factors,
    realised_errors,
    sales_errors,
)
from cbmt_core.evaluation import Relations
from cbmt_core.fits import fit_model
from cbmt_core.forecasting import forecast_fit, forecast_tables
from cbmt_core.models import MODELS, benchmarks, networks
from cbmt_core.timeline import BACKTEST_ANCHOR, HORIZON, Origin
from cbmt_core.uncertainty import DRIVERS

PLUS = bench.PLUS
LENDERS = bench.MODELS
STUDY = next(k for k, origin in enumerate(bench.ORIGINS) if origin.week == BACKTEST_ANCHOR)
EARLIER = [k for k in range(STUDY) if bench.ORIGINS[k].target.last <= bench.ORIGINS[STUDY].week]
"""Origins whose whole year had been observed: the errors that paths are made of."""
FLOORS = tuple(name for name in benchmarks() if MODELS[name].family in ("floor", "classical"))
GROUPS = {
    "plus": (PLUS,),
    "floors": FLOORS,
    "probabilistic": tuple(name for name in benchmarks() if MODELS[name].family == "probabilistic"),
    "trees": tuple(name for name in benchmarks() if MODELS[name].family == "tree"),
    "networks": tuple(networks()),
}
SLOW = ("trees", "networks")
PROFILE = "quick"
TABLES = ("forecast_spread", "forecast_cohort_week", "forecast_week")
WIDTHS = np.exp(np.linspace(np.log(0.4), np.log(2.5), 41))


@dataclass(frozen=True)
class Bench:
    folder: Path
    firms: int
    seed: int

    def kept(self, name: str, k: int | str, group: str, i: int | str) -> Path:
        week = bench.ORIGINS[k].week if isinstance(k, int) else k
        return self.folder / f"{name}-{week}-{group}-{i}.parquet"

    def forecast(self, k: int, group: str, i: int) -> None:
        """Forecasts of one firm at one origin by a group of models, unless they are there."""
        if self.kept(TABLES[-1], k, group, i).exists():
            return
        started = time.process_time()
        seen = bench.panels(self.firms, self.seed)[i].until(bench.ORIGINS[k].week)
        runs = []
        for name in GROUPS[group]:
            options = {"priors": self.priors(k)} if name == PLUS else {}
            options |= {"profile": PROFILE} if name in networks() else {}
            runs.append(forecast_fit(fit_model(name, seen, 1, **options), seen, HORIZON))
        made = forecast_tables(runs, "study" if k == STUDY else "backtest")
        for name in TABLES:
            made[name].to_parquet(self.kept(name, k, group, i))
        spent = time.process_time() - started
        print(
            f"{bench.ORIGINS[k].week} firm {i}: {group}, {spent:.1f} core-seconds",
            file=sys.stderr,
            flush=True,
        )

    def priors(self, k: int) -> bench.PathPriors:
        return bench.priors(self.folder, k, self.firms, self.seed)

    def forecasts(self, slow_firms: int) -> None:
        for i in range(self.firms):
            for k in range(STUDY + 1):
                self.forecast(k, "plus", i)
            for k in (*EARLIER, STUDY):
                self.forecast(k, "floors", i)
            self.forecast(STUDY, "probabilistic", i)
        for i in range(slow_firms):
            for group in SLOW:
                self.forecast(STUDY, group, i)

    @cached_property
    def con(self) -> duck.duckdb.DuckDBPyConnection:
        con = bench.connection(self.folder, self.firms, self.seed)
        files = duck.literal(str(self.kept("forecast_week", "*", "*", "*")))
        con.execute(
            "CREATE TABLE forecast_week AS SELECT * REPLACE (CAST(week AS DATE) AS week, "
            f"CAST(origin AS DATE) AS origin) FROM read_parquet({files}, union_by_name = true)"
        )
        return con

    def paths(self, models: tuple[str, ...]) -> pd.DataFrame:
        week, found = bench.ORIGINS[STUDY].week, []
        for model in models:
            alone = sales_errors(self.con, Relations(), week, model)
            errors = realised_errors(self.con, Relations(), week, model)
            errors = errors.merge(alone, on=["firm", "origin", "horizon"], how="left")
            paths = error_paths(self.con, Relations(), errors, HORIZON, (*DRIVERS, *SALES))
            found.append(paths.assign(model=model))
        return pd.concat(found)

    def bands(self) -> pd.DataFrame:
        """Rows of `forecast_band` at the study's origin."""
        week = bench.ORIGINS[STUDY].week
        factors = bench.factor_rows(learn_factors(realised_errors(self.con, Relations(), week, PLUS)))
        own, lent = self.paths(FLOORS), self.paths(LENDERS)
        frames, spent = [], 0.0
        done = [i for i in range(self.firms) if self.kept(TABLES[-1], STUDY, "probabilistic", i).exists()]
        for panel in (bench.panels(self.firms, self.seed)[i] for i in done):
            seen = panel.until(week)
            forecasts, weeks = (
                self.rows(name, panel.firm) for name in ("forecast_cohort_week", "forecast_week")
            )
            last = seen.weeks[-HORIZON:]
            ((q, s, i),) = self.con.execute(
                "SELECT sum(repeat_orders), sum(repeat_sales), sum(initial_sales) FROM cohort_week "
                "WHERE firm = ? AND week BETWEEN ? AND ?",
                [panel.firm, last[0].item(), last[-1].item()],
            ).fetchall()
            baseline = BridgeBaseline(q, s, i)
            firm = FirmBands(seen, baseline, forecasts, factors[factors["firm"] == panel.firm], lent, weeks,
                             priors=self.priors(STUDY))  # fmt: skip
            clock = time.process_time()
            borrowed = band_tables(firm, list(MODELS), Origin(week, HORIZON, "study"))["forecast_band"]
            spent += time.process_time() - clock
            frames.append(borrowed)
            # Models of the study without backtests that are cheap enough to get some here use errors of their own.
            others = [name for name in FLOORS if name not in LENDERS]
            own_errors = band_tables(replace(firm, paths=own), others, Origin(week, HORIZON, "study"))[
                "forecast_band"
            ]
            frames.append(own_errors.assign(model=own_errors["model"] + ", own errors"))
        print(
            f"bands of all models: {spent / len(done):.2f} core-seconds a firm of {len(done)}",
            file=sys.stderr,
        )
        return pd.concat(frames)

    def rows(self, name: str, firm: str) -> pd.DataFrame:
        """Rows of a forecast table of one firm at the study's origin."""
        (i,) = [i for i, panel in enumerate(bench.panels(self.firms, self.seed)) if panel.firm == firm]
        files = [self.kept(name, STUDY, group, i) for group in GROUPS]
        return pd.concat([pd.read_parquet(file) for file in files if file.exists()])

    def tell(self) -> None:
        self.con.register("made", self.bands())
        self.con.execute(
            "CREATE TABLE forecast_band AS SELECT * REPLACE (CAST(origin AS DATE) AS origin, "
            "CAST(week AS DATE) AS week, CAST(weeks AS INTEGER) AS weeks) FROM made"
        )
        judged = judged_bands(self.con, Relations(), bench.DESIGN.panel.last, ("study",))
        judged = judged[judged["outcome"] == "sales"]
        held = judged.groupby("model")["firm"].nunique()
        rows = []
        for model in held.index:
            firms = judged.loc[judged["model"] == model, "firm"].unique()
            pair = judged[judged["model"].isin([model, PLUS]) & judged["firm"].isin(firms)]
            scores = band_scores(pair, PLUS).set_index("model")
            row = {**scores.loc[model].to_dict(), "model": model}
            own = scores.loc[PLUS]
            row |= {f"plus_{name}": own[name] for name in ("weeks_crps", "total_crps")}
            row |= {
                f"best_{name}": value for name, value in _best_width(pair[pair["model"] == model]).items()
            }
            rows.append(row)
        shown = pd.DataFrame(rows).sort_values(["weeks_crps"])
        heads = ["model", "firms", "errors", "score, weeks", "year", "CRPS, weeks", "year", "best width, weeks",
                 "year", "`cbmt_plus`, weeks", "year", "difference, weeks", "worse on"]  # fmt: skip
        print(
            f"\n{self.firms} firms of economy {self.seed}, origin {bench.ORIGINS[STUDY].week}; per cent of sales\n"
        )
        print(table(heads, [
            [row["model"], str(row["firms"]), row["source"],
             *(f"{row[name]:.1f}" for name in ("weeks_score", "total_score")),
             *(f"{row[name]:.2f}" for name in ("weeks_crps", "total_crps", "best_weeks", "best_total",
                                               "plus_weeks_crps", "plus_total_crps")),
             "" if row["model"] == PLUS else
             f"{row['difference']:+.2f} [{row['difference_low']:+.2f}, {row['difference_high']:+.2f}]",
             "" if row["model"] == PLUS else f"{row['worse']:.0f} %"]
            for row in shown.to_dict("records")]))  # fmt: skip


def _best_width(rows: pd.DataFrame) -> dict[str, float]:
    """The least CRPS of weeks and of the year if all ends of bands lay the same factor nearer or farther, in logs."""
    ends = [f"{end}{level}" for level in LEVELS for end in ("low", "high")]
    logs = np.log(rows[ends].clip(lower=1e-9).to_numpy(float) / rows["median"].to_numpy(float)[:, None])
    best = {"weeks": np.inf, "total": np.inf}
    for width in WIDTHS:
        changed = rows.copy()
        changed[ends] = rows["median"].to_numpy(float)[:, None] * np.exp(width * logs)
        scores = band_scores(changed, PLUS).iloc[0]
        best = {kind: min(least, float(scores[f"{kind}_crps"])) for kind, least in best.items()}
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where forecasts are kept")
    parser.add_argument("--firms", type=int, default=60, help="firms of the economy [%(default)s]")
    parser.add_argument("--seed", type=int, default=bench.SEED, help="seed of the economy [%(default)s]")
    parser.add_argument(
        "--slow-firms", type=int, default=0, help="firms with trees and networks [%(default)s]"
    )
    parser.add_argument("--only-tell", action="store_true", help="forecast nothing more")
    asked = parser.parse_args()
    folder = asked.folder / f"models-{asked.firms}-{asked.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    made = Bench(folder, asked.firms, asked.seed)
    with threadpool_limits(1):
        if not asked.only_tell:
            made.forecasts(asked.slow_firms)
        made.tell()


if __name__ == "__main__":
    main()
