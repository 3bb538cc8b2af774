"""The raw side: source files read once into the intake."""

import dagster as dg

from cbmt_pipeline.partitions import FIRM_PARTITIONS
from cbmt_pipeline.progress import tell
from cbmt_pipeline.resources import ProjectResource

__all__ = ["intake"]


@dg.asset(
    group_name="data", kinds={"parquet"}, description="Source files read once, each row mapped and judged."
)
def intake(context: dg.AssetExecutionContext, project: ProjectResource) -> dg.MaterializeResult:
    here = project.open()

    def on_file(file: str, done: int, total: int) -> None:
        context.log.info(f"{done + 1}/{total} {file}")
        tell("", f"{done + 1} of {total}: {file}", done / total)

    report = here.intake.update(here.config, here.root, on_file)
    units = here.intake.units()
    context.instance.add_dynamic_partitions(FIRM_PARTITIONS, [unit.slug for unit in units])
    ledger = here.intake.ledger()
    metadata: dict[str, object] = {
        "files": len(ledger),
        "new_files": len(report.read),
        "rows": sum(entry.rows for entry in ledger),
        "new_rows": sum(entry.rows for entry in report.read),
        "bad_rows": sum(entry.bad_rows for entry in ledger),
        "firms": len(units),
    }
    if report.failed:
        # What other sources brought is there all the same.
        context.log_event(dg.AssetMaterialization("intake", metadata=metadata))
        raise dg.Failure(
            "\n".join(f"source {name} was left as it was: {why}" for name, why in report.failed.items()),
            allow_retries=False,
        )
    # A firm that was renamed in its file, or whose source was taken out, would be counted beside the others.
    gone = here.lake.keep_only(units)
    for unit in gone:
        context.log.info(f"{unit.name} is in no source any more: its tables were removed")
    known = set(context.instance.get_dynamic_partitions(FIRM_PARTITIONS))
    for slug in sorted(known - {unit.slug for unit in units}):
        context.instance.delete_dynamic_partition(FIRM_PARTITIONS, slug)
    return dg.MaterializeResult(metadata={**metadata, "firms_gone": len(gone)})
