"""Error paths: whole years of backtest errors of other firms, for models without a distribution of their own."""

from __future__ import annotations

import hashlib

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd

from cbmt_core.bands.errors import HALF
from cbmt_core.evaluation.relations import Relations
from cbmt_core.panel import FirmPanel
from cbmt_core.uncertainty import DRIVERS, Deviations

__all__ = ["LEAST_PATHS", "MOST_PATHS", "error_paths", "path_deviations", "usual_changes"]

Floats = npt.NDArray[np.float64]

MOST_PATHS, LEAST_PATHS = 300, 20
"""Error paths that are kept at most, and that are needed at least."""
CHANGE_WEEKS = 104
"""Weeks before the origin over which a firm's usual change from week to week is measured."""
LEAST_CHANGE = 0.01
"""In log points: a firm with steadier weeks counts as this steady."""


def error_paths(
    con: duckdb.DuckDBPyConnection, relations: Relations, errors: pd.DataFrame, horizon: int
) -> pd.DataFrame:
    """The backtests observed over their whole horizon, in units of their firms' usual changes.

    Columns `firm`, `backtest`, `horizon`, and one for each driver. Of many backtests a fixed choice is kept.

    Args:
        errors: of one model, as `realised_errors` gives them.
        horizon: weeks that a path must have.
    """
    whole = errors.groupby(["firm", "origin"])["horizon"].transform("count") >= horizon
    rows = errors[whole & (errors["horizon"] <= horizon)]
    keys = rows[["firm", "origin"]].drop_duplicates()
    kept = sorted(
        zip(keys["firm"], keys["origin"], strict=True),
        key=lambda key: hashlib.sha256(f"{key[0]}/{key[1]:%Y-%m-%d}".encode()).digest(),
    )[:MOST_PATHS]
    chosen = pd.DataFrame(kept, columns=["firm", "origin"]).astype(keys.dtypes.to_dict())
    rows = rows.merge(chosen, on=["firm", "origin"])
    con.register("chosen_backtests", chosen)
    changes = con.execute(
        f"""
        SELECT c.firm, c.origin, {", ".join(f"stddev_samp({name}) AS {name}_usual" for name in DRIVERS)}
        FROM chosen_backtests AS c JOIN (
            SELECT firm, week, {_change("acquired + 0.5")} AS acquisition, {_change("repeat_orders + 0.5")} AS repeat,
                {_change("nullif(CAST(sales AS DOUBLE), 0) / nullif(orders, 0)")} AS order_value
            FROM {relations.firm_week}) AS w
        ON w.firm = c.firm AND w.week <= c.origin AND w.week > c.origin - INTERVAL {CHANGE_WEEKS} WEEK
        GROUP BY ALL
        """
    ).df()
    con.unregister("chosen_backtests")
    rows = rows.merge(changes, on=["firm", "origin"])
    for driver in DRIVERS:
        usual = np.maximum(rows.pop(f"{driver}_usual").fillna(0.0), LEAST_CHANGE)
        rows[driver] = rows[f"{driver}_error"].fillna(0.0) / usual
    rows = rows.rename(columns={"origin": "backtest"})
    return rows[["firm", "backtest", "horizon", *DRIVERS]].reset_index(drop=True)


def _change(value: str) -> str:
    return f"ln({value}) - lag(ln({value})) OVER (PARTITION BY firm ORDER BY week)"


def usual_changes(panel: FirmPanel) -> Floats:
    """[3] standard deviation of the weekly changes of the drivers' logs over the last two years of a panel."""
    orders = panel.orders.sum(axis=0)
    repeats = orders - panel.A
    value = np.divide(panel.S, orders, out=np.full(panel.n_weeks, np.nan), where=(orders > 0) & (panel.S > 0))
    logs = np.log(np.stack([panel.A + HALF, np.maximum(repeats, 0.0) + HALF, value]))
    changes = np.diff(logs, axis=1)[:, -CHANGE_WEEKS:]
    usual = [row[np.isfinite(row)].std(ddof=1) if np.isfinite(row).sum() > 1 else 0.0 for row in changes]
    return np.maximum(usual, LEAST_CHANGE)


def path_deviations(
    paths: pd.DataFrame, usual: Floats, firm: str, draws: int, horizon: int, rng: np.random.Generator
) -> Deviations | None:
    """Error paths of other firms, drawn with replacement and rescaled to the firm; None where there are too few.

    Args:
        paths: as `error_paths` gives them.
        usual: the firm's `usual_changes`.
        firm: whose own paths are left out.
        draws: how many.
        horizon: weeks ahead.
        rng: random numbers.
    """
    others = paths[(paths["firm"] != firm) & (paths["horizon"] <= horizon)]
    others = others.sort_values(["firm", "backtest", "horizon"])
    arrays = others[list(DRIVERS)].to_numpy(float)
    whole = (
        arrays.reshape(-1, horizon, len(DRIVERS)).swapaxes(1, 2) if len(arrays) % horizon == 0 else arrays[:0]
    )
    if len(whole) < LEAST_PATHS:
        return None
    picked = whole[rng.integers(0, len(whole), draws)] * usual[None, :, None]
    return Deviations(lasting=picked, weekly=np.zeros_like(picked))
