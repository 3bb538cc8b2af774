"""Tables for planners: scenarios, the plan, targets, and the value of customers. All of live forecasts."""

from __future__ import annotations

from cbmt_core.schema.kinds import COHORT, FIRM, MODEL, ORIGIN, SOURCES, WEEK, Column, Table

__all__ = ["PLANNING_TABLES"]

_KEYS = (FIRM, MODEL, ORIGIN)
_KEY = ("firm", "model", "origin")
_SCENARIO = Column(
    "scenario",
    "VARCHAR",
    "baseline; a name in cbmt.toml ([scenario.NAME]); or a driver and its change, of the tornado",
)
_QUARTER = Column("acquired_in", "DATE", "first day of the quarter of acquisition")
_MAYBE = {"nullable": True}


def _range(name: str, what: str, *, nullable: bool = False) -> tuple[Column, Column]:
    return (
        Column(f"{name}_low", "DOUBLE", f"{what}: 10 % of the draws lie below", nullable),
        Column(f"{name}_high", "DOUBLE", f"{what}: 10 % of the draws lie above", nullable),
    )


PLANNING_TABLES = (
    Table(
        "scenario",
        "What each scenario comes to over the 52 weeks ahead, on the same draws as the baseline.",
        (*_KEY, "scenario"),
        (
            *_KEYS,
            _SCENARIO,
            Column("kind", "VARCHAR", "baseline, named (cbmt.toml) or tornado (one driver by 10 %)"),
            Column("changes", "VARCHAR", "what is changed, as cbmt.toml would state it"),
            Column("weeks_changed", "INTEGER", "weeks of the forecast that some change holds in"),
            Column("sales", "DOUBLE", "sales of the weeks ahead: the forecast itself under the scenario"),
            *_range("sales", "sales of the weeks ahead"),
            Column("difference", "DOUBLE", "sales minus those of the baseline"),
            *_range("difference", "difference from the baseline in the same draw"),
            Column(
                "plan_probability", "DOUBLE", "share of draws that reach the plan; NULL without one", **_MAYBE
            ),
        ),
    ),
    Table(
        "scenario_week",
        "Weeks of the baseline and of each scenario in cbmt.toml.",
        (*_KEY, "scenario", "week"),
        (
            *_KEYS,
            _SCENARIO,
            WEEK,
            Column("horizon", "INTEGER", "weeks after the origin, from 1"),
            Column("acquired", "DOUBLE", "new customers"),
            Column("orders", "DOUBLE", "orders, first and repeat"),
            Column("sales", "DOUBLE", "sales: the forecast itself under the scenario"),
            *_range("sales", "sales"),
            Column("difference", "DOUBLE", "sales minus those of the baseline"),
            *_range("difference", "difference from the baseline in the same draw"),
        ),
    ),
    Table(
        "scenario_bridge",
        "Sources of the change from the last 52 weeks to the next, of every scenario.",
        (*_KEY, "scenario", "source"),
        (
            *_KEYS,
            _SCENARIO,
            Column("source", "VARCHAR", "; ".join(f"{name}: {meaning}" for name, meaning in SOURCES.items())),
            Column("amount", "DOUBLE", "in currency: of the forecast itself under the scenario"),
            *_range("amount", "the same; in every draw the three sources add up to sales_change"),
            Column("points", "DOUBLE", "percent of the last 52 weeks' sales"),
            Column("difference", "DOUBLE", "amount minus that of the baseline"),
        ),
    ),
    Table(
        "plan_week",
        "Planned sales by week of the forecast, from [plan] in cbmt.toml.",
        (*_KEY, "week"),
        (
            *_KEYS,
            WEEK,
            Column("sales", "DOUBLE", "planned sales; NULL where the plan does not cover the week", **_MAYBE),
            Column("how", "VARCHAR", "how the plan's years or months became weeks"),
        ),
    ),
    Table(
        "target",
        "How far drivers must move for the plan to be reached with the wanted probability.",
        (*_KEY, "driver"),
        (
            *_KEYS,
            Column(
                "driver", "VARCHAR", "acquisition, repeat_existing, repeat_new, aov alone, or all by the same"
            ),
            Column("weeks", "INTEGER", "weeks of the forecast that the plan covers"),
            Column("sales", "DOUBLE", "planned sales of these weeks"),
            Column("forecast", "DOUBLE", "forecast sales of these weeks"),
            Column("probability", "DOUBLE", "share of draws that reach the plan as things stand"),
            Column("wanted", "DOUBLE", "probability asked for"),
            Column(
                "change",
                "DOUBLE",
                "percent by which the driver must differ from its forecast in every week; NULL where ten times "
                "it does not suffice",
                **_MAYBE,
            ),
        ),
    ),
    Table(
        "cohort_value",
        "What each cohort has spent and is forecast to spend within the horizon of [value], cohorts to come included.",
        (*_KEY, "cohort"),
        (
            *_KEYS,
            COHORT,
            Column("left_censored", "BOOLEAN", "acquired before the first week: earlier sales are not known"),
            Column("to_come", "BOOLEAN", "acquired after the origin"),
            Column("customers", "DOUBLE", "observed, or forecast for a cohort to come"),
            Column("realised_sales", "DOUBLE", "sales up to the origin"),
            Column("forecast_sales", "DOUBLE", "sales forecast within the horizon"),
            *_range("forecast", "sales forecast within the horizon"),
            Column("discounted_sales", "DOUBLE", "forecast sales discounted to the origin"),
            Column("forecast_value", "DOUBLE", "margin x discounted sales"),
            *_range("value", "margin x discounted sales"),
            Column(
                "lifetime_sales", "DOUBLE", "realised + forecast, not discounted; nothing beyond the horizon"
            ),
        ),
    ),
    Table(
        "customer_base_value",
        "Value of today's customers and of those to come; existing + to_come = total, which is the revenue forecast.",
        (*_KEY, "part"),
        (
            *_KEYS,
            Column(
                "part",
                "VARCHAR",
                "existing, to_come, total; tail: existing customers beyond the horizon, an estimate in no total",
            ),
            Column("customers", "DOUBLE", "customers it is based on"),
            Column("sales", "DOUBLE", "sales; NULL where the history is too short for a tail", **_MAYBE),
            *_range("sales", "sales", nullable=True),
            Column("discounted_sales", "DOUBLE", "sales discounted to the origin", **_MAYBE),
            Column("value", "DOUBLE", "margin x discounted sales", **_MAYBE),
            *_range("value", "margin x discounted sales", nullable=True),
            Column("margin", "DOUBLE", "share of sales that counts as value ([value] margin)"),
            Column("discount_rate", "DOUBLE", "a year's ([value] discount_rate)"),
            Column("horizon_weeks", "INTEGER", "weeks that count ([value] horizon_weeks)"),
            Column("tail_years", "INTEGER", "years that the tail looks beyond them"),
        ),
    ),
    Table(
        "customer_value",
        "Cumulative sales and value per customer at fixed ages, by quarter of acquisition.",
        (*_KEY, "acquired_in", "age_days"),
        (
            *_KEYS,
            _QUARTER,
            Column(
                "age_days", "INTEGER", "0 (first order alone), 90, 180, 360 or 720 days since the first order"
            ),
            Column("customers", "DOUBLE", "customers of the quarter, forecast ones included"),
            Column("sales_per_customer", "DOUBLE", "cumulative sales"),
            Column("value_per_customer", "DOUBLE", "margin x cumulative sales, not discounted"),
            Column("source", "VARCHAR", "observed, or forecast where some of its weeks are"),
        ),
    ),
    Table(
        "acquisition_return",
        "What acquiring a customer cost and brought, by quarter; no rows without [value] spend.",
        (*_KEY, "acquired_in"),
        (
            *_KEYS,
            _QUARTER,
            Column("customers", "DOUBLE", "customers acquired"),
            Column("spend", "DOUBLE", "acquisition spend of the quarter's weeks"),
            Column("cac", "DOUBLE", "spend per customer acquired"),
            Column(
                "ltv",
                "DOUBLE",
                "margin of 52 weeks from the first order on, discounted to it; NULL beyond the horizon",
                **_MAYBE,
            ),
            Column("ltv_cac", "DOUBLE", "ltv / cac", **_MAYBE),
            Column(
                "payback_weeks",
                "DOUBLE",
                "weeks until a customer's margin exceeds cac; NULL where not within the weeks seen and forecast",
                **_MAYBE,
            ),
            Column("source", "VARCHAR", "observed, or forecast where some of the 52 weeks are"),
        ),
    ),
    Table(
        "customer_retention",
        "Share of each quarter's new customers who order again, by 13 weeks since the first order.",
        (*_KEY, "acquired_in", "period"),
        (
            *_KEYS,
            _QUARTER,
            Column(
                "period",
                "INTEGER",
                "13 weeks of a customer's life, from 0, which begins with the first order",
            ),
            Column("customers", "BIGINT", "customers acquired in the quarter"),
            Column("active", "BIGINT", "of them, who placed a repeat order in the period"),
            Column("share", "DOUBLE", "active in percent of customers"),
        ),
    ),
)
