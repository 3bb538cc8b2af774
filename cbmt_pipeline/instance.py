"""The Dagster instance of a project: its home folder and settings."""

from __future__ import annotations

import os
from importlib.resources import files

import dagster as dg

from cbmt_core import atomic
from cbmt_pipeline.project import Project

__all__ = ["open_instance", "use_project"]


def use_project(project: Project) -> None:
    """Point this process, and those it starts, at the project and its Dagster home."""
    home = os.environ.setdefault("DAGSTER_HOME", str(project.dagster_home))
    os.environ["CBMT_PROJECT"] = str(project.root)
    settings = project.dagster_home / "dagster.yaml"
    if home == str(project.dagster_home) and not settings.exists():
        atomic.write_text(settings, files("cbmt_pipeline").joinpath("dagster.yaml").read_text())


def open_instance(project: Project) -> dg.DagsterInstance:
    use_project(project)
    return dg.DagsterInstance.get()
