"""A project of simulated firms whose assets are materialised in this process on an instance of its own."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import duckdb

from cbmt_core.names import Unit
from cbmt_core.simulate import Economy, write_economy
from cbmt_pipeline.assets.firm_data import firm_data
from cbmt_pipeline.assets.intake import intake
from cbmt_pipeline.assets.warehouse import warehouse
from cbmt_pipeline.project import Project
from cbmt_pipeline.resources import ProjectResource
from cbmt_pipeline.sources import add_source

COLUMNS = ("firm", "customer", "order_time", "amount", "order_id", "industry")


class Materialised:
    """The project, its instance, and its firms with their data tables made."""

    def __init__(self, root: Path, economy: Economy) -> None:
        write_economy(economy, root / "raw")
        source = {"name": "economy", "path": "raw/orders", "currency": "USD", "timezone": "UTC"}
        add_source(root, source, {name: name for name in COLUMNS})
        self.instance = dg.DagsterInstance.ephemeral()
        self.project = Project(root)
        self.refresh()

    def refresh(self) -> None:
        """Read the sources and make every firm's data tables."""
        self.make([intake])
        self.units: list[Unit] = list(self.project.intake.units())
        for unit in self.units:
            self.make([firm_data], unit)

    def make(
        self, assets: list[dg.AssetsDefinition], unit: Unit | None = None, **config: dict[str, object]
    ) -> dg.ExecuteInProcessResult:
        """Materialise `assets`; `config` are their settings by name."""
        return dg.materialize(
            assets,
            instance=self.instance,
            partition_key=unit.slug if unit else None,
            resources={"project": ProjectResource(root=str(self.project.root))},
            run_config={"ops": {name: {"config": values} for name, values in config.items()}},
        )

    def metadata(self, asset: str, unit: Unit) -> dict[str, dg.MetadataValue]:
        """What the UI shows of the newest materialisation."""
        events = self.instance.fetch_materializations(
            dg.AssetRecordsFilter(dg.AssetKey(asset), asset_partitions=[unit.slug]), limit=1
        )
        found = events.records[0].asset_materialization
        assert found is not None
        return dict(found.metadata)

    def query(self, sql: str) -> list[tuple[object, ...]]:
        """Rows of the published file."""
        self.make([warehouse])
        with duckdb.connect(str(self.project.warehouse), read_only=True) as con:
            return con.execute(sql).fetchall()
