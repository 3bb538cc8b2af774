"""`cbmt status` and `cbmt doctor`: the state of files, firms and steps, and checks of the machine and project."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator

import click
import duckdb
from rich.cells import cell_len

from cbmt_core.errors import CbmtError
from cbmt_core.names import Unit
from cbmt_core.transactions.reader import files_of, passed_over
from cbmt_pipeline.holder import holder, left_by_ui
from cbmt_pipeline.plain_errors import plain
from cbmt_pipeline.plan import State, Step, the_plan
from cbmt_pipeline.progress import console
from cbmt_pipeline.project import CONFIG_FILE, Project
from cbmt_pipeline.snapshot import firm_states

__all__ = ["doctor", "status"]

MOST_FIRMS = 50
"""Firms that are listed even if they are up to date."""
ENOUGH_ROOM = 1_000_000_000
"""Free bytes below which a warning is given."""
OK, WARN, FAIL = "ok", "warning", "problem"
Finding = tuple[str, str]


@click.command()
@click.option("--check", is_flag=True, help="Exit with code 1 unless everything is up to date.")
@click.pass_obj
def status(project: Project, check: bool) -> None:
    """What the project holds: files, firms, and which steps of which firms are not up to date."""
    _ = project.config
    for command in ("run", "ui"):
        if who := holder(project, command):
            console.print(f"cbmt {command} is at work: {who}")
    ledger = project.intake.ledger()
    units = list(project.intake.units())
    console.print(f"{len(ledger):,} files, {sum(e.rows for e in ledger):,} rows, {len(units):,} firms")
    if not ledger:
        console.print("nothing has been read yet: cbmt ingest, or cbmt run")
        sys.exit(int(check))
    project.check_schema()
    timeline = project.timeline()
    live = project.origins("live")
    console.print(f"weeks {timeline.panel.first} to {timeline.panel.last}")
    for line in project.deliveries().lines(project.config.delivery):
        console.print(line, style="yellow", markup=False)
    console.print(f"live origin {live[0].week}" if live else "no live forecast yet: too few weeks")
    console.print(project.why_no_study() or f"study origin {project.study().origin}")
    state = State(project, the_plan())
    done = _print_steps(state, units)
    done &= _print_firms(state, units)
    sys.exit(int(check and not done))


def _print_steps(state: State, units: list[Unit]) -> bool:
    """A line a step; whether everything is up to date."""
    project, plan = state.project, state.plan
    lines = [["step", "for", "origins", "firms up to date", "to make", ""]]
    outdated: set[str] = set()
    for step in plan:
        origins = step.at(project)
        purposes = sorted({origin.purpose for origin in origins if origin})
        tasks = state.todo(step)
        lacking = {task.unit for task in tasks} | _not_ready(state, step, units)
        done = f"{len(units) - len(lacking):,} of {len(units):,}" if step.by_firm else ""
        made, note = f"{len(tasks):,}" if tasks else "", ""
        if step.has_origins and not origins:
            done, note = "-", "the history is too short"
        elif outdated & {other.name for other in plan.needed(step)}:
            note = "made again if its inputs change"
        elif blocked := len(lacking) - len({task.unit for task in tasks}):
            note = f"{blocked:,} cannot be made yet"
        if tasks or note.startswith("made"):
            outdated.add(step.name)
        lines.append(
            [step.name, ", ".join(purposes), str(len(origins)) if purposes else "", done, made, note]
        )
    _print_columns(lines)
    return not outdated


def _print_columns(lines: list[list[str]]) -> None:
    """Print cells below one another. No cell is cut, however narrow the terminal or the file is."""
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell + " " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True))
        console.print("  ".join(cells).rstrip(), markup=False)


def _not_ready(state: State, step: Step, units: list[Unit]) -> set[Unit | None]:
    """Firms that a step cannot be carried out for: untrusted, late, or without tables."""
    if not step.by_firm:
        return set()
    return {
        unit
        for unit in units
        for origin in step.at(state.project)
        if not state.ready(step, origin, unit)
    }  # fmt: skip


def _print_firms(state: State, units: list[Unit]) -> bool:
    """A line a firm with its state; whether all are current."""
    live = state.project.origins("live")
    step, newest = state.plan["live_forecasts"], {}
    for unit in units:
        if live and state.is_current(step, live[0], unit):
            newest[unit.name] = live[0].week
    lines = [["firm", "state", "reason"]]
    rows = firm_states(state, newest)
    others = [row for row in rows if row[2] != "current"]
    for name, _, kind, reason, *_ in rows if len(rows) <= MOST_FIRMS else others:
        lines.append([str(name), str(kind), str(reason)])
    if len(lines) > 1:
        _print_columns(lines)
    if len(rows) > MOST_FIRMS:
        console.print(f"{len(rows) - len(others):,} of {len(rows):,} firms are current")
    return not others


@click.command()
@click.pass_obj
def doctor(project: Project) -> None:
    """Check the machine and the project, and say what to do about each problem. Exit code 1 if there is one."""
    checks: dict[str, Callable[[Project], Iterator[Finding]]] = {
        "project file": _project_file,
        "folders": _folders,
        "sources": _sources,
        "layout": _layout,
        "at work": _at_work,
        "dagster": _dagster,
        "firms": _firms,
        "published file": _published,
    }
    bad = False
    for name, look in checks.items():
        try:
            found = list(look(project))
        except (CbmtError, duckdb.Error, OSError) as error:
            found = [(FAIL, plain(error) or str(error).strip())]
        for kind, text in found:
            bad |= kind == FAIL
            style = {OK: "green", WARN: "yellow", FAIL: "red"}[kind]
            console.print(f"{kind:<8} {name}: {text}", style=style, markup=False)
    sys.exit(int(bad))


def _project_file(project: Project) -> Iterator[Finding]:
    if not project.root.is_dir():
        yield FAIL, f"there is no folder {project.root}: cd into the project, or name it with --project"
        return
    yield OK, f"{project.root / CONFIG_FILE}, sources: {len(project.config.sources)}"


def _folders(project: Project) -> Iterator[Finding]:
    place = next(folder for folder in (project.data, project.root, *project.root.parents) if folder.exists())
    unwritable = [
        folder
        for folder in (place, project.data / "lake", project.dagster_home, project.report.parent)
        if folder.exists() and not os.access(folder, os.W_OK)
    ]
    for folder in unwritable:
        yield FAIL, f"{folder} cannot be written by this user: change its owner or mode (chown, chmod)"
    free = shutil.disk_usage(place).free
    if free < ENOUGH_ROOM:
        yield FAIL, f"{free / 1e6:,.0f} MB are free at {place}: a run may fill the disk; make room"
    elif not unwritable:
        yield OK, f"{place} can be written, {free / 1e9:,.0f} GB are free"


def _sources(project: Project) -> Iterator[Finding]:
    for source in project.config.sources:
        try:
            files = files_of(source, project.root)
            unreadable = [file for file in files if not os.access(file, os.R_OK)]
        except CbmtError as error:
            yield FAIL, str(error)
            continue
        if unreadable:
            yield FAIL, f"{unreadable[0]} cannot be read by this user: change its owner or mode"
        else:
            yield OK, f"{source.name}: {len(files):,} files"
        if others := passed_over(source, project.root):
            named = f"{others[0].name} and {len(others) - 1:,} more" if others[1:] else others[0].name
            yield WARN, f"{source.name}: files of kinds that are not read: {named}"
    if project.intake.waiting(project.config, project.root):
        yield WARN, "files wait to be read: cbmt run"


def _layout(project: Project) -> Iterator[Finding]:
    if project.lake_schema() is None:
        yield WARN, "nothing has been read yet: cbmt run"
        return
    project.check_schema()
    yield OK, f"{project.data} has this version's layout"


def _at_work(project: Project) -> Iterator[Finding]:
    for command in ("run", "ui"):
        who = holder(project, command)
        yield OK, f"cbmt {command}: {who or 'nobody'}"
    if left := left_by_ui(project):
        yield (
            WARN,
            f"processes of a killed cbmt ui go on working ({', '.join(map(str, left))}): the next cbmt ui ends them",
        )


def _dagster(project: Project) -> Iterator[Finding]:
    from cbmt_pipeline.instance import open_instance, shared_home
    from cbmt_pipeline.runner import orphaned_runs

    if shared := shared_home(project):
        yield (
            WARN,
            (
                f"DAGSTER_HOME is {shared}, not the project's own folder: projects that share it share "
                "their partitions and history; give each a home of its own (unset DAGSTER_HOME)"
            ),
        )
    if not shared and not project.dagster_home.exists():
        yield OK, "no history yet"
        return
    with open_instance(project) as instance:
        orphans = orphaned_runs(instance, ui_is_gone=not (holder(project, "ui") or left_by_ui(project)))
    if orphans:
        yield (
            WARN,
            f"{len(orphans):,} orphaned runs look unfinished: the next cbmt run or cbmt ui marks them as failed",
        )
    else:
        yield OK, "no orphaned runs"


def _firms(project: Project) -> Iterator[Finding]:
    if not project.intake.ledger():
        return
    manifests = project.manifests.of_firms("firm_data")
    refused = [(unit.name, made.rejected) for unit, made in manifests if made.rejected]
    for name, reason in refused[:5]:
        yield WARN, f"{name} is untrusted: {reason}; put its file right and run again"
    if len(refused) > 5:
        yield WARN, f"{len(refused) - 5:,} more are untrusted: cbmt status"
    for line in project.deliveries().lines(project.config.delivery):
        yield WARN, line
    if not refused:
        yield OK, f"{len(project.intake.units()):,} firms, none untrusted"


def _published(project: Project) -> Iterator[Finding]:
    if not project.warehouse.exists():
        yield WARN, f"there is no {project.warehouse} yet: cbmt run"
        return
    with duckdb.connect(str(project.warehouse), read_only=True) as con:
        try:
            [(when, data)] = con.execute("SELECT published_at, data_version FROM snapshot").fetchall()
        except duckdb.CatalogException:
            yield WARN, "it was published by an earlier version: cbmt run"
            return
    if data != project.intake.version:
        yield WARN, f"published at {when} UTC, from other files than have been read since: cbmt run"
    else:
        yield OK, f"published at {when} UTC from the files that have been read"
