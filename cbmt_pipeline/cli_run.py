"""`cbmt run`: read new files, forecast the year ahead, publish; then backtests and the study, publish again."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from cbmt_core.config import PROFILE_NAMES
from cbmt_core.errors import CbmtError
from cbmt_core.models import MODELS, networks
from cbmt_core.names import Unit, UnknownFirm
from cbmt_core.report.words import plural
from cbmt_core.timeline import MIN_LIVE_WEEKS, PURPOSES, Purpose
from cbmt_core.transactions import FileReport
from cbmt_core.transactions.reader import passed_over
from cbmt_core.transactions.reasons import NOT_BAD
from cbmt_pipeline.cli_summary import print_summary
from cbmt_pipeline.holder import holding
from cbmt_pipeline.manifest import digest_of
from cbmt_pipeline.plain_errors import plain_text, stops_all
from cbmt_pipeline.plan import Plan, State, Step, Task, the_plan
from cbmt_pipeline.progress import ProgressBar, console, listen
from cbmt_pipeline.project import Project

if TYPE_CHECKING:
    from cbmt_pipeline.runner import RunOutcome, Workers

__all__ = ["chosen_firms", "read_new_files", "run"]

NETWORK_STEPS = ("tuned_models", "neural_forecasts")
PASSES: tuple[tuple[Purpose, ...], ...] = (("live",), PURPOSES)
"""The year ahead is published before the study begins, which may take hours."""
MOST_LISTED = 20
"""Maximum number of files and warnings listed singly."""
MOST_PASSED_OVER = 3
"""Files of other kinds that are named."""


def read_new_files(project: Project) -> None:
    """Read new files of the sources and print what was found."""
    project.check_schema()
    step = the_plan()["intake"]
    before, there = {entry.stem for entry in project.intake.ledger()}, project.lake.units("firm_week")
    failure = ""
    if not project.intake.ledger() or State(project, the_plan()).todo(step):
        failure = _across_firms("reading source files", project, step, {}).failure
    ledger = project.intake.ledger()
    read = [entry for entry in ledger if entry.stem not in before]
    for entry in read[:MOST_LISTED]:
        console.print(f"  {entry.file}: {entry.rows:,} rows{_set_aside(project, entry)}", markup=False)
    if len(read) > MOST_LISTED:
        console.print(f"  and {len(read) - MOST_LISTED} more files")
    if read or not failure:
        console.print(
            f"read {plural(len(read), 'new file')}, {plural(sum(e.rows for e in read), 'row')}; the project holds "
            f"{plural(len(ledger), 'file')}, {plural(sum(e.rows for e in ledger), 'row')}, "
            f"{plural(len(project.intake.units()), 'firm')}"
        )
    _say_passed_over(project)
    if failure:
        raise CbmtError(plain_text(failure) or failure)
    if gone := sorted(
        {unit.name for unit in there} - {unit.name for unit in project.lake.units("firm_week")}
    ):
        console.print(
            f"no longer in any source, and removed from the tables: {', '.join(gone)}", markup=False
        )


def _say_passed_over(project: Project) -> None:
    """Name the files beside those of the sources that are of another kind: somebody may think they are counted."""
    found = [path.name for source in project.config.sources for path in passed_over(source, project.root)]
    names = list(dict.fromkeys(found))
    if names:
        more = f" and {len(names) - MOST_PASSED_OVER} more" if len(names) > MOST_PASSED_OVER else ""
        console.print(
            f"files of kinds that are not read: {', '.join(names[:MOST_PASSED_OVER])}{more}",
            markup=False,
        )


def _set_aside(project: Project, entry: FileReport) -> str:
    """Rows of a file that were not used: ordinary ones, such as cancelled orders, and bad ones."""
    found = project.intake.bad_rows(entry) if entry.bad_rows else {}
    parts = []
    for words, reasons in (("set aside", found.keys() & NOT_BAD), ("cannot be used", found.keys() - NOT_BAD)):
        listed = ", ".join(f"{reason} {n:,}" for reason, n in found.items() if reason in reasons)
        if listed:
            parts.append(f", {sum(found[reason] for reason in reasons):,} {words}: {listed}")
    return "".join(parts)


@click.command()
@click.option("--firm", "firms", multiple=True, help="Only this firm; may be repeated.")
@click.option("--workers", default=os.cpu_count() or 1, show_default="cores", type=click.IntRange(min=1))
@click.option("--model", "only", multiple=True, help="Forecast with this model only; may be repeated.")
@click.option(
    "--profile",
    type=click.Choice(PROFILE_NAMES),
    help="Budget for tuning and training the networks.  [default: cbmt.toml's, or quick]",
)
@click.option("--no-networks", is_flag=True, help="Leave out the networks: seconds a firm, not minutes.")
@click.option("--live-only", is_flag=True, help="Only the year ahead: no backtests, no study.")
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Keep a line for every step, list missing diagnostics, and say how many rows each table has.",
)
@click.option("--timings", is_flag=True, help="Say at the end how many seconds each step took.")
@click.option("--all", "everything", is_flag=True, help="Remake every firm, also those that are up to date.")
@click.pass_obj
def run(
    project: Project,
    firms: tuple[str, ...],
    workers: int,
    only: tuple[str, ...],
    profile: str | None,
    no_networks: bool,
    live_only: bool,
    verbose: bool,
    timings: bool,
    everything: bool,
) -> None:
    """Read new files, forecast every firm's next 52 weeks, publish; then backtests and the study.

    Runs the same assets on the same Dagster instance as the UI, with a pool of worker processes and
    no daemon. A firm that fails is named with its reason; the others go on. Exit code 1 if any failed.
    A run that was stopped, at whatever point, goes on where it was when it is started again.
    """
    _check_models(only, no_networks)
    if profile:
        project = project.with_profile(profile)
    project.check_schema()
    project.networks()  # Refuse a misspelt name in cbmt.toml now, not after the benchmarks.
    project.live_models()
    click.get_current_context().with_resource(holding(project, "run"))
    started = time.monotonic()
    intake_failed = not _read_what_is_new(project)
    chosen = chosen_firms(project, firms)
    _say_weeks(project)
    job = Job(
        project,
        the_plan(),
        chosen,
        workers=workers,
        models=only,
        profile=profile,
        everything=everything,
        without=NETWORK_STEPS if no_networks else (),
        verbose=verbose,
    )
    with job:
        for purposes in PASSES[:1] if live_only else PASSES:
            job.bring_up_to_date(purposes)
    _say_outcome(job, timings)
    print_summary(project, time.monotonic() - started, bool(job.runs), verbose)
    if job.failures or intake_failed:
        sys.exit(1)


def _check_models(only: tuple[str, ...], no_networks: bool) -> None:
    if unknown := sorted(set(only) - set(MODELS)):
        raise click.UsageError(f"no model is called {', '.join(unknown)}; there are: {', '.join(MODELS)}")
    if no_networks and (trained := sorted(set(only) & set(networks()))):
        raise click.UsageError(f"{', '.join(trained)} cannot be made with --no-networks")


def _read_what_is_new(project: Project) -> bool:
    """Read new files; False if that failed and the run goes on with what was read earlier."""
    try:
        read_new_files(project)
    except CbmtError as error:
        if not project.intake.ledger():
            raise
        console.print(str(error), style="red")
        return False
    return True


def _say_outcome(job: Job, timings: bool) -> None:
    from cbmt_pipeline.runner import fail_orphaned_runs

    for failure in job.failures:
        console.print(failure, style="red")
    if timings:
        for name, seconds in job.seconds.items():
            console.print(f"seconds {name} {seconds:.1f}")
    if not job.project.warehouse.exists():
        raise CbmtError("nothing could be published")
    if not job.runs:
        # A run with something to do has done this already.
        fail_orphaned_runs(job.project)
        console.print("everything is up to date" + (" for " + ", ".join(job.models) if job.models else ""))


def chosen_firms(project: Project, firms: tuple[str, ...]) -> list[Unit] | None:
    """The firms that were asked for; None for all."""
    if not firms:
        return None
    units = list(project.intake.units())
    wanted = [unit for unit in units if {unit.name, unit.key, unit.slug} & set(firms)]
    for unknown in sorted(
        set(firms) - {name for unit in wanted for name in (unit.name, unit.key, unit.slug)}
    ):
        raise UnknownFirm(unknown, [unit.name for unit in units])
    return wanted


def _say_weeks(project: Project) -> None:
    timeline = project.timeline()
    washout = (
        f"after a washout of {plural(timeline.washout_weeks, 'week')}"
        if timeline.washout_weeks
        else "no washout"
    )
    console.print(f"weeks: {timeline.panel.first} to {timeline.panel.last}, {washout}")
    for line in project.deliveries().lines(project.config.delivery):
        console.print(line, style="yellow", markup=False)
    if missing := project.why_no_study():
        console.print(f"no study yet: {missing}")
    else:
        design = project.study()
        console.print(
            f"study: calibration {design.calibration.first} to {design.calibration.last}, "
            f"holdout {design.holdout.first} to {design.holdout.last}"
        )
    if not timeline.live_origins():
        console.print(
            f"no live forecast yet: it needs {MIN_LIVE_WEEKS} weeks after the washout, there are {len(timeline.panel)}"
            f"{project.intake.unreadable_times()}",
            markup=False,
        )


@dataclass
class Job:
    """One `cbmt run`: its options and its results."""

    project: Project
    plan: Plan
    units: list[Unit] | None
    workers: int
    models: tuple[str, ...] = ()
    profile: str | None = None
    everything: bool = False
    without: tuple[str, ...] = ()
    verbose: bool = False
    runs: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    _pool: Workers | None = None
    _tried: set[tuple[str, object, object, str]] = field(default_factory=set)

    def __enter__(self) -> Job:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool:
            self._pool.close()

    def bring_up_to_date(self, purposes: Sequence[Purpose]) -> None:
        """Carry out, in the order of the plan, what is missing or stale at origins for these purposes."""
        for step in self.plan:
            if step.name == "intake" or step.name in self.without:
                continue
            if self.models and step.only_for and not set(self.models) & set(step.only_for):
                continue
            tasks = self._tasks(step, purposes)
            if not tasks:
                continue
            self.runs += 1
            started = time.monotonic()
            if step.by_firm:
                keys = list(dict.fromkeys(task.unit.key for task in tasks if task.unit))
                outcomes = self._firms(step, keys, self._config(step, tasks))
            else:
                config = self._config(step, tasks)
                outcomes = [_across_firms(_title(step), self.project, step, config, keep=self.verbose)]
            self.seconds[step.name] = self.seconds.get(step.name, 0.0) + time.monotonic() - started
            self._note(step, outcomes)

    def _tasks(self, step: Step, purposes: Sequence[Purpose]) -> list[Task]:
        state = State(self.project, self.plan)
        anew = self.everything and step.name not in ("warehouse", "report")
        tasks = state.todo(step, units=self.units, purposes=purposes, everything=anew)
        if step.items is not None and self.models:
            tasks = [task for task in tasks if set(task.items) & set(self.models)]
        # The second pass does not repeat what the first one made, or could not make, from the same inputs.
        known = {
            (step.name, task.origin, task.unit, digest_of(state.inputs(step, task.origin, task.unit))): task
            for task in tasks
        }
        tasks = [task for key, task in known.items() if key not in self._tried]
        self._tried |= set(known)
        return tasks

    def _config(self, step: Step, tasks: Sequence[Task]) -> dict[str, Any]:
        wanted: dict[str, Any] = {"only_missing": not self.everything}
        if step.has_origins:
            wanted["purposes"] = sorted({task.origin.purpose for task in tasks if task.origin})
        if "models" in step.options and self.models:
            wanted["models"] = list(self.models)
        if "profile" in step.options and self.profile:
            wanted["profile"] = self.profile
        if "fresh" in step.options and self.everything:
            wanted["fresh"] = True
        return {"ops": {step.name: {"config": wanted}}}

    def _firms(self, step: Step, keys: Sequence[str], config: dict[str, Any]) -> list[RunOutcome]:
        from cbmt_pipeline.runner import Workers, run_firms

        if self._pool is None:
            self._pool = Workers(self.workers)
        with ProgressBar(_title(step), len(keys), keep=self.verbose) as bar:
            return run_firms(
                self.project,
                list(step.asset_needs),
                keys,
                pool=self._pool,
                batch=step.batch,
                on_batch=lambda outcome: bar.advance(*outcome.firms),
                on_news=bar.hear,
                config=lambda _: config,
            )

    def _note(self, step: Step, outcomes: Sequence[RunOutcome]) -> None:
        self.failures += [outcome.failure for outcome in outcomes if not outcome.success]
        warnings = sorted(text for outcome in outcomes for text in outcome.warnings)
        for text in warnings[:MOST_LISTED]:
            console.print(f"warning: {text}", style="yellow", markup=False)
        if len(warnings) > MOST_LISTED:
            console.print(
                f"and {len(warnings) - MOST_LISTED} more warnings: see the checks `trusted` in the UI"
            )
        trouble = [plain_text(outcome.failure) for outcome in outcomes if not outcome.success]
        if step.name != "warehouse" and (cause := next(filter(stops_all, trouble), "")):
            raise CbmtError(f"{_title(step)}: {cause}")
        if step.name == "warehouse" and not outcomes[0].success:
            raise CbmtError(f"data/cbmt.duckdb was left as it was: {outcomes[0].failure}")


def _title(step: Step) -> str:
    return step.name.replace("_", " ")


def _across_firms(
    title: str, project: Project, step: Step, config: dict[str, Any], *, keep: bool = True
) -> RunOutcome:
    """Materialise an asset that is not partitioned behind a bar."""
    from cbmt_pipeline.runner import run_assets

    with ProgressBar(title, 1, keep=keep) as bar:
        listen(bar.hear)
        try:
            outcome = run_assets(project, [step.name], config)
            bar.advance("")
        finally:
            listen(None)
    return outcome
