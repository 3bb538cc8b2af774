"""One firm's data tables, made in batches: a bad firm is red, the others go on."""

from collections.abc import Callable, Iterator

import dagster as dg
import duckdb

from cbmt_core import duck
from cbmt_core.design import StudyDesign
from cbmt_core.errors import BadFirmData
from cbmt_core.firm_tables import DATA_TABLES, make_firm_tables
from cbmt_core.names import Unit
from cbmt_core.report.figures import cohort_layers
from cbmt_core.schema import TABLES
from cbmt_pipeline.batches import BATCH, for_each_firm
from cbmt_pipeline.checks import check_specs, evaluation
from cbmt_pipeline.metadata import picture, table_metadata
from cbmt_pipeline.partitions import firm_partitions
from cbmt_pipeline.project import Project
from cbmt_pipeline.resources import ProjectResource

__all__ = ["firm_data"]

UPSTREAM = {
    "transactions": ["intake"],
    "quarantine": ["intake"],
    "cohort_week": ["transactions"],
    "firm_week": ["cohort_week"],
    "firm": ["transactions", "cohort_week"],
}


@dg.multi_asset(
    specs=[
        dg.AssetSpec(
            table,
            deps=UPSTREAM[table],
            description=TABLES[table].meaning,
            group_name="data",
            kinds={"duckdb", "parquet"},
            skippable=True,
        )
        for table in DATA_TABLES
    ],
    check_specs=check_specs(),
    partitions_def=firm_partitions,
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=BATCH),
    can_subset=True,
)
def firm_data(context: dg.AssetExecutionContext, project: ProjectResource) -> Iterator[dg.MaterializeResult]:
    here = project.open()
    selected = {key.to_user_string() for key in context.selected_asset_keys}
    design = here.design()
    inputs = here.intake.units()

    def make(unit: Unit) -> None:
        if unit not in inputs:
            raise BadFirmData(unit.name, "no ingested row names it any more; delete its partition")
        _one_firm(context, here, unit, design, inputs[unit], selected)

    for_each_firm(context, make)
    yield from ()  # Every firm was recorded one by one above; there is no other output.


def _one_firm(
    context: dg.AssetExecutionContext,
    here: Project,
    unit: Unit,
    design: StudyDesign,
    inputs: str,
    selected: set[str],
) -> None:
    slug = unit.slug
    stamp = here.stamp(inputs, design)
    with duck.connect(here.spill) as con:
        tables = make_firm_tables(con, unit, here.intake, here.config, design)

        def store(table: str, **more: object) -> None:
            rows = here.lake.write(con, table, unit, table, stamp)
            context.log_event(
                dg.AssetMaterialization(table, partition=slug, metadata=table_metadata(table, rows, **more))
            )

        def judge() -> None:
            for verdict in tables.verdicts:
                if verdict.table in selected:
                    context.log_event(evaluation(verdict, slug))

        # A firm that cannot be trusted keeps its last good tables; its quarantine says what is wrong now.
        if "quarantine" in selected:
            store("quarantine", reasons=_reasons(con))
        if tables.errors:
            judge()
            raise BadFirmData(unit.name, "; ".join(tables.errors))
        extras: dict[str, Callable[[], dict[str, object]]] = {
            "transactions": lambda: {
                "rows_in": tables.counts.rows_in,
                "rows_used": tables.counts.rows_used,
                "rows_quarantined": tables.counts.rows_quarantined,
            },
            "cohort_week": lambda: {"cohort_layers": _layers(con, unit, tables.counts.currency)},
        }
        for table in DATA_TABLES:
            if table in selected and table != "quarantine":
                store(table, **extras.get(table, dict)())
        judge()  # After the tables: a later materialisation would make the verdict look outdated.


def _reasons(con: duckdb.DuckDBPyConnection) -> dg.MarkdownMetadataValue:
    rows = con.execute("SELECT reason, count(*) FROM quarantine GROUP BY ALL ORDER BY 2 DESC").fetchall()
    return dg.MetadataValue.md("\n".join(f"- {reason}: {count:,}" for reason, count in rows) or "none")


def _layers(con: duckdb.DuckDBPyConnection, unit: Unit, currency: str) -> dg.MarkdownMetadataValue:
    frame = con.execute("SELECT cohort, week, left_censored, sales FROM cohort_week").df()
    return picture(
        cohort_layers(frame, f"{unit.name}: sales by acquisition quarter", currency), "cohort layers"
    )
