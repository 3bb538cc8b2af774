"""What trusted tables look like: one Great Expectations suite a table, with verdicts in plain words."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import duckdb

from cbmt_core.config import QualityConfig
from cbmt_core.schema import TABLES
from cbmt_core.timeline import Timeline
from cbmt_core.transactions.orders import OrderCounts

__all__ = ["CHECKED_TABLES", "Verdict", "check_table"]

CENT = 0.01
TINY = 1e-9


@dataclass(frozen=True)
class Verdict:
    """The outcome of one suite on one firm's table."""

    table: str
    evaluated: int
    errors: tuple[str, ...]
    """Broken promises: the table must not be used."""
    warnings: tuple[str, ...]
    """What a person should look at; the table is usable."""

    @property
    def passed(self) -> bool:
        return not self.errors


@dataclass(frozen=True)
class Facts:
    """What a suite is judged by, beside the table."""

    design: Timeline
    limits: QualityConfig
    counts: OrderCounts


def check_table(
    con: duckdb.DuckDBPyConnection,
    table: str,
    relations: dict[str, str],
    design: Timeline,
    limits: QualityConfig,
    counts: OrderCounts,
) -> Verdict:
    """Judge one firm's table. `relations` says what to call each table of the firm on `con`."""
    expectations = _gx().expectations
    facts = Facts(design, limits, counts)
    query, rows_named_by, suite = CHECKED_TABLES[table]
    wrong = _wrong_columns(con, table, relations[table])
    if wrong:
        # Nothing else can be asked of a table of another shape.
        return Verdict(table, 1, (f"not true that its columns and types are the declared ones: {wrong}",), ())
    frame = con.execute(query(relations, facts)).df()
    promises = suite(expectations, facts)
    result = (
        _batch()
        .get_batch(batch_parameters={"dataframe": frame})
        .validate(
            _gx().ExpectationSuite(name=table, expectations=promises),
            result_format={
                "result_format": "SUMMARY",
                "unexpected_index_column_names": rows_named_by,
                "partial_unexpected_count": 3,
            },
        )
    )
    errors: list[str] = []
    warnings: list[str] = []
    for item in result.results:
        if not item.success:
            words = _in_words(item, rows_named_by)
            (warnings if item.expectation_config.severity == "warning" else errors).append(words)
    return Verdict(table, 1 + len(result.results), tuple(sorted(errors)), tuple(sorted(warnings)))


def _wrong_columns(con: duckdb.DuckDBPyConnection, table: str, relation: str) -> str:
    """How the relation's columns differ from the declared ones, in words; empty when they do not."""
    expected = {column.name: column.type for column in TABLES[table].columns}
    found = dict(
        con.execute(f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {relation})").fetchall()
    )
    words = [f"{name} is missing" for name in expected if name not in found]
    words += [f"{name} is not declared" for name in found if name not in expected]
    words += [
        f"{name} is {found[name]}, not {kind}"
        for name, kind in expected.items()
        if name in found and found[name] != kind
    ]
    if not words and list(found) != list(expected):
        words = [f"their order is {', '.join(found)}"]
    return "; ".join(words)


@cache
def _gx() -> Any:
    """Great Expectations, imported when first needed because the import takes seconds."""
    import great_expectations

    return great_expectations


@cache
def _batch() -> Any:
    context = _gx().get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    asset = context.data_sources.add_pandas("memory").add_dataframe_asset("table")
    return asset.add_batch_definition_whole_dataframe("whole")


def _promise(
    kind: Callable[..., Any],
    says: str,
    *,
    warn: bool = False,
    setting: tuple[str, float] | None = None,
    passing: float | None = None,
    **options: Any,
) -> Any:
    """An expectation that knows what it promises in words.

    Args:
        setting: the setting under [quality] that it is a limit of, and its value.
        passing: value of the setting that would pass; what was found unless stated.
    """
    meta = {"says": says, "setting": setting, "passing": passing}
    return kind(severity="warning" if warn else "critical", meta=meta, **options)


def _in_words(item: Any, rows_named_by: list[str]) -> str:
    says = item.expectation_config.meta["says"]
    found = item.result
    if item.exception_info.get("raised_exception") or not found:
        return f"not true that {says}: it could not be evaluated"
    if "unexpected_count" not in found:
        return f"not true that {says}: found {found.get('observed_value')}"
    if not rows_named_by:
        values = found["partial_unexpected_list"]
        shown = ", ".join(f"{value:.4g}" if isinstance(value, float) else str(value) for value in values)
        return f"not true that {says}: found {shown}{_remedy(item.expectation_config.meta, values)}"
    where = "; ".join(
        ", ".join(f"{name} {row[name]:%Y-%m-%d}" for name in rows_named_by)
        for row in found.get("partial_unexpected_index_list", [])
    )
    return (
        f"not true that {says}: {found['unexpected_count']} of {found['element_count']} rows, "
        f"such as {where} (found {', '.join(map(str, found['partial_unexpected_list']))})"
    )


def _remedy(meta: dict[str, Any], values: list[Any]) -> str:
    """Which setting to change, and the value that would pass."""
    if not meta["setting"]:
        return ""
    name, value = meta["setting"]
    passing = values[0] if meta["passing"] is None else meta["passing"]
    if not passing:
        return f" ([quality] {name} = {value:g} in cbmt.toml)"
    return f" ([quality] {name} = {value:g} in cbmt.toml; {passing:g} would pass)"


# -- transactions: a million orders are judged by their totals, computed where they lie -------------


def _transactions_query(relations: dict[str, str], facts: Facts) -> str:
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
    """Rows that the bad ones are a share of."""
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
        _promise(between, "a customer's order id stands once", column="repeated", max_value=0),
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


def _cohort_week_query(relations: dict[str, str], facts: Facts) -> str:
    return f"""
        SELECT c.* EXCLUDE (sales, initial_sales, repeat_sales), CAST(sales AS DOUBLE) AS sales,
            CAST(repeat_sales AS DOUBLE) AS repeat_sales,
            CAST(sales AS DOUBLE) - cohort_size * (CAST(initial_orders > 0 AS INTEGER) + ropc)
                * coalesce(aov, 0) AS identity_gap,
            CAST(sales - initial_sales - repeat_sales AS DOUBLE) AS split_gap,
            orders - initial_orders - repeat_orders AS order_gap,
            ropc - repeat_orders / cohort_size AS ropc_gap,
            tenure - (week - cohort) // 7 AS tenure_gap,
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
        _promise(e.ExpectCompoundColumnsToBeUnique, "a cohort has each week once",
                 column_list=["cohort", "week"]),
        _promise(between, "every cohort has every week since its birth (difference)", column="week_gap",
                 min_value=0, max_value=0),
        _promise(between, "every week is a week after the washout", column="week",
                 min_value=panel.dates()[0].astype("datetime64[s]").item(),
                 max_value=panel.dates()[-1].astype("datetime64[s]").item()),
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


def _firm_week_query(relations: dict[str, str], facts: Facts) -> str:
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
            f.cumulative_customers - coalesce(lag(f.cumulative_customers) OVER (ORDER BY f.week),
                f.cumulative_customers - f.acquired) - f.acquired AS growth_gap
        FROM {relations["firm_week"]} f LEFT JOIN o USING (week) LEFT JOIN c USING (week) ORDER BY f.week"""


def _firm_week_suite(e: Any, facts: Facts) -> list[Any]:
    between = e.ExpectColumnValuesToBeBetween
    weeks = len(facts.design.panel)
    zero: dict[str, Any] = {"min_value": 0, "max_value": 0}
    return [
        _promise(e.ExpectTableRowCountToEqual, f"it has the {weeks} weeks after the washout", value=weeks),
        _promise(e.ExpectColumnValuesToBeUnique, "each week stands once", column="week"),
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


Query = Callable[[dict[str, str], Facts], str]
Suite = Callable[[Any, Facts], list[Any]]

CHECKED_TABLES: dict[str, tuple[Query, list[str], Suite]] = {
    "transactions": (_transactions_query, [], _transactions_suite),
    "cohort_week": (_cohort_week_query, ["cohort", "week"], _cohort_week_suite),
    "firm_week": (_firm_week_query, ["week"], _firm_week_suite),
}
"""Table -> what its suite looks at, the columns that name a row, and the suite."""
