"""A project on disk: its configuration, its folders, and what its tables are made from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

import pyarrow.parquet as pq

from cbmt_core.config import ProjectConfig
from cbmt_core.design import StudyDesign
from cbmt_core.models import benchmarks
from cbmt_core.names import Unit
from cbmt_core.transactions import Intake
from cbmt_pipeline.lake import Lake, Stamp

__all__ = ["BENCHMARKS", "CONFIG_FILE", "SEED", "Project"]

CONFIG_FILE = "cbmt.toml"
SEED = 20260626
"""Seed of every fit unless a run says otherwise."""
BENCHMARKS = "benchmarks"
"""The lake part that the benchmarks write; other assets write other parts of the forecast tables."""


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
    def report(self) -> Path:
        """The report's first page."""
        return self.data / "report" / "index.html"

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

    def forecast_stamp(self, unit: Unit, seed: int) -> Stamp:
        """The stamp of forecasts made from the unit's present tables."""
        tables = self.lake.stamp("cohort_week", unit)
        inputs = hashlib.sha256(repr(tables).encode()).hexdigest()[:16]
        return Stamp(code=version("cbmt-pipeline"), config="", inputs=inputs, seed=seed)

    def evaluation_stamp(self) -> Stamp:
        """The stamp of tables made across firms: of all that is in the lake at the time."""
        return Stamp(code=version("cbmt-pipeline"), config="", inputs=self.intake.version, seed=SEED)

    def missing_forecasts(self) -> dict[Unit, list[str]]:
        """The benchmarks to run for each unit with tables: all when its data or the code changed since."""
        missing = {}
        for unit in self.lake.units("firm_week"):
            run: set[str] = set()
            if self.lake.stamp("model_fit", unit, BENCHMARKS) == self.forecast_stamp(unit, SEED):
                path = self.lake.path("model_fit", unit, BENCHMARKS)
                run = set(pq.read_table(path, columns=["model"])["model"].to_pylist())
            if models := [name for name in benchmarks() if name not in run]:
                missing[unit] = models
        return missing

    def stale_units(self) -> list[Unit]:
        """Units whose tables are missing or were made from other inputs, settings or code."""
        design = self.design()
        return [
            unit
            for unit, inputs in self.intake.units().items()
            if self.lake.stamp("firm_week", unit) != self.stamp(inputs, design)
        ]
