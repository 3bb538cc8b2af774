"""What is judged of a forecast: a sound one has no findings, and each broken promise is found by its name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from helpers.panels import ordinary

from cbmt_core.forecast_checks import check_forecasts
from cbmt_core.forecasting import forecast_tables, run_models

PANEL = ordinary()
ORIGIN, HORIZON = PANEL.design.validation.last, 13
KNOWN = PANEL.until(ORIGIN)
Tables = dict[str, pd.DataFrame]


@pytest.fixture
def tables() -> Tables:
    return forecast_tables(run_models(PANEL, ["seasonal_naive", "cohort_glm"], ORIGIN, HORIZON, seed=1))


def test_sound_forecasts_have_no_findings(tables: Tables) -> None:
    assert check_forecasts(tables, KNOWN, HORIZON) == []


def change(table: str, column: str, by: Callable[[float], float]) -> Callable[[Tables], None]:
    """Change one number of seasonal_naive's forecast."""

    def changed(tables: Tables) -> None:
        frame = tables[table]
        row = frame.index[frame["model"] == "seasonal_naive"][3]
        frame.loc[row, column] = by(float(frame.loc[row, column]))

    return changed


def drop_a_week(tables: Tables) -> None:
    frame = tables["forecast_week"]
    tables["forecast_week"] = frame.drop(frame.index[frame["model"] == "seasonal_naive"][5])


def scale_all(factor: float) -> Callable[[Tables], None]:
    """The same forecast in other money: it still adds up."""

    def changed(tables: Tables) -> None:
        for table, columns in {"forecast_week": ["sales", "aov"], "forecast_cohort_week": ["sales"]}.items():
            chosen = tables[table]["model"] == "seasonal_naive"
            tables[table].loc[chosen, columns] *= factor

    return changed


@pytest.mark.parametrize(
    ("harm", "words", "fatal"),
    [
        (change("forecast_week", "sales", lambda _: np.nan), "its sales of 20", True),
        (change("forecast_week", "acquired", lambda _: np.inf), "its acquired of 20", True),
        (change("forecast_week", "orders", lambda x: -x), "its orders of 20", True),
        (change("forecast_week", "repeat_orders", lambda x: x + 1), "repeat orders and the sum", True),
        (
            change("forecast_cohort_week", "sales", lambda x: x + 5),
            "the sum of its cohorts' sales differ",
            True,
        ),
        (change("forecast_week", "aov", lambda x: x * 1.01), "orders times their value differ", True),
        (drop_a_week, "has 12 weeks", True),
        (scale_all(4.0), "times the last year's", False),
        (scale_all(0.1), "times the last year's", False),
    ],
)
def test_a_broken_promise_is_found_and_only_of_its_model(
    tables: Tables, harm: Callable[[Tables], None], words: str, fatal: bool
) -> None:
    harm(tables)
    (found,) = check_forecasts(tables, KNOWN, HORIZON)
    assert (found.model, found.fatal) == ("seasonal_naive", fatal)
    assert words in found.text


def test_one_week_out_of_all_proportion_is_a_warning(tables: Tables) -> None:
    week = tables["forecast_week"].loc[tables["forecast_week"]["model"] == "seasonal_naive", "week"].iloc[3]
    for table, columns in {"forecast_week": ["sales", "aov"], "forecast_cohort_week": ["sales"]}.items():
        frame = tables[table]
        frame.loc[(frame["model"] == "seasonal_naive") & (frame["week"] == week), columns] *= 15
    (found,) = check_forecasts(tables, KNOWN, HORIZON)
    assert "the largest one so far" in found.text
    assert not found.fatal


def test_a_forecast_of_sales_alone_is_judged_by_its_sales(tables: Tables) -> None:
    frame = tables["forecast_week"]
    frame[["acquired", "orders", "repeat_orders", "ropc", "aov"]] = np.nan
    tables["forecast_cohort_week"] = tables["forecast_cohort_week"].iloc[:0]
    assert check_forecasts(tables, KNOWN, HORIZON) == []
