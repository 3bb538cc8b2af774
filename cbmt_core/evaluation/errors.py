"""SMAPE and MASE of every firm, model, outcome and horizon, computed in SQL for all firms at once.

`cbmt_core.metrics.score` defines the errors; this computes the same from tables without building a panel.
"""

from __future__ import annotations

from datetime import date
from itertools import product

import duckdb
import pandas as pd

from cbmt_core.evaluation.relations import Relations
from cbmt_core.metrics import FULL, HORIZONS, OUTCOMES

__all__ = ["accuracy", "failures"]

KEYS = ["firm", "model", "origin"]
DIGITS = 10
"""Decimals kept, because threads add in any order and models with equal forecasts must tie."""


def accuracy(con: duckdb.DuckDBPyConnection, relations: Relations) -> pd.DataFrame:
    """Rows of the table `accuracy`: errors of every forecast over the weeks observed since its origin.

    Horizons that are not yet observed have no row. Nor do outcomes that a model does not forecast (a model of total
    sales alone) or forecasts only in part; `failures` lists these.
    """
    origins = con.execute(f"SELECT DISTINCT origin FROM {relations.forecast_week} ORDER BY origin").fetchall()
    frames = [_of_origin(con, relations, origin) for (origin,) in origins]
    columns = [*KEYS, "outcome", "horizon", "weeks", "smape", "mase"]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=columns)


def failures(
    con: duckdb.DuckDBPyConnection, relations: Relations, accuracy: pd.DataFrame, origin: date
) -> pd.DataFrame:
    """Rows of the table `accuracy_failure`: each firm and model that lacks a score, with the reason."""
    fits = con.execute(
        f"SELECT firm, model, succeeded, reason FROM {relations.model_fit} WHERE origin = DATE '{origin}'"
    ).df()
    scored = accuracy.loc[(accuracy["origin"] == pd.Timestamp(origin)) & (accuracy["horizon"] == FULL)]
    has: dict[tuple[str, str], set[str]] = {}
    offered: dict[str, set[str]] = {}
    for firm, model, outcome in scored[["firm", "model", "outcome"]].itertuples(index=False):
        has.setdefault((firm, model), set()).add(outcome)
        offered.setdefault(model, set()).add(outcome)
    reasons = {
        (firm, model): reason or "no reason was recorded"
        for firm, model, succeeded, reason in fits.itertuples(index=False)
        if not succeeded
    }
    rows = []
    for key in product(sorted({*fits["firm"], *scored["firm"]}), sorted({*fits["model"], *scored["model"]})):
        if key in reasons:
            rows.append((*key, origin, reasons[key]))
        elif key not in has:
            rows.append((*key, origin, "the model was not run, or no week of its forecast is observed"))
        elif lacking := [name for name in OUTCOMES if name in offered[key[1]] - has[key]]:
            rows.append((*key, origin, f"its forecast is incomplete: no score of {', '.join(lacking)}"))
    return pd.DataFrame(rows, columns=[*KEYS, "reason"])


def _of_origin(con: duckdb.DuckDBPyConnection, relations: Relations, origin: date) -> pd.DataFrame:
    after = f"week > DATE '{origin}'"
    quarters = ", ".join(f"('{name}', {weeks})" for name, weeks in HORIZONS.items())
    # A model's errors are summed by week; the divisor of MASE depends only on the firm.
    query = f"""
    WITH actual_cohorts AS (
        SELECT firm, cohort, week, CAST(cohort_size AS DOUBLE) AS size, ropc, coalesce(aov, 0) AS aov,
            CASE WHEN aov IS NULL THEN 0 ELSE CAST(cohort_size AS DOUBLE) END AS ordered,
            CAST(sales AS DOUBLE) AS sales
        FROM {relations.cohort_week} WHERE {after}
    ), cohort_steps AS (
        SELECT firm, week, size, ordered, abs(ropc - lag(ropc) OVER w) AS ropc,
            abs(aov - last_value(CASE WHEN ordered > 0 THEN aov END IGNORE NULLS) OVER
                (PARTITION BY firm, cohort ORDER BY week ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS aov,
            abs(sales - lag(sales) OVER w) AS sales
        FROM actual_cohorts WINDOW w AS (PARTITION BY firm, cohort ORDER BY week)
    ), cohort_scale AS (
        SELECT firm, week, count(*) AS cohorts,
            {_steps("ropc", "size")}, {_steps("aov", "ordered")}, {_steps("sales", "1", "cohort_sales")}
        FROM cohort_steps GROUP BY ALL
    ), week_steps AS (
        SELECT firm, week, CAST(acquired AS DOUBLE) AS acquired, CAST(sales AS DOUBLE) AS sales,
            abs(acquired - lag(acquired) OVER w) AS acquired_step,
            abs(CAST(sales AS DOUBLE) - lag(CAST(sales AS DOUBLE)) OVER w) AS sales_step
        FROM {relations.firm_week} WHERE {after} WINDOW w AS (PARTITION BY firm ORDER BY week)
    ), cohort_errors AS (
        SELECT f.firm, f.model, f.week,
            {_errors("ropc", "size")}, {_errors("aov", "ordered")}, {_errors("sales", "1", "cohort_sales")}
        FROM {relations.forecast_cohort_week} f JOIN actual_cohorts x USING (firm, cohort, week)
        WHERE f.origin = DATE '{origin}' GROUP BY ALL
    ), weekly AS (
        SELECT f.firm, f.model, row_number() OVER (PARTITION BY f.firm, f.model ORDER BY week) AS h,
            {_week_errors("acquired", "acquisition")}, {_week_errors("sales", "total_sales")},
            COLUMNS(e.* EXCLUDE (firm, model, week)), COLUMNS(s.* EXCLUDE (firm, week))
        FROM {relations.forecast_week} f JOIN week_steps x USING (firm, week)
        LEFT JOIN cohort_errors e USING (firm, model, week) LEFT JOIN cohort_scale s USING (firm, week)
        WHERE f.origin = DATE '{origin}'
    ), spans AS (
        SELECT firm, model, max(h) AS weeks FROM weekly GROUP BY ALL
    ), horizons AS (
        SELECT firm, model, horizon, q.weeks FROM spans s JOIN (VALUES {quarters}) q(horizon, weeks)
            ON q.weeks <= s.weeks
        UNION ALL SELECT firm, model, '{FULL}', weeks FROM spans
    ), summed AS (
        SELECT firm, model, horizon, weeks, {", ".join(map(_sums, OUTCOMES))}
        FROM weekly JOIN horizons USING (firm, model) WHERE h <= weeks GROUP BY ALL
    ), long AS ({" UNION ALL ".join(map(_score, OUTCOMES))})
    SELECT firm, model, DATE '{origin}' AS origin, outcome, horizon, weeks,
        round(smape, {DIGITS}) AS smape, round(mase, {DIGITS}) AS mase FROM long
    ORDER BY firm, model, outcome, weeks, horizon
    """
    return con.execute(query).df()


def _ratio(column: str) -> str:
    # Equal values have no error, also 0 and 0.
    f, x = f"f.{column}", f"x.{column}"
    return f"CASE WHEN {f} = {x} THEN 0 ELSE 2 * abs({f} - {x}) / (abs({f}) + abs({x})) END"


def _errors(column: str, weight: str, name: str | None = None) -> str:
    """Weighted errors of the cohorts of a week."""
    name = name or column
    return (
        f"sum({weight} * {_ratio(column)}) AS {name}_ratio, "
        f"sum({weight} * abs(f.{column} - x.{column})) AS {name}_error, "
        f"sum({weight}) AS {name}_weight, count(f.{column}) AS {name}_count"
    )


def _steps(column: str, weight: str, name: str | None = None) -> str:
    """Weighted naive steps of the cohorts of a week, and the weight of the cohorts that have an earlier week."""
    name = name or column
    return (
        f"sum({weight} * {column}) AS {name}_step, "
        f"sum({weight}) FILTER ({column} IS NOT NULL) AS {name}_stepped"
    )


def _week_errors(column: str, name: str) -> str:
    return (
        f"{_ratio(column)} AS {name}_ratio, abs(f.{column} - x.{column}) AS {name}_error, 1 AS {name}_weight, "
        f"x.{column}_step AS {name}_step, CAST(x.{column}_step IS NOT NULL AS INTEGER) AS {name}_stepped, "
        f"CAST(f.{column} IS NULL AS INTEGER) AS {name}_missing"
    )


def _sums(outcome: str) -> str:
    """Totals of an outcome over the weeks of a horizon."""
    by_week = outcome in ("acquisition", "total_sales")
    missing = f"{outcome}_missing" if by_week else f"coalesce(cohorts, 0) - coalesce({outcome}_count, 0)"
    parts = ("ratio", "error", "weight", "step", "stepped")
    return ", ".join(
        [
            *(f"sum({outcome}_{part}) AS {outcome}_{part}" for part in parts),
            f"sum({missing}) AS {outcome}_missing",
        ]
    )


def _score(outcome: str) -> str:
    error = f"{outcome}_error / nullif({outcome}_weight, 0)"
    return f"""
        SELECT firm, model, '{outcome}' AS outcome, horizon, weeks,
            100 * {outcome}_ratio / nullif({outcome}_weight, 0) AS smape,
            CASE WHEN {outcome}_stepped > 0 AND {outcome}_step > 0
                THEN {error} / ({outcome}_step / {outcome}_stepped)
                WHEN {outcome}_stepped > 0 AND {error} = 0 THEN 0 END AS mase
        FROM summed WHERE {outcome}_missing = 0"""
