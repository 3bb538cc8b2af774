"""All data tables of one firm in one go: orders, cohorts, weeks, and the verdict on each."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import duckdb

from cbmt_core.cohorts import make_cohort_week, make_firm, make_firm_week
from cbmt_core.config import ProjectConfig
from cbmt_core.names import Unit
from cbmt_core.quality import Verdict, check_table
from cbmt_core.timeline import Timeline
from cbmt_core.transactions import Intake
from cbmt_core.transactions.orders import OrderCounts, make_orders

__all__ = ["DATA_TABLES", "FirmTables", "make_firm_tables", "week_digests"]

DATA_TABLES = ("transactions", "quarantine", "cohort_week", "firm_week", "firm")


@dataclass(frozen=True)
class FirmTables:
    """The temporary tables made for one unit, and what was found out about them."""

    counts: OrderCounts
    made: tuple[str, ...]
    """Tables that exist on the connection; later ones are missing when an earlier one is not trusted."""
    verdicts: tuple[Verdict, ...]

    @property
    def errors(self) -> list[str]:
        return [f"{v.table}: {error}" for v in self.verdicts for error in v.errors]


def make_firm_tables(
    con: duckdb.DuckDBPyConnection,
    unit: Unit,
    intake: Intake,
    project: ProjectConfig,
    design: Timeline,
) -> FirmTables:
    """Make and judge the unit's tables on `con`. Nothing is built on a table that is not trusted."""
    counts = make_orders(con, unit, intake, {source.name: source for source in project.sources}, design)
    named = {name: name for name in DATA_TABLES}
    verdicts = []
    made = ["transactions", "quarantine"]

    def trusted(table: str) -> bool:
        verdicts.append(check_table(con, table, named, design, project.quality, counts))
        return verdicts[-1].passed

    if trusted("transactions"):
        make_cohort_week(con, unit, "transactions", design)
        made.append("cohort_week")
        if trusted("cohort_week"):
            make_firm_week(con, unit, "cohort_week", design)
            make_firm(con, unit, "transactions", "cohort_week", counts, design)
            made += ["firm_week", "firm"]
            trusted("firm_week")
    return FirmTables(counts, tuple(made), tuple(verdicts))


def week_digests(con: duckdb.DuckDBPyConnection, timeline: Timeline) -> dict[str, str]:
    """Week -> digest of all that the tables on `con` say of the weeks up to it, and of who the firm is.

    A forecast depends on the weeks up to its origin alone: with these it need not be made again when later weeks
    arrive. Any model input that changes (a late order, the washout, the holiday calendar) changes the digest.
    """
    (who,) = con.execute("SELECT parent, segment, industry, currency, timezone FROM firm").fetchall()
    dates = (timeline.first_week, timeline.washout_weeks, timeline.validation_weeks, timeline.country)
    weeks = con.execute("""
        SELECT week, sum(row) FROM (
            SELECT week, md5_number_lower(concat_ws('|', customer, order_id, ordered_at, amount)) AS row
            FROM transactions
            UNION ALL SELECT week, md5_number_lower(concat_ws('|', cohort, left_censored, tenure, cohort_size, orders,
                initial_orders, sales, initial_sales, active_customers)) FROM cohort_week
        ) GROUP BY week ORDER BY week""").fetchall()
    digest, found = str((who, dates)), {}
    for week, total in weeks:
        digest = hashlib.sha256(f"{digest}{week}{total}".encode()).hexdigest()[:16]
        found[week.isoformat()] = digest
    known = timeline.washout.last.isoformat(), timeline.panel.last.isoformat()
    return {week: digest for week, digest in found.items() if known[0] <= week <= known[1]}
