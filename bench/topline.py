"""What a user would pick for the topline alone: MSTL, AutoETS, AutoARIMA and Prophet on a project's weekly sales.

    python -m venv .venv-topline && .venv-topline/bin/pip install statsforecast prophet -e .
    .venv-topline/bin/python bench/topline.py data/big              every firm; goes on where it was stopped
    .venv-topline/bin/python bench/topline.py data/big --firms 2    two firms more
    .venv-topline/bin/python bench/topline.py data/big --only-tell  the comparison alone

An environment of their own, since statsforecast wants pandas below 3. Each firm's sales up to the forecast origin
are read from data/cbmt.duckdb, read-only; results go to topline.jsonl in the project's folder, one a line, where
bench/big_panel.py finds them. Nothing is chosen by the holdout. Settings, the same for every firm:

    mstl                the series by MSTL with a season of 52 weeks, its trend by AutoETS (the library's default)
    auto_ets            the same on log sales, where the season multiplies: AutoETS knows no season of 52 by itself
    auto_arima          log sales without MSTL's season, by AutoARIMA
    auto_arima_fourier  log sales by AutoARIMA on Fourier terms of the year, as many as AICc asks for
    prophet             Prophet with a yearly season that multiplies and the study's holidays by week
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
from panel_results.document import table
from panel_results.evidence import Evidence

from cbmt_core.arrays import Floats
from cbmt_core.calendar import calendar_of
from cbmt_core.duck import path_literal
from cbmt_core.metrics import mase, smape

SEASON = 52
HARMONICS = (1, 2, 3, 4, 6, 8)


@dataclass(frozen=True, eq=False)
class Series:
    """A firm's sales by week; the last `horizon` of them are the holdout, which no model is given."""

    firm: str
    weeks: npt.NDArray[np.datetime64]
    sales: Floats
    horizon: int
    country: str

    @property
    def known(self) -> Floats:
        return self.sales[: -self.horizon]


def series_of(path: Path) -> Iterator[Series]:
    """Whole firms, in an order of no meaning, so that a part of them is a fair sample."""
    with duckdb.connect(str(path), read_only=True) as con:
        con.execute("SET threads = 1")
        rows = con.execute("""
            SELECT firm, list(week ORDER BY week), list(firm_week.sales::DOUBLE ORDER BY week),
                count(*) FILTER (week >= (SELECT first_week FROM study_window WHERE "window" = 'holdout')),
                (SELECT country FROM study)
            FROM firm_week JOIN firm USING (firm) WHERE segment IS NULL
            GROUP BY firm ORDER BY hash(firm)""").fetchall()
    for firm, weeks, sales, horizon, country in rows:
        if horizon and len(sales) - horizon > SEASON:
            yield Series(firm, np.array(weeks, "datetime64[D]"), np.array(sales), horizon, country)


def mstl(series: Series) -> Floats:
    from statsforecast.models import MSTL

    return MSTL(season_length=SEASON).forecast(y=series.known, h=series.horizon)["mean"]


def _deseasonalised(series: Series, trend: object) -> Floats:
    from statsforecast.models import MSTL

    model = MSTL(season_length=SEASON, trend_forecaster=trend)
    return np.expm1(model.forecast(y=np.log1p(series.known), h=series.horizon)["mean"])


def auto_ets(series: Series) -> Floats:
    from statsforecast.models import AutoETS

    return _deseasonalised(series, AutoETS(model="ZZN"))


def auto_arima(series: Series) -> Floats:
    from statsforecast.models import AutoARIMA

    return _deseasonalised(series, AutoARIMA(season_length=1))


def auto_arima_fourier(series: Series) -> Floats:
    """Dynamic harmonic regression (Hyndman and Athanasopoulos, Forecasting: Principles and Practice, 10.5)."""
    from statsforecast.models import AutoARIMA

    year = series.weeks.astype(float)[:, None] / 365.25 * 2 * np.pi
    best, made = np.inf, None
    for terms in HARMONICS:
        angle = year * np.arange(1, terms + 1)
        X = np.hstack([np.sin(angle), np.cos(angle)])
        model = AutoARIMA(season_length=1).fit(np.log1p(series.known), X=X[: -series.horizon])
        if model.model_["aicc"] < best:
            best = model.model_["aicc"]
            made = model.predict(h=series.horizon, X=X[-series.horizon :])["mean"]
    if made is None:
        raise ValueError("no number of Fourier terms has an AICc")
    return np.expm1(made)


def prophet(series: Series) -> Floats:
    from prophet import Prophet

    calendar = calendar_of(series.weeks[0].item(), len(series.weeks), series.country)
    week, holiday = np.nonzero(calendar.holiday)
    days = pd.DataFrame(
        {"ds": pd.to_datetime(series.weeks[week]), "holiday": np.array(calendar.holiday_names)[holiday]}
    )
    model = Prophet(
        yearly_seasonality=True, weekly_seasonality=False, daily_seasonality=False,
        seasonality_mode="multiplicative", holidays=days, uncertainty_samples=0,
    )  # fmt: skip
    dates = pd.DataFrame({"ds": pd.to_datetime(series.weeks)})
    model.fit(dates[: -series.horizon].assign(y=series.known), seed=1)
    return model.predict(dates[-series.horizon :])["yhat"].to_numpy()


MODELS: dict[str, Callable[[Series], Floats]] = {
    "mstl": mstl,
    "auto_ets": auto_ets,
    "auto_arima": auto_arima,
    "auto_arima_fourier": auto_arima_fourier,
    "prophet": prophet,
}


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeoutError(f"stopped after {seconds} s")

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def judge(series: Series, name: str, limit: int) -> dict[str, object]:
    """One line of results; without errors, and with the reason, where there is no forecast."""
    row: dict[str, object] = {"firm": series.firm, "model": name, "smape": None, "mase": None, "reason": None}
    started = time.process_time()
    try:
        with at_most(limit):
            # Sales are not negative, whatever a model says.
            forecast = np.maximum(np.asarray(MODELS[name](series), float), 0)
        if not np.isfinite(forecast).all():
            raise ValueError("the forecast is not finite")
        actual = series.sales[-series.horizon :]
        scaled = mase(actual, forecast)
        row |= {"smape": smape(actual, forecast), "mase": None if np.isnan(scaled) else scaled}
    except Exception as error:
        row["reason"] = f"{type(error).__name__}: {error}"
    return row | {"seconds": round(time.process_time() - started, 2)}


def run(project: Path, names: list[str], firms: int | None, limit: int) -> None:
    path = project / "topline.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    done = {(row["firm"], row["model"]) for row in map(json.loads, lines)}
    waiting = [
        (series, todo)
        for series in series_of(project / "data" / "cbmt.duckdb")
        if (todo := [name for name in names if (series.firm, name) not in done])
    ]
    for place, (series, todo) in enumerate(waiting[:firms], 1):
        for name in todo:
            row = judge(series, name, limit)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        print(f"{place} of {len(waiting[:firms])}: {series.firm}", file=sys.stderr)


def tell(project: Path) -> None:
    """The topline models and all of the project's, on the firms that every topline model has."""
    evidence = Evidence(project)
    names = ", ".join(f"'{name}'" for name in MODELS)
    rows = evidence.rows(f"""
        WITH total AS (FROM errors WHERE outcome = 'total_sales' AND horizon = 'full'),
        same AS (SELECT firm FROM total WHERE model IN ({names}) GROUP BY firm
            HAVING count(*) = (SELECT count(DISTINCT model) FROM total WHERE model IN ({names})))
        SELECT named(model) AS model, count(*) AS firms, d2(avg(smape)) AS mean, d2(median(smape)) AS median,
            d2(stddev(smape)) AS sd, d2(median(mase)) AS "median MASE"
        FROM total JOIN same USING (firm) GROUP BY total.model ORDER BY avg(smape)""")
    paired = evidence.rows(f"""
        SELECT named(reference) AS model, named(model) AS against, firms::INTEGER AS firms,
            signed(change) || ' %' AS "difference of means", pct(win_rate) AS "firms won", pv(wilcoxon_p) AS "p"
        FROM paired WHERE metric = 'smape' AND outcome = 'total_sales' AND reference IN ('cbmt', 'cbmt_plus')
            AND model IN ({names}) ORDER BY reference, change""")
    for part in (rows, paired):
        print(
            table(list(part[0]), [list(row.values()) for row in part]) + "\n"
            if part
            else "nothing to compare"
        )
    for row in evidence.rows(f"""SELECT model, count(*) AS firms, any_value(reason) AS reason
            FROM read_json({path_literal(project / "topline.jsonl")}, format = 'newline_delimited')
            WHERE reason IS NOT NULL GROUP BY model"""):
        print(f"{row['model']}: no forecast for {row['firms']} firms ({row['reason']})")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("project", type=Path, help="folder of a project whose data/cbmt.duckdb is published")
    parser.add_argument("--firms", type=int, help="at most so many firms this time [all]")
    parser.add_argument(
        "--model", action="append", choices=list(MODELS), help="only this one; may be repeated"
    )
    parser.add_argument(
        "--limit", type=int, default=120, help="seconds a firm and model may take [%(default)s]"
    )
    parser.add_argument("--only-tell", action="store_true", help="run nothing, compare what is there")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    if not options.only_tell:
        run(options.project, options.model or list(MODELS), options.firms, options.limit)
    if not (options.project / "topline.jsonl").exists():
        sys.exit(
            f"nothing to tell of {options.project}: no firm was run that has a holdout and more than {SEASON} "
            "weeks before it"
        )
    tell(options.project)


if __name__ == "__main__":
    main()
