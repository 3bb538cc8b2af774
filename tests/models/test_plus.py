"""cbmt_plus: what earlier origins teach, how it moves a forecast, and that nothing later can reach it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from panels import calibration, ordinary, scramble_after

from cbmt_core.compose import compose
from cbmt_core.models import build
from cbmt_core.models.plus import CbmtPlus, ExpertWeights, inner_forecasts, learn_weights
from cbmt_core.models.plus.drivers import (
    ANCHOR,
    DRIVERS,
    EXPERTS,
    driver_totals,
    moved,
    sales_and_unborn,
    seen_totals,
)
from cbmt_core.models.plus.inner import inner_origins
from cbmt_core.models.plus.model import SMOOTHED, TOPLINE, TRUST
from cbmt_core.models.plus.smoothing import Smoothed
from cbmt_core.models.plus.weights import FEATURES, REACH
from cbmt_core.panel import FirmPanel


@pytest.fixture(scope="module")
def seen() -> FirmPanel:
    return calibration(ordinary())


@pytest.fixture(scope="module")
def inner(seen: FirmPanel) -> pd.DataFrame:
    return inner_forecasts(seen, seed=1)


def planted(firms: int, rng: np.random.Generator, truth: dict[str, float]) -> pd.DataFrame:
    """Inner forecasts of firms whose actual drivers lie a known share of the way to seasonal_naive's."""
    rows = []
    for firm in range(firms):
        for origin in range(5):
            lean = rng.normal(0, 0.3, (len(EXPERTS), len(DRIVERS)))
            for d, driver in enumerate(DRIVERS):
                anchor = 100.0 * np.ones(30)
                experts = {e: anchor * np.exp(lean[k, d]) for k, e in enumerate(EXPERTS)}
                away = truth[driver] * np.log(experts["seasonal_naive"] / anchor)
                actual = anchor * np.exp(away + rng.normal(0, 0.05, 30))
                for model, values in {ANCHOR: anchor, **experts}.items():
                    rows.append(
                        pd.DataFrame(
                            {
                                "firm": f"firm {firm}",
                                "model": model,
                                "origin": pd.Timestamp("2018-01-07") + pd.Timedelta(weeks=origin),
                                "horizon": np.arange(1, 31),
                                "driver": driver,
                                "actual": actual,
                                "forecast": values,
                            }
                        )
                    )
    return pd.concat(rows, ignore_index=True)


def test_a_planted_share_is_recovered_by_many_firms_and_shrunken_by_few() -> None:
    truth = {"acquisition": 0.6, "base": 0.0, "repeat": 0.3, "aov": 0.0}

    def learned(firms: int) -> dict[str, float]:
        weights = learn_weights(planted(firms, np.random.default_rng(3), truth))
        at = FEATURES.index
        return {
            d: w[at(f"seasonal_naive_{d}")] + 0.3 * w[at(f"seasonal_naive_{d}_by_horizon")]
            for d, w in weights.weights.items()
        }

    many, few, one = learned(80), learned(12), learned(1)
    for driver, share in truth.items():
        assert many[driver] == pytest.approx(share, abs=0.12)
        assert one[driver] == 0
    assert one["acquisition"] < few["acquisition"] < many["acquisition"]


def test_weights_do_not_depend_on_the_order_of_rows_and_survive_a_table() -> None:
    inner = planted(12, np.random.default_rng(5), dict.fromkeys(DRIVERS, 0.4))
    weights = learn_weights(inner)
    shuffled = learn_weights(inner.sample(frac=1.0, random_state=0))
    back = ExpertWeights.from_frame(weights.frame().sample(frac=1.0, random_state=1))
    for driver in DRIVERS:
        np.testing.assert_allclose(shuffled.weights[driver], weights.weights[driver], atol=1e-9)
        np.testing.assert_array_equal(back.weights[driver], weights.weights[driver])
    assert back.firms == weights.firms == 12


def test_without_lessons_the_anchor_stays_as_it_is(seen: FirmPanel) -> None:
    nothing = learn_weights(pd.DataFrame({name: [] for name in ("firm", "model")}))
    totals = driver_totals(seen, build(ANCHOR).fit(seen, seed=1).forecast(10))
    by = nothing.corrections(totals, dict.fromkeys(EXPERTS, totals))
    assert all((by[driver] == 0).all() for driver in DRIVERS)


def test_totals_are_those_of_the_composed_forecast(seen: FirmPanel) -> None:
    forecast = build(ANCHOR).fit(seen, seed=1).forecast(12)
    totals, revenue = driver_totals(seen, forecast), compose(seen, forecast)
    orders = np.nansum(revenue.size[:, None] * revenue.R, axis=0) + revenue.A
    np.testing.assert_allclose(totals["aov"] * orders, revenue.S)
    old = len(seen.birth)
    np.testing.assert_allclose(
        totals["base"] + totals["repeat"], np.nansum(seen.size[:, None] * forecast.R[:old], axis=0)
    )


def test_sales_and_what_the_unborn_add_to_them_are_those_of_the_composed_forecast(seen: FirmPanel) -> None:
    forecast = build(ANCHOR).fit(seen, seed=1).forecast(12)
    sales, unborn = sales_and_unborn(seen, forecast)
    revenue, old = compose(seen, forecast), len(seen.birth)
    np.testing.assert_allclose(sales, revenue.S)
    repeats = np.nansum(revenue.size[old:, None] * forecast.R[old:] * forecast.V[old:], axis=0)
    np.testing.assert_allclose(unborn * sales, repeats)


def test_a_smoothed_series_goes_on_with_its_season_at_its_last_level() -> None:
    week = np.arange(156)
    season = 0.3 * np.sin(2 * np.pi * week * 7 / 365.25)
    level = np.where(week < 60, 6.0, 6.5)
    series = np.exp(level + season + np.random.default_rng(2).normal(0, 0.02, len(week)))
    made, louder = Smoothed.of(series[:118]), Smoothed.of(10 * series[:118])
    assert made is not None
    assert louder is not None
    np.testing.assert_allclose(np.log(made.forecast(38)), (level + season)[118:], atol=0.12)
    back = Smoothed.from_values(made.values())
    np.testing.assert_array_equal(back.forecast(38), made.forecast(38))
    np.testing.assert_allclose(louder.forecast(38), 10 * made.forecast(38), rtol=0.01)


@pytest.mark.parametrize("value", [0.0, 25.0])
def test_a_series_that_never_moved_stays_where_it_is(value: float) -> None:
    made = Smoothed.of(np.full(110, value))
    assert made is not None
    np.testing.assert_allclose(made.forecast(60), value, atol=1e-9)


def test_a_season_seen_once_is_not_smoothed() -> None:
    assert Smoothed.of(np.exp(np.linspace(3, 4, 80))) is None


def test_a_move_multiplies_each_total_by_as_much(seen: FirmPanel) -> None:
    forecast = build(ANCHOR).fit(seen, seed=1).forecast(12)
    by = dict(zip(DRIVERS, (0.1, -0.2, 0.3, 0.05), strict=True))
    after = driver_totals(seen, moved(seen, forecast, {k: np.full(12, v) for k, v in by.items()}))
    before = driver_totals(seen, forecast)
    for driver in ("acquisition", "base", "repeat"):
        np.testing.assert_allclose(after[driver], before[driver] * np.exp(by[driver]))


def test_inner_forecasts_know_nothing_after_their_origin(seen: FirmPanel, inner: pd.DataFrame) -> None:
    first = inner["origin"].min()
    changed = inner_forecasts(scramble_after(seen, first), seed=1)
    said = [frame[frame["origin"] == first]["forecast"].to_numpy() for frame in (inner, changed)]
    np.testing.assert_array_equal(*said)
    happened = [frame[frame["origin"] == first]["actual"].to_numpy() for frame in (inner, changed)]
    assert not np.array_equal(*happened)


def test_inner_actuals_are_the_panel_s(seen: FirmPanel, inner: pd.DataFrame) -> None:
    weeks = inner_origins(seen.n_weeks)[-1]
    last = inner[(inner["origin"] == inner["origin"].max()) & (inner["model"] == ANCHOR)]
    acquired = last[last["driver"] == "acquisition"].sort_values("horizon")["actual"]
    np.testing.assert_array_equal(acquired.to_numpy(float), seen.A[weeks:])
    start = seen.until(seen.weeks[weeks - 1].astype(object))
    np.testing.assert_allclose(
        seen_totals(start, seen, seen.n_weeks - weeks)["aov"], seen.S[weeks:] / seen.orders[:, weeks:].sum(0)
    )


def test_a_young_firm_has_no_earlier_origins(seen: FirmPanel) -> None:
    young = seen.until(seen.weeks[49].astype(object))
    assert inner_origins(young.n_weeks) == []
    assert inner_forecasts(young, seed=1).empty


@pytest.mark.slow
def test_plus_stays_within_reach_of_its_anchor(seen: FirmPanel) -> None:
    fitted = CbmtPlus(profile="smoke", weights=ExpertWeights.none()).fit(seen, seed=2)
    plus, anchor = fitted.forecast(20), fitted.parts[ANCHOR].forecast(20)
    ratio = np.log(plus.A / anchor.A)
    assert np.abs(ratio).max() <= (TRUST["acquisition"] + SMOOTHED + TOPLINE) * REACH + 1e-9
    assert np.abs(ratio).max() > 0
