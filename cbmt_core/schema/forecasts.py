"""Tables of forecasts: fits, forecasts, and the priors of `cbmt_plus`."""

from __future__ import annotations

from cbmt_core.schema.bands import BAND_TABLES
from cbmt_core.schema.kinds import COHORT, FIRM, MODEL, ORIGIN, PURPOSE, WEEK, Column, Table
from cbmt_core.uncertainty import DRIVERS

__all__ = ["MODEL_TABLES"]

_SPREADS = {
    "lasting": "errors of level, trend and season",
    "lasting_mean": "the same, of the mean over the weeks up to this one",
    "weekly": "transient errors of single weeks",
    "weekly_mean": "the same, of the mean over the weeks up to this one",
}

MODEL_TABLES = (
    Table(
        "model_fit",
        "One row a firm, model and origin: how the fit went.",
        ("firm", "model", "origin", "purpose"),
        (
            FIRM,
            MODEL,
            ORIGIN,
            PURPOSE,
            Column("family", "VARCHAR", "family the model belongs to"),
            Column("succeeded", "BOOLEAN", "whether there is a forecast"),
            Column("reason", "VARCHAR", "why there is none", nullable=True),
            Column("converged", "BOOLEAN", "whether every estimation converged", nullable=True),
            Column(
                "diagnosis", "VARCHAR", "problems of the fit and how they were handled; empty without any"
            ),
            Column("parameters", "JSON", "estimates and choices", nullable=True),
            Column(
                "validation_error",
                "DOUBLE",
                "SMAPE over the validation window, for models chosen by it: mean of the five outcomes, "
                "of the three drivers (single_task, lstm), or of total sales (direct)",
                nullable=True,
            ),
            Column("seconds", "DOUBLE", "processor seconds for fit and forecast"),
            Column("seed", "BIGINT", "seed of the fit"),
        ),
        incidental=("seconds",),
    ),
    Table(
        "forecast_week",
        "Forecast of a firm's weeks by each model.",
        ("firm", "model", "origin", "purpose", "week"),
        (
            FIRM,
            MODEL,
            ORIGIN,
            PURPOSE,
            WEEK,
            Column("horizon", "INTEGER", "weeks after the origin, from 1"),
            Column(
                "acquired", "DOUBLE", "new customers; NULL if the model forecasts sales alone", nullable=True
            ),
            Column("orders", "DOUBLE", "orders; NULL if the model forecasts sales alone", nullable=True),
            Column("repeat_orders", "DOUBLE", "repeat orders; NULL likewise", nullable=True),
            Column(
                "ropc", "DOUBLE", "repeat orders per customer acquired so far; NULL likewise", nullable=True
            ),
            Column("aov", "DOUBLE", "average order value; NULL without orders", nullable=True),
            Column("sales", "DOUBLE", "sales composed from the drivers"),
        ),
    ),
    Table(
        "forecast_cohort_week",
        "Forecast of each cohort's weeks by each model, cohorts yet to be born included.",
        ("firm", "model", "origin", "purpose", "cohort", "week"),
        (
            FIRM,
            MODEL,
            ORIGIN,
            PURPOSE,
            COHORT,
            WEEK,
            Column(
                "cohort_size",
                "DOUBLE",
                "observed customers, or predicted ones for a cohort born after the origin",
            ),
            Column("ropc", "DOUBLE", "repeat orders per customer"),
            Column("aov", "DOUBLE", "average order value"),
            Column("sales", "DOUBLE", "cohort_size * (1 in the birth week + ropc) * aov"),
        ),
        native=False,
    ),
    Table(
        "forecast_spread",
        "What bands are made from: customers already there in each forecast, and the standard deviations that "
        "a model expects of its errors.",
        ("firm", "model", "origin", "purpose", "week"),
        (
            FIRM,
            MODEL,
            ORIGIN,
            PURPOSE,
            WEEK,
            Column("horizon", "INTEGER", "weeks after the origin, from 1"),
            Column("history", "INTEGER", "weeks the model has seen"),
            Column("acquired", "DOUBLE", "new customers"),
            Column(
                "existing_orders",
                "DOUBLE",
                "repeat orders of the customers that were acquired up to the origin",
            ),
            Column("existing_sales", "DOUBLE", "sales to the customers that were acquired up to the origin"),
            *(
                Column(
                    f"{driver}_{part}",
                    "DOUBLE",
                    f"standard deviation of the log of {driver.replace('_', ' ')}, {meaning}; NULL where the model "
                    "has no distribution of its own",
                    nullable=True,
                )
                for driver in DRIVERS
                for part, meaning in _SPREADS.items()
            ),
        ),
        schema="diagnostic",
    ),
    *BAND_TABLES,
    Table(
        "forecast_choice",
        "Which model to plan with: one row a firm, decided from backtests over weeks up to the origin.",
        ("firm", "origin", "purpose"),
        (
            FIRM,
            Column("origin", "DATE", "last week that the choice and the forecast have seen"),
            PURPOSE,
            MODEL,
            Column("why", "VARCHAR", "the reason, in words"),
            Column("backtests", "INTEGER", "backtest origins of this firm that were scored"),
            Column(
                "error",
                "DOUBLE",
                "mean SMAPE of the model's backtests of this firm's sales; NULL without any",
                nullable=True,
            ),
            Column(
                "evidence",
                "JSON",
                "by model: backtests of the firm (origins, smape), of all firms (panel_smape), and the score that "
                "decides",
            ),
        ),
        partitioned=False,
    ),
    Table(
        "path_prior",
        "How weekly series of firms move, learned from many firms: the prior of cbmt_plus.",
        ("origin", "scope", "series", "parameter", "part"),
        (
            Column("origin", "DATE", "last week it was learned from"),
            Column("scope", "VARCHAR", "drivers or sales: the series that are forecast together"),
            Column(
                "series",
                "VARCHAR",
                "acquisition, repeat or aov (relative to what is expected from the cohorts' age), or sales; "
                "empty for what the scope's series have in common",
            ),
            Column(
                "parameter",
                "VARCHAR",
                "sd or mean: spread or average over firms; shared: how far a part goes with the firm's other series; "
                "memory: weeks over which a deviation fades; weight: size of a week's effects relative to others'",
            ),
            Column(
                "part",
                "VARCHAR",
                "trend (a year's), calendar, walk (a week's), brief, white, or a wave of the year, or a holiday",
            ),
            Column("value", "DOUBLE", "in log points, weeks or as a share"),
            Column("firms", "BIGINT", "firms it was learned from"),
        ),
        partitioned=False,
        schema="diagnostic",
    ),
)
