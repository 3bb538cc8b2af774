"""Acquisition cost and its return: CAC, LTV / CAC and payback."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd

from cbmt_core.compose import RevenueForecast
from cbmt_core.duck import literal, path_literal
from cbmt_core.errors import ConfigError
from cbmt_core.panel import LEFT_CENSORED, FirmPanel
from cbmt_core.timeline import week_sql
from cbmt_core.value.ages import cumulative_sales, quarter_of
from cbmt_core.value.terms import ValueTerms

__all__ = ["COLUMNS", "LTV_WEEKS", "acquisition_return", "read_spend"]

LTV_WEEKS = 52
"""Weeks since the first order whose margin is used as lifetime value in LTV / CAC."""
COLUMNS = ["acquired_in", "customers", "spend", "cac", "ltv", "ltv_cac", "payback_weeks", "source"]


def read_spend(con: duckdb.DuckDBPyConnection, path: Path, firm: str, firms: int = 1) -> pd.Series:
    """Acquisition spend of a firm by week (Sunday), from a CSV or Parquet file with week, spend and maybe firm.

    Args:
        firms: number of firms of the project: a file without a column `firm` can only be used with one.
    """
    if not path.exists():
        raise ConfigError(f"[value] spend: there is no file {path}")
    reader = "read_parquet" if path.suffix == ".parquet" else "read_csv"
    source = f"{reader}({path_literal(path)})"
    try:
        names = [row[0] for row in con.execute(f"DESCRIBE FROM {source}").fetchall()]
        if missing := [name for name in ("week", "spend") if name not in names]:
            raise ConfigError(
                f"[value] spend: {path} has no column {', '.join(missing)}; it needs week (any day of it), spend and, "
                f"for several firms, firm. It has {', '.join(names)}"
            )
        if "firm" not in names and firms > 1:
            raise ConfigError(
                f"[value] spend: {path} needs a column firm, because the project has {firms} firms"
            )
        where = f"WHERE firm = {literal(firm)}" if "firm" in names else ""
        frame = con.execute(
            f"SELECT {week_sql('CAST(week AS DATE)')} AS week, "
            f"sum(CAST(spend AS DOUBLE)) AS spend FROM {source} {where} GROUP BY 1 ORDER BY 1"
        ).df()
    except duckdb.Error as error:
        raise ConfigError(f"[value] spend: {path} cannot be read: {str(error).splitlines()[0]}") from None
    return frame.set_index(pd.DatetimeIndex(frame["week"]))["spend"]


def acquisition_return(
    panel: FirmPanel, forecast: RevenueForecast, terms: ValueTerms, spend: pd.Series
) -> pd.DataFrame:
    """Rows by quarter of acquisition up to the origin: cost per customer, 52-week margin, their ratio, payback.

    A quarter is included if every observed week of it has a spend. LTV is the margin of the 52 weeks from the first
    order on, observed or forecast, discounted to the first order. Payback is the number of weeks, that of the first
    order included, after which a customer's margin exceeds what acquiring one cost; NaN if that is not reached
    within the observed and forecast weeks.
    """
    sales, born = cumulative_sales(panel, forecast, terms.horizon_weeks)
    weekly = np.diff(sales, axis=1, prepend=0.0)
    own = np.flatnonzero(panel.birth != LEFT_CENSORED)
    quarter = quarter_of(panel.weeks)
    costs = spend.reindex(pd.DatetimeIndex(panel.weeks)).to_numpy(dtype=float)
    last = sales.shape[1]
    rows = []
    for one in np.unique(quarter):
        held = quarter == one
        members = own[held[born[own]]]
        customers = float(panel.size[members].sum())
        if not np.isfinite(costs[held]).all() or customers <= 0:
            continue
        cac = float(costs[held].sum()) / customers
        span = int(last - born[members].max())
        ages = [weekly[m, born[m] : born[m] + span] for m in members]
        by_age = np.sum(ages, axis=0) * terms.margin / customers
        reached = np.flatnonzero(np.cumsum(by_age) >= cac)
        whole = span >= LTV_WEEKS
        discounted = by_age[:LTV_WEEKS] @ (1 + terms.discount_rate) ** (
            -np.arange(min(span, LTV_WEEKS)) / LTV_WEEKS
        )
        rows.append(
            {
                "acquired_in": one,
                "customers": customers,
                "spend": float(costs[held].sum()),
                "cac": cac,
                "ltv": float(discounted) if whole else np.nan,
                "ltv_cac": float(discounted) / cac if whole and cac > 0 else np.nan,
                "payback_weeks": float(reached[0] + 1) if len(reached) else np.nan,
                "source": "observed" if born[members].max() + LTV_WEEKS <= panel.n_weeks else "forecast",
            }
        )
    return pd.DataFrame(rows, columns=COLUMNS)
