"""Figures of the paper that rest on data, on the paper's own axes, drawn from the published tables."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, NullFormatter, ScalarFormatter

from cbmt_core.report.figures import png
from cbmt_core.report.rows import query

__all__ = ["bridge_cases", "cohort_lines", "decomposition", "example_firm", "firm_map"]

DPI = 72
SOURCES = {
    "order_volume": "repeat\norders",
    "spend_per_order": "spend\nper order",
    "net_replenishment": "net\nreplenishment",
}
UP, DOWN, ENDS = "#4c8c5a", "#c0504d", "#8a97a5"


def example_firm(con: duckdb.DuckDBPyConnection) -> str | None:
    """The firm with the most customers: its lines are the smoothest."""
    found = con.execute(
        "SELECT firm FROM firm WHERE segment IS NULL ORDER BY customers DESC, firm LIMIT 1"
    ).fetchone()
    return str(found[0]) if found else None


def _plain(axes: Axes, title: str, ylabel: str) -> None:
    axes.set_title(title, loc="left", fontsize=9)
    axes.set_ylabel(ylabel, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    axes.spines[["top", "right"]].set_visible(False)


def decomposition(con: duckdb.DuckDBPyConnection, firm: str, currency: str) -> bytes | None:
    """Acquisition, repeat orders and order value of the first quarter's cohorts, and the firm's sales."""
    weeks = query(
        con,
        "SELECT week, acquired, CAST(sales AS DOUBLE) AS sales FROM firm_week WHERE firm = ? ORDER BY week",
        firm,
    )
    cohort = query(
        con,
        "SELECT week, sum(repeat_orders) AS repeat_orders, CAST(sum(sales) AS DOUBLE) / nullif(sum(orders), 0) AS aov "
        "FROM (SELECT *, min(cohort) OVER () AS first FROM cohort_week WHERE firm = ? AND NOT left_censored) "
        "WHERE cohort < first + 91 GROUP BY week ORDER BY week",
        firm,
    )
    if weeks.empty or cohort.empty:
        return None
    figure = Figure(figsize=(7.4, 4.4), layout="constrained")
    grid = figure.add_gridspec(3, 2)
    left = [figure.add_subplot(grid[k, 0]) for k in range(3)]
    right = figure.add_subplot(grid[:, 1])
    parts = (
        (left[0], weeks, "acquired", "Acquisition", "customers a week"),
        (left[1], cohort, "repeat_orders", "Repeat orders of the first quarter's cohorts", "orders a week"),
        (left[2], cohort, "aov", "Their average order value", currency),
        (right, weeks, "sales", "Sales of the firm", f"{currency} a week"),
    )
    for axes, frame, column, title, unit in parts:
        axes.plot(pd.to_datetime(frame["week"]), frame[column].astype(float), color="#2b5c8a", linewidth=0.9)
        axes.set_ylim(bottom=0)
        axes.tick_params(axis="x", labelrotation=30)
        _plain(axes, title, unit)
    return png(figure, DPI)


def firm_map(con: duckdb.DuckDBPyConnection) -> bytes | None:
    """Annual active customers across, average annual sales up; size is order value, colour the industry."""
    frame = query(
        con,
        "SELECT f.firm, coalesce(f.industry, 'no industry') AS industry, 52 * avg(w.active_customers) AS active, "
        "52 * CAST(sum(w.sales) AS DOUBLE) / count(*) AS yearly, median(w.aov) AS aov "
        "FROM firm f JOIN firm_week w USING (firm) "
        'WHERE f.segment IS NULL AND w.week BETWEEN (SELECT first_week FROM study_window WHERE "window" = '
        "'calibration') AND (SELECT last_week FROM study_window WHERE \"window\" = 'calibration') "
        "GROUP BY ALL HAVING active > 0 AND yearly > 0 ORDER BY industry, f.firm",
    )
    if frame.empty:
        return None
    figure = Figure(figsize=(7.4, 4.4), layout="constrained")
    axes = figure.add_subplot()
    names = list(dict.fromkeys(frame["industry"]))
    size = np.sqrt(frame["aov"].fillna(frame["aov"].median()).astype(float).to_numpy())
    size = 12 + 90 * size / max(float(size.max()), 1e-9)
    for k, name in enumerate(names):
        own = (frame["industry"] == name).to_numpy()
        colour = colormaps["tab20"](k % 20)
        axes.scatter(
            frame["active"][own],
            frame["yearly"][own], s=size[own], color=colour, alpha=0.75, label=name,
            marker="o" if k < 20 else "^", linewidths=0,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("active customers a year, each counted once a week", fontsize=8)
    _plain(axes, "Firms over the calibration; a point's size follows the median order value", "sales a year")
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.xaxis.set_minor_formatter(NullFormatter())
    figure.legend(loc="outside right upper", fontsize=6, frameon=False)
    return png(figure, DPI)


def cohort_lines(con: duckdb.DuckDBPyConnection, firm: str) -> bytes | None:
    """Weekly acquisition, and ROPC of every weekly cohort by tenure: one line a cohort, early red, late blue."""
    weeks = query(con, "SELECT week, acquired FROM firm_week WHERE firm = ? ORDER BY week", firm)
    cells = query(
        con,
        "SELECT cohort, (week - cohort) // 7 AS tenure, ropc FROM cohort_week "
        "WHERE firm = ? AND NOT left_censored AND week > cohort ORDER BY cohort, week",
        firm,
    )
    if weeks.empty or cells.empty:
        return None
    figure = Figure(figsize=(7.4, 3.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(pd.to_datetime(weeks["week"]), weeks["acquired"].astype(float), color="black", linewidth=0.8)
    left.tick_params(axis="x", labelrotation=30)
    _plain(left, "Acquisition", "customers a week")
    grid = cells.pivot_table(index="tenure", columns="cohort", values="ropc")
    for k, cohort in enumerate(grid.columns):
        share = k / max(1, grid.shape[1] - 1)
        right.plot(grid.index, grid[cohort], color=colormaps["RdYlBu"](share), linewidth=0.5)
    right.set_xlabel("weeks since acquisition", fontsize=8)
    right.set_ylim(0, float(np.nanquantile(grid.to_numpy(float), 0.995)) * 1.1 or 1.0)
    _plain(right, "Repeat orders per customer, one line a cohort", "orders a week")
    right.yaxis.set_major_formatter(ScalarFormatter())
    return png(figure, DPI)


def bridge_cases(con: duckdb.DuckDBPyConnection, model: str) -> tuple[list[str], bytes] | None:
    """Two firms whose sales changed alike for different reasons: realised bridges, and those of `model`."""
    rows = query(
        con,
        "SELECT b.*, f.currency FROM bridge b JOIN firm f USING (firm) WHERE b.purpose = 'study' AND b.eligible "
        "AND f.segment IS NULL AND b.model IN ('realised', ?) AND b.baseline_sales > 0 "
        "QUALIFY count(*) OVER (PARTITION BY firm) = 2 ORDER BY firm",
        model,
    )
    if rows.empty:
        return None
    firms = _pair(rows[rows["model"] == "realised"])
    figure = Figure(figsize=(7.4, 2.7 * len(firms)), layout="constrained")
    places: Any = figure.subplots(len(firms), 2, squeeze=False, sharey="row")
    for line, firm in zip(places, firms, strict=True):
        for axes, name in zip(line, ("realised", model), strict=True):
            row = rows[(rows["firm"] == firm) & (rows["model"] == name)].iloc[0]
            _waterfall(
                axes, row, f"{firm}: {'as it happened' if name == 'realised' else f'predicted by {name}'}"
            )
    return firms, png(figure, DPI)


def _pair(realised: pd.DataFrame) -> list[str]:
    """Firms with similar changes of sales and the most different contributions of repeat orders."""
    firms = list(realised["firm"])
    change, orders = (realised[f"{n}_points"].to_numpy(float) for n in ("sales_change", "order_volume"))
    if len(firms) == 1:
        return firms
    best = max(
        ((i, j) for i in range(len(firms)) for j in range(i)),
        key=lambda pair: abs(orders[pair[0]] - orders[pair[1]]) - 3 * abs(change[pair[0]] - change[pair[1]]),
    )
    return sorted(firms[k] for k in best)


def _waterfall(axes: Axes, row: pd.Series[Any], title: str) -> None:
    level = base = float(row["baseline_sales"])
    axes.bar(0, base, color=ENDS, width=0.6)
    labels = ["baseline"]
    for k, (name, label) in enumerate(SOURCES.items(), 1):
        step = float(row[name])
        axes.bar(k, step, bottom=level, color=UP if step >= 0 else DOWN, width=0.6)
        text = f"{EngFormatter(places=1, sep='')(step)}\n{row[f'{name}_points']:+.1f} pts"
        axes.text(k, max(level, level + step), text, ha="center", va="bottom", fontsize=6.5)
        level += step
        labels.append(label)
    axes.bar(4, level, color=ENDS, width=0.6)
    axes.text(4, level, f"{100 * (level / base - 1):+.1f} pts", ha="center", va="bottom", fontsize=6.5)
    axes.set_xticks(range(5), [*labels, "target"])
    highest = max(base, level)
    axes.set_ylim(0.6 * min(base, level), 1.18 * highest)
    _plain(axes, title, str(row["currency"]))
