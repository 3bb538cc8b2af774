"""Dagster assets, made from the plan: each step becomes one asset (or, for the data tables, five)."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import dagster as dg
import pydantic

from cbmt_core.config import ScheduleConfig
from cbmt_core.errors import BadFirmData, CbmtError
from cbmt_core.names import Unit
from cbmt_core.timeline import PURPOSES
from cbmt_pipeline.backfills import BACKFILL, ONLY_MISSING, PURPOSES_TAG
from cbmt_pipeline.batches import EXPECTED, for_each_firm
from cbmt_pipeline.checks import check_specs, evaluation, verdict_on_forecasts
from cbmt_pipeline.conditions import condition_of
from cbmt_pipeline.freshness import freshness_of
from cbmt_pipeline.history import forget_old_runs
from cbmt_pipeline.instance import name_process, shared_home
from cbmt_pipeline.metadata import column_schema, picture, rows_metadata
from cbmt_pipeline.partition_keys import rename_old_keys
from cbmt_pipeline.partitions import FIRM_PARTITIONS, firm_partitions
from cbmt_pipeline.plan import Plan, State, Step, Task
from cbmt_pipeline.progress import tell
from cbmt_pipeline.project import SEED, Link, Project
from cbmt_pipeline.resources import ProjectResource
from cbmt_pipeline.transaction import Outcome, carry_out, carry_out_together
from cbmt_pipeline.versions import DATA_VERSION_TAG, data_version, provenance
from cbmt_pipeline.work import Options, Picture, Records

__all__ = ["assets_of", "step_config"]

OWNERS = ["team:data"]
Tags = dict[str, dict[str, str]]
"""Asset -> tags of a materialisation."""

_DESCRIPTIONS = {
    "models": "Names of models; all of them unless stated.",
    "profile": "Budget of tuning and training: smoke, demo, quick, standard or paper. cbmt.toml's unless stated.",
    "seed": "Seed of every fit.",
    "fresh": "Search and train again what is up to date, and delete the trials of earlier searches.",
}


def step_config(step: Step) -> type[dg.Config]:
    """Settings of a run of the step's assets: the options it understands, and how much of it to do."""
    defaults = {field.name: field.default for field in fields(Options)}
    kinds = {"models": list[str] | None, "profile": str | None, "seed": int, "fresh": bool}
    wanted: dict[str, Any] = {
        name: (kinds[name], pydantic.Field(default=defaults[name], description=_DESCRIPTIONS[name]))
        for name in step.options
    }
    wanted["only_missing"] = (
        bool,
        pydantic.Field(default=False, description="Skip what is up to date."),
    )
    if step.has_origins:
        wanted["purposes"] = (
            list[str] | None,
            pydantic.Field(
                default=None,
                description=f"Origins for these purposes only: {', '.join(step.purposes or PURPOSES)}.",
            ),
        )
    return pydantic.create_model(f"{step.name}_config", __base__=dg.Config, **wanted)


def assets_of(plan: Plan, schedule: ScheduleConfig | None = None) -> list[dg.AssetsDefinition]:
    """The assets of every step.

    Args:
        schedule: how often they are made, from which their freshness policies follow.
    """
    stated = schedule or ScheduleConfig()
    return [_by_firm(plan, s, stated) if s.by_firm else _across_firms(plan, s, stated) for s in plan]


def _specs(plan: Plan, step: Step, schedule: ScheduleConfig) -> list[dg.AssetSpec]:
    described = {table.name: table.meaning for table in step.writes} if step.assets else {}
    return [
        dg.AssetSpec(
            asset,
            deps=list(needs),
            description=described.get(asset, step.description),
            group_name=step.group,
            kinds=set(step.kinds),
            code_version=step.version,
            owners=OWNERS,
            skippable=step.by_firm,
            automation_condition=condition_of(plan, step),
            freshness_policy=freshness_of(step, schedule),
            metadata=_declared(step, asset),
        )
        for asset, needs in plan.edges(step).items()
    ]


def _declared(step: Step, asset: str) -> dict[str, Any]:
    """The columns of the asset's table, or of each of its tables."""
    tables = [table for table in step.writes if table.name == asset or not step.assets]
    if len(tables) == 1:
        return {"dagster/column_schema": column_schema(tables[0])}
    return {f"columns of {table.name}": column_schema(table) for table in tables}


def _by_firm(plan: Plan, step: Step, schedule: ScheduleConfig) -> dg.AssetsDefinition:
    Config = step_config(step)

    @dg.multi_asset(
        name=step.name,
        specs=_specs(plan, step, schedule),
        check_specs=check_specs(step),
        partitions_def=firm_partitions,
        backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=step.batch),
        # The tables of a step are one transaction: whichever of them is selected, all are made. Checks are recorded
        # for each firm as it is made, so the run as a whole does not require any.
        can_subset=len(step.asset_needs) > 1 or bool(step.promises),
    )
    def made(
        context: dg.AssetExecutionContext,
        config: Config,  # type: ignore[valid-type]  # made for the step at run time
        project: ProjectResource,
    ) -> Iterator[dg.MaterializeResult[None]]:
        name_process(context)
        opened, settings = project.open(), _settings(context, config)
        recorded: list[tuple[Outcome, Unit, Tags]] = []
        made_from = provenance(context.instance, plan, step)
        firms = [Unit.from_key(key) for key in context.partition_keys]
        found = _outcomes_of(context, opened, plan, step, config, settings, firms)

        def tags_of(unit: Unit, state: State) -> Tags:
            version = data_version(state, step, unit)
            return {asset: {DATA_VERSION_TAG: version, **more} for asset, more in made_from.items()}

        def make(unit: Unit) -> None:
            outcomes = next(found)
            if isinstance(outcomes, Exception):
                raise outcomes
            state = State(opened, plan)
            tags = tags_of(unit, state)
            if outcomes:
                recorded.append((_judged(outcomes[-1], state, step, unit), unit, tags))
                _record(context, step, *recorded[-1])
            else:
                _record_nothing(context, state, step, unit, tags)
            if rejected := [outcome.rejected for outcome in outcomes if outcome.rejected]:
                raise BadFirmData(unit.name, "; ".join(rejected))

        with closing(found):
            for_each_firm(context, make)
        if _others_follow(context):
            # A step of the same run that needs this one is skipped unless there is an output. An output carries no
            # information on single firms, so their materialisations are recorded again to be the newest.
            for key in context.selected_asset_keys:
                yield dg.MaterializeResult(asset_key=key, metadata={"note": "see each firm"})
            for one in recorded:
                _record(context, step, *one)

    return made


def _judged(outcome: Outcome, state: State, step: Step, unit: Unit) -> Outcome:
    """The outcome, with a verdict on the forecasts if the step has checks."""
    return replace(outcome, verdicts=(verdict_on_forecasts(state, step, unit),)) if step.promises else outcome


def _outcomes_of(
    context: dg.AssetExecutionContext,
    project: Project,
    plan: Plan,
    step: Step,
    config: dg.Config,
    settings: dict[str, Any],
    firms: list[Unit],
) -> Generator[list[Outcome] | Exception, None, None]:
    """Yield each firm's outcomes, or the error that stopped it, carrying out its tasks when the caller asks for it.

    Close the iterator: until then the tasks of firms that are prepared together stay locked.
    """

    def tasks_of(unit: Unit) -> list[Task] | Exception:
        try:
            return _tasks(project, plan, step, settings, [unit])
        except EXPECTED as error:
            return error

    def alone(unit: Unit) -> list[Outcome] | Exception:
        tasks = tasks_of(unit)
        if isinstance(tasks, Exception):
            return tasks
        try:
            return [_carry_out(context, project, plan, task, config, unit.key) for task in tasks]
        except EXPECTED as error:
            return error

    while firms:
        if step.together is None:
            yield alone(firms.pop(0))
            continue
        count = step.together(project, firms)
        group, firms = firms[:count], firms[count:]
        found = {unit: tasks_of(unit) for unit in group}
        tasks = [task for own in found.values() if not isinstance(own, Exception) for task in own]
        options = _options(step, config)
        with closing(carry_out_together(project, plan, tasks, options, log=context.log.info)) as outcomes:
            for own in found.values():
                if isinstance(own, Exception):
                    yield own
                    continue
                results = [next(outcomes) for _ in own]
                errors = [one for one in results if isinstance(one, Exception)]
                yield errors[0] if errors else [one for one in results if isinstance(one, Outcome)]


def _others_follow(context: dg.AssetExecutionContext) -> bool:
    """Whether the run has steps besides this one."""
    return set(context.job_def.asset_layer.executable_asset_keys) > set(context.selected_asset_keys)


def _across_firms(plan: Plan, step: Step, schedule: ScheduleConfig) -> dg.AssetsDefinition:
    Config = step_config(step)

    @dg.multi_asset(name=step.name, specs=_specs(plan, step, schedule))
    def made(
        context: dg.AssetExecutionContext,
        config: Config,  # type: ignore[valid-type]  # made for the step at run time
        project: ProjectResource,
    ) -> dg.MaterializeResult[None]:
        name_process(context)
        opened = project.open()
        tasks = _tasks(opened, plan, step, _settings(context, config), None)
        outcomes = [_carry_out(context, opened, plan, task, config, "") for task in tasks]
        if step.name == "intake":
            _sync_partitions(context, opened)
        if step.name == "report" and (gone := forget_old_runs(context.instance, opened)):
            context.log.info(f"{gone} runs removed from the history ([history] keep_days in cbmt.toml)")
        metadata = _shown(step, outcomes[-1], step.name) if outcomes else {"note": _why_nothing(opened, step)}
        if rejected := [outcome.rejected for outcome in outcomes if outcome.rejected]:
            # What could be stored has been stored.
            context.log_event(dg.AssetMaterialization(step.name, metadata=metadata))
            raise dg.Failure("\n".join(rejected), allow_retries=False)
        version = data_version(State(opened, plan), step, None)
        return dg.MaterializeResult(
            asset_key=step.name,
            metadata=metadata,
            data_version=dg.DataVersion(version) if version else None,
        )

    return made


def _why_nothing(project: Project, step: Step) -> str:
    if step.purposes and not step.at(project):
        return project.why_no_study() or "the history is too short for this step"
    return "everything was up to date"


def _settings(context: dg.AssetExecutionContext, config: dg.Config) -> dict[str, Any]:
    """The run's configuration, or that in the tags of a scheduled backfill."""
    settings, tags = config.model_dump(), context.run.tags
    if ONLY_MISSING in tags:
        settings["only_missing"] = True
    if PURPOSES_TAG in tags and settings.get("purposes") is None:
        settings["purposes"] = tags[PURPOSES_TAG].split(",")
    return settings


def _tasks(
    project: Project, plan: Plan, step: Step, settings: dict[str, Any], units: Sequence[Unit] | None
) -> list[Task]:
    if settings.get("profile"):
        project = project.with_profile(settings["profile"])
    state = State(project, plan, settings.get("seed", SEED))
    tasks = state.todo(
        step, units=units, purposes=settings.get("purposes"), everything=not settings["only_missing"]
    )
    if not tasks and not step.by_firm and step.stale and not settings["only_missing"]:
        tasks = [Task(step, None, None)]
    if units and not tasks and not state.ready(step, None, units[0]):
        raise CbmtError(f"firm {units[0].name!r}: its data tables do not exist; materialise them first")
    if step.items is None:
        return tasks
    named = settings.get("models")
    wanted = step.items(project)
    chosen = []
    for task in tasks:
        items = task.items if settings["only_missing"] else tuple(wanted)
        if named is not None:
            # A named model is made in any case, unless only what is missing was asked for.
            items = tuple(n for n in named if n in task.items) if settings["only_missing"] else tuple(named)
        if items:
            chosen.append(Task(step, task.origin, task.unit, items))
    return chosen


def _carry_out(
    context: dg.AssetExecutionContext, project: Project, plan: Plan, task: Task, config: dg.Config, key: str
) -> Outcome:
    at = f" at {task.origin.week} ({task.origin.purpose})" if task.origin else ""
    context.log.info(f"{task.step.name} of {task.unit.name if task.unit else 'all firms'}{at}")
    return carry_out(
        project,
        plan,
        task,
        _options(task.step, config),
        tell=lambda doing, share: tell(key, doing, share),
        log=context.log.info,
    )


def _options(step: Step, config: dg.Config) -> Options:
    settings = config.model_dump()
    known = {name: settings[name] for name in step.options}
    if known.get("models") is not None:
        known["models"] = tuple(known["models"])
    return Options(**known)


def _record(context: dg.AssetExecutionContext, step: Step, outcome: Outcome, unit: Unit, tags: Tags) -> None:
    """Record one firm's materialisations and checks; of a rejected firm only the tables that were stored."""
    for asset in step.asset_needs:
        if outcome.rejected and asset not in outcome.rows:
            continue
        if outcome.rejected and not step.assets:
            continue
        context.log_event(
            dg.AssetMaterialization(
                asset,
                partition=unit.key,
                metadata=_shown(step, outcome, asset),
                tags=tags[asset],
            )
        )
    # After the tables: a later materialisation would make the verdict look outdated.
    for verdict in outcome.verdicts:
        context.log_event(evaluation(verdict, unit.key))


def _record_nothing(
    context: dg.AssetExecutionContext, state: State, step: Step, unit: Unit, tags: Tags
) -> None:
    """Record a materialisation for a firm without tasks, because a backfill waits for one from every firm."""
    if BACKFILL not in context.run.tags:
        return
    for asset in step.asset_needs:
        note = {"note": _why_nothing(state.project, step)}
        known = {name: value for name, value in tags[asset].items() if value}
        context.log_event(dg.AssetMaterialization(asset, partition=unit.key, metadata=note, tags=known))
    if step.promises and tags[step.name][DATA_VERSION_TAG]:
        context.log_event(evaluation(verdict_on_forecasts(state, step, unit), unit.key))


def _shown(step: Step, outcome: Outcome, asset: str) -> dict[str, Any]:
    """Metadata of a materialisation for the UI."""
    own = outcome.metadata.get(asset, {}) if step.assets else outcome.metadata
    metadata = {name: _value(value) for name, value in own.items()}
    if step.assets and outcome.rows:
        return {"dagster/row_count": outcome.rows.get(asset, 0), **metadata}
    return {**rows_metadata(dict(outcome.rows)), **metadata} if outcome.rows else metadata


def _value(value: object) -> Any:
    if isinstance(value, Picture):
        return picture(value.png, value.alt)
    if isinstance(value, Records):
        if not value.rows:
            return "none"  # Dagster cannot show a table without rows.
        return dg.MetadataValue.table(records=[dg.TableRecord(row) for row in value.rows])
    if isinstance(value, Link):
        return dg.MetadataValue.url(value.url)
    return dg.MetadataValue.path(str(value)) if isinstance(value, Path) else value


def _sync_partitions(context: dg.AssetExecutionContext, project: Project) -> None:
    """One partition for every firm in the data, and none for firms that are gone."""
    rename_old_keys(context.instance)
    keys = [unit.key for unit in project.intake.units()]
    context.instance.add_dynamic_partitions(FIRM_PARTITIONS, keys)
    if shared_home(project):
        return  # On a shared instance, firms of other projects are partitions too.
    known = set(context.instance.get_dynamic_partitions(FIRM_PARTITIONS))
    for key in sorted(known - set(keys)):
        context.instance.delete_dynamic_partition(FIRM_PARTITIONS, key)
