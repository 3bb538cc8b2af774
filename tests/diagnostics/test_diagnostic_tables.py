"""Diagnostics as tables: declared columns, planted truths found, and what is missing is said, not guessed."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import pytest
from helpers.diagnostic_tables import invented_firms, small_results

from cbmt_core import duck
from cbmt_core.diagnostics.calibration import calibration_tables
from cbmt_core.diagnostics.comovement import MEASURES
from cbmt_core.diagnostics.data import gather_diagnostics
from cbmt_core.diagnostics.difficulty import FEATURES
from cbmt_core.diagnostics.measured import measure_firm
from cbmt_core.diagnostics.results import comovement_tables, difficulty_tables
from cbmt_core.diagnostics.routing import routing_tables
from cbmt_core.evaluation import Relations
from cbmt_core.schema import DIAGNOSTIC_TABLES
from cbmt_core.simulate import Economy, sample_cohorts


def stored(frames: dict[str, pd.DataFrame]) -> None:
    """Every frame fits its table: columns, types, key, NOT NULL."""
    with duck.connect() as con:
        for name, frame in frames.items():
            table = DIAGNOSTIC_TABLES[name]
            columns = ", ".join(
                f'"{c.name}" {c.type}{"" if c.nullable else " NOT NULL"}' for c in table.columns
            )
            key = ", ".join(f'"{part}"' for part in table.key)
            con.execute(f"CREATE TABLE {name} ({columns}, PRIMARY KEY ({key}))")
            con.register("rows", frame)
            con.execute(f"INSERT INTO {name} SELECT {table.select()} FROM rows")
            assert con.execute(f"SELECT count(*) FROM {name}").fetchall() == [(len(frame),)]


@pytest.mark.slow
def test_every_table_across_firms_is_made_and_fits_its_declaration():
    results = small_results()
    assert set(results) == {name for name, table in DIAGNOSTIC_TABLES.items() if not table.partitioned}
    assert all(len(frame) for frame in results.values())
    assert results["diagnostic"]["made"].all()
    stored(results)


@pytest.mark.slow
def test_what_was_planted_is_found():
    results = small_results()
    rates = results["comovement_tercile"].set_index("tercile")[["rate", "adjusted_rate"]]
    assert (rates.loc["low"] < rates.loc["high"]).all()
    bands = results["difficulty_band"].query("model == 'cbmt'").set_index("band")["smape"]
    assert bands["low"] < bands["medium"] < bands["high"]
    leading = results["difficulty_importance"]["feature"].head(3)
    assert {"total_orders", "cohort_sales_cv"} <= set(leading)


@pytest.mark.parametrize("n", [0, 12])
def test_a_small_panel_has_no_numbers_and_says_how_many_firms_are_needed(n):
    data = invented_firms(n)
    for make in (comovement_tables, difficulty_tables, routing_tables):
        frames, state = make(data)
        assert not state.made
        assert state.firms < state.needed
        assert n == 0 or (str(n) in state.note and str(state.needed) in state.note)
        stored({**frames, "diagnostic": state.frame()})
    frames, _ = comovement_tables(data)
    assert frames["comovement_test"]["estimate"].isna().all()
    assert (frames["comovement_test"]["note"] != "").all()


def test_adjusted_results_are_those_of_the_adjusted_measures():
    data = invented_firms(60)
    shuffled = np.random.default_rng(1).permutation(data.adjusted_measures.to_numpy())
    other = pd.DataFrame(shuffled, data.adjusted_measures.index, data.adjusted_measures.columns)
    frames, _ = comovement_tables(replace(data, adjusted_measures=other), shuffles=5)
    swapped, _ = comovement_tables(replace(data, measures=other), shuffles=5)
    for name, columns in (("comovement_test", ("estimate", "low", "high", "p")), ("comovement_tercile", ("rate",)),
                          ("comovement_column", ("coefficient", "q"))):  # fmt: skip
        for column in columns:
            adjusted = frames[name][f"adjusted_{column}"]
            assert list(adjusted.dropna()) == list(swapped[name][column].dropna())
            assert adjusted.dropna().tolist() != frames[name][column].dropna().tolist()


def test_without_networks_the_missing_models_are_named():
    data = invented_firms(60, models={"cohort_glm": 0.0, "gls_v2": 3.0}, outcomes=["total_sales"])
    for make in (comovement_tables, routing_tables):
        frames, state = make(data)
        assert not state.made
        assert "cbmt" in state.note
        assert "single_task" in state.note
        stored(frames)
    # A score needs no forecast.
    assert comovement_tables(data)[0]["comovement_score"]["score"].notna().all()


def test_without_tables_calibration_says_so():
    frames, state = calibration_tables(None)
    assert all(frame.empty for frame in frames.values())
    assert "[calibration]" in state.note
    stored({**frames, "diagnostic": state.frame()})


@pytest.fixture(scope="module")
def panel():
    economy = Economy(firms=2, seed=7, scale=0.02)
    return sample_cohorts(economy, economy.specs()[0]).panel()


def test_a_firms_measures_see_nothing_after_the_origin(panel):
    kept = measure_firm(panel.until(panel.design.origin), 100.0)
    stored(kept)
    assert list(kept["comovement_measure"]["measure"]) == list(MEASURES)
    assert list(kept["difficulty_feature"]["feature"]) == list(FEATURES)
    after = panel.weeks > np.datetime64(panel.design.origin, "D")
    for values in (panel.S, panel.A):
        values[after] = 1e6
    for values in (panel.R, panel.V, panel.Y):
        values[:, after] *= 7
    for name, frame in measure_firm(panel.until(panel.design.origin), 100.0).items():
        pd.testing.assert_frame_equal(frame, kept[name])


def test_data_are_gathered_from_tables_for_whole_firms_at_one_origin_and_horizon():
    economy = Economy(firms=1)
    firms = ["a", "b", "b~s"]
    with duck.connect() as con:
        con.execute(
            "CREATE TABLE firm AS SELECT f AS firm, CASE WHEN f LIKE '%~%' THEN 's' END AS segment, 'USD' AS currency, "
            "CASE WHEN f = 'a' THEN 'Shops' END AS industry FROM unnest(['a', 'b', 'b~s']) t(f)"
        )
        for table, column, name in (
            ("comovement_measure", "measure", "pearson"),
            ("difficulty_feature", "feature", "x"),
        ):
            con.execute(
                f"CREATE TABLE {table} AS SELECT firm, '{name}' AS {column}, 1.5 AS value, 0.5 AS adjusted FROM firm"
            )
        con.execute(
            "CREATE TABLE firm_history AS SELECT firm, 2.0 AS scale, 0.1 AS dispersion FROM firm WHERE firm <> 'b'"
        )
        rows = [(f, m, o, "total_sales", h, v) for f in firms for m, v in (("cbmt", 1.0), ("joint", 2.0))
                for o in (economy.design.origin, date(2018, 1, 7)) for h in ("1q", "full")]  # fmt: skip
        accuracy = pd.DataFrame(rows, columns=["firm", "model", "origin", "outcome", "horizon", "smape"])
        data = gather_diagnostics(con, Relations(), economy.design, accuracy)
    assert list(data.errors.index) == ["a", "b"]
    assert list(data.industry) == ["Shops", "(none)"]
    assert list(data.smape("total_sales", "joint")) == [2.0, 2.0]
    assert data.smape("total_sales", "single_task").isna().all()
    assert data.lacking(["cbmt", "single_task"]) == ["single_task"]
    assert data.controls.isna().any(axis=1).tolist() == [False, True]
    assert list(data.measures["pearson"]) == [1.5, 1.5]
    assert list(data.adjusted_measures["pearson"]) == [0.5, 0.5]
