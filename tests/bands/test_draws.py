"""Draws are joint paths: deterministic, never negative, exact in their sums, and the same when stored and read."""

import numpy as np
import pandas as pd
import pytest
from helpers.panels import calibration, ordinary
from hypothesis import given, settings
from hypothesis import strategies as st

from cbmt_core.bands import (
    SHIPPED,
    BridgeBaseline,
    bands,
    bridge_draws,
    draw_drivers,
    draw_rows,
    draws_of,
    generator,
    read_draws,
)
from cbmt_core.bands.draws import draw_sales
from cbmt_core.bands.error_paths import as_deviations, drawn_paths, usual_changes, whole_paths
from cbmt_core.compose import compose, compose_draws
from cbmt_core.fits import fit_model
from cbmt_core.forecasting import forecast_fit, forecast_tables
from cbmt_core.models import build
from cbmt_core.models.contract import SalesForecast
from cbmt_core.uncertainty import DRIVERS, Deviations

H = 26
BASELINE = BridgeBaseline(repeat_orders=900.0, repeat_sales=21_000.0, initial_sales=9_000.0)


@pytest.fixture(scope="module")
def panel():
    return calibration(ordinary())


@pytest.fixture(scope="module")
def fitted(panel):
    return build("cbmt_plus").fit(panel, seed=1)


@pytest.fixture(scope="module")
def draws(panel, fitted):
    return draws_of(panel, fitted, H, seed=3, model="cbmt_plus", draws=200)


def test_the_same_seed_gives_the_same_draws_and_another_firm_others(panel, fitted, draws):
    again = draws_of(panel, fitted, H, seed=3, model="cbmt_plus", draws=200)
    np.testing.assert_array_equal(again.acquired, draws.acquired)
    np.testing.assert_array_equal(again.order_value, draws.order_value)
    one, other = (generator(3, name, "m", panel.origin).standard_normal(4) for name in ("a", "b"))
    assert not np.array_equal(one, other)


def test_draws_lie_around_the_forecast(panel, fitted, draws):
    centre = compose(panel, fitted.forecast(H))
    drawn = compose_draws(draws)
    assert np.median(drawn.sales.sum(axis=1)) == pytest.approx(centre.S.sum(), rel=0.1)
    low, high = np.quantile(drawn.sales, [0.1, 0.9], axis=0)
    assert ((low < centre.S) & (high > centre.S)).mean() > 0.9


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), spread=st.floats(0.01, 2.0), size=st.floats(0.0, 400.0))
def test_in_every_draw_contributions_add_up_and_nothing_is_negative(panel, fitted, seed, spread, size):
    rng = np.random.default_rng(seed)
    forecast = fitted.forecast(H)
    centre = compose(panel, type(forecast)(A=np.full(H, size), R=forecast.R, V=forecast.V))
    deviations = Deviations(*(spread * rng.standard_normal((50, 3, H)) for _ in range(2)))
    drawn = compose_draws(draw_drivers(centre, deviations, SHIPPED, rng))
    for values in (drawn.acquired, drawn.base_orders, drawn.base_sales, drawn.new_orders, drawn.new_sales):
        assert (values >= 0).all()
    np.testing.assert_allclose(drawn.base_sales + drawn.new_sales, drawn.sales, rtol=1e-12)
    parts = bridge_draws(drawn, BASELINE)
    change = drawn.sales.sum(axis=1) - BASELINE.repeat_sales - BASELINE.initial_sales
    total = parts["order_volume"] + parts["spend_per_order"] + parts["net_replenishment"]
    known = np.isfinite(total)
    np.testing.assert_allclose(total[known], change[known], rtol=1e-12, atol=1e-6)
    np.testing.assert_allclose(parts["sales_change"], change)


def test_stored_draws_compose_to_the_same_sales_to_the_last_bit(panel, draws):
    run = forecast_fit(fit_model("cbmt_plus", panel, 1), panel, H)
    cohorts = forecast_tables([run])["forecast_cohort_week"]
    stored = draw_rows(draws, compose_draws(draws))
    read = read_draws(
        stored.sample(frac=1.0, random_state=1), cohorts.sample(frac=1.0, random_state=2), panel.origin
    )
    composed = compose_draws(read)
    np.testing.assert_array_equal(composed.sales.ravel(), stored["sales"])
    np.testing.assert_array_equal(composed.base_orders.ravel(), stored["existing_orders"])
    single = stored.astype(dict.fromkeys(("acquired", "repeat", "order_value"), "float32"))
    np.testing.assert_array_equal(
        compose_draws(read_draws(single, cohorts, panel.origin)).sales, composed.sales
    )


@settings(max_examples=25, deadline=None)
@given(
    sales=st.lists(st.floats(0.0, 1e6), min_size=2, max_size=6),
    spread=st.floats(0.01, 5.0),
    seed=st.integers(0, 2**32),
)
def test_draws_of_sales_alone_are_never_negative(panel, sales, spread, seed):
    """Also in weeks that are forecast to sell nothing."""
    H = len(sales)
    centre = compose(panel, SalesForecast(np.array([*sales[:-1], 0.0])))
    errors = spread * np.random.default_rng(seed).standard_normal((50, H))
    drawn = draw_sales(centre, errors).sales
    assert (drawn >= 0).all()
    np.testing.assert_allclose(
        draw_sales(centre, 0 * errors).sales, np.tile(centre.S, (50, 1)), rtol=1e-9, atol=1e-6
    )


def test_bands_are_quantiles_of_the_draws(draws):
    drawn = compose_draws(draws)
    frame = (
        bands(drawn, 100.0, BASELINE).set_index(["outcome", "period", "week", "weeks", "level"]).sort_index()
    )
    first = drawn.weeks[0]
    row = frame.loc[("sales", "quarter", first, 13, 80)]
    np.testing.assert_allclose(
        [row["low"], row["high"]], np.quantile(drawn.sales[:, :13].sum(axis=1), [0.1, 0.9])
    )
    to_date = frame.loc[("sales", "to_date", first, 13, 80)]
    assert (to_date["low"], to_date["high"]) == (row["low"], row["high"])
    whole = frame.loc[("sales_change", "horizon", first, H, 95)]
    assert whole["low"] < whole["median"] < whole["high"]
    assert (frame.loc[["sales", "acquired", "orders", "ropc", "aov"], "low"] >= 0).all()
    means = frame.xs(50, level="level")["mean"]
    weekly = means.loc["sales", "week"].sum()
    assert weekly == pytest.approx(means.loc["sales", "horizon"].iloc[0])  # means add up, quantiles do not


def test_a_month_holds_its_days_share_of_every_draw(draws):
    """Days counted one by one, with pandas."""
    drawn = compose_draws(draws)
    frame = bands(drawn, 100.0, BASELINE)
    months = frame[(frame["period"] == "month") & (frame["outcome"] == "sales") & (frame["level"] == 80)]
    days = [
        (pd.Timestamp(week) + pd.Timedelta(days=k), t) for t, week in enumerate(drawn.weeks) for k in range(7)
    ]
    firsts = sorted({day.replace(day=1) for day, _ in days})
    assert [pd.Timestamp(month) for month in months["week"]] == firsts
    for row in months.itertuples():
        held = [t for day, t in days if day.replace(day=1) == pd.Timestamp(row.week)]
        sums = sum(drawn.sales[:, t] / 7 for t in held)
        np.testing.assert_allclose([row.low, row.high], np.quantile(sums, [0.1, 0.9]))
        assert row.weeks == len(set(held))
    assert months["mean"].sum() == pytest.approx(drawn.sales.sum(axis=1).mean())


def test_error_paths_are_those_of_other_firms_rescaled(panel):
    rng = np.random.default_rng(2)
    rows = [
        {
            "firm": f"firm {k}",
            "backtest": pd.Timestamp("2018-01-07"),
            "horizon": t,
            **dict.fromkeys(DRIVERS, k + t),
        }
        for k in range(30)
        for t in range(1, H + 1)
    ]
    rows += [
        dict(rows[0], firm=panel.firm, horizon=t, **dict.fromkeys(DRIVERS, 1e9)) for t in range(1, H + 1)
    ]
    usual = usual_changes(panel)
    whole = whole_paths(pd.DataFrame(rows), panel.firm, H)
    drawn = as_deviations(drawn_paths(whole, usual, 100, rng))
    assert drawn.lasting.max() < 1e6  # its own errors are left out
    firm = drawn.lasting[:, 0, 0] / usual[0] - 1
    np.testing.assert_allclose(
        drawn.lasting, (firm[:, None] + np.arange(1, H + 1))[:, None] * usual[:, None], rtol=1e-9
    )
    few = pd.DataFrame(rows[: 5 * H])
    assert whole_paths(few, panel.firm, H) is None
