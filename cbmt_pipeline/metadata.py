"""Metadata of a materialised table for the UI: rows, columns, and a picture."""

from __future__ import annotations

import base64
import re
from typing import Any

import dagster as dg

from cbmt_core.schema import Table

__all__ = ["as_text", "column_schema", "picture", "rows_metadata"]


def column_schema(table: Table) -> dg.TableSchema:
    return dg.TableSchema(
        columns=[
            dg.TableColumn(
                column.name,
                column.type,
                column.meaning,
                constraints=dg.TableColumnConstraints(nullable=column.nullable),
            )
            for column in table.columns
        ]
    )


def as_text(text: str) -> str:
    """Markdown that shows `text` as it is, on one line: a firm's name cannot be a link, a picture or HTML."""
    escaped = re.sub(r"([\\`*_\[\]<>|~&#])", r"\\\1", " ".join(text.split()))
    return escaped.replace("://", r":\//")


def picture(png: bytes, alt: str) -> dg.MarkdownMetadataValue:
    return dg.MetadataValue.md(f"![{as_text(alt)}](data:image/png;base64,{base64.b64encode(png).decode()})")


def rows_metadata(rows: dict[str, int]) -> dict[str, Any]:
    """Tables and how many rows each has, for assets that write several."""
    records = [dg.TableRecord({"table": name, "rows": count}) for name, count in rows.items()]
    return {"tables": dg.MetadataValue.table(records=records), "rows": sum(rows.values())}
