"""A project of simulated firms whose assets are materialised in this process on an instance of its own."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import duckdb

from cbmt_core.names import Unit
from cbmt_core.simulate import Economy, write_economy
from cbmt_pipeline.assets import assets_of
from cbmt_pipeline.plan import State, the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.resources import ProjectResource
from cbmt_pipeline.sources import add_source

COLUMNS = ("firm", "customer", "order_time", "amount", "order_id", "industry")
ASSETS = dict(zip((step.name for step in the_plan()), assets_of(the_plan()), strict=True))


class Materialised:
    """The project, its instance, and its firms with their data tables made."""

    def __init__(self, root: Path, economy: Economy) -> None:
        write_economy(economy, root / "raw")
        source = {"name": "economy", "path": "raw/orders", "currency": "USD", "timezone": "UTC"}
        add_source(root, source, {name: name for name in COLUMNS})
        self.instance = dg.DagsterInstance.ephemeral()
        self.root = root
        self.refresh()

    @property
    def project(self) -> Project:
        """As a new process finds it: runs may have pinned dates in its file."""
        return Project(self.root)

    def refresh(self) -> None:
        """Read the sources and make every firm's data tables."""
        self.make(["intake"])
        self.units: list[Unit] = list(self.project.intake.units())
        for unit in self.units:
            self.make(["firm_data"], unit)

    def make(
        self, steps: list[str], unit: Unit | None = None, **config: dict[str, object]
    ) -> dg.ExecuteInProcessResult:
        """Materialise the assets of `steps`; `config` are their settings by name."""
        return dg.materialize(
            [ASSETS[step] for step in steps],
            instance=self.instance,
            partition_key=unit.key if unit else None,
            resources={"project": ProjectResource(root=str(self.root))},
            run_config={"ops": {name: {"config": values} for name, values in config.items()}},
        )

    def missing(self, step: str, profile: str | None = None) -> dict[Unit, list[str]]:
        """What of a firm step must be made, by firm: its models, or nothing where it makes one thing."""
        project = self.project.with_profile(profile) if profile else self.project
        tasks = State(project, the_plan()).todo(the_plan()[step])
        return {task.unit: list(task.items) for task in tasks if task.unit}

    def metadata(self, asset: str, unit: Unit | None = None) -> dict[str, dg.MetadataValue]:
        """What the UI shows of the newest materialisation."""
        partitions = [unit.key] if unit else None
        events = self.instance.fetch_materializations(
            dg.AssetRecordsFilter(dg.AssetKey(asset), asset_partitions=partitions), limit=1
        )
        found = events.records[0].asset_materialization
        assert found is not None
        return dict(found.metadata)

    def query(self, sql: str) -> list[tuple[object, ...]]:
        """Rows of the published file."""
        self.make(["warehouse"])
        with duckdb.connect(str(self.project.warehouse), read_only=True) as con:
            return con.execute(sql).fetchall()
