"""Cohort tables straight from orders with pandas: an independent reading of the cohort rules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from cbmt_core.design import StudyDesign


@dataclass(frozen=True)
class Tables:
    """Row 0: customers with an order before the study. Row 1 + k: first order in study week k."""

    size: npt.NDArray[np.float64]
    repeat_orders: npt.NDArray[np.float64]
    sales: npt.NDArray[np.float64]
    active: npt.NDArray[np.float64]


def tables_of(orders: pd.DataFrame, design: StudyDesign) -> Tables:
    start, weeks = pd.Timestamp(design.study.first), len(design.study)
    week = (orders["order_time"] - start).dt.days // 7
    frame = pd.DataFrame({"customer": orders["customer"], "week": week, "amount": orders["amount"]})
    frame["cohort"] = frame.groupby("customer")["week"].transform("min").clip(lower=-1)
    size = frame.groupby("cohort")["customer"].nunique().reindex(range(-1, weeks), fill_value=0)
    seen = frame[(frame["week"] >= 0) & (frame["week"] < weeks)]

    def dense(values: pd.Series) -> npt.NDArray[np.float64]:
        table = np.zeros((weeks + 1, weeks))
        cohort, week = (values.index.get_level_values(level).to_numpy() for level in ("cohort", "week"))
        table[cohort + 1, week] = values.to_numpy(float)
        return table

    cells = seen.groupby(["cohort", "week"])
    repeat = dense(cells.size())
    repeat[np.arange(1, weeks + 1), np.arange(weeks)] -= size.to_numpy()[1:]
    return Tables(
        size.to_numpy(float), repeat, dense(cells["amount"].sum()), dense(cells["customer"].nunique())
    )
