"""The classes Table, Column and View, and columns that many tables share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = [
    "COHORT",
    "FIRM",
    "HORIZON",
    "INTERVAL",
    "MODEL",
    "MONEY",
    "ORIGIN",
    "OUTCOME",
    "PURPOSE",
    "REFERENCE",
    "SCHEMAS",
    "SOURCES",
    "WEEK",
    "Column",
    "Table",
    "View",
]

MONEY = "DECIMAL(18,4)"
SCHEMAS = ("diagnostic", "exhibit")
"""Schemas of the published file besides `main`, which holds the tables for analysts: `diagnostic` (what models
learned, how they compare) and `exhibit` (the paper's tables)."""


@dataclass(frozen=True)
class Column:
    name: str
    type: str
    meaning: str
    nullable: bool = False


@dataclass(frozen=True)
class Table:
    name: str
    meaning: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]
    native: bool = True
    """False for the largest tables: the published file holds a view of the lake instead of their rows."""
    partitioned: bool = True
    """False for tables made across firms: the lake holds one file of each."""
    schema: str = "main"
    """Its schema in the published file: main, diagnostic or exhibit."""
    short: str = ""
    """Its name within that schema, where it is not `name`."""
    incidental: tuple[str, ...] = ()
    """Columns that differ from run to run, such as seconds, and are left out of content digests."""

    @property
    def relation(self) -> str:
        """Its name in the published file: `firm_week`, `exhibit.horizon`, `diagnostic.routing_choice`."""
        short = self.short or self.name
        return short if self.schema == "main" else f"{self.schema}.{short}"

    @property
    def column_names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def meanings(self) -> dict[str, str]:
        return {column.name: column.meaning for column in self.columns}

    def empty(self) -> str:
        """The SQL relation with these columns and no rows."""
        columns = ", ".join(f'CAST(NULL AS {c.type}) AS "{c.name}"' for c in self.columns)
        return f"(SELECT {columns} WHERE false)"

    def select(self) -> str:
        """SQL select list that puts the columns in order and in their declared types."""
        return ", ".join(f'CAST("{c.name}" AS {c.type}) AS "{c.name}"' for c in self.columns)


@dataclass(frozen=True)
class View:
    name: str
    meaning: str
    sql: str
    columns: Mapping[str, str]
    """What each column means."""


FIRM = Column("firm", "VARCHAR", "firm, or firm~segment for a segment of it")
WEEK = Column("week", "DATE", "Sunday that starts the week")
COHORT = Column(
    "cohort",
    "DATE",
    "Sunday of the week of the first order; the last washout week for the left-censored cohort",
)
MODEL = Column("model", "VARCHAR", "name of the model, as in the registry")
ORIGIN = Column("origin", "DATE", "last week the model has seen")
PURPOSE = Column(
    "purpose",
    "VARCHAR",
    "live: the year ahead; backtest: the same from an earlier week; study: the holdout of the study",
)
OUTCOME = Column("outcome", "VARCHAR", "acquisition, ropc, aov, cohort_sales or total_sales")
HORIZON = Column("horizon", "VARCHAR", "1q, 2q, 3q (13, 26, 39 weeks after the origin) or full")
REFERENCE = Column("reference", "VARCHAR", "model the others are compared with")
INTERVAL = "{} end of its 95 % interval over resampled firms; NULL below 10 firms"
SOURCES = {
    "sales_change": "target sales minus baseline sales, the sum of the next three",
    "order_volume": "existing base: from more or fewer repeat orders",
    "spend_per_order": "existing base: from more or less spent on each",
    "net_replenishment": "sales to later cohorts minus first orders of the baseline",
}
