"""One firm's data tables: its orders, what was set aside, cohorts, weeks and the firm's own row."""

from typing import Any

import duckdb

from cbmt_core.errors import BadFirmData
from cbmt_core.firm_tables import DATA_TABLES, make_firm_tables, week_digests
from cbmt_core.names import Unit
from cbmt_core.report.figures import cohort_layers
from cbmt_core.schema import TABLES
from cbmt_core.timeline import Origin
from cbmt_pipeline.manifest import digest_of
from cbmt_pipeline.plan import Step
from cbmt_pipeline.project import Project
from cbmt_pipeline.work import Made, Picture, Work


def make(work: Work) -> Made:
    project, unit, con = work.project, work.firm, work.con
    if unit not in project.intake.units():
        raise BadFirmData(unit.name, "no ingested row names it any more; delete its partition")
    timeline = project.timeline_of(unit)
    if not len(timeline.panel):
        return Made(
            rejected=f"its orders end on {timeline.observed_to}, before the first week after the washout"
        )
    try:
        tables = make_firm_tables(con, unit, project.intake, project.config, timeline)
    except BadFirmData as error:
        return Made(rejected=error.reason)
    reasons = con.execute("SELECT reason, count(*) FROM quarantine GROUP BY ALL ORDER BY 2 DESC").fetchall()
    found: dict[str, dict[str, Any]] = {
        "quarantine": {"reasons": ", ".join(f"{reason} {count:,}" for reason, count in reasons) or "none"}
    }
    if tables.errors:
        # A firm that cannot be trusted keeps its last good tables; its quarantine says what is wrong now.
        return Made(
            {"quarantine": "quarantine"},
            metadata=found,
            verdicts=tables.verdicts,
            rejected="; ".join(tables.errors),
        )
    counts = tables.counts
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
        verdicts=tables.verdicts,
    )


def _layers(con: duckdb.DuckDBPyConnection, unit: Unit, currency: str) -> Picture:
    frame = con.execute("SELECT cohort, week, left_censored, sales FROM cohort_week").df()
    title = f"{unit.name}: sales by acquisition quarter"
    return Picture(cohort_layers(frame, title, currency), "cohort layers")


def _settings(project: Project, unit: Unit | None, origin: Origin | None) -> dict[str, str]:
    # How a source is read is part of the intake's digest: another source makes no firm of this one stale.
    assert unit is not None
    return {
        "intake": project.intake.units().get(unit, ""),
        "timeline": digest_of(str(project.timeline_of(unit))),
        "quality": digest_of(project.config.quality.model_dump()),
    }


STEP = Step(
    name="firm_data",
    make=make,
    description="The firm's data tables.",
    group="data",
    writes=tuple(TABLES[name] for name in DATA_TABLES),
    needs=("intake",),
    version="2",
    code=(
        "cbmt_core.cohorts",
        "cbmt_core.firm_tables",
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
