"""Carry out a step: its outputs are one transaction, with the manifest written last."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb

from cbmt_core import duck
from cbmt_core.errors import CbmtError
from cbmt_core.quality import Verdict
from cbmt_core.schema import Table
from cbmt_pipeline.holder import holding_task
from cbmt_pipeline.manifest import Manifest, commit, digest_of, sync
from cbmt_pipeline.plan import Plan, State, Step, Task
from cbmt_pipeline.project import Project
from cbmt_pipeline.work import Made, Options, Work

__all__ = ["Outcome", "carry_out", "carry_out_together", "task_key"]

ITEM = "model"
"""Column with the item (model) of a row."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a task that was carried out."""

    manifest: Manifest
    rows: Mapping[str, int]
    """Rows of each table."""
    metadata: Mapping[str, Any]
    verdicts: tuple[Verdict, ...] = ()
    rejected: str = ""


def carry_out(
    project: Project,
    plan: Plan,
    task: Task,
    options: Options | None = None,
    *,
    tell: Callable[[str, float], None] = lambda doing, share: None,
    log: Callable[[str], None] = lambda text: None,
) -> Outcome:
    """Carry out one task and commit its outputs.

    The outputs of a step are one transaction: they are written under temporary names, the old manifest is
    removed, the files are renamed into place, and the new manifest is written last.
    """
    options = options or Options()
    _check(project, task)

    def waits(text: str) -> None:
        tell(text, 0.0)
        log(text)

    with holding_task(project, task_key(task), waits) as waited, _database(project, task.step) as con:
        state = State(project, plan, options.seed)
        if waited and (made := _made_meanwhile(state, task)):
            return made
        return _begun(task, options, state, con, tell, log).carry_out()


def carry_out_together(
    project: Project,
    plan: Plan,
    tasks: Sequence[Task],
    options: Options | None = None,
    *,
    log: Callable[[str], None] = lambda text: None,
) -> Generator[Outcome | Exception, None, None]:
    """Carry out tasks of a step that prepares firms together. Each is committed and yielded before the next one.

    An error of one firm is yielded instead of its outcome. A caller that stops early must close the iterator: until
    then it holds the locks of the remaining tasks.
    """
    if not tasks:
        return
    options = options or Options()
    step = tasks[0].step
    assert step.prepare is not None
    with ExitStack() as held:
        keys = {task_key(task): task for task in tasks}
        # Always in the same order, to avoid deadlocks between processes.
        _check(project, tasks[0])
        waited = {keys[key]: held.enter_context(holding_task(project, key, log)) for key in sorted(keys)}
        database = held.enter_context(_database(project, step, threads=1 if len(tasks) > 1 else None))
        begun: list[_Begun | Outcome] = []
        for task in tasks:
            state = State(project, plan, options.seed)
            made = _made_meanwhile(state, task) if waited[task] else None
            # Each firm has its own cursor, and so its own temporary tables.
            begun.append(
                made or _begun(task, options, state, database.cursor(), lambda doing, share: None, log)
            )
        if works := [one.work for one in begun if isinstance(one, _Begun)]:
            step.prepare(works)
        for one in begun:
            if isinstance(one, Outcome):
                yield one
                continue
            try:
                yield one.carry_out()
            except (CbmtError, duckdb.Error, OSError) as error:
                yield error
            one.work.con.close()


def _check(project: Project, task: Task) -> None:
    project.check_schema()
    if task.origin and task.origin.purpose == "study":
        project.pin_study()


def task_key(task: Task) -> str:
    """Name of the task's lock: one process at a time makes a step of a firm at an origin."""
    week = task.origin.week if task.origin else None
    return digest_of([task.step.part(task.origin), week, task.unit.slug if task.unit else None])


def _made_meanwhile(state: State, task: Task) -> Outcome | None:
    """The outcome of a task that another process has carried out meanwhile, if it made all of it."""
    lacking = state.missing(task.step, task.origin, task.unit)
    found = state.manifest(task.step, task.origin, task.unit)
    if found is None or (lacking is not None and (not task.items or set(task.items) & set(lacking))):
        return None
    return Outcome(found, {}, {"note": "made by another process at the same time"})


def _database(project: Project, step: Step, threads: int | None = None) -> duckdb.DuckDBPyConnection:
    return duck.connect(project.spill, threads=1 if step.by_firm and step.has_origins else threads)


@dataclass(frozen=True)
class _Begun:
    """A task with the digests of its inputs."""

    work: Work
    inputs: Mapping[str, str]
    before: Manifest | None

    def carry_out(self) -> Outcome:
        work, before, outcome = self.work, self.before, None
        if work.step.prepare and work.prepared is None:
            work.step.prepare([work])
        made = work.step.make(work)
        for part in made if isinstance(made, Iterator) else [made]:
            before, rows = _store(work, part, self.inputs, before)
            outcome = Outcome(before, rows, part.metadata, part.verdicts, part.rejected)
        assert outcome is not None, f"{work.step.name} made nothing"
        return outcome


def _begun(
    task: Task,
    options: Options,
    state: State,
    con: duckdb.DuckDBPyConnection,
    tell: Callable[[str, float], None],
    log: Callable[[str], None],
) -> _Begun:
    step, origin, unit = task.step, task.origin, task.unit
    work = Work(state.project, state.plan, state, step, con, origin, unit, task.items, options, tell, log)
    return _Begun(work, state.inputs(step, origin, unit), state.is_current(step, origin, unit))


def _store(
    work: Work, made: Made, inputs: Mapping[str, str], before: Manifest | None
) -> tuple[Manifest, dict[str, int]]:
    project, step, origin, unit = work.project, work.step, work.origin, work.unit
    week, part = origin.week if origin else None, step.part(origin)
    tables = {table.name: table for table in step.writes}
    staged: dict[Path, Path] = dict(made.files)
    rows = {}
    known: dict[Path, str] = {}
    attempted = work.items if made.attempted is None else made.attempted
    kept = before if step.items else None
    try:
        for name, value in made.tables.items():
            relation = value if isinstance(value, str) else "made"
            if not isinstance(value, str):
                work.con.register("made", value)
            target = project.lake.path(name, part, week, unit)
            if kept and target.exists():
                # Keep the rows of other items made from the same inputs.
                tried = ", ".join(map(duck.literal, attempted))
                old = f"(FROM {duck.parquet([target])} WHERE {ITEM} NOT IN ({tried}))"
                relation = f"(FROM {old} UNION ALL BY NAME FROM {relation})"
            staged[target], rows[name] = project.lake.stage(work.con, tables[name], relation, target)
            if tables[name].incidental:
                known[target] = _content_digest(work.con, tables[name], staged[target])
            if not isinstance(value, str):
                work.con.unregister("made")
        sync(staged.values())
        with project.committing():
            return _commit(work, made, staged, known, inputs, kept, attempted), rows
    finally:
        for temporary in staged.values():
            with suppress(FileNotFoundError):
                temporary.unlink()


def _commit(
    work: Work,
    made: Made,
    staged: Mapping[Path, Path],
    known: Mapping[Path, str],
    inputs: Mapping[str, str],
    kept: Manifest | None,
    attempted: tuple[str, ...],
) -> Manifest:
    """Remove the old manifest, rename staged files to their final paths, and write the new manifest."""
    project, step, origin, unit = work.project, work.step, work.origin, work.unit
    week, part = origin.week if origin else None, step.part(origin)
    earlier = work.state.manifest(step, origin, unit) if made.rejected else None
    if not earlier:
        # The manifest of a rejected firm's last good outputs is replaced without being removed, because it could
        # not be made again.
        project.manifests.remove(part, week, unit)
    files = commit(project.data, staged, made.gone, known)
    gone = {str(path.relative_to(project.data)) for path in made.gone}

    def untried(of_items: Mapping[str, str]) -> dict[str, str]:
        return {item: value for item, value in of_items.items() if item not in attempted}

    manifest = Manifest(
        step=step.name,
        version=step.version,
        inputs=dict(inputs),
        items={**untried(kept.items if kept else {}), **made.items},
        files={**{k: v for k, v in kept.files.items() if k not in gone}, **files} if kept else files,
        as_of=dict(made.as_of),
        errors={**untried(kept.errors if kept else {}), **made.errors},
        warnings={**untried(kept.warnings if kept else {}), **made.warnings},
    )
    if made.rejected:
        # Digests stay, so what is made from the last good outputs stays current.
        earlier = earlier or manifest
        manifest = replace(earlier, files={**earlier.files, **files}, rejected=made.rejected)
    project.manifests.write(part, week, unit, manifest)
    return manifest


def _content_digest(con: duckdb.DuckDBPyConnection, table: Table, file: Path) -> str:
    """Digest of a table's rows without its incidental columns."""
    without = ", ".join(f'"{name}"' for name in table.incidental)
    return digest_of(con.execute(f"SELECT * EXCLUDE ({without}) FROM {duck.parquet([file])}").fetchall())
