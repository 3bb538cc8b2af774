"""The bridge adds up, equals one counted cohort by cohort, and drops no firm without a reason."""

from dataclasses import replace
from datetime import date, timedelta

import duckdb
import numpy as np
import pandas as pd
import pytest
from helpers.evaluation_tables import cohort_week_of, fill, perturbed
from hypothesis import given, settings
from hypothesis import strategies as st

from cbmt_core import duck
from cbmt_core.bridge import (
    CONTRIBUTIONS,
    REALISED,
    TOLERANCE,
    BridgeWindows,
    bridge_errors,
    bridge_table,
    contributions,
    tolerance,
)
from cbmt_core.compose import compose
from cbmt_core.design import StudyDesign
from cbmt_core.evaluation import Relations, whole_firms
from cbmt_core.forecasting import ModelRun
from cbmt_core.models import FitRecord
from cbmt_core.panel import FirmPanel
from cbmt_core.schema import TABLES
from cbmt_core.simulate import Economy, sample_cohorts
from cbmt_core.timeline import Window

DESIGN = StudyDesign()
WINDOWS = BridgeWindows.of(DESIGN)
SOURCES = CONTRIBUTIONS[1:]


def run_of(panel, model, origin=DESIGN.origin, horizon=47, seed=0):
    seen = panel.until(origin)
    forecast = compose(seen, perturbed(seen, horizon, 0.3, seed))
    return ModelRun(panel.firm, model, origin, seed, 0.0, FitRecord(), forecast)


@pytest.fixture(scope="module")
def panels():
    economy = Economy(firms=4, scale=0.05)
    drawn = (sample_cohorts(economy, spec).panel() for spec in economy.specs())
    return [FirmPanel.from_cohort_week(p.firm, cohort_week_of(p), p.design) for p in drawn]


@pytest.fixture
def con(panels):
    runs = [run_of(panel, model, seed=k) for panel in panels for k, model in enumerate(("rf", "xgb"))]
    with duck.connect() as connection:
        fill(connection, panels, runs)
        yield connection


def frame_of(panel):
    return cohort_week_of(panel).assign(
        cohort=lambda f: pd.to_datetime(f["cohort"]).dt.date, week=lambda f: pd.to_datetime(f["week"]).dt.date
    )


def by_hand(actual, predicted, windows):
    """Endpoints summed row by row; `predicted` are (cohort, week, orders, sales) of forecast weeks, or None."""
    q0 = s0 = i0 = q1 = s1 = g1 = 0.0
    baseline, target = set(windows.baseline), set(windows.target)
    for row in actual.itertuples():
        if row.week in baseline:
            q0, s0, i0 = q0 + row.repeat_orders, s0 + row.repeat_sales, i0 + row.initial_sales
        seen = predicted is None or row.week <= windows.origin
        if seen and row.week in target:
            if row.cohort <= windows.cutoff:
                q1, s1 = q1 + row.repeat_orders, s1 + row.repeat_sales
            else:
                g1 += row.sales
    for cohort, week, orders, sales in predicted or ():
        if week in target and week > windows.origin:
            if cohort <= windows.cutoff:
                q1, s1 = q1 + orders, s1 + sales
            else:
                g1 += sales
    a0, a1 = s0 / q0, s1 / q1
    return {
        "order_volume": (q1 - q0) * (a0 + a1) / 2,
        "spend_per_order": (a1 - a0) * (q0 + q1) / 2,
        "net_replenishment": g1 - i0,
        "sales_change": s1 + g1 - s0 - i0,
    }


def forecast_rows(run):
    f = run.forecast
    first = f.weeks[0].astype(object)
    for cohort, week in zip(*np.nonzero(np.isfinite(f.Y)), strict=True):
        born = first + timedelta(days=7 * int(f.birth[cohort]))
        orders = f.size[cohort] * (f.R[cohort, week] + (f.birth[cohort] == week))
        yield born, first + timedelta(days=7 * int(week)), orders, f.Y[cohort, week]


def test_windows_are_the_published_ones():
    assert (WINDOWS.baseline.first, WINDOWS.baseline.last) == (date(2018, 4, 8), date(2019, 2, 24))
    assert (WINDOWS.target.first, WINDOWS.target.last) == (date(2019, 4, 7), date(2020, 2, 23))
    assert WINDOWS.cutoff == date(2019, 2, 24)
    assert BridgeWindows.ahead(DESIGN.origin, 47) == WINDOWS


@pytest.mark.parametrize(
    "windows",
    [
        WINDOWS,
        BridgeWindows.ahead(date(2019, 2, 24), 52),  # next year against last year, at another origin
        BridgeWindows(Window(date(2018, 1, 7), 10), Window(date(2019, 1, 6), 20), date(2019, 2, 24)),
    ],
    ids=["study", "year ahead", "partly observed target of another length"],
)
def test_contributions_equal_those_counted_row_by_row(panels, windows):
    horizon = 53
    runs = [run_of(panel, "rf", windows.origin, horizon) for panel in panels[:2]]
    with duck.connect() as con:
        fill(con, panels[:2], runs)
        table = bridge_table(con, Relations(), windows).set_index(["firm", "model"])
    for panel, run in zip(panels[:2], runs, strict=True):
        assert table.loc[(panel.firm, REALISED), "eligible"] == (windows.target.last <= panel.origin)
        expected = {
            REALISED: by_hand(frame_of(panel), None, windows),
            "rf": by_hand(frame_of(panel), forecast_rows(run), windows),
        }
        for model, parts in expected.items():
            row = table.loc[(panel.firm, model)]
            for name, value in parts.items():
                assert row[name] == pytest.approx(value, rel=1e-9, abs=1e-6)
                assert row[f"{name}_points"] == pytest.approx(100 * value / row["baseline_sales"])


def test_every_row_reconciles_also_after_storage(con, tmp_path):
    table = bridge_table(con, Relations(), WINDOWS)
    assert len(table) == 12
    assert table["eligible"].all()
    con.register("rows", table)
    con.execute(f"COPY (SELECT {TABLES['bridge'].select()} FROM rows) TO '{tmp_path}/bridge.parquet'")
    with duckdb.connect(str(tmp_path / "stored.duckdb")) as stored:
        stored.execute(f"CREATE TABLE bridge AS FROM '{tmp_path}/bridge.parquet'")
        back = stored.execute("FROM bridge").df()
    for frame in (table, back):
        change = frame["target_sales"] - frame["baseline_sales"]
        assert (frame[list(SOURCES)].sum(axis=1) - change).abs().max() < TOLERANCE
        repeats = frame["repeat_sales_1"] - frame["repeat_sales_0"]
        assert (frame["order_volume"] + frame["spend_per_order"] - repeats).abs().max() < TOLERANCE
        assert frame["discrepancy"].max() < TOLERANCE
    for name in (*CONTRIBUTIONS, "repeat_spend_0", "repeat_spend_1"):
        np.testing.assert_array_equal(back[name], table[name])


def test_both_sides_start_from_the_same_baseline(con):
    table = bridge_table(con, Relations(), WINDOWS)
    assert (table.groupby("firm")["baseline_sales"].agg(np.ptp) == 0).all()


def test_a_target_yet_to_come_has_no_realised_row(panels):
    windows = BridgeWindows.ahead(DESIGN.study.last)
    runs = [run_of(panels[0], "rf", windows.origin, 52)]
    with duck.connect() as con:
        fill(con, panels[:1], runs)
        table = bridge_table(con, Relations(), windows)
        nothing = bridge_errors(table, whole_firms(con, Relations()))
    assert list(table["model"]) == ["rf"]
    assert table["eligible"].all()
    assert nothing.mae.empty
    assert nothing.methods.empty


money = st.just(0.0) | st.floats(1e-4, 1e9)
count = st.floats(1e-3, 1e7)


@settings(deadline=None)
@given(count, money, money, count, money, money)
def test_contributions_sum_to_the_change(q0, s0, i0, q1, s1, g1):
    parts = contributions(*map(np.array, (q0, s0, i0, q1, s1, g1)))
    change = (s1 + g1) - (s0 + i0)
    # An average spend that is huge against the other end's orders loses digits of both.
    size = s0 + i0 + s1 + g1 + (q0 + q1) * (s0 / q0 + s1 / q1)
    assert abs(sum(parts) - change) <= tolerance(np.array(size))
    assert abs(parts.order_volume + parts.spend_per_order - (s1 - s0)) <= tolerance(np.array(size))


@settings(deadline=None)
@given(count, money, money, count, money, money, st.sampled_from([0.25, 2.0, 1024.0]))
def test_money_scales_the_contributions(q0, s0, i0, q1, s1, g1, by):
    one = contributions(*map(np.array, (q0, s0, i0, q1, s1, g1)))
    other = contributions(*map(np.array, (q0, by * s0, by * i0, q1, by * s1, by * g1)))
    np.testing.assert_array_equal(np.array(other), by * np.array(one))  # powers of two: exactly


@settings(deadline=None)
@given(count, money, money, count, money, money)
def test_exchanging_the_endpoints_changes_every_sign(q0, s0, i0, q1, s1, g1):
    # The formula is antisymmetric in (Q0, S0, I0) and (Q1, S1, G1). Windows themselves cannot be
    # exchanged: the cutoff makes later cohorts new, so a target must follow its baseline.
    ahead = contributions(*map(np.array, (q0, s0, i0, q1, s1, g1)))
    back = contributions(*map(np.array, (q1, s1, g1, q0, s0, i0)))
    np.testing.assert_array_equal(np.array(back), -np.array(ahead))


@settings(deadline=None)
@given(count, money, money)
def test_nothing_changed_contributes_nothing(q, s, g):
    parts = contributions(*map(np.array, (q, s, g, q, s, g)))
    assert list(map(float, parts)) == [0, 0, 0]


def test_windows_that_make_no_bridge_are_refused():
    year = Window(date(2018, 1, 7), 52)
    with pytest.raises(ValueError, match="after the baseline"):
        BridgeWindows(year, year.shifted(26), year.last)
    with pytest.raises(ValueError, match="must be observed"):
        BridgeWindows(year, year.shifted(52), date(2018, 2, 4))
    with pytest.raises(ValueError, match="at least one week"):
        BridgeWindows(year, Window(date(2019, 1, 6), 0), year.last)


def reason_after(con, change, model="rf", firm=None):
    con.execute(change)
    table = bridge_table(con, Relations(), WINDOWS)
    firm = firm or con.execute("SELECT min(firm) FROM firm").fetchall()[0][0]
    row = table.set_index(["firm", "model"]).loc[(firm, model)]
    assert row["eligible"] == row["strict"] == (row["reason"] is None)
    return row["reason"]


FIRST = "firm = (SELECT min(firm) FROM firm)"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (f"UPDATE forecast_cohort_week SET ropc = 0, sales = 0 WHERE {FIRST} AND cohort <= DATE '2019-02-24'; "
         "UPDATE forecast_week f SET sales = (SELECT sum(sales) FROM forecast_cohort_week c WHERE "
         f"(c.firm, c.model, c.week) = (f.firm, f.model, f.week)) WHERE {FIRST}",
         "no repeat orders of the existing base in the target"),
        (f"UPDATE forecast_cohort_week SET ropc = NULL WHERE {FIRST} AND week = DATE '2019-06-02'", "not known"),
        (f"UPDATE forecast_cohort_week SET sales = 'nan' WHERE {FIRST} AND week = DATE '2019-06-02'", "not known"),
        (f"DELETE FROM forecast_cohort_week WHERE {FIRST}", "not known"),
        (f"UPDATE forecast_week SET sales = sales + 0.001 WHERE {FIRST}", "disagree by 0.047"),
        (f"DELETE FROM forecast_week WHERE {FIRST} AND week > DATE '2019-12-01'", "35 of the 47 weeks of the target"),
        (f"DELETE FROM forecast_week WHERE {FIRST}", "0 of the 47 weeks of the target"),
        (f"UPDATE model_fit SET succeeded = false, reason = 'dead' WHERE {FIRST}", "there is no forecast: dead"),
        (f"DELETE FROM firm_week WHERE {FIRST} AND week = DATE '2018-06-03'", "46 of the 47 weeks of the baseline"),
        (f"UPDATE cohort_week SET repeat_orders = 0 WHERE {FIRST} AND week < DATE '2019-03-01'", "in the baseline"),
        (f"UPDATE cohort_week SET sales = sales + 1, repeat_sales = repeat_sales + 1 WHERE {FIRST}", "disagree by"),
    ],
)  # fmt: skip
def test_each_exclusion_has_its_reason(con, change, said):
    assert said in reason_after(con, change)


def test_an_endpoint_with_an_unknown_cohort_is_unknown_not_the_sum_of_the_others(con):
    con.execute(f"UPDATE forecast_cohort_week SET sales = NULL WHERE {FIRST} AND week = DATE '2019-06-02'")
    table = bridge_table(con, Relations(), WINDOWS).set_index(["firm", "model"])
    row = table.loc[(con.execute("SELECT min(firm) FROM firm").fetchall()[0][0], "rf")]
    unknown = [
        "repeat_orders_1",
        "repeat_sales_1",
        "new_sales_1",
        "target_sales",
        "sales_change",
        "order_volume",
    ]
    assert row[unknown].isna().all()
    assert row[["repeat_orders_0", "repeat_sales_0", "baseline_sales"]].notna().all()


def test_tables_may_differ_by_what_doubles_can_hold_of_their_size(con):
    """Sixteen roundings of the sum of both sides, where that is more than a millionth."""
    money = {"cohort_week": ("repeat_sales", "initial_sales", "sales"), "firm_week": ("sales",)}
    for name, columns in money.items():
        for column in columns:
            con.execute(
                f"ALTER TABLE {name} ALTER {column} TYPE DOUBLE; UPDATE {name} SET {column} = 1e9 * {column}"
            )
    table = bridge_table(con, Relations(), WINDOWS, forecasts=False)
    size = table["baseline_sales"] + table["target_sales"].abs()
    assert (size > 1e12).all()
    allowed = 16 * np.finfo(float).eps * size
    con.execute(
        "UPDATE firm_week SET sales = sales + ? WHERE week = ?",
        [float(0.6 * allowed.min()), WINDOWS.target.last],
    )
    assert bridge_table(con, Relations(), WINDOWS, forecasts=False)["reason"].isna().all()


def test_tables_that_differ_by_just_what_is_tolerated_are_used(con, monkeypatch):
    first = bridge_table(con, Relations(), WINDOWS, forecasts=False)
    size = first["baseline_sales"] + first["target_sales"].abs()
    held = dict(zip(size, first["discrepancy"], strict=True))
    monkeypatch.setattr("cbmt_core.bridge.table.tolerance", lambda of: held[float(of)])
    assert bridge_table(con, Relations(), WINDOWS, forecasts=False)["reason"].isna().all()


def test_spend_per_order_is_sales_over_orders(con):
    table = bridge_table(con, Relations(), WINDOWS)
    for side in "01":
        spend = table[f"repeat_sales_{side}"] / table[f"repeat_orders_{side}"]
        np.testing.assert_allclose(table[f"repeat_spend_{side}"], spend)
    np.testing.assert_allclose(
        table["sales_change_points"], 100 * table["sales_change"] / table["baseline_sales"]
    )


def test_less_than_one_repeat_order_is_enough(con):
    """A forecast counts in fractions of orders."""
    change = (
        f"UPDATE forecast_cohort_week SET ropc = ropc / 1e6, sales = sales / 1e9 WHERE {FIRST} AND cohort <= "
        "DATE '2019-02-24'; UPDATE forecast_week f SET sales = (SELECT fsum(sales) FROM forecast_cohort_week c WHERE "
        f"(c.firm, c.model, c.week) = (f.firm, f.model, f.week)) WHERE {FIRST}"
    )
    con.execute(change)
    # The weeks of the target that were observed already have orders of their own; without them less than one is left.
    windows = replace(WINDOWS, target=Window(WINDOWS.origin + timedelta(weeks=1), 46))
    windows = replace(windows, baseline=Window(windows.target.first - timedelta(weeks=52), 46))
    table = bridge_table(con, Relations(), windows).set_index(["firm", "model"])
    row = table.loc[(con.execute("SELECT min(firm) FROM firm").fetchall()[0][0], "rf")]
    assert 0 < row["repeat_orders_1"] < 1
    assert 0 < row["repeat_sales_1"] < 1
    assert row["reason"] is None
    assert row["strict"]


def test_a_firm_without_cohorts_keeps_its_row(con):
    reason = reason_after(con, f"DELETE FROM cohort_week WHERE {FIRST}", model=REALISED)
    assert reason == "repeat orders or sales of the baseline are not known for every cohort"


def test_nothing_cancels_where_nothing_was_summed(con):
    con.execute(f"UPDATE cohort_week SET repeat_orders = 0, repeat_sales = 0 WHERE {FIRST}")
    table = bridge_table(con, Relations(), WINDOWS, forecasts=False)
    assert list(table["cancellation"]) == [1.0] * len(table)


PARTLY = BridgeWindows(Window(date(2018, 1, 7), 10), Window(date(2019, 3, 3), 20), date(2019, 3, 31))
"""Five weeks of the target are observed, the others forecast."""


@pytest.mark.parametrize("left", ["true", f"cohort > DATE '{PARTLY.cutoff}'"], ids=["all", "new cohorts"])
def test_what_cancels_is_measured_over_observed_and_forecast_weeks(con, left):
    """Also where no cohort of the existing base was forecast."""
    con.execute(f"DELETE FROM forecast_cohort_week WHERE {FIRST} AND NOT ({left})")
    con.execute(
        f"UPDATE forecast_cohort_week SET sales = -sales WHERE {FIRST} AND week = DATE '2019-04-14'; "
        f"UPDATE cohort_week SET repeat_sales = -repeat_sales WHERE {FIRST} AND week = DATE '2019-03-10'"
    )
    firm = con.execute("SELECT min(firm) FROM firm").fetchall()[0][0]
    parts = con.execute(
        "SELECT repeat_sales::DOUBLE FROM cohort_week WHERE firm = $firm AND cohort <= $cutoff AND week BETWEEN "
        "$first AND $origin UNION ALL SELECT sales FROM forecast_cohort_week WHERE firm = $firm AND model = 'rf' "
        "AND cohort <= $cutoff AND week BETWEEN $origin + 1 AND $last",
        {"firm": firm, "cutoff": PARTLY.cutoff, "first": PARTLY.target.first, "origin": PARTLY.origin,
         "last": PARTLY.target.last},
    ).df().iloc[:, 0]  # fmt: skip
    row = bridge_table(con, Relations(), PARTLY).set_index(["firm", "model"]).loc[(firm, "rf")]
    assert row["cancellation"] == pytest.approx(abs(parts.sum()) / parts.abs().sum(), rel=1e-9)
    assert row["cancellation"] < 0.99


def test_what_cancels_is_measured(con):
    """|sum| over the sum of absolute values, the smallest of the four."""
    con.execute(
        f"UPDATE cohort_week SET repeat_sales = -repeat_sales, sales = initial_sales - repeat_sales WHERE {FIRST} "
        "AND week BETWEEN DATE '2018-06-03' AND DATE '2018-07-01'"
    )
    table = bridge_table(con, Relations(), WINDOWS).set_index(["firm", "model"])
    firm = con.execute("SELECT min(firm) FROM firm").fetchall()[0][0]
    kept, gross = con.execute(
        "SELECT sum(repeat_sales)::DOUBLE, sum(abs(repeat_sales))::DOUBLE FROM cohort_week WHERE firm = ? AND week "
        "BETWEEN ? AND ?", [firm, WINDOWS.baseline.first, WINDOWS.baseline.last]
    ).fetchall()[0]  # fmt: skip
    assert table.loc[(firm, "rf"), "cancellation"] == pytest.approx(kept / gross)
    others = table.drop(index=firm, level="firm")
    assert (others["cancellation"] == 1).all()
    assert others["strict"].all()


def test_sums_left_over_from_cancellation_are_not_used(con):
    # Two rows that cancel but for a hundred-millionth of a millionth.
    con.execute("CREATE OR REPLACE TABLE cohort_week AS SELECT * REPLACE (CAST(repeat_orders AS DOUBLE) "
                "AS repeat_orders) FROM cohort_week")  # fmt: skip
    change = (
        f"UPDATE cohort_week SET repeat_orders = 0 WHERE {FIRST} AND week < DATE '2019-03-01'; "
        f"UPDATE cohort_week SET repeat_orders = 1e14 + 1 WHERE {FIRST} AND (cohort, week) = "
        "(DATE '2018-01-07', DATE '2018-06-03'); UPDATE cohort_week SET repeat_orders = -1e14 "
        f"WHERE {FIRST} AND (cohort, week) = (DATE '2018-01-07', DATE '2018-06-10')"
    )
    assert reason_after(con, change, model=REALISED) == "repeat orders of the baseline cancel out"


def hand_made(parts, eligible=None, strict=None):
    """A bridge table with these (model -> firm -> change) and everything in order-volume; baseline 200."""
    rows = [
        {"firm": firm, "model": model, **{name: value if name in CONTRIBUTIONS[:2] else 0.0 for name in CONTRIBUTIONS}}
        for model, firms in parts.items()
        for firm, value in firms.items()
    ]  # fmt: skip
    frame = pd.DataFrame(rows).assign(
        baseline_first=WINDOWS.baseline.first, target_first=WINDOWS.target.first
    )
    for name in CONTRIBUTIONS:
        frame[f"{name}_points"] = frame[name] / 2
    keys = pd.Series(list(zip(frame["firm"], frame["model"], strict=True)))
    frame["eligible"] = ~keys.isin(eligible or [])
    frame["strict"] = frame["eligible"] & ~keys.isin(strict or [])
    frame["reason"] = np.where(frame["eligible"], None, "no repeat orders")
    return frame


def firms_of(names, currency="USD"):
    return pd.DataFrame({"firm": names, "industry": "a", "currency": currency})


PARTS = {
    REALISED: {"a": 10, "b": 20, "c": 30},
    "cbmt": {"a": 12, "b": 16, "c": 30},
    "rf": {"a": 20, "b": 40, "c": 0},
}


def mae_of(errors, sample, model, contribution="sales_change"):
    rows = errors.mae.query("sample == @sample and model == @model and contribution == @contribution")
    return rows.iloc[0]


def test_mae_by_hand():
    errors = bridge_errors(hand_made(PARTS), firms_of(list("abc")))
    assert mae_of(errors, "primary", "cbmt")["mae_currency"] == pytest.approx((2 + 4 + 0) / 3)
    rf = mae_of(errors, "primary", "rf")
    assert rf["mae_points"] == pytest.approx((10 + 20 + 30) / 3 / 2)
    assert rf["difference"] == pytest.approx(((10 + 20 + 30) - (2 + 4 + 0)) / 3 / 2)
    assert (rf["firms"], rf["reference"]) == (3, "cbmt")
    assert mae_of(errors, "primary", "rf", "spend_per_order")["mae_points"] == 0
    assert np.isnan(rf["difference_low"])  # three firms have no interval


def test_only_the_models_asked_for_are_compared_and_the_strict_sample_has_no_intervals():
    names = [f"f{k}" for k in range(12)]
    parts = {
        model: {name: value + k for k, name in enumerate(names)}
        for model, value in ((REALISED, 10), ("cbmt", 12), ("rf", 20), ("xgb", 5))
    }
    parts["rf"]["f0"] = 90
    errors = bridge_errors(hand_made(parts), firms_of(names), models=["cbmt", "rf"])
    assert set(errors.mae["model"]) == set(errors.methods["model"]) == {"cbmt", "rf"}
    assert np.isfinite(
        mae_of(errors, "primary", "rf")[["difference_low", "difference_high"]].astype(float)
    ).all()
    assert np.isnan(mae_of(errors, "strict", "rf")[["difference_low", "difference_high"]].astype(float)).all()


def test_a_firm_the_reference_lacks_is_out_for_every_model():
    errors = bridge_errors(hand_made(PARTS, eligible=[("b", "cbmt")]), firms_of(list("abc")))
    assert mae_of(errors, "primary", "rf")["mae_points"] == pytest.approx((10 + 30) / 2 / 2)
    assert set(errors.mae["firms"]) == {2}


def test_a_model_that_lacks_a_firm_is_not_compared_unless_asked_for():
    frame = hand_made(PARTS, eligible=[("b", "rf")])
    errors = bridge_errors(frame, firms_of(list("abc")))
    assert set(errors.mae["model"]) == {"cbmt"}
    assert set(errors.mae["firms"]) == {3}
    rf = errors.methods.set_index("model").loc["rf"]
    assert (rf["firms"], rf["eligible_firms"], rf["compared"]) == (3, 2, False)
    assert rf["reason"] == "no repeat orders (1)"
    lenient = bridge_errors(frame, firms_of(list("abc")), coverage=0.6)
    assert set(lenient.mae["model"]) == {"cbmt", "rf"}
    assert set(lenient.mae["firms"]) == {2}


def test_the_three_commonest_reasons_are_named():
    names = [f"f{k}" for k in range(12)]
    frame = hand_made({model: dict.fromkeys(names, 1.0) for model in (REALISED, "cbmt", "rf")},
                      eligible=[(name, "rf") for name in names[:10]])  # fmt: skip
    why = dict(zip(names, ["a"] * 4 + ["b"] * 3 + ["c"] * 2 + ["d"], strict=False))
    lacking = (frame["model"] == "rf") & ~frame["eligible"]
    frame.loc[lacking, "reason"] = frame.loc[lacking, "firm"].map(why)
    rf = bridge_errors(frame, firms_of(names)).methods.set_index("model").loc["rf"]
    assert rf["reason"] == "a (4); b (3); c (2)"


def test_the_strict_sample_drops_what_the_reference_or_reality_fails():
    frame = hand_made(PARTS, strict=[("a", "cbmt"), ("c", "rf")])
    errors = bridge_errors(frame, firms_of(list("abc")))
    assert set(errors.mae.query("sample == 'strict'")["firms"]) == {2}
    assert mae_of(errors, "strict", "rf")["mae_points"] == pytest.approx((20 + 30) / 2 / 2)
    assert errors.mae.query("sample == 'strict'")["difference_low"].isna().all()


def test_windows_are_not_mixed():
    frame = hand_made(PARTS)
    with pytest.raises(ValueError, match="same two windows"):
        bridge_errors(pd.concat([frame, frame.assign(target_first=date(2020, 1, 5))]), firms_of(list("abc")))


def test_currencies_are_not_added_up():
    firms = firms_of(list("abc"), ["USD", "EUR", "USD"])
    assert bridge_errors(hand_made(PARTS), firms).mae["mae_currency"].isna().all()


def test_intervals_are_paired_percentile_ones():
    rng = np.random.default_rng(5)
    names = [f"f{k}" for k in range(30)]
    parts = {m: dict(zip(names, rng.normal(0, 40, 30), strict=True)) for m in (REALISED, "cbmt", "rf")}
    row = mae_of(bridge_errors(hand_made(parts), firms_of(names)), "primary", "rf")
    order = sorted(names)
    value = {m: np.array([parts[m][f] for f in order]) for m in parts}
    excess = (np.abs(value["rf"] - value[REALISED]) - np.abs(value["cbmt"] - value[REALISED])) / 2
    drawn = excess[np.random.default_rng(20260626).integers(0, 30, (10_000, 30))].mean(axis=1)
    assert [row["difference_low"], row["difference_high"]] == pytest.approx(
        list(np.percentile(drawn, [2.5, 97.5]))
    )


def test_a_design_without_washout_has_its_bridge_too():
    first = date(2018, 1, 7)
    design = StudyDesign(
        observed_from=first, first_week=first, washout_weeks=0, training_weeks=60, validation_weeks=20,
        holdout_weeks=13, observed_to=first + timedelta(days=7 * 93 - 1),
    )  # fmt: skip
    economy = replace(Economy(firms=1, scale=0.05), design=design)
    panel = sample_cohorts(economy, economy.specs()[0]).panel()
    windows = BridgeWindows.of(design)
    with duck.connect() as con:
        fill(con, [panel], [run_of(panel, "rf", design.origin, 13)])
        table = bridge_table(con, Relations(), windows)
    assert table["eligible"].all(), table["reason"].tolist()
