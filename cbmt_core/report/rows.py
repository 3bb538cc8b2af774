"""Rows of the published tables, and of the tables on the pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pandas as pd

from cbmt_core.report.numbers import value
from cbmt_core.report.story import label

__all__ = ["query", "records", "table_rows"]


def query(con: duckdb.DuckDBPyConnection, sql: str, *values: object) -> pd.DataFrame:
    return con.execute(sql, list(values)).df()


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as dictionaries, with None for what is missing."""
    rows = frame.to_dict("records")
    return [
        {str(k): None if v is None or v != v or v is pd.NaT else v for k, v in row.items()} for row in rows
    ]


def table_rows(
    frame: pd.DataFrame, columns: Sequence[str], digits: int, chosen: str | None
) -> list[dict[str, Any]]:
    """Rows for a page from a frame with a row a model: cells with whether they are the smallest of their column."""
    best = frame[list(columns)].min()
    return [
        {
            "model": label(row["model"]),
            "chosen": row["model"] == chosen,
            "cells": [(value(row[name], digits), row[name] == best[name]) for name in columns],
        }
        for row in records(frame.rename_axis("model").reset_index())
    ]
