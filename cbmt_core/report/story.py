"""The forecast that a firm's page shows, with its bridges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import duckdb
import pandas as pd

from cbmt_core.bridge import REALISED
from cbmt_core.exhibits import LABELS
from cbmt_core.models import MODELS
from cbmt_core.report.words import Bridge
from cbmt_core.timeline import SEASON, Purpose

__all__ = ["Stories", "Story", "first_registered", "label", "read_stories", "stories"]

FIGURES = ("baseline_sales", "target_sales", "order_volume", "spend_per_order", "net_replenishment")


@dataclass(frozen=True)
class Story:
    """One firm's forecast by the model to plan with."""

    firm: str
    model: str
    origin: date
    purpose: Purpose
    weeks: int
    """Weeks that are forecast."""
    sales: float
    """Their sum."""
    last_sales: float | None
    """Sales of the 52 weeks up to the origin; None where fewer are observed."""
    forecast: Bridge | None
    """None where the forecast has no bridge; `reason` says why."""
    realised: Bridge | None
    """A live forecast's: what happened in the year before. A study's: what happened in the weeks it forecasts."""
    reason: str
    why: str
    """Why this model, as `forecast_choice` has it; empty where it names none."""
    note: str
    """Problems of the fit; empty without any."""

    @property
    def label(self) -> str:
        return label(self.model)

    @property
    def reason_chosen(self) -> str:
        """`why`, as the pages write it: with the names of models for readers."""
        names = "|".join(sorted(map(re.escape, LABELS), key=len, reverse=True))
        named = re.sub(rf"\b(?:{names})\b", lambda found: label(found[0]), self.why)
        return re.sub(r"(\d) %", r"\1%", named)

    @property
    def change(self) -> float | None:
        """Percent change of sales against the 52 weeks before; None where these are not known."""
        if self.purpose != "live" or self.last_sales is None or not self.last_sales > 0:
            return None
        return 100 * (self.sales / self.last_sales - 1)


@dataclass(frozen=True)
class Stories:
    """The forecasts that pages show."""

    live: Mapping[str, Story]
    """By firm: the year ahead."""
    study: Mapping[str, Story]
    """By firm: the study's holdout, weeks that have passed."""
    weeks: int
    """Whole weeks after the washout that the data hold."""

    @property
    def newest(self) -> date | None:
        """The newest origin of live forecasts."""
        return max((story.origin for story in self.live.values()), default=None)

    def outdated(self, story: Story) -> bool:
        """Whether another firm's live forecast has seen later weeks."""
        return self.newest is not None and story.origin < self.newest


def label(model: str) -> str:
    """Name of a model for readers."""
    return LABELS.get(model, model)


def first_registered(models: Iterable[str]) -> str:
    """The first of `models` in the order of the registry; those it does not know come last."""
    order = {name: k for k, name in enumerate(MODELS)}
    return min(models, key=lambda name: (order.get(name, len(order)), name))


def read_stories(con: duckdb.DuckDBPyConnection) -> Stories:
    [(weeks,)] = con.execute("SELECT count(DISTINCT week) FROM firm_week").fetchall()
    return Stories(stories(con, "live"), stories(con, "study"), int(weeks))


def stories(con: duckdb.DuckDBPyConnection, purpose: Purpose) -> dict[str, Story]:
    """The newest forecast with this purpose of every firm that has one, by the model that `forecast_choice` names.

    Where it names none, or one without a forecast, the first model of the registry that has one is taken.
    """
    made = con.execute(
        """
        WITH made AS (
            SELECT firm, model, origin, count(*) AS weeks, sum(sales ORDER BY week) AS sales FROM forecast_week
            WHERE purpose = $purpose GROUP BY firm, model, origin QUALIFY origin = max(origin) OVER (PARTITION BY firm)
        ), past AS (
            SELECT o.firm, CAST(sum(w.sales) AS DOUBLE) AS last_sales, count(*) AS last_weeks
            FROM (SELECT DISTINCT firm, origin FROM made) AS o JOIN firm_week AS w ON w.firm = o.firm
                AND w.week <= o.origin AND w.week > o.origin - 7 * $season
            GROUP BY ALL
        )
        SELECT made.*, CASE WHEN last_weeks = $season THEN last_sales END AS last_sales, c.model AS chosen, c.why,
            m.diagnosis
        FROM made LEFT JOIN past USING (firm)
        LEFT JOIN forecast_choice AS c ON c.firm = made.firm AND c.origin = made.origin AND c.purpose = $purpose
        LEFT JOIN model_fit AS m
            ON m.firm = made.firm AND m.model = made.model AND m.origin = made.origin AND m.purpose = $purpose
        ORDER BY ALL""",
        {"purpose": purpose, "season": SEASON},
    ).df()
    bridges = con.execute(
        "SELECT * FROM bridge WHERE purpose = ? ORDER BY target_first, baseline_first", [purpose]
    ).df()
    by_firm = {str(firm): rows for firm, rows in bridges.groupby("firm")}
    none = bridges.iloc[:0]
    return {
        str(firm): _story(str(firm), purpose, rows, by_firm.get(str(firm), none))
        for firm, rows in made.groupby("firm", sort=True)
    }


def _story(firm: str, purpose: Purpose, made: pd.DataFrame, bridges: pd.DataFrame) -> Story:
    chosen = made["chosen"].iloc[0]
    named = chosen in set(made["model"])
    model = str(chosen) if named else first_registered(made["model"])
    own = made[made["model"] == model].iloc[0]
    forecast, realised, reason = _bridges(bridges, model, own["origin"], purpose)
    return Story(
        firm=firm,
        model=model,
        origin=pd.Timestamp(own["origin"]).date(),
        purpose=purpose,
        weeks=int(own["weeks"]),
        sales=float(own["sales"]),
        last_sales=None if pd.isna(own["last_sales"]) else float(own["last_sales"]),
        forecast=forecast,
        realised=realised,
        reason=reason,
        why=str(own["why"] or "") if named else "",
        note="" if pd.isna(own["diagnosis"]) else str(own["diagnosis"]),
    )


def _bridges(
    bridges: pd.DataFrame, model: str, origin: pd.Timestamp, purpose: Purpose
) -> tuple[Bridge | None, Bridge | None, str]:
    """The model's bridge, the realised one beside it, and why there is none of the model."""
    past = bridges[bridges["model"] == REALISED]
    rows = bridges[(bridges["origin"] == origin) & (bridges["model"] == model)]
    if purpose == "live":
        past = past[past["target_last"] == origin]
    elif len(rows):
        windows = ["baseline_first", "target_first", "target_last"]
        past = past[(past[windows] == rows.iloc[-1][windows]).all(axis=1)]
    realised = None if past.empty else _bridge(past.iloc[-1])
    if rows.empty:
        return None, realised, f"{label(model)} gives no sources of the change"
    forecast = _bridge(rows.iloc[-1])
    reason = "" if forecast else str(rows.iloc[-1]["reason"] or "it has no baseline to start from")
    return forecast, realised, reason


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
