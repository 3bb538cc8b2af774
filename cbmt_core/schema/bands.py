"""Tables of ranges: calibration factors, draws, bands, and how often bands held."""

from __future__ import annotations

from cbmt_core.schema.kinds import FIRM, MODEL, ORIGIN, PURPOSE, WEEK, Column, Table

__all__ = ["BAND_TABLES"]

_LEVEL = Column("level", "INTEGER", "per cent of outcomes that the band shall hold: 50, 80 or 95")
_PERIOD = Column(
    "period",
    "VARCHAR",
    "week; month (calendar, a week spread evenly over its days); quarter (13 weeks); to_date (all weeks from the first "
    "to this one); year; horizon (where it is not a year)",
)

BAND_TABLES = (
    Table(
        "band_factor",
        "Factors of a model's own distribution for a firm, learned from the errors of other firms' backtests.",
        ("firm", "model", "origin", "purpose", "driver"),
        (
            FIRM,
            MODEL,
            ORIGIN,
            PURPOSE,
            Column("driver", "VARCHAR", "acquisition, repeat or order_value"),
            Column(
                "lasting", "DOUBLE", "factor of the lasting errors, with seven quarters of history or more"
            ),
            Column("weekly", "DOUBLE", "factor of the weekly errors"),
            Column(
                "own", "DOUBLE", "the firm's own multiplier of both, which follows how often its bands missed"
            ),
            Column(
                "source",
                "VARCHAR",
                "calibrated: learned from the other firms; shrunk: partly (fewer than 40 firms or "
                "three years of backtests); borrowed: shipped, "
                "not calibrated on these data (fewer than 10)",
            ),
            Column("firms", "BIGINT", "other firms they were learned from"),
        ),
        partitioned=False,
        schema="diagnostic",
    ),
    Table(
        "error_path",
        "Errors of backtests over the whole forecast, in logs: what bands of models without a distribution are drawn "
        "from. Of a study also what models without backtests borrow.",
        ("model", "origin", "purpose", "firm", "backtest", "horizon"),
        (
            MODEL,
            ORIGIN,
            PURPOSE,
            Column("firm", "VARCHAR", "firm that the backtest was of"),
            Column("backtest", "DATE", "origin of the backtest"),
            Column("horizon", "INTEGER", "weeks after that origin, from 1"),
            *(
                Column(
                    name,
                    "DOUBLE",
                    f"log of actual over forecast {meaning}, in units of the firm's usual change from week to week; "
                    f"NULL {other}",
                    nullable=True,
                )
                for name, meaning, other in (
                    ("acquisition", "new customers", "if the model forecasts sales alone"),
                    ("repeat", "repeat orders of customers already there", "likewise"),
                    ("order_value", "order value of customers already there", "likewise"),
                    ("sales", "sales", "if the model forecasts the drivers, unless for a study"),
                )
            ),
        ),
        partitioned=False,
        schema="diagnostic",
    ),
    Table(
        "forecast_band",
        "Ranges of a forecast: quantiles of its draws. Quantiles do not add up over weeks; means do.",
        ("firm", "model", "origin", "purpose", "outcome", "period", "week", "weeks", "level"),
        (
            FIRM,
            MODEL,
            ORIGIN,
            PURPOSE,
            Column(
                "outcome",
                "VARCHAR",
                "sales, acquired, orders, ropc, aov; for the year also sales_change and the contributions of the "
                "bridge: order_volume, spend_per_order, net_replenishment",
            ),
            _PERIOD,
            Column("week", "DATE", "first week of the period; of a month its first day"),
            Column("weeks", "INTEGER", "weeks of the period; of a month those with a day in it"),
            _LEVEL,
            Column("low", "DOUBLE", "lower end"),
            Column("high", "DOUBLE", "upper end"),
            Column("median", "DOUBLE", "half of the draws lie below"),
            Column("mean", "DOUBLE", "mean of the draws"),
            Column(
                "source",
                "VARCHAR",
                "calibrated or shrunk, as in band_factor; borrowed: by shipped factors, or, of a model without "
                "backtests, by the errors of the models in error_path",
            ),
        ),
    ),
    Table(
        "forecast_draw",
        "Joint draws of the forecast to plan with, by week: any sum, ratio or probability can be asked of them.",
        ("firm", "model", "origin", "purpose", "draw", "week"),
        (
            FIRM,
            MODEL,
            ORIGIN,
            PURPOSE,
            Column("draw", "INTEGER", "number of the draw, from 1"),
            WEEK,
            Column(
                "acquired", "DOUBLE", "new customers; NULL if the model forecasts sales alone", nullable=True
            ),
            *(
                Column(name, "DOUBLE", f"{meaning}; NULL likewise", nullable=True)
                for name, meaning in (
                    ("repeat", "factor of every cohort's repeat orders per customer in the forecast"),
                    ("order_value", "factor of every cohort's order value in the forecast"),
                    ("orders", "orders"),
                )
            ),
            Column("sales", "DOUBLE", "sales"),
            *(
                Column(
                    name,
                    "DOUBLE",
                    f"{meaning} the customers acquired up to the origin; NULL likewise",
                    nullable=True,
                )
                for name, meaning in (("existing_orders", "repeat orders of"), ("existing_sales", "sales to"))
            ),
        ),
        native=False,
    ),
    Table(
        "band_coverage",
        "How often the bands of backtests, of earlier live forecasts and of the study held what happened.",
        ("origin", "purpose", "model", "of_purpose", "outcome", "ahead", "group_by", "group", "level"),
        (
            Column("origin", "DATE", "last week that was observed; of the study, its origin"),
            PURPOSE,
            MODEL,
            Column("of_purpose", "VARCHAR", "backtest, live or study: the forecasts that are judged"),
            Column("outcome", "VARCHAR", "as in forecast_band"),
            Column(
                "ahead",
                "VARCHAR",
                "weeks ahead: 1-4, 5-13, 14-26, 27-52; year or, of the study, horizon for the whole",
            ),
            Column("group_by", "VARCHAR", "all, size (of yearly sales) or volatility (of weekly sales)"),
            Column("group", "VARCHAR", "all, or low, middle, high: the terciles of firms"),
            _LEVEL,
            Column("firms", "BIGINT", "firms judged"),
            Column("outcomes", "BIGINT", "weeks or years judged"),
            Column("coverage", "DOUBLE", "per cent inside the band, every firm counting the same"),
            Column(
                "coverage_low",
                "DOUBLE",
                "lower end of its 95 % interval; NULL for one firm",
                nullable=True,
            ),
            Column("coverage_high", "DOUBLE", "upper end", nullable=True),
            Column("below", "DOUBLE", "per cent below the band"),
            Column(
                "width", "DOUBLE", "median width of the band, per cent of the median forecast", nullable=True
            ),
            Column(
                "interval_score", "DOUBLE", "mean interval score, per cent of actual sales", nullable=True
            ),
            Column(
                "crps",
                "DOUBLE",
                "weighted interval score over the three bands and the median, which approximates the CRPS, per cent of "
                "actual sales; the same for every level",
                nullable=True,
            ),
        ),
        partitioned=False,
    ),
    Table(
        "band_pit",
        "Where outcomes fell among the quantiles of their forecasts: even shares mean calibrated bands.",
        ("origin", "purpose", "model", "of_purpose", "outcome", "ahead", "bin"),
        (
            Column("origin", "DATE", "last week that was observed; of the study, its origin"),
            PURPOSE,
            MODEL,
            Column("of_purpose", "VARCHAR", "backtest, live or study"),
            Column("outcome", "VARCHAR", "as in forecast_band"),
            Column("ahead", "VARCHAR", "as in band_coverage"),
            Column(
                "bin", "INTEGER", "1 to 8: between the quantiles 0, 2.5, 10, 25, 50, 75, 90, 97.5 and 100 %"
            ),
            Column("expected", "DOUBLE", "percent expected in this bin"),
            Column("share", "DOUBLE", "per cent that did"),
            Column("outcomes", "BIGINT", "weeks or years judged"),
        ),
        partitioned=False,
        schema="diagnostic",
    ),
)
