"""Errors by fiscal quarter and horizon: forecasts against panel sales, analysts against reported revenue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import duckdb
import numpy as np
import pandas as pd

from cbmt_core.arrays import Floats
from cbmt_core.design import StudyDesign
from cbmt_core.diagnostics.calibration.tables import AnalystTables
from cbmt_core.diagnostics.data import DiagnosticState
from cbmt_core.duck import literal
from cbmt_core.errors import BadTable
from cbmt_core.evaluation import Relations
from cbmt_core.evaluation.paired import MIN_FIRMS, SEED
from cbmt_core.metrics import symmetric_errors
from cbmt_core.schema import DIAGNOSTIC_TABLES

__all__ = ["RESAMPLES", "TRIMMED", "Calibration", "calibrate", "calibration_tables", "weekly_sales"]


RESAMPLES = 1_000
TRIMMED = 0.1
"""Share of tickers left out: those whose two errors differ most."""

_QUARTERS = DIAGNOSTIC_TABLES["calibration_quarter"].column_names
_SUMMARY = DIAGNOSTIC_TABLES["calibration_summary"].column_names


@dataclass(frozen=True, eq=False)
class Calibration:
    quarters: pd.DataFrame
    """Rows of the table `calibration_quarter`."""
    summary: pd.DataFrame
    """Rows of the table `calibration_summary`."""
    note: str
    """Numbers of firms, tickers and quarters compared, trimmed and left out."""


def calibration_tables(
    made: Calibration | None,
    note: str = "cbmt.toml has no [calibration] section, so there are no analyst forecasts to compare with",
) -> tuple[dict[str, pd.DataFrame], DiagnosticState]:
    """The tables `calibration_quarter` and `calibration_summary`, and their row of `diagnostic`. Given None, the
    tables are empty, with a note that says why."""
    if made is None:
        frames = (pd.DataFrame(columns=_QUARTERS), pd.DataFrame(columns=_SUMMARY))
        state = DiagnosticState("external_calibration", 0, 1, False, note)
    else:
        frames = (made.quarters, made.summary)
        firms = made.quarters.loc[~made.quarters["trimmed"], "ticker"].nunique()
        state = DiagnosticState("external_calibration", firms, 1, firms > 0, made.note)
    return dict(zip(("calibration_quarter", "calibration_summary"), frames, strict=True)), state


def weekly_sales(
    con: duckdb.DuckDBPyConnection, relations: Relations, design: StudyDesign, model: str
) -> pd.DataFrame:
    """Firm, currency, week, actual sales, and sales as `model` forecast them at the design's origin.

    Up to the origin the forecast is the actual sales. Segments, and firms whose holdout the model has not forecast
    completely, are left out.
    """
    return con.execute(f"""
        WITH forecast AS (
            SELECT firm, week, sales FROM {relations.forecast_week}
            WHERE model = {literal(model)} AND origin = DATE '{design.origin}'
        ), complete AS (
            SELECT firm FROM forecast SEMI JOIN {relations.firm_week} USING (firm, week)
            GROUP BY firm HAVING count(*) = {design.holdout_weeks}
        )
        SELECT w.firm, currency, w.week, CAST(w.sales AS DOUBLE) AS actual,
            CASE WHEN w.week > DATE '{design.origin}' THEN f.sales ELSE CAST(w.sales AS DOUBLE) END AS expected
        FROM {relations.firm_week} w JOIN complete USING (firm) JOIN {relations.firm} i USING (firm)
        LEFT JOIN forecast f ON f.firm = w.firm AND f.week = w.week
        WHERE i.segment IS NULL AND w.week BETWEEN DATE '{design.study.first}' AND DATE '{design.study.last}'
        ORDER BY w.firm, w.week
    """).df()


def calibrate(
    tables: AnalystTables,
    weekly: pd.DataFrame,
    design: StudyDesign,
    model: str,
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Calibration:
    """Errors of fiscal quarters that end after the origin (Web App. "External Calibration …").

    Weeks belong to the quarter they begin in. A quarter in progress at the origin includes its observed weeks, which
    analysts had seen too; a quarter that ends after the data is left out. The analysts' value is the mean of all
    forecasts made during calibration, none after the origin.
    """
    sales, dropped = _by_ticker(tables.tickers, weekly)
    quarters = _quarter_sums(tables, sales, design)
    both = quarters.merge(_analysts(tables.forecasts, design), on=["ticker", "quarter"])
    both["model_smape"] = 100 * symmetric_errors(
        both["panel_sales"].to_numpy(float), both["panel_forecast"].to_numpy(float)
    )
    both["analyst_smape"] = 100 * symmetric_errors(
        both["revenue"].to_numpy(float), both["analyst_forecast"].to_numpy(float)
    )
    both["model"] = model
    difference = both.groupby("ticker")[["model_smape", "analyst_smape"]].mean()
    apart = (difference["analyst_smape"] - difference["model_smape"]).abs().sort_values(kind="stable")
    number = int(TRIMMED * len(apart) + 0.5)
    both["trimmed"] = both["ticker"].isin(apart.index[len(apart) - number :])
    kept = both[~both["trimmed"]]
    rows = [_of_horizon(part, str(name), model, resamples, seed) for name, part in kept.groupby("horizon")]
    matched = weekly["firm"].drop_duplicates().isin(tables.tickers["firm"]).sum()
    note = (
        f"{matched} forecast firms map to {sales['ticker'].nunique()} tickers, of which {len(apart)} have analyst "
        f"forecasts of a quarter that can be scored; {number} are trimmed, {len(apart) - number} are compared."
    )
    if dropped:
        note += f" Left out, because their firms differ in currency: {', '.join(dropped)}."
    return Calibration(both[_QUARTERS], pd.DataFrame(rows, columns=_SUMMARY), note)


def _by_ticker(tickers: pd.DataFrame, weekly: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Weekly sales of each ticker, summed over its firms, and the tickers whose firms cannot be added up."""
    joined = weekly.merge(tickers[["firm", "ticker"]], on="firm")
    currencies = joined.groupby("ticker")["currency"].nunique()
    mixed = sorted(str(name) for name in currencies.index[currencies > 1])
    joined = joined[~joined["ticker"].isin(mixed)]
    sales = joined.groupby(["ticker", "week"], as_index=False).agg(
        actual=("actual", "sum"), expected=("expected", "sum"), firms=("firm", "nunique")
    )
    return sales.assign(week=pd.to_datetime(sales["week"]).astype("datetime64[us]")), mixed


def _quarter_sums(tables: AnalystTables, sales: pd.DataFrame, design: StudyDesign) -> pd.DataFrame:
    """Quarters that end after the origin and are observed to their end, numbered from the first."""
    origin, end = pd.Timestamp(design.origin), pd.Timestamp(design.study.last + timedelta(days=6))
    quarters = tables.quarters[tables.quarters["ticker"].isin(sales["ticker"])]
    starts = quarters.groupby("ticker")["first_day"].min()
    late = starts[starts > origin + timedelta(days=7)]
    if len(late):
        raise BadTable(
            tables.quarters_file,
            f"the quarters of {late.index[0]} begin on {late.iloc[0]:%Y-%m-%d}, after the forecast origin "
            f"{design.origin}; add the quarter in progress then, from which horizons are counted",
        )
    # A quarter counts as forecast if a week after the origin begins in it.
    quarters = quarters[quarters["last_day"] >= origin + timedelta(days=7)]
    number = quarters.groupby("ticker").cumcount() + 1
    quarters = quarters.assign(horizon="Q" + number.astype(str))
    quarters = quarters[
        (quarters["last_day"] <= end) & (quarters["first_day"] >= pd.Timestamp(design.study.first))
    ]
    pairs = quarters.merge(sales, on="ticker")
    pairs = pairs[(pairs["week"] >= pairs["first_day"]) & (pairs["week"] <= pairs["last_day"])]
    keys = ["ticker", "quarter", "horizon", "first_day", "last_day"]
    return (
        pairs.assign(ahead=pairs["week"] > origin)
        .groupby(keys, as_index=False)
        .agg(
            firms=("firms", "max"),
            weeks=("week", "count"),
            weeks_ahead=("ahead", "sum"),
            panel_sales=("actual", "sum"),
            panel_forecast=("expected", "sum"),
        )
    )


def _analysts(forecasts: pd.DataFrame, design: StudyDesign) -> pd.DataFrame:
    made = forecasts["made_on"]
    eligible = forecasts[
        (made >= pd.Timestamp(design.calibration.first)) & (made <= pd.Timestamp(design.origin))
    ]
    keys = ["ticker", "quarter"]
    actual = forecasts.groupby(keys)["actual"].first()
    means = eligible.groupby(keys).agg(
        analyst_forecast=("forecast", "mean"), analyst_forecasts=("forecast", "size")
    )
    return means.join(actual.rename("revenue")).dropna(subset="revenue").reset_index()


def _of_horizon(part: pd.DataFrame, horizon: str, model: str, resamples: int, seed: int) -> list[object]:
    errors = part[["model_smape", "analyst_smape"]].to_numpy(float)
    n = len(errors)
    se: Floats = np.full(2, np.nan)
    if n >= MIN_FIRMS:
        drawn = np.random.default_rng(seed).integers(0, n, (resamples, n))
        se = errors[drawn].mean(axis=1).std(axis=0, ddof=1)
    mean = errors.mean(axis=0)
    return [horizon, model, n, mean[0], se[0], mean[1], se[1]]
