"""Views of forecasts in the published file: what to plan with, by week and month, and how earlier ones did."""

from __future__ import annotations

from cbmt_core.schema.kinds import FIRM, MODEL, ORIGIN, PURPOSE, WEEK, View

__all__ = ["FORECAST_VIEWS"]

_DRIVERS = {
    "acquired": "new customers",
    "orders": "orders, first and repeat",
    "repeat_orders": "orders that are no one's first",
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
        "SELECT firm, model, CAST(date_trunc('month', day) AS DATE) AS month, count(*) AS days, "
        "sum(acquired) / 7 AS acquired, sum(orders) / 7 AS orders, sum(sales) / 7 AS sales "
        "FROM (SELECT *, week + CAST(k AS INTEGER) AS day FROM forecast, range(7) AS days(k)) "
        "GROUP BY ALL ORDER BY ALL",
        {
            "firm": FIRM.meaning,
            "model": MODEL.meaning,
            "month": "first day of the month",
            "days": "days of the month that the forecast covers: fewer in the first and the last one",
            "acquired": "new customers on these days",
            "orders": "orders on these days",
            "sales": "sales on these days",
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
