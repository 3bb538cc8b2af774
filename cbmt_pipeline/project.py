"""A project on disk: its configuration, its folders, and what its tables are made from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from cbmt_core.config import PROFILE_NAMES, ProjectConfig
from cbmt_core.design import StudyDesign
from cbmt_core.errors import ConfigError
from cbmt_core.fits import UNEXPECTED, made_from
from cbmt_core.models import benchmarks, networks
from cbmt_core.names import Unit
from cbmt_core.transactions import Intake
from cbmt_pipeline.lake import Lake, Stamp

__all__ = ["BENCHMARKS", "CONFIG_FILE", "NETWORKS", "PLUS", "SEED", "Project"]

CONFIG_FILE = "cbmt.toml"
SEED = 20260626
"""Seed of every fit unless a run says otherwise."""
BENCHMARKS = "benchmarks"
"""The lake part that the benchmarks write; other assets write other parts of the forecast tables."""
NETWORKS = "networks"
"""The lake part that the networks write."""
PLUS = "plus"
"""The lake part that cbmt_plus writes, which needs a network and priors learned across firms."""
PLUS_MODEL = "cbmt_plus"


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

    def model_folder(self, unit: Unit, model: str) -> Path:
        """Where a firm's fitted network is kept."""
        return self._networks(unit) / model

    def searching(self, unit: Unit) -> Path:
        """The file that is locked while a firm's networks are tuned."""
        return self._networks(unit) / ".lock"

    def search_storage(self, unit: Unit) -> str | Path:
        """Where a firm's searches are kept: a database for all, or a journal file of its own."""
        return self.config.networks.storage or self._networks(unit) / "search.journal"

    def _networks(self, unit: Unit) -> Path:
        return self.data / "models" / f"firm={unit.slug}"

    def networks(self, named: Sequence[str] | None = None) -> list[str]:
        """The networks to train: those named, or the project's, or all."""
        models = self.config.networks.models if named is None else named
        models = networks() if models is None else list(models)
        if unknown := [name for name in models if name not in networks()]:
            raise ConfigError(f"not networks: {', '.join(unknown)}; there are {', '.join(networks())}")
        return models

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

    def network_stamp(self, unit: Unit, seed: int, profile: str) -> Stamp:
        """The stamp of networks trained within a profile on the unit's present tables."""
        from cbmt_core.models.neural.profiles import profile_of

        return replace(self.forecast_stamp(unit, seed), config=f"{profile}: {profile_of(profile)}")

    def evaluation_stamp(self) -> Stamp:
        """The stamp of tables made across firms: of all that is in the lake at the time."""
        return Stamp(code=version("cbmt-pipeline"), config="", inputs=self.intake.version, seed=SEED)

    def missing_forecasts(self) -> dict[Unit, list[str]]:
        """The benchmarks to run for each unit with tables: all when its data or the code changed since."""
        missing = {}
        for unit in self.lake.units("firm_week"):
            run: set[str] = set()
            if self.lake.stamp("model_fit", unit, BENCHMARKS) == self.forecast_stamp(unit, SEED):
                run = {row["model"] for row in self._fits(unit, BENCHMARKS)}
            if models := [name for name in benchmarks() if name not in run]:
                missing[unit] = models
        return missing

    def missing_networks(self, models: Sequence[str], profile: str) -> dict[Unit, list[str]]:
        """The networks among `models` without a forecast from present data and seed, by unit. A forecast made
        within a larger profile than `profile` is as good."""
        enough = PROFILE_NAMES[PROFILE_NAMES.index(profile) :]
        missing = {}
        for unit in self.lake.units("firm_week"):
            done = self.network_forecasts(unit)
            if absent := [name for name in models if done.get(name) not in enough]:
                missing[unit] = absent
        return missing

    def network_forecasts(self, unit: Unit) -> dict[str, str]:
        """The networks with a forecast from present data and seed, each with its profile."""
        if self.lake.stamp("model_fit", unit, NETWORKS) != self.forecast_stamp(unit, SEED):
            return {}
        return {row["model"]: json.loads(row["parameters"])["profile"] for row in self._fits(unit, NETWORKS)}

    def _fits(self, unit: Unit, asset: str) -> list[dict[str, Any]]:
        """Rows of `model_fit`, without those of models that broke: these are tried again, for it may have passed
        or been mended."""
        path = self.lake.path("model_fit", unit, asset)
        rows = pq.read_table(path, columns=["model", "parameters", "reason"]).to_pylist()
        return [row for row in rows if not (row["reason"] or "").startswith(UNEXPECTED)]

    def plus_stamp(self, unit: Unit) -> Stamp:
        """The stamp of cbmt_plus: of the unit's tables, its cbmt network and the priors learned across firms."""
        priors = self.lake.whole_path("path_prior")
        made = hashlib.sha256(priors.read_bytes() if priors.exists() else b"")
        made.update(repr(made_from(self.model_folder(unit, "cbmt"))).encode())
        return replace(self.forecast_stamp(unit, SEED), config=made.hexdigest()[:16])

    def without_weekly_series(self) -> list[Unit]:
        """Units with tables whose weekly series are missing or of other tables or code."""
        return [
            unit
            for unit in self.lake.units("firm_week")
            if self.lake.stamp("weekly_series", unit) != self.forecast_stamp(unit, SEED)
        ]

    def without_plus(self) -> list[Unit]:
        """Units with a cbmt network whose cbmt_plus is missing, or was made from other priors or another network."""
        return [
            unit
            for unit in self.lake.units("firm_week")
            if "cbmt" in self.network_forecasts(unit)
            and self.lake.stamp("model_fit", unit, PLUS) != self.plus_stamp(unit)
        ]

    def unmeasured_units(self) -> list[Unit]:
        """Units with tables whose measures are missing or were made from other tables or code."""
        return [
            unit
            for unit in self.lake.units("firm_week")
            if self.lake.stamp("comovement_measure", unit) != self.forecast_stamp(unit, 0)
        ]

    def stale_units(self) -> list[Unit]:
        """Units whose tables are missing or were made from other inputs, settings or code."""
        design = self.design()
        return [
            unit
            for unit, inputs in self.intake.units().items()
            if self.lake.stamp("firm_week", unit) != self.stamp(inputs, design)
        ]
