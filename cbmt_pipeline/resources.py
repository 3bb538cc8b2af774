"""Resources: the project that assets read from and write to."""

from pathlib import Path

import dagster as dg

from cbmt_pipeline.project import Project

__all__ = ["ProjectResource"]


class ProjectResource(dg.ConfigurableResource[Project]):
    """The project folder; the environment variable CBMT_PROJECT names it, the working folder is the default."""

    root: str = "."

    def open(self) -> Project:
        return Project(Path(self.root).resolve())
