"""A small published file: simulated firms with forecasts, errors, bridges and exhibits, as the pipeline makes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields

import duckdb
import pandas as pd

from cbmt_core.bands import BridgeBaseline, bands, revenue_from_rows
from cbmt_core.bridge import BridgeWindows, bridge_errors, bridge_table
from cbmt_core.compose import compose_draws
from cbmt_core.design import StudyDesign
from cbmt_core.evaluation import Relations, accuracy, compare, failures, whole_firms
from cbmt_core.exhibits import EXHIBITS, exhibits, gather
from cbmt_core.forecasting import FORECAST_TABLES, forecast_tables, run_models
from cbmt_core.names import slug_sql
from cbmt_core.panel import FirmPanel
from cbmt_core.scenarios import Scenario
from cbmt_core.scenarios.plan import spread_year
from cbmt_core.scenarios.tables import PLAN_TABLES, last_year, past_year, scenario_tables
from cbmt_core.schema import (
    DIAGNOSTIC_TABLES,
    FIRM_STATE,
    SCHEMAS,
    SNAPSHOT,
    STUDY,
    STUDY_WINDOW,
    TABLES,
    TIMELINE,
    VIEWS,
    Table,
)
from cbmt_core.simulate import Economy, sample_cohorts
from cbmt_core.timeline import SEASON, Origin, Purpose, Timeline
from cbmt_core.value import ValueTerms, first_sales
from cbmt_core.value.tables import VALUE_TABLES, value_tables
from helpers.evaluation_tables import fill, forecasts
from helpers.planned import lognormal_draws

__all__ = ["BACKTESTS", "FIRMS", "LIVE_MODELS", "MODELS", "publish"]

FIRMS = ("A, B & <Söhne>", "100% off", "Plain~South")
"""Firms with difficult names."""
MODELS = ("cohort_glm", "gls_v1", "seasonal_naive")
"""Models of the study."""
LIVE_MODELS = ("cohort_glm", "seasonal_naive")
"""Models of live forecasts and backtests."""
BACKTESTS = 3
DRAWS = 120
SCENARIOS = (
    Scenario.of("Fewer & <later>", acquisition="-10% from 2020-06", aov="+3%"),
    Scenario.of("long past", repeat="-5% to 2010-01"),
)


def publish(
    con: duckdb.DuckDBPyConnection,
    names: Sequence[str],
    *,
    models: Sequence[str] = MODELS,
    currency: str = "USD",
    scale: float = 0.02,
    live: bool = True,
    backtests: int = BACKTESTS,
    results: Mapping[str, pd.DataFrame] | None = None,
) -> StudyDesign:
    """Fill `con` with every relation that the report reads.

    Args:
        models: of the study; those among LIVE_MODELS forecast the year ahead too.
        live: whether there are live forecasts.
        backtests: number of backtest origins, the newest first.
        results: the tables of the diagnostics.
    """
    for schema in SCHEMAS:
        con.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    economy = Economy(firms=len(names), scale=scale, seed=5)
    panels = []
    for name, spec in zip(names, economy.specs(), strict=True):
        panel = sample_cohorts(economy, spec).panel()
        object.__setattr__(panel, "firm", name)
        panels.append(panel)
    design = economy.design
    fill(con, panels, [run for panel in panels for run in forecasts(panel, models)])
    ahead = [name for name in models if name in LIVE_MODELS]
    # Three quarters apart: of three, one lies at the study's origin and one has a whole year after it.
    past = design.backtest_origins()[::-3][:backtests]
    for origin in (design.live_origins() if live else []) + past:
        _forecast(con, panels, ahead, origin)
    con.execute(
        f"""
        CREATE OR REPLACE TABLE firm AS
        SELECT firm, {slug_sql("firm")} AS slug, NULL::VARCHAR AS parent, NULL::VARCHAR AS segment,
            CASE WHEN firm = $first THEN NULL ELSE 'Shops' END AS industry,
            $currency AS currency, 'UTC' AS timezone, min(week) AS first_week, max(week) AS last_week,
            sum(cohort_size) FILTER (tenure = 0 OR left_censored AND tenure = 1)::BIGINT AS customers,
            sum(orders)::BIGINT AS orders, sum(sales)::DECIMAL(18,4) AS sales, 7 AS washout_orders,
            70 AS washout_sales, 0 AS unfinished_orders, 0 AS unfinished_sales,
            coalesce(any_value(cohort_size) FILTER (left_censored), 0) AS left_censored_customers,
            sum(sales) FILTER (left_censored)::DOUBLE / sum(sales)::DOUBLE AS left_censored_share,
            sum(orders)::BIGINT + 3 AS rows_in, sum(orders)::BIGINT AS rows_used, 3 AS rows_quarantined,
            3 AS rows_bad, 2 AS guest_rows, 1 AS refund_rows, 5.5 AS refunds, 0 AS refunds_unmatched
        FROM cohort_week GROUP BY firm""",
        {"first": names[0], "currency": currency},
    )
    _store(con, TABLES["quarantine"], _quarantine(names[0]))
    study = _relations("study")
    errors = accuracy(con, study)
    firms = whole_firms(con, Relations())
    bridge = bridge_table(con, study, BridgeWindows.of(design))
    compared = bridge_errors(bridge, firms, resamples=20)
    for name, frame in {
        "accuracy": errors,
        "accuracy_failure": failures(con, study, errors, design.origin),
        "accuracy_summary": compare(errors, firms, resamples=20),
        "bridge": pd.concat(
            [bridge, *(_live_bridges(con, origin) for origin in design.live_origins() if live)]
        ),
        "bridge_mae": compared.mae,
        "bridge_method": compared.methods,
    }.items():
        _store(con, TABLES[name], frame)
    results = results or {}
    for name, table in DIAGNOSTIC_TABLES.items():
        _store(con, table, results.get(name, pd.DataFrame(columns=table.column_names)))
    for name, frame in exhibits(gather(con, study, design, errors, bridge, results)).items():
        _store(con, EXHIBITS[name].table, frame)
    spans = (("calibration", design.calibration), ("holdout", design.holdout))
    windows = [(n, w.first, w.last, len(w)) for n, w in spans]
    _store(con, STUDY, pd.DataFrame([asdict(design)]))
    for table in (SNAPSHOT, FIRM_STATE):
        _store(con, table, pd.DataFrame(columns=table.column_names))
    dates = {field.name: getattr(design, field.name) for field in fields(Timeline)}
    _store(con, TIMELINE, pd.DataFrame([dates]))
    _store(con, STUDY_WINDOW, pd.DataFrame(windows, columns=STUDY_WINDOW.column_names))
    for name in ("forecast_choice", "forecast_band"):
        _store(con, TABLES[name], pd.DataFrame(columns=TABLES[name].column_names))
    for view in VIEWS:
        con.execute(f"CREATE OR REPLACE VIEW {view.name} AS {view.sql}")
    _choose(con, design)
    _plan(con, panels, design, live=live)
    return design


def _plan(
    con: duckdb.DuckDBPyConnection, panels: Sequence[FirmPanel], design: StudyDesign, *, live: bool
) -> None:
    """Ranges, scenarios and value on draws that no model made: lognormal paths around the live forecast."""
    frames: dict[str, list[pd.DataFrame]] = {
        name: [] for name in (*PLAN_TABLES, *VALUE_TABLES, "forecast_band")
    }
    choices = con.execute("SELECT firm, model, origin FROM forecast_choice WHERE purpose = 'live'").fetchall()
    for firm, model, origin in choices if live else []:
        panel = next(one for one in panels if one.firm == firm).until(origin)
        rows = con.execute(
            "FROM forecast_cohort_week WHERE firm = ? AND model = ? AND origin = ? AND purpose = 'live'",
            [firm, model, origin],
        ).df()
        draws = lognormal_draws(revenue_from_rows(rows, origin), DRAWS)
        if not draws.centre.has_drivers:
            continue
        keys = {"firm": firm, "model": model, "origin": origin}
        past = past_year(con, "cohort_week", firm, origin)
        plan = spread_year(1.02 * float(draws.centre.S.sum()), last_year(panel), "last year's sales")
        made = {
            **scenario_tables(draws, SCENARIOS, plan, 0.8, keys, past),
            **value_tables(panel, draws, ValueTerms(0.4), None, keys, first_sales(con, "cohort_week", panel)),
        }
        baseline = BridgeBaseline(past.repeat_orders, past.repeat_sales, past.initial_sales) if past else None
        ranges = bands(compose_draws(draws), float(panel.size.sum()), baseline)
        made["forecast_band"] = ranges.assign(**keys, purpose="live", source="borrowed")
        for name, frame in made.items():
            frames[name].append(frame)
    for name, found in frames.items():
        empty = pd.DataFrame(columns=TABLES[name].column_names)
        _store(con, TABLES[name], pd.concat(found, ignore_index=True) if found else empty)


def _relations(purpose: Purpose) -> Relations:
    """The relations with the forecasts of one purpose."""

    def own(table: str) -> str:
        return f"(SELECT * FROM {table} WHERE purpose = '{purpose}')"

    return Relations(**{name: own(name) for name in FORECAST_TABLES})


def _forecast(
    con: duckdb.DuckDBPyConnection, panels: Sequence[FirmPanel], models: list[str], origin: Origin
) -> None:
    runs = [run for panel in panels for run in run_models(panel, models, origin.week, origin.horizon, seed=1)]
    for name, frame in forecast_tables(runs, origin.purpose).items():
        con.register("rows", frame)
        con.execute(f"INSERT INTO {name} SELECT {TABLES[name].select()} FROM rows")
        con.unregister("rows")


def _live_bridges(con: duckdb.DuckDBPyConnection, origin: Origin) -> pd.DataFrame:
    """The year ahead against the last one, and the last one against the year before."""
    ahead = BridgeWindows.ahead(origin.week)
    before = BridgeWindows(ahead.baseline.shifted(-SEASON), ahead.baseline, ahead.baseline.last)
    relations = _relations("live")
    past = bridge_table(con, relations, before, "live", forecasts=False)
    return pd.concat([bridge_table(con, relations, ahead, "live"), past])


def _choose(con: duckdb.DuckDBPyConnection, design: StudyDesign) -> None:
    """Name the model with the smallest error in backtests, once for the live forecast and once for the study."""
    for origin in (*design.live_origins(), design.forecast_origin):
        con.execute(
            """
            INSERT INTO forecast_choice
            SELECT firm, $origin, $purpose, coalesce(arg_min(model, error), $first),
                CASE WHEN max(n) > 0 THEN 'smallest mean error in ' || max(n) || ' backtests of this firm'
                    ELSE 'no backtests yet' END,
                coalesce(max(n), 0), min(error), '{}'
            FROM firm LEFT JOIN (
                SELECT firm, model, count(DISTINCT origin) AS n, avg(smape) AS error FROM track_record
                WHERE purpose = 'backtest' AND week <= $origin GROUP BY ALL) USING (firm)
            WHERE firm IN (SELECT firm FROM forecast_week WHERE purpose = $purpose)
            GROUP BY firm""",
            {"origin": origin.week, "purpose": origin.purpose, "first": LIVE_MODELS[0]},
        )


def _quarantine(firm: str) -> pd.DataFrame:
    rows = [(firm, "shop", "a.csv", k, "bad_<amount>", "x", None) for k in range(3)]
    return pd.DataFrame(rows, columns=TABLES["quarantine"].column_names)


def _store(con: duckdb.DuckDBPyConnection, table: Table, frame: pd.DataFrame) -> None:
    con.register("rows", frame.reindex(columns=table.column_names))
    con.execute(f"CREATE OR REPLACE TABLE {table.relation} AS SELECT {table.select()} FROM rows")
    con.unregister("rows")
