"""How fresh the pages are: when they were published, and which firms are not up to date."""

from __future__ import annotations

from typing import Any

import duckdb

from cbmt_core.report.numbers import count
from cbmt_core.report.rows import query, records

__all__ = ["firm_note", "freshness"]

MOST = 200
"""Firms listed on the page; the table `firm_state` has them all."""


def freshness(con: duckdb.DuckDBPyConnection) -> dict[str, Any] | None:
    """When and from what the panel's page was made; None if the file does not state it."""
    made = records(query(con, "SELECT * FROM snapshot"))
    if not made:
        return None
    row = made[0]
    others = query(
        con,
        "SELECT firm, state, reason, delivered_to, forecast_origin FROM firm_state WHERE state <> 'current' "
        f"ORDER BY CASE state WHEN 'untrusted' THEN 0 WHEN 'late' THEN 1 ELSE 2 END, firm LIMIT {MOST}",
    )
    text = (
        f"Published on {row['published_at']:%Y-%m-%d %H:%M} UTC by version {row['version']} from "
        f"{count(row['files'])} source files with {count(row['rows'])} rows (data version {row['data_version']}). "
        f"{count(row['firms_current'])} of {count(row['firms'])} firms are current."
    )
    if row["study_published_at"] is not None and row["study_published_at"] < row["published_at"]:
        text += f" The study is the one published on {row['study_published_at']:%Y-%m-%d}: it is to be made again."
    lacking = int(row["firms"] - row["firms_current"])
    return {
        "text": text,
        "rows": [
            [
                one["firm"],
                one["state"],
                one["reason"],
                _day(one["delivered_to"]),
                _day(one["forecast_origin"]),
            ]
            for one in records(others)
        ],
        "more": max(0, lacking - MOST),
    }


def firm_note(con: duckdb.DuckDBPyConnection, firm: str) -> str:
    """Why a firm's page is not up to date; empty where it is."""
    rows = con.execute(
        "SELECT state, reason FROM firm_state WHERE firm = ? AND state <> 'current'", [firm]
    ).fetchall()
    return f"This firm is {rows[0][0]}: {rows[0][1]}." if rows else ""


def _day(value: Any) -> str:
    return "–" if value is None else f"{value:%Y-%m-%d}"
