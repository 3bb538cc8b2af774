"""The jobs `weekly` and `study`, which start backfills of what is stale, and their schedules."""

from collections.abc import Sequence

import dagster as dg

from cbmt_core.config import ScheduleConfig
from cbmt_core.errors import CbmtError
from cbmt_core.timeline import PURPOSES, Purpose
from cbmt_pipeline.backfills import JOB, ONLY_MISSING, PURPOSES_TAG, in_progress, launch, stale_target
from cbmt_pipeline.plan import State, the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.resources import ProjectResource

__all__ = ["CRON", "read_schedules", "schedules_of", "study", "weekly"]

CRON = {"weekly": "0 6 * * 1", "study": "0 3 2 1,4,7,10 *"}
"""Default times of schedules that are switched on in the UI without a line in cbmt.toml."""


class StudyRun(dg.Config):
    """Settings of the job `study`."""

    move: bool = True
    """Move the study to the newest weeks first; otherwise make what is missing or stale at its present origin."""


@dg.op(
    description="Read new files, then start a backfill of the year ahead: every firm and step that is stale."
)
def refresh_year_ahead(context: dg.OpExecutionContext, project: ProjectResource) -> None:
    _start_backfill(context, project.open(), "weekly", ("live",))


@dg.op(description="Read new files, move the study, then start a backfill of everything that is stale.")
def refresh_study(context: dg.OpExecutionContext, config: StudyRun, project: ProjectResource) -> None:
    _start_backfill(context, project.open(), "study", PURPOSES, move=config.move)


@dg.job(
    description="New data, tables, live forecasts, choice of model, bridge, warehouse, report: everything of the year "
    "ahead that is stale, as a backfill over the firms (see Runs > Backfills)."
)
def weekly() -> None:
    refresh_year_ahead()


@dg.job(
    description="The study at the newest weeks, the backtests that came due, and the year ahead: everything that is "
    "stale, as a backfill over the firms (see Runs > Backfills)."
)
def study() -> None:
    refresh_study()


def _start_backfill(
    context: dg.OpExecutionContext,
    project: Project,
    job: str,
    purposes: Sequence[Purpose],
    *,
    move: bool = False,
) -> None:
    from cbmt_pipeline.definitions import defs

    project.check_schema()
    unread = _read_new_files(context, project)
    if move and not project.why_no_study():
        moved = project.move_study()
        context.log.info(f"the study's origin is {moved.origin}, its holdout {moved.holdout_weeks} weeks")
    plan, without = the_plan(), [] if project.networks() else ["tuned_models", "neural_forecasts"]
    target = stale_target(State(project, plan), purposes, without)
    if going := in_progress(context.instance, job):
        context.log.warning(
            f"backfill {going[0]} of the last {job} run is not finished; no other one is started"
        )
    elif not target:
        context.log.info("everything is up to date")
    else:
        started = launch(
            context.instance,
            defs.resolve_asset_graph(),
            plan,
            target,
            title=f"{job}: {len(target.all_firms):,} firms",
            tags={JOB: job, ONLY_MISSING: "true", PURPOSES_TAG: ",".join(purposes)},
        )
        steps = ", ".join(step.name for step in plan if step.name in (*target.firms, *target.across))
        context.log.info(f"started backfill {started} of {len(target.all_firms):,} firms: {steps}")
        context.add_output_metadata({"backfill": dg.MetadataValue.url(f"/runs/b/{started}"), "steps": steps})
    if unread:
        raise dg.Failure(unread, allow_retries=False)


def _read_new_files(context: dg.OpExecutionContext, project: Project) -> str:
    """Materialise `intake` in a run of its own; why a source could not be read, if one could not."""
    from cbmt_pipeline.runner import materialise_intake

    outcome = materialise_intake(context.instance, context.run.remote_job_origin)
    if outcome.failure and not project.intake.ledger():
        raise dg.Failure(outcome.failure, allow_retries=False)
    return outcome.failure


def read_schedules(project: Project) -> ScheduleConfig:
    """`[schedule]` of the project; the default if the project's file cannot be read, which runs will report."""
    try:
        return project.config.schedule
    except CbmtError:
        return ScheduleConfig()


def schedules_of(stated: ScheduleConfig) -> list[dg.ScheduleDefinition]:
    """A schedule for each job: on where cbmt.toml states its time, otherwise off until switched on in the UI."""
    return [
        dg.ScheduleDefinition(
            name=f"{job.name}_schedule",
            job=job,
            cron_schedule=cron or CRON[job.name],
            execution_timezone=stated.timezone,
            default_status=dg.DefaultScheduleStatus.RUNNING if cron else dg.DefaultScheduleStatus.STOPPED,
            description=f"Runs the job {job.name}. Its time is [schedule] {job.name} in cbmt.toml.",
        )
        for job, cron in ((weekly, stated.weekly), (study, stated.study))
    ]
