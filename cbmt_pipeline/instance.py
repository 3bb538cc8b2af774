"""The Dagster instance of a project: its home folder and settings."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
from importlib.resources import files
from pathlib import Path

import dagster as dg

from cbmt_core import atomic
from cbmt_pipeline.partition_keys import rename_old_keys
from cbmt_pipeline.project import Project

LOCATION, REPOSITORY = "cbmt_pipeline.definitions", "__repository__"
"""What Dagster calls our code location, and the definitions in it."""
ATTENDED = "cbmt/attended"
"""Tag of a run that `cbmt run` or a job does itself: that says why it failed, so the daemon sends no notice."""
PROCESS = "cbmt/process"
"""Tag of a run: the machine and process that execute it."""

SETTINGS = files("cbmt_pipeline").joinpath("dagster.yaml").read_text()
"""Settings of a project's own instance, but for the folder of its history."""
EARLIER = {
    "1805f0a540b2a44d4eb3d540060e27abd5324c89c79316a8880e7d639f0373b1",
    "753cf83c09851f8cb7bcc97f6021c003d0cb473d6fc676b250832878a538cf3b",
}
"""SHA-256 of settings files that earlier versions wrote; unchanged ones are replaced."""

__all__ = [
    "ATTENDED",
    "LOCATION",
    "PROCESS",
    "REPOSITORY",
    "SETTINGS",
    "name_process",
    "open_instance",
    "shared_home",
    "this_process",
    "use_project",
]


def use_project(project: Project) -> None:
    """Point this process, and those it starts, at the project and its Dagster home."""
    home = os.environ.setdefault("DAGSTER_HOME", str(project.dagster_home))
    os.environ["CBMT_PROJECT"] = str(project.root)
    if home == str(project.dagster_home):
        settings = project.dagster_home / "dagster.yaml"
        before = settings.read_text(encoding="utf-8") if settings.exists() else ""
        after = _settings(before, project.dagster_home / "history" / "runs")
        if after != before:
            atomic.write_text(settings, after)


def _settings(before: str, history: Path) -> str:
    """The settings to write: user changes stay, but the folder is corrected, because the project may have been
    moved."""
    if not before or hashlib.sha256(before.encode()).hexdigest() in EARLIER:
        before = SETTINGS
    return re.sub(
        r"(class: OpenEventLog\n  config:\n    base_dir: ).*",
        lambda found: found[1] + json.dumps(str(history), ensure_ascii=False),
        before,
    )


def this_process() -> str:
    """The machine and process, as a run's tag names them."""
    return f"{socket.gethostname()}:{os.getpid()}"


def name_process(context: dg.AssetExecutionContext) -> None:
    """Tag a run with the process that executes it, so that orphaned runs are recognised."""
    if context.run.tags.get(PROCESS) != this_process():
        context.instance.add_run_tags(context.run.run_id, {PROCESS: this_process()})


def shared_home(project: Project) -> str:
    """The folder DAGSTER_HOME names, where that is not the project's own; empty otherwise."""
    home = os.environ.get("DAGSTER_HOME", "")
    return home if home and Path(home).resolve() != project.dagster_home.resolve() else ""


def open_instance(project: Project) -> dg.DagsterInstance:
    """The project's instance, with partition keys of earlier versions renamed."""
    use_project(project)
    instance = dg.DagsterInstance.get()
    with atomic.only_one(project.data / ".keys.lock"):
        rename_old_keys(instance)
    return instance
