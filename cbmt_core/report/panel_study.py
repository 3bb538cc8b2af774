"""The study's comparison of models on the panel's page: a test on past weeks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
import pandas as pd
from markupsafe import Markup

from cbmt_core.bridge import CONTRIBUTIONS
from cbmt_core.evaluation import ALL_INDUSTRIES
from cbmt_core.metrics import FULL, OUTCOMES
from cbmt_core.report import panel_charts as charts
from cbmt_core.report import words
from cbmt_core.report.firm_page import OUTCOME_NAMES
from cbmt_core.report.numbers import count, day, percent, short, value, week_end
from cbmt_core.report.rows import query, records, table_rows
from cbmt_core.report.story import label
from cbmt_core.report.svg import BLUE, GREY, PALETTE
from cbmt_core.timeline import WEEK

__all__ = ["study_comparison"]

FEW = 10
"""Minimum number of firms for intervals and tests."""
SOURCE_NAMES = {
    "sales_change": "Sales change",
    "order_volume": "Repeat orders",
    "spend_per_order": "Spend per order",
    "net_replenishment": "Net replenishment",
}
HORIZON_NAMES = {"1q": "13 weeks", "2q": "26", "3q": "39", FULL: "all"}


def study_comparison(con: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """The study's part of the panel's template; its parts are empty without a study."""
    summary = query(
        con, "SELECT * FROM accuracy_summary WHERE metric = 'smape' AND industry = ?", ALL_INDUSTRIES
    )
    full = summary[summary["horizon"] == FULL]
    total = full[full["outcome"] == "total_sales"].sort_values(["mean", "model"])
    reference = str(total["reference"].iloc[0]) if len(total) else None
    horizon, industry = (
        query(con, f'SELECT * FROM {name} ORDER BY "row"') for name in ("exhibit.horizon", "exhibit.industry")
    )
    best = [str(model) for model in total["model"].head(1)]
    horizon = _with_planned(con, horizon, summary, best)
    colours = _colours([*horizon["model"], *industry["model"]], reference)
    return {
        "windows": _windows(con),
        "headline": headline(total),
        "lead": _lead(full, total, reference),
        "few": len(total) > 0 and int(total["firms"].max()) < FEW,
        "few_limit": FEW,
        "compared": int(total["firms"].max()) if len(total) else 0,
        "accuracy": [_accuracy_row(row, reference) for row in records(total)],
        "by_outcome": _by_outcome(full, total, reference),
        "outcomes": OUTCOME_NAMES,
        "ranks": _ranks(total, reference),
        "horizons": _horizons(horizon, colours, reference),
        "legend": [(label(model), colours[model]) for model in dict.fromkeys(horizon["model"])],
        "industries": _industries(industry, colours),
        "industry_legend": [(label(model), colours[model]) for model in dict.fromkeys(industry["model"])],
        "statistics": _statistics(con),
        "bridge": _bridge_mae(con, reference),
        "sources": SOURCE_NAMES,
    }


def _windows(con: duckdb.DuckDBPyConnection) -> str:
    """When the study's forecasts were made and which weeks they are for; empty without a study."""
    found = con.execute(
        "SELECT first_week, last_week FROM study_window WHERE \"window\" = 'holdout' AND weeks > 0"
    ).fetchall()
    if not found:
        return ""
    first, last = found[0]
    made = day(week_end(first - WEEK))
    return f"made with data up to {made}, for weeks that have passed since ({day(first)} to {day(week_end(last))})"


def headline(total: pd.DataFrame) -> str:
    """Which model is best on total sales, by mean and by median."""
    if total.empty:
        return "Forecasts of past weeks have not been compared yet"
    mean, median = (records(total.sort_values([name, "model"]))[0] for name in ("mean", "median"))
    first = f"{label(mean['model'])} forecast sales best: off by {percent(mean['mean'])} in an average week"
    if mean["model"] == median["model"]:
        return f"{first}, and best for the median firm too"
    return f"{first}; for the median firm {label(median['model'])} did"


def _lead(full: pd.DataFrame, total: pd.DataFrame, reference: str | None) -> list[str]:
    """The reference against the next best model, and where it loses."""
    if reference is None:
        return ["Errors are known once weeks after the forecasts' origin have been observed."]
    firms = int(total["firms"].max())
    name = label(reference)
    own = total[total["model"] == reference].iloc[0]
    rank = int((total["mean"] < own["mean"]).sum()) + 1
    text = [
        f"{words.plural(len(total), 'model')} are compared on {words.plural(firms, 'firm')} over the holdout. "
        f"The reference is {name}: number {rank} by mean error of total sales ({percent(own['mean'])}) "
        f"and {_place(total, own)} by the median firm's ({percent(own['median'])})."
    ]
    lost, won = [], []
    for outcome in OUTCOMES:
        rows = full[full["outcome"] == outcome]
        mine = rows.loc[rows["model"] == reference, "mean"]
        if mine.empty or len(rows) < 2:
            continue
        best = records(rows.sort_values(["mean", "model"]))[0]
        here = OUTCOME_NAMES[outcome]
        here = here if here in ("ROPC", "AOV") else here.lower()
        if best["model"] == reference:
            won.append(here)
        else:
            lost.append(
                f"{here} ({label(best['model'])} {percent(best['mean'])}, {name} {percent(float(mine.iloc[0]))})"
            )
    if lost:
        text.append(
            f"{name} loses on {words.listed(lost)}" + (f"; it leads on {words.listed(won)}." if won else ".")
        )
    elif won:
        text.append(f"{name} leads on every outcome.")
    return text


def _place(total: pd.DataFrame, own: pd.Series[Any]) -> str:
    return f"number {int((total['median'] < own['median']).sum()) + 1}"


def _colours(models: list[str], reference: str | None) -> dict[str, str]:
    """The reference is blue everywhere; others take the palette's next colours, then grey."""
    names = list(dict.fromkeys(models))
    others = dict(zip((name for name in names if name != reference), PALETTE[1:], strict=False))
    return {name: BLUE if name == reference else others.get(name, GREY) for name in names}


def _accuracy_row(row: Mapping[str, Any], reference: str | None) -> dict[str, Any]:
    def share(number: float | None) -> str:
        return percent(None if number is None else 100 * number, digits=0)

    difference = value(row["difference"], 2)
    if row["difference_low"] is not None:
        difference += f" [{value(row['difference_low'], 2)}, {value(row['difference_high'], 2)}]"
    return {
        "model": label(row["model"]),
        "chosen": row["model"] == reference,
        "cells": [
            value(row["mean"], 2),
            value(row["median"], 2),
            value(row["sd"], 2),
            value(row["average_rank"], 2),
            share(row["first_rank"]),
            share(row["win_rate"]),
            difference,
            count(row["firms"]),
        ],
    }


def _by_outcome(full: pd.DataFrame, total: pd.DataFrame, reference: str | None) -> list[dict[str, Any]]:
    table = full.pivot_table(index="model", columns="outcome", values="mean", dropna=False)
    return table_rows(table.reindex(index=total["model"], columns=list(OUTCOMES)), OUTCOMES, 1, reference)


def _ranks(total: pd.DataFrame, reference: str | None) -> Markup | None:
    ranked = total.dropna(subset=["average_rank"]).sort_values("average_rank")
    if ranked.empty:
        return None
    rows = [
        (
            label(row["model"]),
            [charts.Dot("average rank", BLUE if row["model"] == reference else GREY, row["average_rank"])],
        )
        for row in records(ranked)
    ]
    return charts.dots("Average rank on total sales", rows, "average rank, 1 is best")


def _with_planned(
    con: duckdb.DuckDBPyConnection, horizon: pd.DataFrame, summary: pd.DataFrame, best: list[str]
) -> pd.DataFrame:
    """Add the model that most firms plan with, and the study's `best`, where the paper's table leaves them out."""
    chosen = query(
        con,
        "SELECT model FROM forecast_choice WHERE purpose = 'live' GROUP BY model ORDER BY count(*) DESC, model LIMIT 1",
    )["model"]
    lacking = [name for name in dict.fromkeys([*chosen, *best]) if name not in set(horizon["model"])]
    rows = summary[summary["model"].isin(lacking) & summary["horizon"].isin(set(horizon["horizon"]))]
    return pd.concat([horizon, rows[["outcome", "horizon", "model", "mean"]]], ignore_index=True)


def _horizons(
    rows: pd.DataFrame, colours: Mapping[str, str], reference: str | None
) -> list[tuple[str, Markup]]:
    out = []
    for outcome in OUTCOMES:
        part = rows[rows["outcome"] == outcome]
        places = list(dict.fromkeys(part["horizon"]))
        if len(places) < 2:
            continue
        series = [
            charts.Line(
                label(str(model)), colours.get(str(model), GREY),
                own.set_index("horizon")["mean"].reindex(places).to_numpy(dtype=float), model == reference,
            )
            for model, own in part.groupby("model", sort=False)
        ]  # fmt: skip
        names = [HORIZON_NAMES.get(place, place) for place in places]
        out.append((OUTCOME_NAMES[outcome], charts.lines(OUTCOME_NAMES[outcome], names, series)))
    return out


def _industries(rows: pd.DataFrame, colours: Mapping[str, str]) -> Markup | None:
    if rows.empty:
        return None
    dots = [
        (
            f"{industry} ({int(part['firms'].max())})",
            [
                charts.Dot(row["label"], colours[row["model"]], row["mean"], row["se"])
                for row in records(part[::-1])
            ],
        )
        for industry, part in rows.groupby("industry", sort=False)
    ]
    return charts.dots("Error by industry", dots, "mean SMAPE of total sales, %; firms in brackets", left=190)


def _statistics(con: duckdb.DuckDBPyConnection) -> list[tuple[str, list[str]]]:
    rows = query(con, 'SELECT * FROM exhibit.summary_statistics ORDER BY "row"')
    columns = [
        f"{window}_{part}" for window in ("calibration", "holdout") for part in ("p25", "median", "p75")
    ]
    return [
        (row["statistic"], [value(row[c], 4) if abs(row[c] or 1) < 1 else short(row[c]) for c in columns])
        for row in records(rows)
    ]


def _bridge_mae(con: duckdb.DuckDBPyConnection, reference: str | None) -> dict[str, Any] | None:
    rows = query(con, "SELECT * FROM diagnostic.bridge_mae WHERE sample = 'primary'")
    if rows.empty:
        return None
    table = rows.pivot_table(index="model", columns="contribution", values="mae_points")
    table = table.reindex(columns=list(CONTRIBUTIONS)).sort_values("sales_change", kind="stable")
    return {
        "firms": words.plural(int(rows["firms"].max()), "firm"),
        "rows": table_rows(table, CONTRIBUTIONS, 2, reference),
    }
