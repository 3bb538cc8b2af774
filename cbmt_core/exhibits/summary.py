"""Summary statistics of the firms."""

from __future__ import annotations

import pandas as pd

from cbmt_core.exhibits.evidence import Evidence
from cbmt_core.exhibits.exhibit import Exhibit, number, table
from cbmt_core.schema import Column
from cbmt_core.timeline import Window

__all__ = ["EXHIBITS"]

STATISTICS = {
    "Acquisition (per week)": "avg(acquired)",
    "Active customers (per week)": "avg(active_customers)",
    "ROPC (per week)": "avg(ropc)",
    "AOV (per week)": "avg(aov)",
    "Sales (per week)": "avg(CAST(sales AS DOUBLE))",
    "Acquisition (cumulative)": "sum(acquired)",
    "Repeat orders (cumulative)": "sum(repeat_orders)",
    "Sales (cumulative)": "sum(CAST(sales AS DOUBLE))",
}
"""Each firm's figure over a window, from its weeks; weeks without orders have no AOV."""

QUARTILES = {"p25": 0.25, "median": 0.5, "p75": 0.75}


def summary_statistics(evidence: Evidence) -> pd.DataFrame:
    windows = {"calibration": evidence.design.calibration, "holdout": evidence.design.holdout}
    sides = [_quartiles(evidence, window, name) for name, window in windows.items() if len(window)]
    if evidence.firms.empty or not sides:
        return pd.DataFrame()
    return pd.concat(sides, axis=1).rename_axis("statistic").reset_index().assign(firms=len(evidence.firms))


def _quartiles(evidence: Evidence, window: Window, name: str) -> pd.DataFrame:
    figures = ", ".join(f'{sql} AS "{title}"' for title, sql in STATISTICS.items())
    frame = evidence.con.execute(
        f"SELECT firm, {figures} FROM {evidence.relations.firm_week} "
        f"WHERE week BETWEEN DATE '{window.first}' AND DATE '{window.last}' GROUP BY firm"
    ).df()
    of_firms = frame[frame["firm"].isin(evidence.firms["firm"])][list(STATISTICS)].astype(float)
    return pd.DataFrame({f"{name}_{part}": of_firms.quantile(q) for part, q in QUARTILES.items()})


EXHIBITS = (
    Exhibit(
        table(
            "summary_statistics",
            "Quartiles across firms of weekly averages and totals, in calibration and holdout.",
            Column("statistic", "VARCHAR", "what is averaged over the weeks or totalled"),
            *(
                number(f"{window}_{part}", f"{part} across firms in the {window} window")
                for window in ("calibration", "holdout")
                for part in QUARTILES
            ),
            Column("firms", "INTEGER", "firms, segments not counted"),
        ),
        "Table: Summary Statistics Across 966 Companies (tab:summary_stat)",
        "Money is added up as it is; firms of different currencies share a row.",
        summary_statistics,
    ),
)
