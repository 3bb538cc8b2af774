"""Error paths: whole years of backtest errors of other firms, for models without a distribution of their own."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import duckdb
import numpy as np
import pandas as pd

from cbmt_core.arrays import Floats
from cbmt_core.bands.errors import HALF
from cbmt_core.evaluation.relations import Relations
from cbmt_core.panel import FirmPanel
from cbmt_core.uncertainty import DRIVERS, Deviations

__all__ = [
    "LEAST_PATHS",
    "MOST_PATHS",
    "SALES",
    "as_deviations",
    "drawn_paths",
    "error_paths",
    "usual_changes",
    "usual_sales_change",
    "whole_paths",
]


MOST_PATHS, LEAST_PATHS = 300, 20
"""Maximum number of error paths kept per model, and minimum number of backtests with paths."""
CHANGE_WEEKS = 104
"""Weeks before the origin over which a firm's usual change from week to week is measured."""
SALES = ("sales",)
"""Outcome of the error paths of models that forecast sales only, in place of the drivers."""
LEAST_CHANGE = 0.01
"""Lower limit of a firm's usual change, in log points."""


def error_paths(
    con: duckdb.DuckDBPyConnection,
    relations: Relations,
    errors: pd.DataFrame,
    horizon: int,
    outcomes: Sequence[str] = DRIVERS,
) -> pd.DataFrame:
    """The backtests observed over their whole horizon, in units of their firms' usual changes.

    Columns `firm`, `backtest`, `horizon`, and one for each outcome; those not asked for are unknown. Of many backtests
    a fixed choice is kept.

    Args:
        errors: of one model, as `realised_errors` or, for `SALES`, `sales_errors` gives them; for both, the two joined.
        horizon: weeks that a path must have.
        outcomes: `DRIVERS`, `SALES` or both.
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
        SELECT c.firm, c.origin, {", ".join(f"stddev_samp({name}) AS {name}_usual" for name in outcomes)}
        FROM chosen_backtests AS c JOIN (
            SELECT firm, week, {_change("acquired + 0.5")} AS acquisition, {_change("repeat_orders + 0.5")} AS repeat,
                {_change("nullif(CAST(sales AS DOUBLE), 0) / nullif(orders, 0)")} AS order_value,
                {_change("CASE WHEN sales > 0 THEN CAST(sales AS DOUBLE) END")} AS sales
            FROM {relations.firm_week}) AS w
        ON w.firm = c.firm AND w.week <= c.origin AND w.week > c.origin - INTERVAL {CHANGE_WEEKS} WEEK
        GROUP BY ALL
        """
    ).df()
    con.unregister("chosen_backtests")
    rows = rows.merge(changes, on=["firm", "origin"])
    for outcome in outcomes:
        usual = np.maximum(rows.pop(f"{outcome}_usual").fillna(0.0), LEAST_CHANGE)
        rows[outcome] = rows[f"{outcome}_error"].fillna(0.0) / usual
    rows = rows.rename(columns={"origin": "backtest"})
    return rows.reindex(columns=["firm", "backtest", "horizon", *DRIVERS, *SALES]).reset_index(drop=True)


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


def usual_sales_change(panel: FirmPanel) -> Floats:
    """[1] standard deviation of the weekly changes of log sales over the last two years of a panel."""
    with np.errstate(divide="ignore", invalid="ignore"):
        changes = np.diff(np.log(panel.S))[-CHANGE_WEEKS:]
    known = changes[np.isfinite(changes)]
    return np.maximum([known.std(ddof=1) if len(known) > 1 else 0.0], LEAST_CHANGE)


def as_deviations(errors: Floats) -> Deviations:
    """Drawn errors of the drivers as `Deviations`: these errors are not split into lasting and weekly ones."""
    return Deviations(lasting=errors, weekly=np.zeros_like(errors))


def whole_paths(
    paths: pd.DataFrame, firm: str, horizon: int, outcomes: Sequence[str] = DRIVERS
) -> Floats | None:
    """[paths, outcomes, H] error paths of the other firms; None if there are fewer than `LEAST_PATHS`.

    Args:
        paths: as `error_paths` gives them, of one model or of several.
        firm: whose own paths are left out.
        horizon: weeks ahead.
        outcomes: `DRIVERS` or `SALES`; paths without them are left out.
    """
    names = list(outcomes)
    others = paths[(paths["firm"] != firm) & (paths["horizon"] <= horizon) & paths[names].notna().all(axis=1)]
    if len(others[["firm", "backtest"]].drop_duplicates()) < LEAST_PATHS or len(others) % horizon:
        return None
    order = [name for name in ("model", "firm", "backtest", "horizon") if name in others]
    arrays = others.sort_values(order)[names].to_numpy(float)
    return arrays.reshape(-1, horizon, len(names)).swapaxes(1, 2)


def drawn_paths(whole: Floats, usual: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """[K, outcomes, H] of the paths, drawn with replacement and rescaled to a firm.

    Args:
        whole: of `whole_paths`.
        usual: the firm's `usual_changes` or `usual_sales_change`.
        draws: how many.
        rng: random numbers.
    """
    return np.asarray(whole[rng.integers(0, len(whole), draws)] * usual[None, :, None])
