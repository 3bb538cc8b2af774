"""A project on disk: its configuration, its folders, and what its tables are made from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

from cbmt_core.config import ProjectConfig
from cbmt_core.design import StudyDesign
from cbmt_core.names import Unit
from cbmt_core.transactions import Intake
from cbmt_pipeline.lake import Lake, Stamp

__all__ = ["CONFIG_FILE", "Project"]

CONFIG_FILE = "cbmt.toml"


@dataclass(frozen=True)
class Project:
    """Everything below one folder that holds a `cbmt.toml`."""

    root: Path

    @cached_property
    def config(self) -> ProjectConfig:
        return ProjectConfig.load(self.root / CONFIG_FILE)

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def intake(self) -> Intake:
        return Intake(self.data / "lake" / "intake")

    @property
    def lake(self) -> Lake:
        return Lake(self.data / "lake")

    @property
    def warehouse(self) -> Path:
        return self.data / "cbmt.duckdb"

    @property
    def dagster_home(self) -> Path:
        return self.data / "dagster"

    @property
    def spill(self) -> Path:
        return self.data / "spill"

    def design(self) -> StudyDesign:
        return self.intake.design(self.config)

    def stamp(self, inputs: str, design: StudyDesign) -> Stamp:
        """The stamp of tables made from intake files with digest `inputs`."""
        # How a source is read is part of `inputs`: another source makes no firm of this one stale.
        settings = f"{design}{self.config.quality!r}"
        return Stamp(
            code=version("cbmt-pipeline"),
            config=hashlib.sha256(settings.encode()).hexdigest()[:16],
            inputs=inputs,
        )

    def stale_units(self) -> list[Unit]:
        """Units whose tables are missing or were made from other inputs, settings or code."""
        design = self.design()
        return [
            unit
            for unit, inputs in self.intake.units().items()
            if self.lake.stamp("firm_week", unit) != self.stamp(inputs, design)
        ]
