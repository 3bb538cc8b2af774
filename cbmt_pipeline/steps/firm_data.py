"""One firm's data tables: orders, quarantine, cohorts, weeks and the firm's own row."""

from collections.abc import Sequence
from typing import Any

import duckdb
import numpy as np

from cbmt_core.calendar import calendar_id
from cbmt_core.errors import BadFirmData
from cbmt_core.firm_tables import DATA_TABLES, FirmTables, make_firm_tables, week_digests
from cbmt_core.names import Unit
from cbmt_core.schema import TABLES
from cbmt_core.timeline import Origin
from cbmt_pipeline.manifest import digest_of
from cbmt_pipeline.plan import Step
from cbmt_pipeline.project import Project
from cbmt_pipeline.work import Made, Picture, Work

MOST_ROWS = 500_000
"""Maximum number of rows of orders and cohort weeks of firms prepared together, because they are held in memory."""


def together(project: Project, units: Sequence[Unit]) -> int:
    """How many of these firms to prepare together, from the first on."""
    weeks, total = len(project.timeline().panel), 0
    for place, unit in enumerate(units):
        total += project.intake.rows_of(unit) + weeks * (weeks + 1) // 2
        if total > MOST_ROWS:
            return max(1, place)
    return len(units)


def prepare(works: Sequence[Work]) -> None:
    """Make and check the tables of firms, each on its own connection."""
    project = works[0].project
    known = project.intake.units()
    for work in works:
        work.prepared = FirmTables(work.con, work.firm, project.timeline_of(work.firm))
    make_firm_tables(
        [work.prepared for work in works if work.firm in known and len(work.prepared.design.panel)],
        project.intake,
        project.config,
    )


def make(work: Work) -> Made:
    project, unit, con = work.project, work.firm, work.con
    if unit not in project.intake.units():
        raise BadFirmData(unit.name, "no ingested row names it any more; delete its partition")
    tables: FirmTables = work.prepared
    timeline = tables.design
    if not len(timeline.panel):
        return Made(
            rejected=f"its orders end on {timeline.observed_to}, before the first week after the washout"
        )
    if isinstance(tables.error, BadFirmData):
        return Made(rejected=tables.error.reason)
    if tables.error:
        raise tables.error
    reasons = con.execute("SELECT reason, count(*) FROM quarantine GROUP BY ALL ORDER BY 2 DESC").fetchall()
    found: dict[str, dict[str, Any]] = {
        "quarantine": {"reasons": ", ".join(f"{reason} {count:,}" for reason, count in reasons) or "none"}
    }
    if tables.errors:
        # A firm that cannot be trusted keeps its last good tables; only its quarantine is new.
        return Made(
            {"quarantine": "quarantine"},
            metadata=found,
            verdicts=tuple(tables.verdicts),
            rejected="; ".join(tables.errors),
        )
    counts = tables.counts
    assert counts is not None
    found["transactions"] = {
        "rows_in": counts.rows_in,
        "rows_used": counts.rows_used,
        "rows_quarantined": counts.rows_quarantined,
        "rows_without_customer": counts.guest_rows,
        "refund_rows": counts.refund_rows,
        "refunds": float(counts.refunds),
        "refunds_unmatched": float(counts.refunds_unmatched),
    }
    found["cohort_week"] = {"cohort_layers": _layers(con, unit, counts.currency)}
    return Made(
        {table: table for table in DATA_TABLES},
        as_of=week_digests(con, timeline),
        metadata=found,
        verdicts=tuple(tables.verdicts),
    )


def _layers(con: duckdb.DuckDBPyConnection, unit: Unit, currency: str) -> Picture:
    from cbmt_core.report.layers import BEFORE, cohort_layers

    rows = con.execute(f"""
        SELECT CASE WHEN left_censored THEN '{BEFORE}' ELSE year(cohort) || 'Q' || quarter(cohort) END AS layer,
            list({{'week': week, 'sales': sales}}) AS sold
        FROM (SELECT left_censored, date_trunc('quarter', cohort) AS cohort, week, CAST(sum(sales) AS DOUBLE) AS sales
              FROM cohort_week GROUP BY ALL) GROUP BY layer""").fetchall()
    weeks = sorted({one["week"] for _, sold in rows for one in sold})
    place = {week: k for k, week in enumerate(weeks)}
    layers = {layer: np.zeros(len(weeks)) for layer, _ in rows}
    for layer, sold in rows:
        for one in sold:
            layers[layer][place[one["week"]]] += one["sales"]
    title = f"{unit.name}: sales by acquisition quarter"
    return Picture(cohort_layers(weeks, layers, title, currency), "cohort layers")


def _settings(project: Project, unit: Unit | None, origin: Origin | None) -> dict[str, str]:
    # How a source is read is part of the intake's digest, so a change of one source does not affect firms of
    # another.
    assert unit is not None
    return {
        "intake": project.intake.units().get(unit, ""),
        "timeline": digest_of(str(project.timeline_of(unit))),
        "calendar": calendar_id(project.timeline().country),
        "quality": digest_of(project.config.quality.model_dump()),
    }


STEP = Step(
    name="firm_data",
    make=make,
    prepare=prepare,
    together=together,
    description="The firm's data tables.",
    group="data",
    writes=tuple(TABLES[name] for name in DATA_TABLES),
    needs=("intake",),
    version="3",
    code=(
        "cbmt_core.cohorts",
        "cbmt_core.firm_tables",
        "cbmt_core.quality_suites",
        "cbmt_core.transactions.orders",
        "cbmt_core.transactions.refunds",
    ),
    batch=50,
    kinds=frozenset({"duckdb", "parquet"}),
    settings=_settings,
    assets={
        "transactions": ("intake",),
        "quarantine": ("intake",),
        "cohort_week": ("transactions",),
        "firm_week": ("cohort_week",),
        "firm": ("transactions", "cohort_week"),
    },
)
