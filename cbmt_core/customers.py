"""The order weeks of a firm's single customers, from DuckDB relations."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np

from cbmt_core.errors import CbmtError
from cbmt_core.panel import CustomerHistory
from cbmt_core.timeline import Timeline

__all__ = ["customer_history"]


def customer_history(
    con: duckdb.DuckDBPyConnection, orders: str, cohort_week: str, design: Timeline
) -> CustomerHistory:
    """Order weeks of every customer of one firm, from its relations `orders` and `cohort_week`.

    Customers are sorted by cohort as in the panel, and within a cohort by their order weeks, whatever the order of
    the rows. Raises an error if cohort sizes differ from `cohort_week`, because then the cohorts were made from
    other orders.

    Args:
        orders: SQL relation of the firm's orders: customer and week.
        cohort_week: SQL relation of the firm's rows of that table.
        design: weeks of the panel.
    """
    first, last = design.panel.first, design.panel.last
    cohort = f"greatest(min(week), DATE '{design.left_censored_cohort or first}')"
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE _members AS
        SELECT {cohort} AS cohort, coalesce(list_sort(list(CAST((week - DATE '{first}') // 7 AS SMALLINT))
            FILTER (week >= DATE '{first}')), []) AS weeks
        FROM {orders} WHERE week <= DATE '{last}' GROUP BY customer""")
    wrong = con.execute(f"""
        SELECT cohort, m.size, c.size FROM (SELECT cohort, count(*) AS size FROM _members GROUP BY cohort) m
        FULL JOIN (SELECT cohort, max(cohort_size) AS size FROM {cohort_week} GROUP BY cohort) c USING (cohort)
        WHERE m.size IS DISTINCT FROM c.size ORDER BY cohort LIMIT 1""").fetchall()
    if wrong:
        week, found, said = wrong[0]
        raise CbmtError(
            f"the orders hold {found or 0} customers of cohort {week}, cohort_week says {said or 0}: "
            "they do not belong together; make and publish the tables again"
        )
    packed: Any = con.sql("""
        WITH numbered AS (SELECT weeks, dense_rank() OVER (ORDER BY cohort) - 1 AS cohort FROM _members)
        SELECT CAST(cohort AS INTEGER) AS cohort, weeks FROM numbered WHERE len(weeks) > 0
        ORDER BY cohort, weeks""").to_arrow_table()
    con.execute("DROP TABLE _members")
    weeks = packed["weeks"].combine_chunks()
    return CustomerHistory(
        cohort=packed["cohort"].to_numpy().astype(np.int32),
        start=weeks.offsets.to_numpy().astype(np.int64),
        week=weeks.values.to_numpy().astype(np.int16),
    )
