"""Track record: errors of earlier forecasts, by weeks ahead and by vintage."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import pandas as pd

from cbmt_core.report.rows import query
from cbmt_core.timeline import BACKTEST_STEP, HORIZON

__all__ = ["BANDS", "Track", "gather_track", "panel_track", "read_track"]

BANDS = ((1, 4), (5, 13), (14, 26), (27, 52))
"""Weeks ahead that errors are averaged over, first and last."""
MOST_VINTAGES = 8
"""Earlier forecasts of each purpose that a page shows."""
ORDER = ("live", "backtest")
_COLUMNS = [str(k) for k in range(len(BANDS))]


@dataclass(frozen=True, eq=False)
class Track:
    """Errors of one firm's earlier forecasts."""

    errors: pd.DataFrame
    """A row for each purpose and model: mean SMAPE in each of BANDS (columns 0 to 3), and the number of `origins`."""
    vintages: pd.DataFrame
    """Earlier forecasts of the model to plan with: purpose, origin, weeks observed since, forecast and actual sales."""
    year_error: float | None
    """Mean absolute percent error of the 52 weeks' total, over vintages that have all of them."""
    years: int
    """Number of such vintages."""
    paths: pd.DataFrame
    """Forecast sales of the vintages shown: purpose, origin, week, sales."""

    def row(self, model: str, purpose: str) -> Mapping[str, Any] | None:
        """Errors of one model, or None where it has none."""
        rows = self.errors[(self.errors["model"] == model) & (self.errors["purpose"] == purpose)]
        return None if rows.empty else {str(k): v for k, v in rows.iloc[0].items()}


def gather_track(con: duckdb.DuckDBPyConnection) -> None:
    """Make the temporary table `report_track`: errors of all firms summed by model, vintage and band.

    Summed in the order of the weeks: DuckDB's threads would add in another order each time, to another last digit.
    """
    bands = " ".join(f"WHEN weeks_ahead <= {last} THEN {k}" for k, (_, last) in enumerate(BANDS))
    con.execute(f"""
        CREATE OR REPLACE TEMP TABLE report_track AS
        SELECT firm, model, purpose, origin, CASE {bands} END AS band, count(*) AS weeks,
            sum(coalesce(smape, 0) ORDER BY week) AS smape, sum(forecast ORDER BY week) AS forecast,
            sum(actual ORDER BY week) AS actual
        FROM track_record WHERE weeks_ahead <= {BANDS[-1][1]} GROUP BY ALL ORDER BY ALL""")


def read_track(con: duckdb.DuckDBPyConnection, firm: str, model: str | None) -> Track:
    """The track record of one firm; `model` is the one to plan with. Needs `gather_track`."""
    rows = query(con, "SELECT * EXCLUDE firm FROM report_track WHERE firm = ? ORDER BY ALL", firm)
    own = rows[rows["model"] == model].groupby(["purpose", "origin"], as_index=False)
    vintages = own[["weeks", "forecast", "actual"]].sum()
    # The same week may be the origin of a live forecast and of a backtest: its year counts once.
    whole = vintages[(vintages["weeks"] == HORIZON) & (vintages["actual"] > 0)]
    whole = whole.sort_values("purpose").drop_duplicates("origin", keep="last")
    off = (100 * (whole["forecast"] / whole["actual"] - 1)).abs()
    shown = _spaced(vintages)
    paths = query(
        con,
        "SELECT purpose, origin, week, sales FROM forecast_week WHERE firm = ? AND model = ? "
        "AND purpose <> 'study' AND origin < (SELECT max(week) FROM firm_week WHERE firm = ?) ORDER BY ALL",
        firm, model, firm,
    )  # fmt: skip
    return Track(
        errors=_by_band(rows, ["purpose", "model"]),
        vintages=shown,
        year_error=float(off.mean()) if len(off) else None,
        years=len(off),
        paths=paths.merge(shown[["purpose", "origin"]], on=["purpose", "origin"]),
    )


def panel_track(con: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """Errors by purpose and model, the mean over whole firms of each firm's mean; `firms` and `origins` count."""
    rows = query(
        con,
        "SELECT t.* FROM report_track AS t JOIN firm USING (firm) WHERE firm.segment IS NULL ORDER BY ALL",
    )
    each = _by_band(rows, ["purpose", "model", "firm"])
    mean = each.groupby(["purpose", "model"], as_index=False)[_COLUMNS].mean()
    counts = rows.groupby(["purpose", "model"], as_index=False).agg(
        firms=("firm", "nunique"), origins=("origin", "nunique")
    )
    return _sorted(mean.merge(counts, on=["purpose", "model"]))


def _by_band(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Mean SMAPE of the weeks in each band by `keys`, and the number of origins; NaN where no week was observed."""
    sums = rows.groupby([*keys, "band"], as_index=False)[["smape", "weeks"]].sum()
    table = sums.assign(mean=sums["smape"] / sums["weeks"], band=sums["band"].astype(int).astype(str))
    wide = (
        table.pivot_table(index=keys, columns="band", values="mean").reindex(columns=_COLUMNS).reset_index()
    )
    wide.columns.name = None
    origins = rows.groupby(keys, as_index=False).agg(origins=("origin", "nunique"))
    return _sorted(wide.merge(origins, on=keys))


def _sorted(table: pd.DataFrame) -> pd.DataFrame:
    """Live forecasts first; within a purpose the smallest errors first."""
    order = table["purpose"].map({purpose: k for k, purpose in enumerate(ORDER)})
    mean = table[_COLUMNS].mean(axis=1)
    return table.assign(_o=order, _m=mean).sort_values(["_o", "_m", "model"]).drop(columns=["_o", "_m"])


def _spaced(vintages: pd.DataFrame) -> pd.DataFrame:
    """The newest vintages of each purpose, a quarter apart: a page cannot show one for every week."""
    kept: list[Hashable] = []
    for _, rows in vintages.groupby("purpose"):
        taken: list[pd.Timestamp] = []
        for row, origin in rows["origin"].sort_values(ascending=False).items():
            apart = not taken or (taken[-1] - origin).days >= 7 * BACKTEST_STEP
            if apart and len(taken) < MOST_VINTAGES:
                taken.append(origin)
                kept.append(row)
    return vintages.loc[kept].sort_values(["purpose", "origin"], ignore_index=True)
