"""The user's three input tables: firms to tickers, fiscal quarters, and analysts' forecasts of revenue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cbmt_core.arrays import Bools
from cbmt_core.errors import BadTable

__all__ = ["FORECASTS", "QUARTERS", "TICKERS", "AnalystTables", "read_tables"]


TEXT, DAY, AMOUNT, MAYBE_AMOUNT = (
    "a name",
    "a day such as 2019-03-31",
    "a number such as 1234.5",
    "a number, or nothing",
)
TICKERS = {"firm": TEXT, "ticker": TEXT}
QUARTERS = {"ticker": TEXT, "quarter": TEXT, "first_day": DAY, "last_day": DAY}
FORECASTS = {"ticker": TEXT, "quarter": TEXT, "made_on": DAY, "forecast": AMOUNT, "actual": MAYBE_AMOUNT}
"""Columns of each table; others are ignored."""


@dataclass(frozen=True, eq=False)
class AnalystTables:
    tickers: pd.DataFrame
    quarters: pd.DataFrame
    """In the order of days within a ticker, without gaps."""
    forecasts: pd.DataFrame
    quarters_file: str
    """For messages."""


def read_tables(tickers: Path, quarters: Path, forecasts: Path) -> AnalystTables:
    """Read and check the three files (CSV or Parquet). The error names the file and row of the first mistake."""
    return AnalystTables(
        _tickers(_read(tickers, TICKERS), tickers),
        _quarters(_read(quarters, QUARTERS), quarters),
        _forecasts(_read(forecasts, FORECASTS), forecasts),
        str(quarters),
    )


def _tickers(frame: pd.DataFrame, file: Path) -> pd.DataFrame:
    frame = frame.drop_duplicates(["firm", "ticker"])
    again = frame["firm"].duplicated().to_numpy()
    _refuse(
        again, frame, file, "firm", "has another ticker in an earlier row; keep the one of its parent company"
    )
    return frame.drop(columns="row")


def _quarters(frame: pd.DataFrame, file: Path) -> pd.DataFrame:
    again = frame.duplicated(["ticker", "quarter"]).to_numpy()
    _refuse(again, frame, file, "quarter", "is there twice for its ticker; keep one row")
    backward = (frame["last_day"] < frame["first_day"]).to_numpy()
    _refuse(backward, frame, file, "last_day", "lies before first_day; exchange the two")
    frame = frame.sort_values(["ticker", "first_day"], kind="stable").reset_index(drop=True)
    before = frame.groupby("ticker")["last_day"].shift()
    between = (frame["first_day"] - before).dt.days.to_numpy(float)
    _refuse(between < 1, frame, file, "first_day", "lies in the quarter before it; quarters must not overlap")
    _refuse(
        between > 1,
        frame,
        file,
        "first_day",
        "is not the day after the quarter before it; add the quarter between",
    )
    return frame


def _forecasts(frame: pd.DataFrame, file: Path) -> pd.DataFrame:
    stated = frame["actual"].notna()
    first = frame[stated].groupby(["ticker", "quarter"])["actual"].transform("first")
    other = np.zeros(len(frame), bool)
    other[stated.to_numpy()] = (frame.loc[stated, "actual"] != first).to_numpy()
    _refuse(
        other, frame, file, "actual", "differs from that of an earlier row of the same quarter; state one"
    )
    return frame.drop(columns="row")


def _read(file: Path, columns: Mapping[str, str]) -> pd.DataFrame:
    """The declared columns, converted to their types, and the number of each row."""
    try:
        if file.suffix.lower() in (".parquet", ".pq"):
            raw = pd.read_parquet(file)
        else:
            raw = pd.read_csv(file, dtype=str, keep_default_na=False, na_values=[""], encoding="utf-8-sig")
    except FileNotFoundError:
        raise BadTable(file, "it does not exist; correct its path in the [calibration] section") from None
    except (OSError, ValueError) as error:
        raise BadTable(file, f"it cannot be read as CSV or Parquet ({error})") from None
    raw.columns = raw.columns.str.strip()
    if missing := [name for name in columns if name not in raw.columns]:
        found = ", ".join(map(str, raw.columns))
        raise BadTable(file, f"it lacks {', '.join(missing)}; its columns are {found}: rename or add them")
    frame = pd.DataFrame({"row": np.arange(1, len(raw) + 1)})
    for name, kind in columns.items():
        frame[name] = _typed(raw[name], kind)
        bad = frame[name].isna().to_numpy()
        if kind in (AMOUNT, MAYBE_AMOUNT):
            value = frame[name].to_numpy(float)
            bad = (
                (bad if kind == AMOUNT else bad & raw[name].notna().to_numpy())
                | (value < 0)
                | np.isinf(value)
            )
        _refuse(bad, raw.assign(row=frame["row"]), file, name, f"must be {kind}" + _not_negative(kind))
    return frame


def _not_negative(kind: str) -> str:
    return ", not negative" if kind in (AMOUNT, MAYBE_AMOUNT) else ""


def _typed(column: pd.Series[Any], kind: str) -> pd.Series[Any]:
    if kind == TEXT:
        text = column.where(column.isna(), column.astype(str).str.strip())
        return text.where(text != "")
    if kind == DAY:
        days: pd.Series[Any] = pd.to_datetime(column, errors="coerce", format="ISO8601").dt.normalize()
        return days
    numbers: pd.Series[Any] = pd.to_numeric(column, errors="coerce").astype(float)
    return numbers


def _refuse(bad: Bools, frame: pd.DataFrame, file: Path, column: str, rule: str) -> None:
    """Raise BadTable for the first bad row, with the number of bad rows."""
    if not bad.any():
        return
    place = int(np.flatnonzero(bad)[0])
    shown = _shown(frame[column].iloc[place])
    more = f" ({bad.sum() - 1} more like it)" if bad.sum() > 1 else ""
    raise BadTable(
        file, f"row {frame['row'].iloc[place]} (headings not counted): {column} is {shown}, {rule}{more}"
    )


def _shown(value: object) -> str:
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, pd.Timestamp) and not pd.isna(value):
        return f"{value:%Y-%m-%d}"
    return "nothing" if pd.isna(value) else str(value)  # type: ignore[call-overload]
