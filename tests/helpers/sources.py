"""Source files written on the spot, and what became of their rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from cbmt_core.config import ProjectConfig
from cbmt_core.design import StudyDesign
from cbmt_core.names import Unit
from cbmt_core.transactions import Intake
from cbmt_core.transactions.orders import OrderCounts, make_orders

SOURCE = {"name": "shop", "path": "orders", "currency": "GBP", "timezone": "Europe/London"}
HEAD = "firm,customer,order_time,amount\n"


class Shop:
    """A project folder with its intake."""

    def __init__(self, root: Path, *sources: dict[str, Any]) -> None:
        self.root = root
        self.orders = root / "orders"
        self.orders.mkdir(exist_ok=True)
        self.config(*(sources or [{}]))
        self.intake = Intake(root / "lake" / "intake")

    def config(self, *sources: dict[str, Any], max_unusable_share: float = 1) -> None:
        """Sources of the project. Files are not refused for bad rows unless asked for: tests look at the rows."""
        self.project = ProjectConfig.from_mapping(
            {
                "sources": [{**SOURCE, **s} for s in sources],
                "quality": {"max_unusable_share": max_unusable_share},
            },
            "test",
        )

    def put(self, name: str, text: str | bytes) -> Path:
        file = self.orders / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def update(self):
        return self.intake.update(self.project, self.root)

    def rows(self, columns: str = "row, firm, customer, ordered_at, amount, reason") -> list[tuple]:
        """Every judged row in the order of file and row."""
        found: list[tuple] = []
        for entry in self.intake.ledger():
            found += duckdb.sql(
                f"SELECT {columns} FROM read_parquet('{self.intake.path(entry)}') ORDER BY row"
            ).fetchall()
        return found

    def reasons(self) -> list[str | None]:
        return [row[0] for row in self.rows("reason")]

    def make(
        self, con: duckdb.DuckDBPyConnection, firm: str = "F", segment: str | None = None, design=None
    ) -> OrderCounts:
        sources = {source.name: source for source in self.project.sources}
        return make_orders(con, Unit(firm, segment), self.intake, sources, design or StudyDesign())
