"""Every table: its columns, their types and meaning, and its key. The docs are made from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["STUDY", "STUDY_WINDOW", "TABLES", "VIEWS", "Column", "Table", "View"]

MONEY = "DECIMAL(18,4)"


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    meaning: str
    nullable: bool = False


@dataclass(frozen=True)
class Table:
    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    native: bool = True
    """False for the largest tables: the published file holds a view of the lake instead of their rows."""
    partitioned: bool = True
    """False for tables made across firms: the lake holds one file of each."""

    @property
    def column_names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def meanings(self) -> dict[str, str]:
        return {column.name: column.meaning for column in self.columns}

    def select(self) -> str:
        """SQL select list that puts the columns in order and in their declared types."""
        return ", ".join(f'CAST("{c.name}" AS {c.type}) AS "{c.name}"' for c in self.columns)


FIRM = Column("firm", "VARCHAR", "firm, or firm~segment for a segment of it")
WEEK = Column("week", "DATE", "Sunday that starts the week")
COHORT = Column(
    "cohort",
    "DATE",
    "Sunday of the week of the first order; the last washout week for the left-censored cohort",
)
MODEL = Column("model", "VARCHAR", "name of the model, as in the registry")
ORIGIN = Column("origin", "DATE", "last week the model has seen")
OUTCOME = Column("outcome", "VARCHAR", "acquisition, ropc, aov, cohort_sales or total_sales")
HORIZON = Column("horizon", "VARCHAR", "1q, 2q, 3q (13, 26, 39 weeks after the origin) or full")
REFERENCE = Column("reference", "VARCHAR", "model the others are compared with")
INTERVAL = "{} end of its 95 % interval over resampled firms; NULL below 10 firms"
SOURCES = {
    "sales_change": "target sales minus baseline sales, the sum of the next three",
    "order_volume": "existing base: from more or fewer repeat orders",
    "spend_per_order": "existing base: from more or less spent on each",
    "net_replenishment": "sales to later cohorts minus first orders of the baseline",
}

_ALL = (
    Table(
        "transactions",
        "Orders that passed every rule, one row an order.",
        ("firm", "customer", "order_id"),
        (
            FIRM,
            Column("customer", "VARCHAR", "customer identifier as given"),
            Column("order_id", "VARCHAR", "order identifier as given, or made from the order time"),
            Column("ordered_at", "TIMESTAMP", "first local time of the order"),
            WEEK,
            Column("amount", MONEY, "value of the order in the firm's currency"),
            Column("rows", "INTEGER", "source rows merged into the order"),
        ),
        native=False,
    ),
    Table(
        "quarantine",
        "Source rows that were not used, each with its reason.",
        ("source", "file", "row", "firm"),
        (
            Column("firm", "VARCHAR", "firm, or firm~segment; empty where the row names none"),
            Column("source", "VARCHAR", "source as named in the configuration"),
            Column("file", "VARCHAR", "file the row stands in"),
            Column("row", "BIGINT", "row number in the file, from 1, headings not counted; 0 where unknown"),
            Column("reason", "VARCHAR", "why it was not used"),
            Column("detail", "VARCHAR", "the row as it was read"),
            Column("amount", MONEY, "its amount, where that could be read", nullable=True),
        ),
    ),
    Table(
        "cohort_week",
        "Weekly acquisition cohorts, one row for every week since the cohort's birth.",
        ("firm", "cohort", "week"),
        (
            FIRM,
            COHORT,
            WEEK,
            Column("left_censored", "BOOLEAN", "true for the customers who ordered in the washout"),
            Column("tenure", "INTEGER", "weeks since the cohort week"),
            Column("cohort_size", "BIGINT", "customers of the cohort"),
            Column("orders", "BIGINT", "orders placed in the week"),
            Column(
                "initial_orders", "BIGINT", "first orders ever; in the birth week they equal the cohort size"
            ),
            Column("repeat_orders", "BIGINT", "all other orders"),
            Column("sales", MONEY, "value of the orders"),
            Column("initial_sales", MONEY, "value of the initial orders"),
            Column("repeat_sales", MONEY, "value of the repeat orders"),
            Column("active_customers", "BIGINT", "customers with at least one order in the week"),
            Column("ropc", "DOUBLE", "repeat orders per customer: repeat_orders / cohort_size"),
            Column(
                "aov", "DOUBLE", "average order value: sales / orders; NULL without orders", nullable=True
            ),
        ),
    ),
    Table(
        "firm_week",
        "One firm's week, summed over its cohorts.",
        ("firm", "week"),
        (
            FIRM,
            WEEK,
            Column("acquired", "BIGINT", "new customers"),
            Column("orders", "BIGINT", "orders"),
            Column("initial_orders", "BIGINT", "first orders ever"),
            Column("repeat_orders", "BIGINT", "all other orders"),
            Column("sales", MONEY, "value of the orders"),
            Column("initial_sales", MONEY, "value of the initial orders"),
            Column("repeat_sales", MONEY, "value of the repeat orders"),
            Column("active_customers", "BIGINT", "customers with at least one order"),
            Column(
                "cumulative_customers", "BIGINT", "customers acquired so far, left-censored ones included"
            ),
            Column("ropc", "DOUBLE", "repeat orders per customer acquired so far", nullable=True),
            Column("aov", "DOUBLE", "average order value; NULL without orders", nullable=True),
        ),
    ),
    Table(
        "firm",
        "One row a firm: who it is and how much of it was observed.",
        ("firm",),
        (
            FIRM,
            Column("slug", "VARCHAR", "its partition key"),
            Column("parent", "VARCHAR", "the firm it is a segment of", nullable=True),
            Column("segment", "VARCHAR", "the segment; NULL for a whole firm", nullable=True),
            Column("industry", "VARCHAR", "industry as given", nullable=True),
            Column("currency", "VARCHAR", "currency of all its money"),
            Column("timezone", "VARCHAR", "time zone its weeks are counted in"),
            Column("first_week", "DATE", "week of its first order"),
            Column("last_week", "DATE", "week of its last order"),
            Column("customers", "BIGINT", "customers with an order"),
            Column("orders", "BIGINT", "orders, equal to the rows of transactions"),
            Column("sales", MONEY, "their value"),
            Column("washout_orders", "BIGINT", "of these, orders before the first calibration week"),
            Column("washout_sales", MONEY, "their value"),
            Column("unfinished_orders", "BIGINT", "of these, orders after the last whole week"),
            Column("unfinished_sales", MONEY, "their value"),
            Column("left_censored_customers", "BIGINT", "customers of the left-censored cohort"),
            Column(
                "left_censored_share",
                "DOUBLE",
                "share of study sales from the left-censored cohort",
                nullable=True,
            ),
            Column("rows_in", "BIGINT", "source rows that name the firm"),
            Column("rows_used", "BIGINT", "of these, rows merged into orders"),
            Column("rows_quarantined", "BIGINT", "of these, rows in quarantine"),
        ),
    ),
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
                "sd or mean: spread or average over firms; shared: how far a move goes with the firm's other series; "
                "memory: weeks over which a move fades; weight: size of a week's effects relative to others'",
            ),
            Column(
                "part",
                "VARCHAR",
                "trend (a year's), calendar, slow, walk (a week's), brief, white, or a wave of the year, a holiday, "
                "or the week before one",
            ),
            Column("value", "DOUBLE", "in log points, weeks or as a share"),
            Column("firms", "BIGINT", "firms it was learned from"),
        ),
        partitioned=False,
    ),
    Table(
        "accuracy",
        "Errors of each model's forecast of each firm over the weeks observed since.",
        ("firm", "model", "origin", "outcome", "horizon"),
        (
            FIRM,
            MODEL,
            ORIGIN,
            OUTCOME,
            HORIZON,
            Column("weeks", "INTEGER", "weeks of the horizon"),
            Column("smape", "DOUBLE", "symmetric mean absolute percentage error, 0 to 200", nullable=True),
            Column(
                "mase",
                "DOUBLE",
                "mean absolute error over that of last week's value; NULL where nothing moved",
                nullable=True,
            ),
        ),
        partitioned=False,
    ),
    Table(
        "accuracy_failure",
        "Firms and models without a complete score, each with the reason.",
        ("firm", "model", "origin"),
        (FIRM, MODEL, ORIGIN, Column("reason", "VARCHAR", "why")),
        partitioned=False,
    ),
    Table(
        "accuracy_summary",
        "Models compared across whole firms (no segments), each comparison over the firms all its models have.",
        ("metric", "outcome", "horizon", "industry", "model"),
        (
            Column("metric", "VARCHAR", "smape or mase"),
            OUTCOME,
            HORIZON,
            Column("industry", "VARCHAR", "industry, (none) for firms without one, (all) for all firms"),
            MODEL,
            REFERENCE,
            Column("firms", "INTEGER", "firms compared, the same for every model"),
            Column("mean", "DOUBLE", "mean error"),
            Column("sd", "DOUBLE", "standard deviation across firms; NULL for one firm", nullable=True),
            Column("median", "DOUBLE", "median error"),
            Column(
                "gap", "DOUBLE", "percent of the mean error that the reference does not make", nullable=True
            ),
            Column("median_gap", "DOUBLE", "the same of the median error", nullable=True),
            Column("models_ranked", "INTEGER", "models that forecast all five outcomes"),
            Column("average_rank", "DOUBLE", "mean rank among them, 1 is best", nullable=True),
            Column("first_rank", "DOUBLE", "share of firms where it is best; ties are shared", nullable=True),
            Column("difference", "DOUBLE", "mean of its error minus the reference's", nullable=True),
            Column("difference_low", "DOUBLE", INTERVAL.format("lower"), nullable=True),
            Column("difference_high", "DOUBLE", INTERVAL.format("upper"), nullable=True),
            Column("t_p", "DOUBLE", "p value of the paired t test; NULL below 10 firms", nullable=True),
            Column(
                "wilcoxon_p", "DOUBLE", "p value of the signed-rank test; NULL below 10 firms", nullable=True
            ),
            Column(
                "win_rate", "DOUBLE", "share of firms where it errs less than the reference", nullable=True
            ),
        ),
        partitioned=False,
    ),
    Table(
        "bridge",
        "Change in sales between two windows and its three sources, as it happened and as models forecast it.",
        ("firm", "model", "origin", "baseline_first", "target_first"),
        (
            FIRM,
            Column("model", "VARCHAR", "name of the model, or realised for what happened"),
            Column("origin", "DATE", "last week seen; the last target week for what happened"),
            Column("baseline_first", "DATE", "first week of the baseline"),
            Column(
                "baseline_last",
                "DATE",
                "last week of the baseline; cohorts born by then are the existing base",
            ),
            Column("target_first", "DATE", "first week of the target"),
            Column("target_last", "DATE", "last week of the target"),
            Column("repeat_orders_0", "DOUBLE", "repeat orders in the baseline", nullable=True),
            Column("repeat_sales_0", "DOUBLE", "their value", nullable=True),
            Column("repeat_spend_0", "DOUBLE", "value per order", nullable=True),
            Column("initial_sales_0", "DOUBLE", "value of first orders in the baseline", nullable=True),
            Column("baseline_sales", "DOUBLE", "sales of the baseline", nullable=True),
            Column("repeat_orders_1", "DOUBLE", "orders of the existing base in the target", nullable=True),
            Column("repeat_sales_1", "DOUBLE", "their value", nullable=True),
            Column("repeat_spend_1", "DOUBLE", "value per order", nullable=True),
            Column("new_sales_1", "DOUBLE", "target sales of cohorts born after the baseline", nullable=True),
            Column("target_sales", "DOUBLE", "sales of the target", nullable=True),
            *(Column(name, "DOUBLE", meaning, nullable=True) for name, meaning in SOURCES.items()),
            *(
                Column(f"{name}_points", "DOUBLE", f"{name} in percent of baseline sales", nullable=True)
                for name in SOURCES
            ),
            Column(
                "cancellation",
                "DOUBLE",
                "smallest |sum| / sum of |rows| of the repeat sums: 1 without negative rows",
                nullable=True,
            ),
            Column("discrepancy", "DOUBLE", "largest difference of sums that must agree", nullable=True),
            Column("eligible", "BOOLEAN", "whether it can be compared"),
            Column("strict", "BOOLEAN", "whether it also passes the strict rule"),
            Column("reason", "VARCHAR", "why it cannot be compared", nullable=True),
        ),
        partitioned=False,
    ),
    Table(
        "bridge_mae",
        "Mean absolute error of forecast bridges across whole firms, the same firms for every model.",
        ("sample", "contribution", "model"),
        (
            Column("sample", "VARCHAR", "primary, or strict for the sensitivity sample"),
            Column("contribution", "VARCHAR", f"one of {', '.join(SOURCES)}"),
            MODEL,
            REFERENCE,
            Column("firms", "INTEGER", "firms compared, the same for every model"),
            Column("mae_points", "DOUBLE", "mean absolute error in percent of baseline sales"),
            Column(
                "mae_currency", "DOUBLE", "the same in currency; NULL where firms differ in it", nullable=True
            ),
            Column("difference", "DOUBLE", "mae_points minus the reference's", nullable=True),
            Column("difference_low", "DOUBLE", INTERVAL.format("lower"), nullable=True),
            Column("difference_high", "DOUBLE", INTERVAL.format("upper"), nullable=True),
        ),
        partitioned=False,
    ),
    Table(
        "bridge_method",
        "Which models' bridges were compared, and why others were not.",
        ("model",),
        (
            MODEL,
            REFERENCE,
            Column("firms", "INTEGER", "firms whose realised and reference bridges are eligible"),
            Column("eligible_firms", "INTEGER", "of these, firms where the model's is eligible too"),
            Column("compared", "BOOLEAN", "whether it was compared"),
            Column("reason", "VARCHAR", "most frequent reasons of the others, with counts", nullable=True),
        ),
        partitioned=False,
    ),
)

TABLES: dict[str, Table] = {table.name: table for table in _ALL}
"""The tables of the lake."""

STUDY = Table(
    "study",
    "One row: all that the study's dates follow from.",
    ("observed_from",),
    (
        Column("observed_from", "DATE", "first day of the data used"),
        Column("first_week", "DATE", "Sunday of the first whole week"),
        Column("washout_weeks", "INTEGER", "weeks whose customers are left-censored"),
        Column("training_weeks", "INTEGER", "weeks models learn from"),
        Column("validation_weeks", "INTEGER", "weeks models are chosen by"),
        Column("holdout_weeks", "INTEGER", "weeks forecasts are judged on"),
        Column("observed_to", "DATE", "last day of the data used"),
        Column("country", "VARCHAR", "country of the holiday calendar"),
    ),
)

STUDY_WINDOW = Table(
    "study_window",
    "The windows of the study.",
    ("window",),
    (
        Column("window", "VARCHAR", "what the weeks serve for"),
        Column("first_week", "DATE", "Sunday of its first week"),
        Column("last_week", "DATE", "Sunday of its last week"),
        Column("weeks", "INTEGER", "number of its weeks"),
    ),
)


@dataclass(frozen=True)
class View:
    name: str
    meaning: str
    sql: str
    columns: Mapping[str, str]
    """What each column means."""


VIEWS: tuple[View, ...] = (
    View(
        "quarantine_summary",
        "Unused source rows counted by firm and reason.",
        "SELECT firm, reason, count(*) AS rows, sum(amount) AS amount FROM quarantine GROUP BY ALL ORDER BY ALL",
        {
            "firm": FIRM.meaning,
            "reason": "why the rows were not used",
            "rows": "how many they are",
            "amount": "sum of their amounts, where they could be read",
        },
    ),
    View(
        "firm_year",
        "A firm's calendar years, by the Sunday that starts each week; first and last years may be partial.",
        "SELECT firm, year(week) AS year, count(*) AS weeks, sum(acquired) AS acquired, sum(orders) AS orders, "
        "sum(sales) AS sales, CAST(sum(sales) AS DOUBLE) / nullif(sum(orders), 0) AS aov "
        "FROM firm_week GROUP BY ALL ORDER BY ALL",
        {
            "firm": FIRM.meaning,
            "year": "calendar year",
            "weeks": "weeks of the study that begin in it",
            "acquired": "new customers",
            "orders": "orders, first and repeat",
            "sales": "sales",
            "aov": "sales divided by orders; NULL without orders",
        },
    ),
    View(
        "cohort_quarter",
        "Sales and orders by quarter of acquisition and calendar quarter.",
        "SELECT firm, CASE WHEN left_censored THEN NULL ELSE CAST(date_trunc('quarter', cohort) AS DATE) END "
        "AS acquired_in, CAST(date_trunc('quarter', week) AS DATE) AS quarter, sum(orders) AS orders, "
        "sum(repeat_orders) AS repeat_orders, sum(sales) AS sales "
        "FROM cohort_week GROUP BY ALL ORDER BY ALL",
        {
            "firm": FIRM.meaning,
            "acquired_in": "first day of the quarter of acquisition; NULL for customers there before the study",
            "quarter": "first day of the calendar quarter, by the Sunday that starts each week",
            "orders": "orders, first and repeat",
            "repeat_orders": "repeat orders",
            "sales": "sales",
        },
    ),
)
