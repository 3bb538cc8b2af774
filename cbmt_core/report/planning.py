"""Planning: ranges, plan, scenarios and customer value of a firm, read from the published file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import duckdb
import pandas as pd

from cbmt_core.report.rows import query
from cbmt_core.report.story import Story

__all__ = ["LEVEL", "Bands", "Planning", "held_weeks", "read_bands", "read_planning"]


LEVEL = 80
"""Level of the ranges in sentences and tables, in percent."""


@dataclass(frozen=True, eq=False)
class Bands:
    """Ranges of one live forecast."""

    held: dict[tuple[str, str, int], pd.DataFrame]
    """Outcome, period and level -> low and high by first week of the period."""
    borrowed: bool = False
    """Whether the ranges were not calibrated on these data."""

    def of(self, outcome: str, period: str, level: int = LEVEL) -> pd.DataFrame:
        """low and high by first week of the period; empty where there are none."""
        none = pd.DataFrame({"low": [], "high": []}, index=pd.DatetimeIndex([]), dtype=float)
        return self.held.get((outcome, period, level), none)

    def year(self, outcome: str = "sales", level: int = LEVEL) -> tuple[float, float] | None:
        """Low and high of the whole forecast, or None."""
        rows = self.of(outcome, "year", level)
        return None if rows.empty else (float(rows["low"].iloc[0]), float(rows["high"].iloc[0]))


@dataclass(frozen=True, eq=False)
class Planning:
    """Tables for planners of one firm's live forecast; each may be empty."""

    bands: Bands
    scenarios: pd.DataFrame
    bridge: pd.DataFrame
    weeks: pd.DataFrame
    """Of the baseline and the named scenarios."""
    plan: pd.DataFrame
    targets: pd.DataFrame
    base: pd.DataFrame
    ages: pd.DataFrame
    cohorts: pd.DataFrame
    cost: pd.DataFrame
    retention: pd.DataFrame

    def scenario(self, kind: str) -> pd.DataFrame:
        return self.scenarios[self.scenarios["kind"] == kind]

    @property
    def plan_row(self) -> dict[str, Any] | None:
        """The plan's total, the forecast of the same weeks, and the probability, where there is a plan."""
        if self.targets.empty:
            return None
        row = self.targets.iloc[0]
        names = ("weeks", "sales", "forecast", "probability", "wanted")
        return {name: float(row[name]) for name in names}

    @cached_property
    def whiskers(self) -> dict[str, tuple[float, float]]:
        """Range of the change and of each source, as the bridge's bars show it."""
        found = {}
        for name in ("sales_change", "order_volume", "spend_per_order", "net_replenishment"):
            ends = self.bands.year(name)
            if ends is not None:
                found[name] = ends
        return found


def read_bands(con: duckdb.DuckDBPyConnection, story: Story | None) -> Bands:
    """The ranges of a live forecast that a page shows; none where it has none."""
    periods = "period IN ('month', 'quarter', 'year') OR (period = 'week' AND outcome = 'sales')"
    shown = f"AND purpose = 'live' AND ({periods})"
    frame = _rows(con, "forecast_band", story, shown)
    if frame.empty:
        return Bands({})
    groups = frame.sort_values("week").groupby(["outcome", "period", "level"])
    return Bands(
        {
            (str(outcome), str(period), int(str(level))): rows.set_index("week")[["low", "high"]]
            for (outcome, period, level), rows in groups
        },
        borrowed=bool((frame["source"] == "borrowed").any()),
    )


def held_weeks(con: duckdb.DuckDBPyConnection, firm: str, model: str | None) -> tuple[int, int]:
    """Weeks of a model's earlier forecasts and backtests: how many lay within their range, and how many there
    were."""
    ((inside, seen),) = con.execute(
        "SELECT count(*) FILTER (CAST(w.sales AS DOUBLE) BETWEEN b.low AND b.high), count(*) FROM forecast_band AS b "
        "JOIN firm_week AS w USING (firm, week) WHERE firm = ? AND b.model = ? AND b.purpose <> 'study' "
        "AND b.outcome = 'sales' AND b.period = 'week' AND b.level = ?",
        [firm, model, LEVEL],
    ).fetchall()
    return int(inside), int(seen)


def read_planning(con: duckdb.DuckDBPyConnection, story: Story | None) -> Planning:
    """The planners' tables of a firm's live forecast."""
    return Planning(
        bands=read_bands(con, story),
        scenarios=_rows(con, "scenario", story),
        bridge=_rows(con, "scenario_bridge", story),
        weeks=_rows(con, "scenario_week", story),
        plan=_rows(con, "plan_week", story),
        targets=_rows(con, "target", story),
        base=_rows(con, "customer_base_value", story),
        ages=_rows(con, "customer_value", story),
        cohorts=_rows(con, "cohort_value", story),
        cost=_rows(con, "acquisition_return", story),
        retention=_rows(con, "customer_retention", story),
    )


def _rows(con: duckdb.DuckDBPyConnection, table: str, story: Story | None, more: str = "") -> pd.DataFrame:
    where = "firm = ? AND model = ? AND origin = ?" if story else "false"
    keys = (story.firm, story.model, story.origin) if story else ()
    return query(con, f"SELECT * EXCLUDE (firm, model, origin) FROM {table} WHERE {where} {more}", *keys)
