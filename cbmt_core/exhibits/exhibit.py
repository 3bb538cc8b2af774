"""Exhibit: a table, its place in the paper, and the function that makes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from cbmt_core.exhibits.evidence import Evidence
from cbmt_core.schema import Column, Table

__all__ = ["FIRMS", "LABEL", "MODEL", "OUTCOME", "ROW", "Exhibit", "number", "table"]

ROW = Column("row", "INTEGER", "place of the row in the table, from 1")
MODEL = Column("model", "VARCHAR", "name of the model, as in the registry")
LABEL = Column("label", "VARCHAR", "name of the model for readers")
FIRMS = Column("firms", "INTEGER", "firms compared, the same for every model")
OUTCOME = Column("outcome", "VARCHAR", "acquisition, ropc, aov, cohort_sales or total_sales")


@dataclass(frozen=True)
class Exhibit:
    """`make` returns the rows in order, without the column `row`; none if models that it needs are missing."""

    table: Table
    paper: str
    """Title and label of the paper's table or figure."""
    note: str
    """What a reader must know to read the numbers."""
    make: Callable[[Evidence], pd.DataFrame]

    def rows(self, evidence: Evidence) -> pd.DataFrame:
        frame = self.make(evidence).reset_index(drop=True)
        frame.insert(0, "row", range(1, len(frame) + 1))
        return frame.reindex(columns=self.table.column_names)


def table(name: str, meaning: str, *columns: Column) -> Table:
    return Table(
        f"exhibit_{name}",
        meaning,
        ("row",),
        (ROW, *columns),
        partitioned=False,
        schema="exhibit",
        short=name,
    )


def number(name: str, meaning: str) -> Column:
    return Column(name, "DOUBLE", meaning, nullable=True)
