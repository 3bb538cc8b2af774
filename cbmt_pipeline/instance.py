"""The Dagster instance of a project: its home folder and settings."""

from __future__ import annotations

import os
import socket
from importlib.resources import files
from pathlib import Path

import dagster as dg

from cbmt_core import atomic
from cbmt_pipeline.project import Project

PROCESS = "cbmt/process"
"""Tag of a run: the machine and process that do it."""

__all__ = ["PROCESS", "name_process", "open_instance", "shared_home", "this_process", "use_project"]


def use_project(project: Project) -> None:
    """Point this process, and those it starts, at the project and its Dagster home."""
    home = os.environ.setdefault("DAGSTER_HOME", str(project.dagster_home))
    os.environ["CBMT_PROJECT"] = str(project.root)
    settings = project.dagster_home / "dagster.yaml"
    if home == str(project.dagster_home) and not settings.exists():
        atomic.write_text(settings, files("cbmt_pipeline").joinpath("dagster.yaml").read_text())


def this_process() -> str:
    """The machine and process, as a run's tag names them."""
    return f"{socket.gethostname()}:{os.getpid()}"


def name_process(context: dg.AssetExecutionContext) -> None:
    """Tag a run with the process that does it, so that it can be told when that is gone."""
    if PROCESS not in context.run.tags:
        context.instance.add_run_tags(context.run.run_id, {PROCESS: this_process()})


def shared_home(project: Project) -> str:
    """The folder DAGSTER_HOME names, where that is not the project's own; empty otherwise."""
    home = os.environ.get("DAGSTER_HOME", "")
    return home if home and Path(home).resolve() != project.dagster_home.resolve() else ""


def open_instance(project: Project) -> dg.DagsterInstance:
    use_project(project)
    return dg.DagsterInstance.get()
