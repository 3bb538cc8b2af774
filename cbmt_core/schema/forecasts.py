"""Tables of what models said: fits, forecasts, and what `cbmt_plus` learns from."""

from __future__ import annotations

from cbmt_core.schema.kinds import COHORT, FIRM, MODEL, ORIGIN, WEEK, Column, Table

__all__ = ["MODEL_TABLES"]

MODEL_TABLES = (
    Table(
        "model_fit",
        "One row a firm and model: how the fit went.",
        ("firm", "model", "origin"),
        (
            FIRM,
            MODEL,
            ORIGIN,
            Column("family", "VARCHAR", "family the model belongs to"),
            Column("succeeded", "BOOLEAN", "whether there is a forecast"),
            Column("reason", "VARCHAR", "why there is none", nullable=True),
            Column("converged", "BOOLEAN", "whether every estimation converged", nullable=True),
            Column("diagnosis", "VARCHAR", "what was worked around, in words; empty when nothing was"),
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
    ),
    Table(
        "forecast_week",
        "Forecast of a firm's weeks by each model.",
        ("firm", "model", "origin", "week"),
        (
            FIRM,
            MODEL,
            ORIGIN,
            WEEK,
            Column("horizon", "INTEGER", "weeks after the origin, from 1"),
            Column(
                "acquired", "DOUBLE", "new customers; NULL if the model forecasts sales alone", nullable=True
            ),
            Column("orders", "DOUBLE", "orders; NULL if the model forecasts sales alone", nullable=True),
            Column("repeat_orders", "DOUBLE", "orders that are no one's first; NULL likewise", nullable=True),
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
        ("firm", "model", "origin", "cohort", "week"),
        (
            FIRM,
            MODEL,
            ORIGIN,
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
        "weekly_series",
        "What cbmt_plus learns from: logs of the drivers without their cohorts' ageing, and of sales.",
        ("firm", "series", "week"),
        (
            FIRM,
            Column(
                "series",
                "VARCHAR",
                "acquisition; repeat or aov: repeat orders or sales relative to what the cohorts' tenure and level "
                "let expect; sales",
            ),
            WEEK,
            Column("value", "DOUBLE", "log of the series, half an order added"),
            Column("noise", "DOUBLE", "variance of `value` that comes of counting few orders alone"),
        ),
    ),
    Table(
        "path_prior",
        "How weekly series of firms move, learned from weekly_series over all firms: the prior of cbmt_plus.",
        ("scope", "series", "parameter", "part"),
        (
            Column("scope", "VARCHAR", "drivers or sales: the series that are forecast together"),
            Column(
                "series", "VARCHAR", "as in weekly_series; empty for what the scope's series have in common"
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
    ),
)
