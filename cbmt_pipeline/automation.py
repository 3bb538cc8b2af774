"""What happens by itself: new files are read, new firms become partitions, changed firms are made anew."""

import dagster as dg

from cbmt_core.errors import CbmtError
from cbmt_pipeline.batches import BATCH
from cbmt_pipeline.partitions import FIRM_PARTITIONS, firm_partitions
from cbmt_pipeline.plan import State, the_plan
from cbmt_pipeline.resources import ProjectResource

__all__ = [
    "contiguous_batches",
    "firms_sensor",
    "move_study",
    "move_study_schedule",
    "new_files_sensor",
    "read_new_files",
    "refresh_firms",
]

read_new_files = dg.define_asset_job(
    "read_new_files", selection=["intake"], description="Read source files that are new or changed."
)
refresh_firms = dg.define_asset_job(
    "refresh_firms",
    selection=list(the_plan()["firm_data"].assets),
    description="Make the data tables of a range of firms.",
)


@dg.op(description="Pin the study anew, so that its holdout ends with the last whole week.")
def move_study_to_newest_weeks(context: dg.OpExecutionContext, project: ProjectResource) -> None:
    moved = project.open().move_study()
    context.log.info(f"the study's origin is {moved.origin}, its holdout {moved.holdout_weeks} weeks")


@dg.job(
    description="Move the study to the newest weeks; its assets are stale then, and made by the next run."
)
def move_study() -> None:
    move_study_to_newest_weeks()


move_study_schedule = dg.ScheduleDefinition(
    name="move_study_quarterly",
    job=move_study,
    cron_schedule="0 3 1 1,4,7,10 *",
    description="Moves the study four times a year; off until it is switched on.",
)


@dg.sensor(job=read_new_files, minimum_interval_seconds=60, description="Looks for files not read yet.")
def new_files_sensor(
    context: dg.SensorEvaluationContext, project: ProjectResource
) -> dg.RunRequest | dg.SkipReason:
    here = project.open()
    waiting = here.intake.waiting(here.config, here.root)
    if not waiting:
        return dg.SkipReason("every source file has been read")
    # The key names the state of the files: a file that cannot be read is tried once, not for ever.
    return dg.RunRequest(run_key=waiting)


@dg.sensor(
    job=refresh_firms, minimum_interval_seconds=60, description="Adds a partition for every firm in the data."
)
def firms_sensor(
    context: dg.SensorEvaluationContext, project: ProjectResource
) -> dg.SensorResult | dg.SkipReason:
    here = project.open()
    if here.intake.version in ("", context.cursor):
        return dg.SkipReason("nothing new has been read")
    try:
        tasks = State(here, the_plan()).todo(the_plan()["firm_data"])
        stale = [task.unit.slug for task in tasks if task.unit]
    except CbmtError as error:
        return dg.SkipReason(str(error))
    known = context.instance.get_dynamic_partitions(FIRM_PARTITIONS)
    new = [unit.slug for unit in here.intake.units() if unit.slug not in set(known)]
    runs = [
        dg.RunRequest(
            run_key=f"{here.intake.version}/{batch[0]}",
            tags={
                "dagster/asset_partition_range_start": batch[0],
                "dagster/asset_partition_range_end": batch[-1],
            },
        )
        for batch in contiguous_batches([*known, *new], stale, BATCH)
    ]
    requests = [firm_partitions.build_add_request(new)] if new else []
    return dg.SensorResult(
        run_requests=runs, dynamic_partitions_requests=requests, cursor=here.intake.version
    )


def contiguous_batches(keys: list[str], wanted: list[str], size: int) -> list[list[str]]:
    """Split `wanted` into runs of neighbours in `keys`, each of at most `size`: a run takes a range."""
    chosen = set(wanted)
    batches: list[list[str]] = []
    previous = None
    for key in keys:
        if key in chosen:
            if previous in chosen and batches and len(batches[-1]) < size:
                batches[-1].append(key)
            else:
                batches.append([key])
        previous = key
    return batches
