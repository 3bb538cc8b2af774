"""FirmData: observed weeks and the year ahead of a firm, read from the published file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Any

import duckdb
import numpy as np
import pandas as pd

from cbmt_core.arrays import Floats
from cbmt_core.report.charts import Layer
from cbmt_core.report.numbers import day
from cbmt_core.report.rows import query
from cbmt_core.report.story import Story
from cbmt_core.report.watch import Watch, read_watch

__all__ = ["FirmData", "gather_layers", "read_firm"]

TENURE_STEPS = (4, 8, 13)
ENOUGH_ORDERS = 60
"""Mean number of repeat orders per point of a tenure curve; the step is chosen accordingly."""
MOST_QUARTERS = 22
"""Number of quarters from which on cohorts are grouped by year."""
EARLIER = "earlier"


@dataclass(frozen=True, eq=False)
class FirmData:
    weeks: list[date]
    """Observed weeks, then those of the forecast."""
    origin: int | None
    """Index of the last week the forecast has seen."""
    observed: pd.DataFrame
    """acquired, orders, ropc, aov and sales, a row a week of `weeks`; NaN where not observed."""
    forecast: pd.DataFrame
    layers: list[Layer]
    new_sales: Floats
    """[week] sales to customers acquired since the last year's beginning, after the origin since the origin."""
    cohorts: list[str]
    """Groups of cohorts by the time of acquisition."""
    tenure: Floats
    """[group, bin of `tenure_step` weeks] repeat orders per customer and week."""
    tenure_step: int
    spent: tuple[list[str], Floats, int]
    """Groups of cohorts; [group, bin] cumulative sales per customer, the first order alone first; weeks of a bin."""
    periods: list[str]
    part_periods: list[int]
    """Indices in `periods` of those that are only partly observed."""
    triangle: pd.DataFrame
    """Sales, customers and ROPC by group of cohorts and calendar period."""
    quarantined: pd.DataFrame
    watch: Watch


def gather_layers(con: duckdb.DuckDBPyConnection, live: Iterable[Story]) -> None:
    """Make the temporary table `report_layer`: live forecasts of all firms by quarter of acquisition.

    The cohorts' forecasts are in the lake, one file for each firm; a query for each firm would open all of them every
    time.
    """
    chosen = pd.DataFrame([(s.firm, s.model, s.origin) for s in live], columns=["firm", "model", "origin"])
    if chosen.empty:
        # A file without forecasts also lacks the relation of the cohorts' forecasts.
        con.execute(
            "CREATE OR REPLACE TEMP TABLE report_layer "
            "(firm VARCHAR, acquired_in DATE, censored BOOLEAN, new BOOLEAN, week DATE, sales DOUBLE)"
        )
        return
    con.register("report_story", chosen)
    con.execute("""
        CREATE OR REPLACE TEMP TABLE report_layer AS
        SELECT f.firm, CAST(date_trunc('quarter', f.cohort) AS DATE) AS acquired_in, f.cohort < w.first AS censored,
            f.cohort > CAST(s.origin AS DATE) AS new, f.week, sum(f.sales ORDER BY f.cohort) AS sales
        FROM forecast_cohort_week AS f
        JOIN report_story AS s ON f.firm = s.firm AND f.model = s.model AND f.origin = CAST(s.origin AS DATE)
            AND f.purpose = 'live'
        JOIN (SELECT firm, min(week) AS first FROM firm_week GROUP BY firm) AS w ON f.firm = w.firm
        GROUP BY ALL ORDER BY f.firm""")
    con.unregister("report_story")


def read_firm(con: duckdb.DuckDBPyConnection, firm: str, story: Story | None) -> FirmData:
    """One firm's page; `story` is its live forecast, where it has one. Needs `gather_layers`."""
    observed = query(
        con,
        "SELECT week, acquired, orders, ropc, aov, sales FROM firm_week WHERE firm = ? ORDER BY week",
        firm,
    ).astype({"sales": float})
    forecast = observed.iloc[:0]
    layer = pd.DataFrame(columns=["acquired_in", "censored", "new", "week", "sales"])
    if story is not None:
        forecast = query(
            con,
            "SELECT week, acquired, orders, ropc, aov, sales FROM forecast_week "
            "WHERE firm = ? AND model = ? AND origin = ? AND purpose = ? ORDER BY week",
            firm, story.model, story.origin, story.purpose,
        )  # fmt: skip
        layer = query(con, "SELECT * EXCLUDE firm FROM report_layer WHERE firm = ?", firm)
    index = pd.DatetimeIndex(observed["week"]).union(pd.DatetimeIndex(forecast["week"]))
    origin = None if story is None else int(index.searchsorted(pd.Timestamp(story.origin)))
    cells = query(
        con,
        "SELECT CAST(date_trunc('quarter', cohort) AS DATE) AS acquired_in, left_censored AS censored, "
        "NOT left_censored AND cohort > CAST(? AS DATE) - 364 AS new, week, "
        "CAST(sum(sales) AS DOUBLE) AS sales FROM cohort_week WHERE firm = ? GROUP BY ALL",
        story.origin if story else observed["week"].iloc[-1], firm,
    )  # fmt: skip
    yearly = cells["acquired_in"].nunique() > MOST_QUARTERS
    cohorts, tenure, step = _tenure(con, firm, yearly)
    return FirmData(
        weeks=[week.date() for week in index],
        origin=origin,
        observed=observed.set_index("week").reindex(index),
        forecast=forecast.set_index("week").reindex(index),
        layers=_layers(cells, layer, index, story, yearly),
        new_sales=_new_sales(cells, layer, index, story),
        cohorts=cohorts,
        tenure=tenure,
        tenure_step=step,
        spent=_spent(con, firm, yearly),
        periods=_periods(index[index.isin(observed["week"])], yearly),
        part_periods=_part_periods(index[index.isin(observed["week"])], yearly),
        triangle=_triangle(con, firm, yearly),
        quarantined=query(
            con,
            "SELECT reason, count(*) AS rows, sum(CAST(amount AS DOUBLE) ORDER BY amount) AS amount FROM quarantine "
            "WHERE firm = ? GROUP BY reason ORDER BY rows DESC",
            firm,
        ),
        watch=read_watch(con, firm, cells, observed),
    )


def _name(quarter: pd.Series[Any], yearly: bool) -> pd.Series[Any]:
    """Names of periods that sort by time."""
    days = pd.to_datetime(quarter)
    years = days.dt.year.astype(str)
    return years if yearly else years + " Q" + days.dt.quarter.astype(str)


def _periods(weeks: pd.DatetimeIndex, yearly: bool) -> list[str]:
    return sorted(set(_name(pd.Series(weeks), yearly)))


def _part_periods(weeks: pd.DatetimeIndex, yearly: bool) -> list[int]:
    """Periods some of whose weeks lie before the first or after the last observed one."""
    around = pd.DatetimeIndex([weeks[0] - pd.Timedelta(weeks=1), weeks[-1] + pd.Timedelta(weeks=1)])
    cut = set(_name(pd.Series(around), yearly))
    return [k for k, name in enumerate(_periods(weeks, yearly)) if name in cut]


def _new_sales(
    cells: pd.DataFrame, forecast: pd.DataFrame, index: pd.DatetimeIndex, story: Story | None
) -> Floats:
    if story is None:
        return np.zeros(len(index))
    origin = pd.Timestamp(story.origin)
    kept = [cells[cells["week"] <= origin], forecast[forecast["week"] > origin]]
    rows = pd.concat([part for part in kept if len(part)])
    rows = rows[rows["new"].astype(bool)]
    return rows.groupby("week")["sales"].sum().reindex(index).fillna(0.0).to_numpy(dtype=float)


def _layers(
    cells: pd.DataFrame, forecast: pd.DataFrame, index: pd.DatetimeIndex, story: Story | None, yearly: bool
) -> list[Layer]:
    if story is not None:
        # Without forecasts of cohorts the layers end at the origin.
        cells = cells[cells["week"] <= pd.Timestamp(story.origin)]
        forecast = forecast[forecast["week"] > pd.Timestamp(story.origin)]
        cells = pd.concat([cells, forecast]) if len(forecast) else cells
    named = _name(cells["acquired_in"], yearly).where(~cells["censored"].astype(bool), EARLIER)
    table = cells.assign(layer=named).pivot_table(
        index="week", columns="layer", values="sales", aggfunc="sum"
    )
    table = table.reindex(index).fillna(0.0)
    names = sorted(table.columns, key=lambda name: (name != EARLIER, name))
    return [
        Layer(
            f"acquired before {day(index[0].date())}" if name == EARLIER else f"acquired {name}",
            table[name].to_numpy(dtype=float),
            name == EARLIER,
        )
        for name in names
    ]


def _tenure(con: duckdb.DuckDBPyConnection, firm: str, yearly: bool) -> tuple[list[str], Floats, int]:
    """Repeat orders per customer and week by group and bin, and the weeks of a bin.

    A bin is shown once every cohort of the group has all of its weeks.
    """
    frame = query(
        con,
        f"""
        SELECT CAST(date_trunc('{"year" if yearly else "quarter"}', cohort) AS DATE) AS acquired_in, tenure,
            sum(repeat_orders) AS orders, sum(cohort_size) AS size, count(*) AS cells
        FROM cohort_week WHERE firm = ? AND NOT left_censored AND tenure >= 1 GROUP BY ALL ORDER BY ALL""",
        firm,
    ).astype({"orders": float, "size": float})
    frame = frame[frame["cells"] == frame.groupby("acquired_in")["cells"].transform("max")]
    if frame.empty:
        return [], np.zeros((0, 1)), TENURE_STEPS[0]
    weekly = float(frame["orders"].mean())
    step = next((s for s in TENURE_STEPS if s * weekly >= ENOUGH_ORDERS), TENURE_STEPS[-1])
    bins = frame.assign(bin=(frame["tenure"] - 1) // step, name=_name(frame["acquired_in"], yearly))
    sums = bins.groupby(["name", "bin"]).agg(
        orders=("orders", "sum"), size=("size", "sum"), weeks=("bin", "size")
    )
    sums = sums[(sums["weeks"] == step) & (sums["size"] > 0)]
    if sums.empty:
        return [], np.zeros((0, 1)), step
    table = (sums["orders"] / sums["size"]).unstack("bin")  # noqa: PD010
    table = table.reindex(columns=range(int(max(table.columns)) + 1))
    return list(table.index), table.to_numpy(dtype=float), step


def _spent(con: duckdb.DuckDBPyConnection, firm: str, yearly: bool) -> tuple[list[str], Floats, int]:
    """Cumulative sales per customer by group, up to the age that every cohort of the group has reached."""
    step = TENURE_STEPS[0]
    frame = query(
        con,
        f"""
        SELECT CAST(date_trunc('{"year" if yearly else "quarter"}', cohort) AS DATE) AS acquired_in, tenure,
            CAST(sum(sales) AS DOUBLE) AS sales, CAST(sum(initial_sales) AS DOUBLE) AS first,
            sum(cohort_size) AS size, count(*) AS cells
        FROM cohort_week WHERE firm = ? AND NOT left_censored GROUP BY ALL ORDER BY ALL""",
        firm,
    ).astype({"size": float})
    frame = frame[frame["cells"] == frame.groupby("acquired_in")["cells"].transform("max")]
    names, curves = [], []
    for quarter, rows in frame.groupby("acquired_in"):
        size = float(rows["size"].iloc[0])
        if size <= 0 or len(rows) <= step:
            continue
        total = rows["sales"].to_numpy(dtype=float).cumsum() / size
        names.append(str(_name(pd.Series([quarter]), yearly).iloc[0]))
        curves.append([float(rows["first"].iloc[0]) / size, *total[step - 1 :: step]])
    longest = max(map(len, curves), default=1)
    table = np.full((len(names), longest), np.nan)
    for k, curve in enumerate(curves):
        table[k, : len(curve)] = curve
    return names, table, step


def _triangle(con: duckdb.DuckDBPyConnection, firm: str, yearly: bool) -> pd.DataFrame:
    unit = "year" if yearly else "quarter"
    frame = query(
        con,
        f"""
        SELECT CAST(date_trunc('{unit}', cohort) AS DATE) AS acquired_in, left_censored AS censored,
            CAST(date_trunc('{unit}', week) AS DATE) AS period, CAST(sum(sales) AS DOUBLE) AS sales,
            sum(cohort_size) FILTER (week = cohort OR left_censored) AS born, count(DISTINCT week) AS weeks,
            sum(repeat_orders) / nullif(sum(cohort_size), 0) AS ropc
        FROM cohort_week WHERE firm = ? GROUP BY ALL ORDER BY ALL""",
        firm,
    )
    cohort = _name(frame["acquired_in"], yearly).where(~frame["censored"].astype(bool), EARLIER)
    return frame.assign(cohort=cohort, period=_name(frame["period"], yearly))
