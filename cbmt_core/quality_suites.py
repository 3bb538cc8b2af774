"""The Great Expectations suite of each table, and the query that it checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cbmt_core.config import QualityConfig
from cbmt_core.schema import TABLES
from cbmt_core.timeline import Timeline
from cbmt_core.transactions.orders import OrderCounts

__all__ = ["CHECKED_TABLES", "FIRM", "Facts"]

CENT = 0.01
TINY = 1e-9
FIRM = "_firm"
"""Column with the firm's number, where rows of several firms are checked together."""


@dataclass(frozen=True)
class Facts:
    """What the expectations of a suite depend on besides the table: dates, limits and counts."""

    design: Timeline
    limits: QualityConfig
    counts: OrderCounts
    firms: int = 1
    """Number of firms whose rows are checked together."""


def _promise(
    kind: Callable[..., Any],
    says: str,
    *,
    warn: bool = False,
    setting: tuple[str, float] | None = None,
    passing: float | None = None,
    **options: Any,
) -> Any:
    """An expectation with its description in words.

    Args:
        setting: name and value of the limit under [quality] that it checks.
        passing: the value of the setting that would pass; by default the value found.
    """
    meta = {"says": says, "setting": setting, "passing": passing}
    return kind(severity="warning" if warn else "critical", meta=meta, **options)


def _once(e: Any, says: str, columns: list[str], facts: Facts) -> Any:
    """The columns are a key: no two rows of a firm have the same values in them."""
    if facts.firms == 1 and len(columns) == 1:
        return _promise(e.ExpectColumnValuesToBeUnique, says, column=columns[0])
    of_firm = [FIRM] if facts.firms > 1 else []
    return _promise(e.ExpectCompoundColumnsToBeUnique, says, column_list=[*of_firm, *columns])


# -- transactions: a million orders are judged by their totals, computed where they lie -------------


def _transactions_query(relations: Mapping[str, str], facts: Facts) -> str:
    orders, design, counts = relations["transactions"], facts.design, facts.counts
    required = " OR ".join(f"{name} IS NULL" for name in TABLES["transactions"].column_names)
    return f"""
        SELECT count(*) AS orders, count(DISTINCT customer) AS customers,
            count(*) FILTER ({required}) AS incomplete,
            count(*) - (SELECT count(*) FROM (SELECT DISTINCT customer, order_id FROM {orders})) AS repeated,
            CAST(coalesce(min(amount), 0) AS DOUBLE) AS smallest,
            count(*) FILTER (dayofweek(week) <> 0
                OR CAST(ordered_at AS DATE) NOT BETWEEN week AND week + 6) AS in_wrong_week,
            count(*) FILTER (CAST(ordered_at AS DATE)
                NOT BETWEEN DATE '{design.observed_from}' AND DATE '{design.observed_to}') AS outside,
            {counts.rows_in - counts.rows_quarantined} - CAST(coalesce(sum(rows), 0) AS BIGINT) AS rows_lost,
            {counts.rows_bad} / {_counted(counts)} AS bad_share,
            coalesce((DATE '{design.panel.last}' - max(week)) // 7, 0) AS silent_weeks,
            coalesce((SELECT max(gap) FROM (
                SELECT (week - lag(week) OVER (ORDER BY week)) // 7 - 1 AS gap
                FROM (SELECT DISTINCT week FROM {orders}))), 0) AS longest_gap
        FROM {orders}"""


def _counted(counts: OrderCounts) -> int:
    """The number of rows that bad rows are counted against."""
    return max(1, counts.rows_in - counts.rows_out_of_window)


def _transactions_suite(e: Any, facts: Facts) -> list[Any]:
    limits, counts = facts.limits, facts.counts
    between = e.ExpectColumnValuesToBeBetween
    share = f"{limits.max_quarantine_share:.0%}"
    silent = limits.max_silent_weeks
    # Rounded up, so that the value that is named passes.
    passing = min(1.0, math.ceil(counts.rows_bad / _counted(counts) * 1000) / 1000)
    return [
        _promise(between, "every field of every order is filled", column="incomplete", max_value=0),
        _promise(between, "a customer's order ids are unique", column="repeated", max_value=0),
        _promise(between, "every amount is above zero", column="smallest", min_value=0, strict_min=True),
        _promise(between, "every order lies in its week", column="in_wrong_week", max_value=0),
        _promise(between, "every order lies in the project's dates", column="outside", max_value=0),
        _promise(between, "rows in = rows used + rows quarantined (difference)", column="rows_lost",
                 min_value=0, max_value=0),
        _promise(between, f"at most {share} of its rows are bad ({counts.rows_bad:,} of {_counted(counts):,} are: "
                 f"{counts.bad_reasons})", column="bad_share",
                 max_value=limits.max_quarantine_share,
                 setting=("max_quarantine_share", limits.max_quarantine_share), passing=passing),
        _promise(between, f"it has at least {limits.min_customers} customers", column="customers",
                 min_value=limits.min_customers, setting=("min_customers", limits.min_customers)),
        _promise(between, f"its last order is at most {silent} weeks old (weeks)", column="silent_weeks",
                 max_value=silent, warn=True, setting=("max_silent_weeks", silent)),
        _promise(between, f"it is never silent for more than {silent} weeks (weeks)", column="longest_gap",
                 max_value=silent, warn=True, setting=("max_silent_weeks", silent)),
    ]  # fmt: skip


# -- cohort_week and firm_week: judged row by row ----------------------------------------------------


def _cohort_week_query(relations: Mapping[str, str], facts: Facts) -> str:
    return f"""
        SELECT c.* EXCLUDE (sales, initial_sales, repeat_sales), CAST(sales AS DOUBLE) AS sales,
            CAST(repeat_sales AS DOUBLE) AS repeat_sales,
            CAST(sales AS DOUBLE) - cohort_size * (CAST(initial_orders > 0 AS INTEGER) + ropc)
                * coalesce(aov, 0) AS identity_gap,
            CAST(sales - initial_sales - repeat_sales AS DOUBLE) AS split_gap,
            orders - initial_orders - repeat_orders AS order_gap,
            ropc - repeat_orders / cohort_size AS ropc_gap,
            tenure - (week - cohort) // 7 AS tenure_gap,
            (week - DATE '{facts.design.panel.first}') // 7 + 1 AS week_number,
            initial_orders - CASE WHEN week = cohort AND NOT left_censored THEN cohort_size ELSE 0 END
                AS birth_gap,
            count(*) OVER (PARTITION BY cohort) - ((DATE '{facts.design.panel.last}'
                - greatest(cohort, DATE '{facts.design.panel.first}')) // 7 + 1) AS week_gap,
            CAST(orders > 0 AS INTEGER) - CAST(aov IS NOT NULL AS INTEGER) AS aov_gap
        FROM {relations["cohort_week"]} c"""


def _cohort_week_suite(e: Any, facts: Facts) -> list[Any]:
    between = e.ExpectColumnValuesToBeBetween
    panel = facts.design.panel
    return [
        _once(e, "a cohort has each week once", ["cohort", "week"], facts),
        _promise(between, "every cohort has every week since its birth (difference)", column="week_gap",
                 min_value=0, max_value=0),
        _promise(between, "every week is a week after the washout (its number)", column="week_number",
                 min_value=1, max_value=len(panel)),
        _promise(between, "a cohort has members", column="cohort_size", min_value=1),
        _promise(between, "no count of repeat orders is negative", column="repeat_orders", min_value=0),
        _promise(between, "repeat sales are not negative", column="repeat_sales", min_value=0),
        _promise(e.ExpectColumnPairValuesAToBeGreaterThanB,
                 "no more customers are active than the cohort has", column_A="cohort_size",
                 column_B="active_customers", or_equal=True),
        _promise(between, "initial orders equal the cohort's size in its birth week only (difference)",
                 column="birth_gap", min_value=0, max_value=0),
        _promise(between, "sales = size (1[birth] + ROPC) AOV (difference)", column="identity_gap",
                 min_value=-CENT, max_value=CENT),
        _promise(between, "sales = initial + repeat sales (difference)", column="split_gap",
                 min_value=0, max_value=0),
        _promise(between, "AOV is known exactly where there are orders", column="aov_gap",
                 min_value=0, max_value=0),
        _promise(between, "orders = initial + repeat orders (difference)", column="order_gap",
                 min_value=0, max_value=0),
        _promise(between, "ROPC = repeat orders / size (difference)", column="ropc_gap",
                 min_value=-TINY, max_value=TINY),
        _promise(between, "tenure counts the weeks since the cohort's week (difference)",
                 column="tenure_gap", min_value=0, max_value=0),
    ]  # fmt: skip


def _firm_week_query(relations: Mapping[str, str], facts: Facts) -> str:
    panel = facts.design.panel
    inside = f"week BETWEEN DATE '{panel.first}' AND DATE '{panel.last}'"
    return f"""
        WITH o AS (SELECT week, count(*) AS orders, sum(amount) AS sales, count(DISTINCT customer) AS active
                   FROM {relations["transactions"]} WHERE {inside} GROUP BY week),
             c AS (SELECT week, sum(sales) AS sales, sum(initial_orders) AS acquired, sum(cohort_size) AS size
                   FROM {relations["cohort_week"]} GROUP BY week)
        SELECT f.week, f.acquired, f.orders, f.active_customers, f.cumulative_customers, f.ropc, f.aov,
            f.orders - coalesce(o.orders, 0) AS order_gap,
            CAST(f.sales - coalesce(o.sales, 0) AS DOUBLE) AS sales_gap,
            f.active_customers - coalesce(o.active, 0) AS active_gap,
            CAST(f.sales - coalesce(c.sales, 0) AS DOUBLE) AS cohort_gap,
            CAST(abs(f.acquired - coalesce(c.acquired, 0)) + abs(f.cumulative_customers - coalesce(c.size, 0))
                AS BIGINT) AS customer_gap,
            abs(f.orders - f.initial_orders - f.repeat_orders) AS split_order_gap,
            CAST(f.sales - f.initial_sales - f.repeat_sales AS DOUBLE) AS split_gap,
            coalesce(f.ropc, 0) - coalesce(f.repeat_orders / nullif(f.cumulative_customers, 0), 0) AS ropc_gap,
            CAST(f.sales AS DOUBLE) - f.orders * coalesce(f.aov, 0) AS aov_gap,
            count(*) OVER () AS weeks,
            f.cumulative_customers - coalesce(lag(f.cumulative_customers) OVER (ORDER BY f.week),
                f.cumulative_customers - f.acquired) - f.acquired AS growth_gap
        FROM {relations["firm_week"]} f LEFT JOIN o USING (week) LEFT JOIN c USING (week) ORDER BY f.week"""


def _firm_week_suite(e: Any, facts: Facts) -> list[Any]:
    between = e.ExpectColumnValuesToBeBetween
    weeks = len(facts.design.panel)
    zero: dict[str, Any] = {"min_value": 0, "max_value": 0}
    says = f"it has the {weeks} weeks after the washout"
    # Of several firms one could have the row that another one lacks.
    of_each = [_promise(between, says, column="weeks", min_value=weeks, max_value=weeks)]
    return [
        _promise(e.ExpectTableRowCountToEqual, says, value=weeks * facts.firms),
        *(of_each if facts.firms > 1 else []),
        _once(e, "each week has one row", ["week"], facts),
        _promise(between, "no count of new customers is negative", column="acquired", min_value=0),
        _promise(between, "its orders are those of the transactions (difference)", column="order_gap",
                 **zero),
        _promise(between, "its sales are those of the transactions (difference)", column="sales_gap",
                 **zero),
        _promise(between, "its active customers are those of the transactions (difference)",
                 column="active_gap", **zero),
        _promise(between, "its sales are the sum of its cohorts (difference)", column="cohort_gap", **zero),
        _promise(between, "its customers are those of its cohorts (difference)", column="customer_gap",
                 **zero),
        _promise(between, "customers grow by those acquired (difference)", column="growth_gap", **zero),
        _promise(between, "orders = initial + repeat orders (difference)", column="split_order_gap", **zero),
        _promise(between, "sales = initial + repeat sales (difference)", column="split_gap", **zero),
        _promise(between, "ROPC = repeat orders / customers so far (difference)", column="ropc_gap",
                 min_value=-TINY, max_value=TINY),
        _promise(between, "sales = orders x AOV (difference)", column="aov_gap",
                 min_value=-CENT, max_value=CENT),
    ]  # fmt: skip


Query = Callable[[Mapping[str, str], Facts], str]
Suite = Callable[[Any, Facts], list[Any]]

CHECKED_TABLES: dict[str, tuple[Query, list[str], Suite]] = {
    "transactions": (_transactions_query, [], _transactions_suite),
    "cohort_week": (_cohort_week_query, ["cohort", "week"], _cohort_week_suite),
    "firm_week": (_firm_week_query, ["week"], _firm_week_suite),
}
"""Table -> what its suite looks at, the columns that name a row, and the suite."""
