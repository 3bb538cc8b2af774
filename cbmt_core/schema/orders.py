"""Tables of observed data: orders, cohorts, firms and the study's dates, and views of them."""

from __future__ import annotations

from cbmt_core.schema.kinds import COHORT, FIRM, MONEY, WEEK, Column, Table, View

__all__ = ["ORDER_TABLES", "ORDER_VIEWS", "STUDY", "STUDY_WINDOW", "TIMELINE"]

ORDER_TABLES = (
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
            Column("amount", MONEY, "value of the order in the firm's currency, refunds taken off"),
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
            Column("file", "VARCHAR", "file that holds the row"),
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
            Column("slug", "VARCHAR", "its name in folders and addresses"),
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
            Column(
                "rows_bad",
                "BIGINT",
                "of these, bad rows: refunds, guests, duplicates and rows out of the dates do not count",
                nullable=True,
            ),
            Column("guest_rows", "BIGINT", "rows in quarantine because they name no customer", nullable=True),
            Column("refund_rows", "BIGINT", "source rows with refunds", nullable=True),
            Column("refunds", MONEY, "refunds taken off orders", nullable=True),
            Column("refunds_unmatched", MONEY, "refunds that match no order", nullable=True),
        ),
    ),
)

_DATES = (
    Column("observed_from", "DATE", "first day of the data used"),
    Column("first_week", "DATE", "Sunday of the first whole week"),
    Column("washout_weeks", "INTEGER", "weeks whose customers are left-censored"),
    Column("observed_to", "DATE", "last day of the data used"),
    Column("country", "VARCHAR", "country of the holiday calendar"),
    Column("validation_weeks", "INTEGER", "weeks before an origin that models are chosen by"),
    Column(
        "delivered_to", "DATE", "day through which enough firms have delivered their orders", nullable=True
    ),
)
TIMELINE = Table(
    "timeline", "One row: the dates that determine the weeks of all tables.", ("observed_from",), _DATES
)
STUDY = Table(
    "study",
    "One row: the timeline and the study on it; none while the data are too short for a study.",
    ("observed_from",),
    (
        *_DATES,
        Column("training_weeks", "INTEGER", "weeks models learn from"),
        Column("holdout_weeks", "INTEGER", "weeks forecasts are judged on"),
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

ORDER_VIEWS: tuple[View, ...] = (
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
