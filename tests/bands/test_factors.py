"""Factors are found where they were planted, leave the firm itself out, and follow a firm that misses."""

import numpy as np
import pandas as pd
import pytest

from cbmt_core.bands.factors import SHIPPED, history_scale, learn_factors
from cbmt_core.uncertainty import DRIVERS

LASTING, WEEKLY, COUNT = 0.1, 0.08, 0.0004
H = 52


def errors_of(firms, lasting=1.5, weekly=0.8, seed=1, history=104, scale_of=None, backtests=9):
    """Errors with a lasting part that stays the whole year and a new weekly part each week."""
    rng = np.random.default_rng(seed)
    frames = []
    for f in range(firms):
        times = (scale_of or {}).get(f, 1.0)
        for backtest in range(backtests):
            rows = {"firm": f"firm {f:03d}", "origin": pd.Timestamp("2018-01-07") + pd.Timedelta(weeks=13 * backtest),
                    "horizon": np.arange(1, H + 1), "history": history,
                    "quarter": backtest + np.arange(H) // 13}  # fmt: skip
            for d, driver in enumerate(DRIVERS):
                stays = times * lasting * history_scale(history)[d] * LASTING * rng.standard_normal()
                comes = times * weekly * WEEKLY * rng.standard_normal(H) + np.sqrt(
                    COUNT
                ) * rng.standard_normal(H)
                error = stays + comes
                n = np.arange(1, H + 1)
                rows |= {
                    f"{driver}_error": error, f"{driver}_error_mean": np.cumsum(error) / n,
                    f"{driver}_lasting": LASTING, f"{driver}_lasting_mean": LASTING,
                    f"{driver}_weekly": WEEKLY, f"{driver}_weekly_mean": WEEKLY / np.sqrt(n),
                    f"{driver}_count": COUNT, f"{driver}_count_mean": COUNT / n,
                }  # fmt: skip
            frames.append(pd.DataFrame(rows))
    return pd.concat(frames, ignore_index=True)


@pytest.mark.parametrize(
    ("lasting", "weekly", "history"), [(1.5, 0.85, 104), (0.7, 1.3, 60), (1.0, 1.0, 200)]
)
def test_the_planted_spread_is_found(lasting, weekly, history):
    found = learn_factors(errors_of(80, lasting, weekly, history=history))["firm 007"]
    np.testing.assert_allclose(found.lasting, lasting, rtol=0.15)
    # Where lasting errors dominate, the weekly factor by itself hardly shows; the spread of a week must be right.
    scale = history_scale(history)
    of_week = np.hypot(found.lasting * LASTING * scale, found.weekly * WEEKLY)
    np.testing.assert_allclose(of_week, np.hypot(lasting * LASTING * scale, weekly * WEEKLY), rtol=0.1)
    assert (found.source, found.firms) == ("calibrated", 79)


def test_a_firm_does_not_teach_its_own_factors():
    errors = errors_of(40)
    wild = errors.copy()
    own = wild["firm"] == "firm 003"
    columns = [name for name in wild if "_error" in name]
    wild.loc[own, columns] *= 20
    before, after = learn_factors(errors)["firm 003"], learn_factors(wild)["firm 003"]
    np.testing.assert_array_equal(before.weekly, after.weekly)
    np.testing.assert_array_equal(before.lasting, after.lasting)
    assert after.own > before.own  # but its bands widen with what they missed


def test_few_firms_lean_on_the_shipped_factors():
    nine, twenty = learn_factors(errors_of(9, 3.0)), learn_factors(errors_of(20, 3.0))
    assert {found.source for found in nine.values()} == {"borrowed"}
    np.testing.assert_array_equal(nine["firm 000"].lasting, SHIPPED.lasting)
    half = twenty["firm 000"]
    assert half.source == "shrunk"
    full = learn_factors(errors_of(60, 3.0))["firm 000"]
    assert (SHIPPED.lasting < half.lasting).all()
    assert (half.lasting < full.lasting).all()


def test_one_year_of_errors_leans_on_the_shipped_factors_however_many_firms():
    year, three = (learn_factors(errors_of(60, 3.0, backtests=k))["firm 000"] for k in (1, 9))
    assert (year.source, three.source) == ("shrunk", "calibrated")
    learned = learn_factors(errors_of(60, 3.0, backtests=1).assign(quarter=lambda x: x["horizon"] % 12))[
        "firm 000"
    ]
    # Four of twelve quarters: a third of the way, in logs.
    expected = np.exp(np.log(learned.lasting) / 3 + 2 * np.log(SHIPPED.lasting) / 3)
    np.testing.assert_allclose(year.lasting, expected)


def test_the_order_of_firms_changes_nothing():
    errors = errors_of(15)
    one, other = learn_factors(errors), learn_factors(errors.sample(frac=1.0, random_state=4))
    for firm, found in one.items():
        np.testing.assert_array_equal(found.lasting, other[firm].lasting)
        np.testing.assert_array_equal(found.weekly, other[firm].weekly)
        assert found.own == other[firm].own


def test_a_firm_whose_errors_grow_gets_wider_bands_and_a_calm_one_narrower():
    found = learn_factors(errors_of(60, 1.0, 1.0, scale_of={5: 3.0, 6: 0.3}))
    assert found["firm 005"].own > 1.05
    assert found["firm 006"].own < 0.95
    usual = found["firm 010"]
    np.testing.assert_allclose(usual.at(104).weekly, usual.weekly * usual.own)


def test_short_histories_have_wider_bands():
    scale = history_scale([26, 52, 70, 91, 400])
    np.testing.assert_array_equal(scale[3:], 1.0)
    np.testing.assert_array_equal(scale[0], scale[1])
    assert (np.diff(scale[1:4], axis=0) < 0).all()
