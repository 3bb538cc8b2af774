"""Revenue is composed as size times (birth + repeat) times value, and agrees with the panel's identity."""

from dataclasses import replace

import numpy as np
import pytest
from helpers.panels import calibration, ordinary

from cbmt_core.compose import BadForecast, DriverDraws, compose, compose_draws
from cbmt_core.models.contract import PrimitiveForecast, SalesForecast


def test_by_hand():
    panel = calibration(ordinary())
    panel = panel.until(panel.weeks[0].astype(object))
    old, first = panel.size
    NAN = np.nan
    drivers = PrimitiveForecast(
        A=np.array([10.0, 20.0]),
        R=np.array([[0.1, 0.2], [0.3, 0.4], [0.0, 0.5], [NAN, 0.25]]),
        V=np.array([[5.0, 5.0], [6.0, 7.0], [8.0, 9.0], [NAN, 4.0]]),
    )
    revenue = compose(panel, drivers)
    np.testing.assert_allclose(revenue.Y[0], [old * 0.1 * 5, old * 0.2 * 5])
    np.testing.assert_allclose(revenue.Y[1], [first * 0.3 * 6, first * 0.4 * 7])
    np.testing.assert_allclose(revenue.Y[2], [10 * 1.0 * 8, 10 * 0.5 * 9])  # the initial order counts once
    np.testing.assert_allclose(revenue.Y[3], [NAN, 20 * 1.25 * 4])
    np.testing.assert_allclose(revenue.S, np.nansum(revenue.Y, axis=0))
    np.testing.assert_array_equal(revenue.birth, [-2, -1, 0, 1])
    np.testing.assert_array_equal(revenue.size, [old, first, 10, 20])
    assert revenue.weeks[0] == panel.weeks[-1] + 7


def test_true_drivers_compose_to_true_sales():
    full = ordinary()
    seen = calibration(full)
    H, N = full.n_weeks - seen.n_weeks, seen.n_cohorts
    R, V = np.full((N + H, H), np.nan), np.full((N + H, H), np.nan)
    later = full.birth[N:] - seen.n_weeks + N
    R[:N], V[:N] = full.R[:N, -H:], np.nan_to_num(full.V[:N, -H:])
    R[later], V[later] = full.R[N:, -H:], np.where(full.born[N:, -H:], np.nan_to_num(full.V[N:, -H:]), np.nan)
    np.testing.assert_allclose(compose(seen, PrimitiveForecast(full.A[-H:], R, V)).S, full.S[-H:])


def one_value_less_good(drivers, name, place, value):
    values = getattr(drivers, name).copy()
    values[place] = value
    return replace(drivers, **{name: values})


@pytest.mark.parametrize(
    ("name", "place", "value", "words"),
    [
        ("A", 2, np.nan, "acquisition is nan in week 3; 1 such values"),
        ("R", (1, 0), np.nan, "repeat orders per customer is nan in week 1 for cohort 1"),
        ("R", (0, 3), -0.1, "repeat orders per customer is -0.1 in week 4 for cohort 0"),
        ("V", (-1, -1), np.inf, "order values is inf in week 5"),
    ],
)
def test_a_forecast_with_a_hole_is_refused_not_summed_over(name, place, value, words):
    panel = calibration(ordinary())
    rows = panel.n_cohorts + 5
    born = np.arange(5) >= np.arange(-panel.n_cohorts, 5)[:, None]
    drivers = PrimitiveForecast(np.ones(5), np.where(born, 0.1, np.nan), np.where(born, 3.0, np.nan))
    assert compose(panel, drivers).Y.shape == (rows, 5)
    with pytest.raises(BadForecast, match=words):
        compose(panel, one_value_less_good(drivers, name, place, value))


def test_a_forecast_of_another_panel_is_refused():
    full = ordinary()
    seen = calibration(full)
    drivers = PrimitiveForecast(
        np.ones(2), np.ones((seen.n_cohorts + 2, 2)), np.ones((seen.n_cohorts + 2, 2))
    )
    compose(seen, drivers)
    with pytest.raises(BadForecast, match="has the shape"):
        compose(full, drivers)
    with pytest.raises(BadForecast, match="sales is nan in week 2"):
        compose(seen, SalesForecast(np.array([1.0, np.nan])))


def test_draws_compose_to_what_each_draw_composes_to_by_itself():
    panel = calibration(ordinary())
    N, H, K = panel.n_cohorts, 6, 4
    rng = np.random.default_rng(5)
    born = np.arange(H) >= np.arange(-N, H)[:, None]
    R, V = (np.where(born, rng.uniform(0.1, 2.0, born.shape), np.nan) for _ in range(2))
    centre = compose(panel, PrimitiveForecast(rng.uniform(1, 9, H), R, V))
    draws = DriverDraws(
        centre=centre,
        acquired=rng.uniform(0, 9, (K, H)),
        repeat_existing=rng.uniform(0.5, 2, (K, H)),
        repeat_new=rng.uniform(0.5, 2, (K, H)),
        order_value=rng.uniform(0.5, 2, (K, H)),
    )
    base = np.arange(N) < N - 3
    drawn = compose_draws(draws, base)
    for k in range(K):
        repeat = np.concatenate(
            [np.tile(draws.repeat_existing[k], (N, 1)), np.tile(draws.repeat_new[k], (H, 1))]
        )
        one = compose(panel, PrimitiveForecast(draws.acquired[k], R * repeat, V * draws.order_value[k]))
        orders = one.size[:, None] * (np.arange(H) == one.birth[:, None]) + one.size[:, None] * one.R
        existing = np.concatenate([base, np.zeros(H, bool)])
        np.testing.assert_allclose(drawn.sales[k], one.S)
        np.testing.assert_allclose(drawn.base_sales[k], np.nansum(one.Y[existing], axis=0))
        np.testing.assert_allclose(drawn.new_sales[k], np.nansum(one.Y[~existing], axis=0))
        np.testing.assert_allclose(drawn.base_orders[k], np.nansum(orders[existing], axis=0))
        np.testing.assert_allclose(drawn.orders[k], np.nansum(orders, axis=0))


def test_a_forecast_of_sales_alone_keeps_them_and_knows_no_drivers():
    panel = calibration(ordinary())
    made = compose(panel, SalesForecast(np.array([5.0, 0.0, 7.0])))
    np.testing.assert_array_equal(made.S, [5, 0, 7])
    assert not made.has_drivers
    rows = panel.n_cohorts + 3
    assert made.A.shape == (3,)
    assert made.R.shape == made.V.shape == made.Y.shape == (rows, 3)
    for values in (made.A, made.R, made.V, made.Y, made.size[-3:]):
        assert np.isnan(values).all()
    np.testing.assert_array_equal(made.weeks, panel.weeks[-1] + 7 * np.array([1, 2, 3]))
    np.testing.assert_array_equal(made.birth[-3:], [0, 1, 2])
    with pytest.raises(BadForecast, match=r"sales is -1\.0 in week 2"):
        compose(panel, SalesForecast(np.array([5.0, -1.0])))
