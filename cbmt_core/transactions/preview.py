"""Preview of a source: parsed rows, failing rows with every reason, and the orders they make."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path

from cbmt_core import duck
from cbmt_core.config import ProjectConfig, SourceConfig
from cbmt_core.duck import parquet
from cbmt_core.errors import CbmtError, UnreadableSource
from cbmt_core.timeline import Timeline, week_of
from cbmt_core.transactions.intake import Intake
from cbmt_core.transactions.orders import make_orders
from cbmt_core.transactions.reasons import MISSING_CUSTOMER

__all__ = ["Preview", "preview"]

SHOWN = 10
MANY_FIRMS = 50
"""With more firms than this, a preview does not make their orders."""


@dataclass
class Preview:
    """The result of a preview."""

    rows: int = 0
    used: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    """Why rows would not be part of an order, and how many."""
    parsed: list[tuple[object, ...]] = field(default_factory=list)
    """(row, firm, customer, order id, time, amount) of the first rows."""
    failing: list[tuple[int, str]] = field(default_factory=list)
    """(row, what is wrong with each of its columns)."""
    firms: int = 0
    customers: int = 0
    orders: int | None = None
    sales: Decimal | None = None
    refund_rows: int = 0
    refunds: Decimal = Decimal(0)
    """Money given back that is taken off orders."""
    refunds_unmatched: Decimal = Decimal(0)
    """Money given back for which there is no earlier order."""
    guest_sales: Decimal = Decimal(0)
    """Amounts of rows without a customer."""
    first: date | None = None
    last: date | None = None
    weeks: int = 0


def preview(source: SourceConfig, root: Path) -> Preview:
    """Read the source into a temporary folder. Raises UnreadableSource where it cannot be read at all."""
    project = ProjectConfig.model_validate(
        {"sources": [source.model_dump()], "quality": {"max_unusable_share": 1}}
    )
    with tempfile.TemporaryDirectory() as folder:
        intake = Intake(Path(folder))
        report = intake.update(project, root)
        if report.failed:
            raise UnreadableSource(report.failed[source.name])
        found = _rows(intake)
        try:
            found.first, found.last = intake.span()
        except CbmtError:
            return found
        found.weeks = (week_of(found.last) - week_of(found.first)).days // 7 + 1
        units = [unit for unit in intake.units() if unit.segment is None]
        if len(units) <= MANY_FIRMS:
            first_week = week_of(found.first)
            timeline = Timeline(first_week, first_week, 0, found.last)
            found.orders, found.sales, found.used = 0, Decimal(0), 0
            reasons = _of_no_firm(intake)
            for unit in units:
                with duck.connect() as con:
                    counts = make_orders(con, unit, intake, {source.name: source}, timeline)
                    found.orders += counts.orders
                    found.used += counts.rows_used
                    found.refund_rows += counts.refund_rows
                    found.refunds += counts.refunds
                    found.refunds_unmatched += counts.refunds_unmatched
                    ((sales,),) = con.execute("SELECT coalesce(sum(amount), 0) FROM transactions").fetchall()
                    found.sales += sales
                    if len(found.failing) < SHOWN:
                        found.failing += con.execute(
                            "SELECT row, concat(reason, ': ', detail) FROM quarantine ANTI JOIN "
                            "(SELECT unnest($1) AS reason) USING (reason) "
                            "QUALIFY row_number() OVER (PARTITION BY reason ORDER BY row) = 1 ORDER BY row LIMIT $2",
                            [list(found.reasons), SHOWN - len(found.failing)],
                        ).fetchall()
                    for reason, rows, amount in con.execute(
                        "SELECT reason, count(*), coalesce(sum(amount), 0) FROM quarantine GROUP BY reason"
                    ).fetchall():
                        reasons[reason] += rows
                        found.guest_sales += amount if reason == MISSING_CUSTOMER else 0
            found.reasons = dict(reasons.most_common())
    return found


def _of_no_firm(intake: Intake) -> Counter[str]:
    """Reasons of rows that belong to no firm, with counts."""
    with duck.connect() as con:
        return Counter(
            dict(
                con.execute(
                    f"SELECT reason, count(*) FROM {parquet(map(intake.path, intake.ledger()))} "
                    "WHERE slug IS NULL AND reason IS NOT NULL GROUP BY reason"
                ).fetchall()
            )
        )


def _rows(intake: Intake) -> Preview:
    relation = parquet(map(intake.path, intake.ledger()))
    with duck.connect() as con:
        rows, used, firms, customers = con.execute(
            f"SELECT count(*), count(*) FILTER (reason IS NULL), count(DISTINCT slug), "
            f"count(DISTINCT (slug, customer)) FILTER (reason IS NULL) FROM {relation}"
        ).fetchall()[0]
        reasons = con.execute(
            f"SELECT reason, count(*) FROM {relation} WHERE reason IS NOT NULL GROUP BY ALL ORDER BY 2 DESC, 1"
        ).fetchall()
        parsed = con.execute(
            f"SELECT row, firm, customer, order_id, ordered_at, amount FROM {relation} WHERE reason IS NULL "
            f"ORDER BY file, row LIMIT {SHOWN}"
        ).fetchall()
        failing = con.execute(
            f"SELECT row, coalesce(nullif(problems, ''), detail) FROM {relation} WHERE reason IS NOT NULL "
            f"QUALIFY row_number() OVER (PARTITION BY reason ORDER BY row) <= 3 ORDER BY row LIMIT {SHOWN}"
        ).fetchall()
    return Preview(rows, used, dict(reasons), parsed, failing, firms, customers)
