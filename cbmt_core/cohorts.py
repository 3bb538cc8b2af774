"""SQL that makes the tables cohort_week, firm_week and firm from a firm's orders."""

from __future__ import annotations

import duckdb

from cbmt_core.duck import literal
from cbmt_core.errors import BadFirmData
from cbmt_core.names import Unit
from cbmt_core.timeline import Timeline, Window
from cbmt_core.transactions.orders import OrderCounts

__all__ = ["make_cohort_week", "make_firm", "make_firm_week"]


def _weeks(window: Window) -> str:
    return (
        f"SELECT CAST(unnest(generate_series(DATE '{window.first}', DATE '{window.last}', INTERVAL 7 DAY)) "
        "AS DATE) AS week"
    )


def make_cohort_week(con: duckdb.DuckDBPyConnection, unit: Unit, orders: str, design: Timeline) -> None:
    """Make the temporary table `cohort_week` of one unit from the relation `orders`. `schema/` defines its columns.

    Customers with an order before the first calibration week form the left-censored cohort; the cohort of the others
    is the week of their first order. The initial order is a customer's earliest; of orders at the same time it is the
    one with the smallest order id, so that the table does not depend on the order of rows. Such ties are rare and
    order ids are long, so only tied customers' ids are read.

    Args:
        con: connection with the orders.
        unit: firm or segment, whose name goes into the column `firm`.
        orders: name of the relation with customer, order_id, ordered_at, week and amount.
        design: weeks of the tables.
    """
    panel = design.panel
    # For the left-censored cohort the first order ever is unknown, so all its orders are repeats.
    censored = f"DATE '{design.left_censored_cohort}'" if design.left_censored_cohort else "NULL"
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE cohort_week AS
        WITH customers AS (
            SELECT customer, min(week) AS first_week, min(ordered_at) AS first_at
            FROM {orders} WHERE week <= DATE '{panel.last}' GROUP BY customer
        ), members AS MATERIALIZED (
            SELECT customer, first_at, first_week < DATE '{panel.first}' AS left_censored,
                CASE WHEN left_censored THEN {censored} ELSE first_week END AS cohort,
                CAST(row_number() OVER () AS INTEGER) AS member
            FROM customers
        ), placed AS MATERIALIZED (
            SELECT member, cohort, week, amount, ordered_at = first_at AND NOT left_censored AS is_first
            FROM {orders} JOIN members USING (customer)
            WHERE week BETWEEN DATE '{panel.first}' AND DATE '{panel.last}'
        ), tied AS (
            SELECT member FROM placed WHERE is_first GROUP BY member HAVING count(*) > 1
        ), excess AS (
            SELECT cohort, sum(amount) AS amount FROM (
                SELECT cohort, sum(amount) - arg_min(amount, order_id) AS amount
                FROM {orders} o JOIN (FROM members SEMI JOIN tied USING (member)) m
                    ON o.customer = m.customer AND o.ordered_at = m.first_at
                GROUP BY member, cohort
            ) GROUP BY cohort
        ), cohorts AS (
            SELECT cohort, left_censored, count(*) AS cohort_size FROM members GROUP BY ALL
        ), activity AS (
            SELECT cohort, week, count(*) AS orders, sum(amount) AS sales,
                sum(amount) FILTER (is_first) AS first_sales, count(DISTINCT member) AS active_customers
            FROM placed GROUP BY ALL
        ), dense AS (
            SELECT c.*, w.week, NOT left_censored AND w.week = c.cohort AS is_birth
            FROM cohorts c JOIN ({_weeks(panel)}) w ON w.week >= c.cohort
        ), filled AS (
            SELECT d.*, coalesce(orders, 0) AS orders, coalesce(sales, 0) AS sales,
                coalesce(active_customers, 0) AS active_customers,
                CASE WHEN is_birth THEN cohort_size ELSE 0 END AS initial_orders,
                CASE WHEN is_birth THEN first_sales - coalesce(excess.amount, 0) ELSE 0 END AS initial_sales
            FROM dense d LEFT JOIN activity USING (cohort, week) LEFT JOIN excess USING (cohort)
        )
        SELECT {literal(unit.name)} AS firm, cohort, week, left_censored,
            CAST((week - cohort) // 7 AS INTEGER) AS tenure, cohort_size,
            CAST(orders AS BIGINT) AS orders, initial_orders,
            CAST(orders - initial_orders AS BIGINT) AS repeat_orders,
            CAST(sales AS DECIMAL(18,4)) AS sales, CAST(initial_sales AS DECIMAL(18,4)) AS initial_sales,
            CAST(sales - initial_sales AS DECIMAL(18,4)) AS repeat_sales, active_customers,
            (orders - initial_orders) / cohort_size AS ropc,
            CASE WHEN orders > 0 THEN CAST(sales AS DOUBLE) / orders END AS aov
        FROM filled ORDER BY cohort, week
    """)
    if con.execute("SELECT count(*) FROM cohort_week").fetchall()[0][0] == 0:
        raise BadFirmData(
            unit.name, f"has no order from {panel.first} to {panel.last_day}, the weeks after the washout"
        )


def make_firm_week(con: duckdb.DuckDBPyConnection, unit: Unit, cohort_week: str, design: Timeline) -> None:
    """Make the temporary table `firm_week` from the relation `cohort_week`: every week after the washout."""
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE firm_week AS
        WITH summed AS (
            SELECT week, sum(initial_orders) AS initial_orders, sum(orders) AS orders,
                sum(repeat_orders) AS repeat_orders, sum(sales) AS sales, sum(initial_sales) AS initial_sales,
                sum(repeat_sales) AS repeat_sales, sum(active_customers) AS active_customers,
                sum(cohort_size) AS cumulative_customers
            FROM {cohort_week} GROUP BY week
        )
        SELECT {literal(unit.name)} AS firm, week,
            CAST(coalesce(initial_orders, 0) AS BIGINT) AS acquired,
            CAST(coalesce(orders, 0) AS BIGINT) AS orders,
            CAST(coalesce(initial_orders, 0) AS BIGINT) AS initial_orders,
            CAST(coalesce(repeat_orders, 0) AS BIGINT) AS repeat_orders,
            CAST(coalesce(sales, 0) AS DECIMAL(18,4)) AS sales,
            CAST(coalesce(initial_sales, 0) AS DECIMAL(18,4)) AS initial_sales,
            CAST(coalesce(repeat_sales, 0) AS DECIMAL(18,4)) AS repeat_sales,
            CAST(coalesce(active_customers, 0) AS BIGINT) AS active_customers,
            CAST(coalesce(cumulative_customers, 0) AS BIGINT) AS cumulative_customers,
            repeat_orders / nullif(cumulative_customers, 0) AS ropc,
            CAST(sales AS DOUBLE) / nullif(orders, 0) AS aov
        FROM ({_weeks(design.panel)}) LEFT JOIN summed USING (week) ORDER BY week
    """)


def make_firm(
    con: duckdb.DuckDBPyConnection,
    unit: Unit,
    orders: str,
    cohort_week: str,
    counts: OrderCounts,
    design: Timeline,
) -> None:
    """Make the temporary table `firm`, one row."""
    panel = design.panel
    parent = literal(unit.firm) if unit.segment is not None else "NULL"
    segment = literal(unit.segment) if unit.segment is not None else "NULL"
    industry = literal(counts.industry) if counts.industry is not None else "NULL"
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE firm AS
        WITH o AS (
            SELECT min(week) AS first_week, max(week) AS last_week, count(DISTINCT customer) AS customers,
                count(*) AS orders, sum(amount) AS sales,
                count(*) FILTER (week < DATE '{panel.first}') AS washout_orders,
                coalesce(sum(amount) FILTER (week < DATE '{panel.first}'), 0) AS washout_sales,
                count(*) FILTER (week > DATE '{panel.last}') AS unfinished_orders,
                coalesce(sum(amount) FILTER (week > DATE '{panel.last}'), 0) AS unfinished_sales
            FROM {orders}
        ), c AS (
            SELECT coalesce(max(cohort_size) FILTER (left_censored), 0) AS left_censored_customers,
                CAST(coalesce(sum(sales) FILTER (left_censored), 0) AS DOUBLE) / nullif(sum(sales), 0)
                    AS left_censored_share
            FROM {cohort_week}
        )
        SELECT {literal(unit.name)} AS firm, {literal(unit.slug)} AS slug, {parent} AS parent,
            {segment} AS segment, {industry} AS industry, {literal(counts.currency)} AS currency,
            {literal(counts.timezone)} AS timezone,
            o.*, c.*, {counts.rows_in} AS rows_in, {counts.rows_used} AS rows_used,
            {counts.rows_quarantined} AS rows_quarantined, {counts.rows_bad} AS rows_bad,
            {counts.guest_rows} AS guest_rows, {counts.refund_rows} AS refund_rows, {counts.refunds} AS refunds,
            {counts.refunds_unmatched} AS refunds_unmatched
        FROM o, c
    """)
