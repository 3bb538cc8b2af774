"""Make the data tables of firms (orders, cohorts, weeks) and check each one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import duckdb

from cbmt_core.calendar import calendar_id
from cbmt_core.cohorts import make_cohort_week, make_firm, make_firm_week
from cbmt_core.config import ProjectConfig
from cbmt_core.errors import CbmtError
from cbmt_core.names import Unit
from cbmt_core.quality import Facts, TablesToCheck, Verdict, check_tables
from cbmt_core.timeline import Timeline
from cbmt_core.transactions import Intake
from cbmt_core.transactions.orders import OrderCounts, make_orders

__all__ = ["DATA_TABLES", "FirmTables", "make_firm_tables", "week_digests"]

DATA_TABLES = ("transactions", "quarantine", "cohort_week", "firm_week", "firm")


@dataclass(eq=False)
class FirmTables:
    """One unit's temporary tables on their own connection, with the verdicts on them."""

    con: duckdb.DuckDBPyConnection
    unit: Unit
    design: Timeline
    counts: OrderCounts | None = None
    made: list[str] = field(default_factory=list)
    """Tables that exist on the connection; later ones are missing when an earlier one is not trusted."""
    verdicts: list[Verdict] = field(default_factory=list)
    error: Exception | None = None
    """Why the tables could not be made."""

    @property
    def errors(self) -> list[str]:
        return [f"{v.table}: {error}" for v in self.verdicts for error in v.errors]

    @property
    def goes_on(self) -> bool:
        return self.error is None and not self.errors

    def try_to(self, make: Callable[[FirmTables], None], *tables: str) -> None:
        """Make some of the tables; an error is recorded for this firm and does not stop others."""
        try:
            make(self)
        except (CbmtError, duckdb.Error, OSError) as error:
            self.error = error
        else:
            self.made += tables


def make_firm_tables(firms: Sequence[FirmTables], intake: Intake, project: ProjectConfig) -> None:
    """Make and check the tables of units, each on its connection. Once a table fails its checks, no further ones are
    made."""
    sources = {source.name: source for source in project.sources}

    def orders(firm: FirmTables) -> None:
        firm.counts = make_orders(firm.con, firm.unit, intake, sources, firm.design)

    def cohorts(firm: FirmTables) -> None:
        make_cohort_week(firm.con, firm.unit, "transactions", firm.design)

    def weeks(firm: FirmTables) -> None:
        assert firm.counts is not None
        make_firm_week(firm.con, firm.unit, "cohort_week", firm.design)
        make_firm(firm.con, firm.unit, "transactions", "cohort_week", firm.counts, firm.design)

    for make, tables, judged in (
        (orders, ("transactions", "quarantine"), "transactions"),
        (cohorts, ("cohort_week",), "cohort_week"),
        (weeks, ("firm_week", "firm"), "firm_week"),
    ):
        for firm in firms:
            if firm.goes_on:
                firm.try_to(make, *tables)
        left = [firm for firm in firms if firm.goes_on]
        for firm, verdict in zip(
            left, check_tables(judged, [_tables_to_check(f, project) for f in left]), strict=True
        ):
            firm.verdicts.append(verdict)


def _tables_to_check(firm: FirmTables, project: ProjectConfig) -> TablesToCheck:
    assert firm.counts is not None
    named = {name: name for name in DATA_TABLES}
    return TablesToCheck(firm.con, named, Facts(firm.design, project.quality, firm.counts))


def week_digests(con: duckdb.DuckDBPyConnection, timeline: Timeline) -> dict[str, str]:
    """Week -> digest of all rows on `con` up to that week, of the firm's own row, and of the washout and calendar.

    A forecast depends on the weeks up to its origin alone, so it stays current while the digest of its origin does. A
    late order, another washout or another holiday calendar changes the digests from its week on.
    """
    (who,) = con.execute("SELECT parent, segment, industry, currency, timezone FROM firm").fetchall()
    dates = (
        timeline.first_week,
        timeline.washout_weeks,
        timeline.validation_weeks,
        calendar_id(timeline.country),
    )
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
