"""Bands of one firm: they know nothing after the origin, and neither order nor company of rows matters."""

from dataclasses import replace
from datetime import timedelta

import duckdb
import numpy as np
import pandas as pd
import pytest
from helpers.panels import calibration, ordinary, scramble_after

from cbmt_core.bands import (
    SALES,
    BridgeBaseline,
    FirmBands,
    band_tables,
    error_paths,
    realised_errors,
    sales_errors,
)
from cbmt_core.evaluation import Relations
from cbmt_core.fits import fit_model
from cbmt_core.forecasting import forecast_fit, forecast_tables
from cbmt_core.timeline import Origin
from cbmt_core.uncertainty import DRIVERS

H, BACK = 13, 16
PLUS, NAIVE, ALONE = "cbmt_plus", "seasonal_naive", "sales_alone"
BASELINE = BridgeBaseline(repeat_orders=900.0, repeat_sales=21_000.0, initial_sales=9_000.0)


def forecasts(panel, purpose):
    """Forecasts of two models with drivers, and one of sales alone: those of the second, without its drivers."""
    tables = forecast_tables([forecast_fit(fit_model(m, panel, 1), panel, H) for m in (PLUS, NAIVE)], purpose)
    alone = tables["forecast_week"].query("model == @NAIVE").assign(model=ALONE)
    alone[["acquired", "orders", "repeat_orders", "ropc", "aov"]] = np.nan
    tables["forecast_week"] = pd.concat([tables["forecast_week"], alone])
    return tables


@pytest.fixture(scope="module")
def panel():
    return calibration(ordinary())


@pytest.fixture(scope="module")
def paths():
    rng = np.random.default_rng(3)
    rows = [
        {"model": model, "firm": f"firm {k}", "backtest": pd.Timestamp("2017-01-01"), "horizon": t,
         **{name: 0.5 * rng.standard_normal() for name in (*DRIVERS, *SALES)}}
        for model in (NAIVE, ALONE) for k in range(30) for t in range(1, H + 1)
    ]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def firm(panel, paths):
    made = forecasts(panel, "live")
    return FirmBands(
        panel=panel,
        baseline=BASELINE,
        forecasts=made["forecast_cohort_week"],
        weeks=made["forecast_week"],
        factors=pd.DataFrame(columns=["model", "driver"]),
        paths=paths,
        draws=100,
    )


def made_of(firm):
    return band_tables(
        firm, [PLUS, NAIVE, ALONE], Origin(firm.panel.origin, H, "live"), keep_draws=[NAIVE, ALONE]
    )


@pytest.fixture(scope="module")
def made(firm):
    return made_of(firm)


def test_the_order_of_rows_and_models_changes_nothing(firm, made):
    mixed = replace(
        firm,
        **{
            name: getattr(firm, name).sample(frac=1.0, random_state=5)
            for name in ("forecasts", "weeks", "paths")
        },
    )
    for name, frame in made_of(mixed).items():
        pd.testing.assert_frame_equal(frame, made[name])
    alone = band_tables(firm, [NAIVE], Origin(firm.panel.origin, H, "live"))["forecast_band"]
    expected = made["forecast_band"].query("model == @NAIVE").reset_index(drop=True)
    pd.testing.assert_frame_equal(alone, expected)


def test_a_forecast_of_sales_alone_has_bands_of_sales_alone(firm, made):
    ranges = made["forecast_band"].query("model == @ALONE")
    assert set(ranges["outcome"]) == {"sales"}
    assert set(ranges["source"]) == {"calibrated"}
    assert (ranges["low"] >= 0).all()
    assert (ranges["low"] < ranges["high"]).all()
    drawn = made["forecast_draw"].query("model == @ALONE")
    assert drawn["acquired"].isna().all()
    year = ranges.query("period == 'horizon' and level == 80").iloc[0]
    sums = drawn.groupby("draw")["sales"].sum()
    np.testing.assert_allclose([year["low"], year["high"]], np.quantile(sums, [0.1, 0.9]))
    centre = firm.weeks.query("model == @ALONE")["sales"].sum()
    assert year["low"] < centre < year["high"]


def test_without_error_paths_it_borrows_the_spread_of_the_model_that_knows_its_errors(firm):
    ranges = made_of(replace(firm, paths=firm.paths.iloc[:0]))["forecast_band"]
    year = ranges.query("outcome == 'sales' and period == 'horizon' and level == 80").set_index("model")
    assert year.loc[ALONE, "source"] == "borrowed"
    relative = (year["high"] - year["low"]) / year["median"]
    assert relative[ALONE] == pytest.approx(relative[PLUS], rel=0.25)


def database(panel, forecasts):
    con = duckdb.connect()
    orders = panel.orders.sum(axis=0)
    con.register("firm_week", pd.DataFrame({
        "firm": panel.firm, "week": pd.to_datetime(panel.weeks).date, "sales": panel.S, "acquired": panel.A,
        "orders": orders, "repeat_orders": orders - panel.A}))  # fmt: skip
    i, t = np.nonzero(panel.born)
    repeats = panel.size[i] * panel.R[i, t]
    con.register("cohort_week", pd.DataFrame({
        "firm": panel.firm, "cohort": pd.to_datetime(panel.weeks[0] + 7 * panel.birth[i]).date,
        "week": pd.to_datetime(panel.weeks[t]).date, "repeat_orders": repeats,
        "repeat_sales": repeats * np.nan_to_num(panel.V[i, t])}))  # fmt: skip
    for name in ("forecast_spread", "forecast_week"):
        frame = forecasts[name]
        dates = {column: pd.to_datetime(frame[column]).dt.date for column in ("origin", "week")}
        con.register(name, frame.assign(**dates))
    return con


def test_what_happens_after_the_origin_calibrates_nothing():
    whole = ordinary()
    origin = calibration(whole).origin
    made = forecasts(whole.until(origin - timedelta(weeks=BACK)), "backtest")
    later = scramble_after(whole, origin, 9)
    assert not np.array_equal(later.S, whole.S)
    found = []
    for panel in (whole, later):
        con = database(panel, made)
        drivers = [realised_errors(con, Relations(), origin, model) for model in (PLUS, NAIVE)]
        alone = sales_errors(con, Relations(), origin, ALONE)
        assert all(len(errors) == H for errors in (*drivers, alone))
        found.append([*drivers, alone, error_paths(con, Relations(), drivers[1], H),
                      error_paths(con, Relations(), alone, H, SALES)])  # fmt: skip
    for one, other in zip(*found, strict=True):
        pd.testing.assert_frame_equal(one, other)
    # The same backtest judged a week earlier knows a week less.
    earlier = origin - timedelta(weeks=BACK - H + 1)
    assert len(sales_errors(con, Relations(), earlier, ALONE)) == H - 1
    assert len(realised_errors(con, Relations(), earlier, PLUS)) == H - 1
    sales = whole.S[-H - (BACK - H) - len(whole.weeks) + whole.until(origin).n_weeks :][:H]
    forecast = made["forecast_week"].query("model == @ALONE")["sales"].to_numpy()
    least = 0.01 * forecast.mean()
    np.testing.assert_allclose(found[0][2]["sales_error"], np.log((sales + least) / (forecast + least)))
