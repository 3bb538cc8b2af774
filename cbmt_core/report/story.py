"""Which forecast a firm's page tells about, and the bridges that go with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import duckdb
import pandas as pd

from cbmt_core.bridge import REALISED
from cbmt_core.exhibits import LABELS
from cbmt_core.report.words import Bridge

__all__ = ["PREFERRED", "Story", "label", "stories"]

PREFERRED = ("cbmt_plus", "cbmt", "cohort_glm")
"""Models a page tells about, the first that has a forecast; by validation error where they have one."""

FIGURES = ("baseline_sales", "target_sales", "order_volume", "spend_per_order", "net_replenishment")


@dataclass(frozen=True)
class Story:
    """One firm's forecast, and what became of it where that is known."""

    firm: str
    model: str
    origin: date
    forecast: Bridge | None
    """None where the forecast has no bridge; `reason` says why."""
    realised: Bridge | None
    reason: str

    @property
    def label(self) -> str:
        return label(self.model)


def label(model: str) -> str:
    """Name of a model for readers."""
    return LABELS.get(model, model)


def stories(con: duckdb.DuckDBPyConnection) -> dict[str, Story]:
    """The story of every firm that has a forecast: by the latest origin, from the preferred model."""
    made = con.execute(
        "SELECT f.firm, f.model, f.origin, any_value(m.validation_error) AS error FROM "
        "(SELECT DISTINCT firm, model, origin FROM forecast_week "
        " QUALIFY origin = max(origin) OVER (PARTITION BY firm)) AS f "
        "LEFT JOIN model_fit AS m USING (firm, model, origin) GROUP BY ALL ORDER BY ALL"
    ).df()
    bridges = con.execute("SELECT * FROM bridge ORDER BY target_first, baseline_first").df()
    by_firm = {str(firm): rows for firm, rows in bridges.groupby("firm")}
    none = bridges.iloc[:0]
    return {
        str(firm): _story(str(firm), rows, by_firm.get(str(firm), none))
        for firm, rows in made.groupby("firm", sort=True)
    }


def _story(firm: str, made: pd.DataFrame, bridges: pd.DataFrame) -> Story:
    origin = made["origin"].iloc[0]
    own = bridges[(bridges["origin"] == origin) & (bridges["model"] != REALISED)]
    bridged = set(own.loc[own["eligible"], "model"])
    model = choose({m: e for m, e in zip(made["model"], made["error"], strict=True) if m in bridged} or dict(
        zip(made["model"], made["error"], strict=True)))  # fmt: skip
    rows = own[own["model"] == model]
    day = pd.Timestamp(origin).date()
    if rows.empty:
        return Story(firm, model, day, None, None, f"{label(model)} gives no sources of the change")
    row = rows.iloc[-1]
    forecast = _bridge(row)
    if forecast is None:
        return Story(firm, model, day, None, None, str(row["reason"] or "it has no baseline to start from"))
    same = bridges[
        (bridges["model"] == REALISED)
        & (bridges["baseline_first"] == row["baseline_first"])
        & (bridges["target_first"] == row["target_first"])
        & (bridges["target_last"] == row["target_last"])
    ]
    return Story(firm, model, day, forecast, None if same.empty else _bridge(same.iloc[-1]), "")


def choose(errors: Mapping[str, float | None]) -> str:
    """The model to tell about, given each one's validation error where it has one."""
    order = [name for name in (*PREFERRED, *LABELS) if name in errors] or sorted(errors)
    best = [name for name in order if name in PREFERRED] or order
    known = {name: error for name in best if (error := errors[name]) is not None and error == error}
    return min(known, key=lambda name: known[name]) if best[0] in known else best[0]


def _bridge(row: Mapping[str, Any] | pd.Series[Any]) -> Bridge | None:
    if not row["eligible"] or not row["baseline_sales"] > 0 or any(pd.isna(row[name]) for name in FIGURES):
        return None
    first, last = (pd.Timestamp(row[name]).date() for name in ("target_first", "target_last"))
    return Bridge(
        **{name: float(row[name]) for name in FIGURES},
        orders=(float(row["repeat_orders_0"]), float(row["repeat_orders_1"])),
        spend=(float(row["repeat_spend_0"]), float(row["repeat_spend_1"])),
        target_first=first,
        target_last=last,
        weeks=(last - first).days // 7 + 1,
    )
