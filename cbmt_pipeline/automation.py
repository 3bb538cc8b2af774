"""Sensors and jobs: read new files, add partitions for new firms, remake changed firms, finish backfills."""

import json

import dagster as dg
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus

from cbmt_core.errors import CbmtError
from cbmt_pipeline.backfills import ONLY_MISSING, broken_steps, launch, left_over
from cbmt_pipeline.batches import BATCH, contiguous_batches
from cbmt_pipeline.partition_keys import rename_old_keys
from cbmt_pipeline.partitions import FIRM_PARTITIONS, firm_partitions
from cbmt_pipeline.plan import State, the_plan
from cbmt_pipeline.resources import ProjectResource

__all__ = [
    "automation_sensor",
    "finish_backfills",
    "firms_sensor",
    "new_files_sensor",
    "read_new_files",
    "refresh_firms",
]

FOLLOWS = "cbmt/follows"
"""Tag of a backfill: id of the backfill whose left-over partitions it makes."""
REST = " (the rest)"
MOST_BACKFILLS = 50
"""Number of finished backfills that are examined."""

read_new_files = dg.define_asset_job(
    "read_new_files", selection=["intake"], description="Read source files that are new or changed."
)
refresh_firms = dg.define_asset_job(
    "refresh_firms",
    selection=list(the_plan()["firm_data"].assets),
    description="Make the data tables of a range of firms.",
)


@dg.sensor(job=read_new_files, minimum_interval_seconds=60, description="Looks for files not read yet.")
def new_files_sensor(
    context: dg.SensorEvaluationContext, project: ProjectResource
) -> dg.RunRequest | dg.SkipReason:
    opened = project.open()
    waiting = opened.intake.waiting(opened.config, opened.root)
    if not waiting:
        return dg.SkipReason("every source file has been read")
    # The run key depends on the files' state, so a file that cannot be read is tried only once.
    return dg.RunRequest(run_key=waiting)


@dg.sensor(
    job=refresh_firms, minimum_interval_seconds=60, description="Adds a partition for every firm in the data."
)
def firms_sensor(
    context: dg.SensorEvaluationContext, project: ProjectResource
) -> dg.SensorResult | dg.SkipReason:
    opened = project.open()
    if opened.intake.version in ("", context.cursor):
        return dg.SkipReason("nothing new has been read")
    try:
        tasks = State(opened, the_plan()).todo(the_plan()["firm_data"])
        stale = [task.unit.key for task in tasks if task.unit]
    except CbmtError as error:
        return dg.SkipReason(str(error))
    rename_old_keys(context.instance)
    known = context.instance.get_dynamic_partitions(FIRM_PARTITIONS)
    known_keys = set(known)
    new = [unit.key for unit in opened.intake.units() if unit.key not in known_keys]
    runs = [
        dg.RunRequest(
            run_key=f"{opened.intake.version}/{batch[0]}",
            tags={
                "dagster/asset_partition_range_start": batch[0],
                "dagster/asset_partition_range_end": batch[-1],
            },
        )
        for batch in contiguous_batches([*known, *new], stale, BATCH)
    ]
    requests = [firm_partitions.build_add_request(new)] if new else []
    return dg.SensorResult(
        run_requests=runs, dynamic_partitions_requests=requests, cursor=opened.intake.version
    )


automation_sensor = dg.AutomationConditionSensorDefinition(
    "automation",
    target=dg.AssetSelection.all(),
    run_tags={ONLY_MISSING: "true"},
    description="Makes forecasts of firms with new data, then what is made across firms, then warehouse and report.",
)


@dg.sensor(
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Goes on with backfills in which firms failed: makes the rest without them.",
)
def finish_backfills(context: dg.SensorEvaluationContext) -> dg.SkipReason | None:
    from cbmt_pipeline.definitions import defs

    graph, plan = defs.resolve_asset_graph(), the_plan()
    seen = set(json.loads(context.cursor or "[]"))
    ended = context.instance.get_backfills(
        filters=BulkActionsFilter(statuses=[BulkActionStatus.COMPLETED_FAILED]), limit=MOST_BACKFILLS
    )
    started = []
    for backfill in ended:
        if backfill.backfill_id in seen or not backfill.is_asset_backfill:
            continue
        broken = broken_steps(context.instance, backfill.backfill_id)
        target = left_over(backfill.get_asset_backfill_data(graph), plan, broken)
        if not target:
            continue
        first = backfill.tags.get(FOLLOWS, backfill.backfill_id)
        started.append(
            launch(
                context.instance,
                graph,
                plan,
                target,
                title=f"{(backfill.title or first).removesuffix(REST)}{REST}",
                description=f"What backfill {backfill.backfill_id} left out because firms failed in it.",
                tags={**backfill.tags, FOLLOWS: first},
            )
        )
        context.log.info(f"backfill {started[-1]} makes what {backfill.backfill_id} left out")
    context.update_cursor(json.dumps([backfill.backfill_id for backfill in ended]))
    return None if started else dg.SkipReason("no backfill with failed firms has left anything out")
