"""Accuracy of a firm's earlier forecasts: backtests, past live forecasts, and the study's holdout."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import duckdb
import pandas as pd

from cbmt_core.metrics import FULL, OUTCOMES
from cbmt_core.report import charts, evidence_charts, words
from cbmt_core.report.numbers import Money, count, day, percent, value, week_end
from cbmt_core.report.rows import query, records, table_rows
from cbmt_core.report.story import Story, label
from cbmt_core.report.track import BANDS, Track
from cbmt_core.timeline import SEASON

__all__ = [
    "BAND_NAMES",
    "StudyTest",
    "band_rows",
    "read_study",
    "study_context",
    "track_context",
]

BAND_NAMES = [f"{first}–{last}" for first, last in BANDS]


@dataclass(frozen=True, eq=False)
class StudyTest:
    """Errors of a firm's forecasts of the study's holdout."""

    errors: pd.DataFrame
    """SMAPE over the whole holdout, a row a model, and its `rank`."""
    weeks: int

    def certainty(self, model: str) -> str:
        """The model's error in words; empty where it was not tested."""
        own = {str(row["model"]): row for row in records(self.errors.reset_index())}.get(model)
        if own is None or own["total_sales"] is None:
            return ""
        models = int(self.errors["total_sales"].notna().sum())
        return words.tested(label(model), own["total_sales"], self.weeks, int(own["rank"]), models)


def read_study(con: duckdb.DuckDBPyConnection, firm: str, study: Story | None) -> StudyTest:
    """Errors of the forecasts made at the origin of `study`."""
    none = StudyTest(pd.DataFrame(columns=[*OUTCOMES, "rank"]).rename_axis("model"), 0)
    if study is None:
        return none
    rows = query(
        con,
        "SELECT model, outcome, weeks, smape FROM accuracy WHERE firm = ? AND horizon = ? AND origin = ?",
        firm, FULL, study.origin,
    )  # fmt: skip
    if rows.empty:
        return none
    table = rows.pivot_table(index="model", columns="outcome", values="smape", dropna=False)
    table = table.reindex(columns=list(OUTCOMES)).sort_values("total_sales", kind="stable")
    return StudyTest(table.assign(rank=table["total_sales"].rank(method="min")), int(rows["weeks"].max()))


def study_context(
    con: duckdb.DuckDBPyConnection,
    study: Story | None,
    test: StudyTest,
    observed: pd.Series[Any],
    money: Money,
) -> dict[str, Any] | None:
    """The study's forecast against what happened, and every model's error; None without a study.

    Args:
        observed: sales by week.
    """
    if study is None:
        return None
    paths = query(
        con,
        "SELECT purpose, origin, week, sales FROM forecast_week WHERE firm = ? AND model = ? AND origin = ? "
        "AND purpose = 'study' ORDER BY week",
        study.firm, study.model, study.origin,
    )  # fmt: skip
    last = pd.Timestamp(paths["week"].max())
    shown = observed[
        (observed.index > pd.Timestamp(study.origin) - pd.Timedelta(weeks=SEASON)) & (observed.index <= last)
    ]
    return {
        "made": day(week_end(study.origin)),
        "first": day(study.origin + timedelta(weeks=1)),
        "last": day(week_end(last.date())),
        "label": study.label,
        "outcome": "" if study.forecast is None else words.outcome(study.forecast, study.realised),
        "reason": words.sentence(study.reason),
        "chart": _lines("The study's forecast against what happened", shown, paths, study.origin, money),
        "bridges": _bridges(study, money),
        "rows": table_rows(test.errors, OUTCOMES, 1, study.model),
        "weeks": test.weeks,
    }


def _bridges(study: Story, money: Money) -> dict[str, Any] | None:
    if study.forecast is None:
        return None
    forecast, realised = study.forecast, study.realised
    low, high = charts.waterfall_range([one for one in (realised, forecast) if one is not None])
    start = "sales of the same weeks a year earlier"
    return {
        "forecast": charts.waterfall(f"Forecast by {study.label}", forecast, low, high, money, start),
        "realised": None
        if realised is None
        else charts.waterfall("Realised", realised, low, high, money, start),
    }


def track_context(
    track: Track, model: str | None, observed: pd.Series[Any], money: Money
) -> dict[str, Any] | None:
    """Errors by weeks ahead, and earlier forecasts against what happened; None where no forecast has passed weeks."""
    if track.errors.empty:
        return None
    chart = None
    if len(track.paths):
        first = pd.Timestamp(track.vintages["origin"].min()) - pd.Timedelta(weeks=SEASON // 2)
        shown = observed[observed.index >= first]
        paths = track.paths[track.paths["week"] <= observed.index[-1]]
        chart = _lines("Earlier forecasts against actual sales", shown, paths, None, money)
    return {
        "bands": BAND_NAMES,
        "rows": band_rows(track.errors, model),
        "chart": chart,
        "label": "" if model is None else label(model),
        "live": "live" in set(track.errors["purpose"]),
        "vintages": [
            {
                "made": day(week_end(pd.Timestamp(row["origin"]).date())),
                "purpose": row["purpose"],
                "cells": [
                    count(row["weeks"]),
                    money.short(row["forecast"]),
                    money.short(row["actual"]),
                    percent(100 * (row["forecast"] / row["actual"] - 1), plus=True)
                    if row["actual"] > 0
                    else percent(None),
                ],
            }
            for row in records(track.vintages)
        ],
    }


def band_rows(errors: pd.DataFrame, chosen: str | None) -> list[dict[str, Any]]:
    """Rows of a table of errors by weeks ahead; the smallest of each purpose and column is marked."""
    columns = [str(k) for k in range(len(BANDS))]
    best = errors.groupby("purpose")[columns].min()
    return [
        {
            "model": label(row["model"]),
            "purpose": row["purpose"],
            "chosen": row["model"] == chosen,
            "cells": [(value(row[name], 1), row[name] == best.loc[row["purpose"], name]) for name in columns],
            "origins": count(row["origins"]),
            "firms": count(row.get("firms")),
        }
        for row in records(errors)
    ]


def _lines(
    title: str, observed: pd.Series[Any], paths: pd.DataFrame, origin: date | None, money: Money
) -> Any:
    index = pd.DatetimeIndex(observed.index).union(pd.DatetimeIndex(paths["week"].unique()))
    lines = [
        evidence_charts.Vintage(
            f"forecast made {day(week_end(pd.Timestamp(str(made)).date()))}",
            rows.set_index("week")["sales"].reindex(index).to_numpy(dtype=float),
        )
        for (_, made), rows in paths.groupby(["purpose", "origin"])
    ]
    mark = None if origin is None else int(index.searchsorted(pd.Timestamp(origin)))
    weeks = [week.date() for week in index]
    actual = observed.reindex(index).to_numpy(dtype=float)
    return evidence_charts.vintages(title, weeks, actual, lines, mark, money)
