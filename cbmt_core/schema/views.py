"""Views of the published file for common questions: what to plan with and why, and how earlier forecasts did."""

from __future__ import annotations

from cbmt_core.schema.kinds import FIRM, MODEL, ORIGIN, PURPOSE, SOURCES, WEEK, View

__all__ = ["ANSWER_VIEWS", "FORECAST_VIEWS"]

_DRIVERS = {
    "acquired": "new customers",
    "orders": "orders, first and repeat",
    "repeat_orders": "repeat orders",
    "ropc": "repeat orders per customer acquired so far",
    "aov": "average order value",
    "sales": "sales",
}

FORECAST_VIEWS: tuple[View, ...] = (
    View(
        "forecast",
        "What to plan with: the newest live forecast of each firm, by the model that forecast_choice names.",
        "SELECT f.firm, f.origin, f.model, f.week, f.horizon, f.acquired, f.orders, f.repeat_orders, f.ropc, f.aov, "
        "f.sales FROM forecast_week AS f JOIN forecast_choice AS c USING (firm, origin, purpose, model) "
        "WHERE f.purpose = 'live' "
        "AND f.origin = (SELECT max(origin) FROM forecast_choice WHERE firm = f.firm AND purpose = 'live') "
        "ORDER BY f.firm, f.week",
        {
            "firm": FIRM.meaning,
            "origin": ORIGIN.meaning,
            "model": MODEL.meaning,
            "week": WEEK.meaning,
            "horizon": "weeks after the origin, from 1",
            **_DRIVERS,
        },
    ),
    View(
        "forecast_month",
        "The forecast by calendar month; a week's numbers are spread evenly over its seven days.",
        "SELECT m.*, b.low AS sales_low, b.high AS sales_high FROM ("
        "SELECT firm, model, origin, CAST(date_trunc('month', day) AS DATE) AS month, count(*) AS days, "
        "sum(acquired) / 7 AS acquired, sum(orders) / 7 AS orders, sum(sales) / 7 AS sales "
        "FROM (SELECT *, week + CAST(k AS INTEGER) AS day FROM forecast, range(7) AS days(k)) GROUP BY ALL) AS m "
        "LEFT JOIN (FROM forecast_band WHERE purpose = 'live' AND outcome = 'sales' AND period = 'month' "
        "AND level = 80) AS b ON b.firm = m.firm AND b.model = m.model AND b.origin = m.origin AND b.week = m.month "
        "ORDER BY m.firm, m.month",
        {
            "firm": FIRM.meaning,
            "model": MODEL.meaning,
            "origin": ORIGIN.meaning,
            "month": "first day of the month",
            "days": "days of the month that the forecast covers: fewer in the first and the last one",
            "acquired": "new customers on these days",
            "orders": "orders on these days",
            "sales": "sales on these days",
            "sales_low": "lower end of the 80 % range of sales on these days",
            "sales_high": "upper end of it",
        },
    ),
    View(
        "forecast_vs_actual",
        "Every forecast of a week that has been observed since, beside what happened.",
        "SELECT f.firm, f.model, f.purpose, f.origin, f.week, f.horizon, f.sales AS forecast_sales, "
        "CAST(w.sales AS DOUBLE) AS actual_sales, f.acquired AS forecast_acquired, w.acquired AS actual_acquired, "
        "f.orders AS forecast_orders, w.orders AS actual_orders, f.aov AS forecast_aov, w.aov AS actual_aov "
        "FROM forecast_week AS f JOIN firm_week AS w USING (firm, week) WHERE f.week > f.origin",
        {
            "firm": FIRM.meaning,
            "model": MODEL.meaning,
            "purpose": PURPOSE.meaning,
            "origin": ORIGIN.meaning,
            "week": WEEK.meaning,
            "horizon": "weeks after the origin, from 1",
            **{
                f"{side}_{name}": f"{meaning}, as {'forecast' if side == 'forecast' else 'it happened'}"
                for name, meaning in {k: _DRIVERS[k] for k in ("sales", "acquired", "orders", "aov")}.items()
                for side in ("forecast", "actual")
            },
        },
    ),
    View(
        "track_record",
        "How live forecasts and backtests turned out: every vintage, model and week ahead that has been observed.",
        "SELECT firm, model, purpose, origin, week, horizon AS weeks_ahead, forecast_sales AS forecast, "
        "actual_sales AS actual, forecast_sales - actual_sales AS error, "
        "200 * abs(forecast_sales - actual_sales) / nullif(abs(forecast_sales) + abs(actual_sales), 0) AS smape "
        "FROM forecast_vs_actual WHERE purpose IN ('live', 'backtest')",
        {
            "firm": FIRM.meaning,
            "model": MODEL.meaning,
            "purpose": PURPOSE.meaning,
            "origin": "the vintage: last week the forecast has seen",
            "week": WEEK.meaning,
            "weeks_ahead": "weeks after the origin, from 1",
            "forecast": "sales as forecast",
            "actual": "sales as they happened",
            "error": "forecast minus actual",
            "smape": "symmetric absolute percentage error of the week, 0 to 200; NULL where both are zero",
        },
    ),
)

_SINCE = 13
"""Weeks of a step of `retention`."""

ANSWER_VIEWS: tuple[View, ...] = (
    View(
        "best_model",
        "One row a firm: the model to plan with, why, and which was closest in the study.",
        "SELECT c.firm, c.origin, c.model, c.why, c.backtests, c.error, s.model AS study_model, s.smape AS study_smape "
        "FROM forecast_choice AS c LEFT JOIN ("
        "SELECT firm, arg_min(model, (smape, model)) AS model, min(smape) AS smape FROM accuracy "
        "WHERE outcome = 'total_sales' AND horizon = 'full' AND smape IS NOT NULL GROUP BY firm) AS s USING (firm) "
        "WHERE c.purpose = 'live' QUALIFY c.origin = max(c.origin) OVER (PARTITION BY c.firm) ORDER BY c.firm",
        {
            "firm": FIRM.meaning,
            "origin": "last week that the choice has seen",
            "model": "model to plan with: the one of the view forecast",
            "why": "the reason, in words",
            "backtests": "backtests of this firm that were scored",
            "error": "mean SMAPE of the model's backtests; NULL without any",
            "study_model": "model with the smallest SMAPE of total sales in the study's holdout; NULL without a study",
            "study_smape": "that SMAPE",
        },
    ),
    View(
        "bridge_wide",
        "One row a firm: the last 52 weeks to the next 52 and the sources of the change, beside the change before.",
        "SELECT b.firm, b.origin, b.model, b.baseline_sales AS last_year, b.target_sales AS next_year, "
        "b.sales_change AS change, b.sales_change_points AS change_percent, b.order_volume, b.spend_per_order, "
        "b.net_replenishment, r.baseline_sales AS year_before, r.sales_change AS change_before, "
        "r.order_volume AS order_volume_before, r.spend_per_order AS spend_per_order_before, "
        "r.net_replenishment AS net_replenishment_before, b.reason "
        "FROM bridge AS b JOIN forecast_choice AS c USING (firm, origin, purpose, model) LEFT JOIN bridge AS r "
        "ON r.firm = b.firm AND r.origin = b.origin AND r.purpose = 'live' AND r.model = 'realised' "
        "AND r.reason IS NULL "
        "WHERE b.purpose = 'live' QUALIFY b.origin = max(b.origin) OVER (PARTITION BY b.firm) ORDER BY b.firm",
        {
            "firm": FIRM.meaning,
            "origin": ORIGIN.meaning,
            "model": "model to plan with: the one of the view forecast",
            "last_year": "sales of the 52 weeks up to the origin",
            "next_year": "sales forecast for the 52 weeks after it",
            "change": "next year minus last year, the sum of the next three sources",
            "change_percent": "the change in percent of last year's sales",
            "order_volume": SOURCES["order_volume"],
            "spend_per_order": SOURCES["spend_per_order"],
            "net_replenishment": SOURCES["net_replenishment"],
            "year_before": "sales of the 52 weeks before last year; NULL, as the next four, where not observed",
            "change_before": "last year minus the year before, as it happened",
            "order_volume_before": "that change's part from more or fewer repeat orders of the existing base",
            "spend_per_order_before": "that change's part from more or less spent on each",
            "net_replenishment_before": "that change's part from later cohorts, less first orders of the year before",
            "reason": "why the sources cannot be told apart; NULL where they can",
        },
    ),
    View(
        "retention",
        f"What customers do after their first order, in steps of {_SINCE} weeks, by quarter of acquisition. A step is "
        "there once all of the quarter's cohorts have its weeks.",
        "WITH cells AS (SELECT firm, CAST(date_trunc('quarter', cohort) AS DATE) AS acquired_in, "
        f"(tenure - 1) // {_SINCE} + 1 AS step, cohort, cohort_size, repeat_orders, sales, active_customers "
        "FROM cohort_week WHERE NOT left_censored AND tenure > 0), "
        "sizes AS (SELECT firm, CAST(date_trunc('quarter', cohort) AS DATE) AS acquired_in, "
        "sum(cohort_size) AS customers FROM cohort_week WHERE NOT left_censored AND tenure = 0 GROUP BY ALL) "
        "SELECT firm, acquired_in, step, customers, sum(active_customers) / sum(cohort_size) AS active_share, "
        "sum(repeat_orders) / customers AS repeat_orders_per_customer, "
        "CAST(sum(sales) AS DOUBLE) / customers AS sales_per_customer FROM cells JOIN sizes USING (firm, acquired_in) "
        "GROUP BY firm, acquired_in, step, customers "
        f"HAVING sum(cohort_size) = {_SINCE} * customers ORDER BY firm, acquired_in, step",
        {
            "firm": FIRM.meaning,
            "acquired_in": "first day of the quarter of acquisition",
            "step": f"1: weeks 1 to {_SINCE} after the week of the first order, 2: the next {_SINCE}, and so on",
            "customers": "customers acquired in the quarter",
            "active_share": "share of them that order in a week, on average",
            "repeat_orders_per_customer": "repeat orders of these weeks per customer acquired",
            "sales_per_customer": "sales of these weeks per customer acquired",
        },
    ),
)
