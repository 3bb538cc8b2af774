"""Coverage, scores and PIT of bands, against numbers worked out by hand."""

import duckdb
import numpy as np
import pandas as pd
import pytest

from cbmt_core.bands import band_coverage, band_pit
from cbmt_core.bands.coverage import interval_score, weighted_interval_score
from cbmt_core.evaluation import Relations

WEEK = pd.Timestamp("2020-01-05")


def test_interval_score_by_hand():
    low, high = np.array([10.0, 10.0, 10.0]), np.array([20.0, 20.0, 20.0])
    scores = interval_score(low, high, np.array([15.0, 7.0, 22.0]), 80)
    np.testing.assert_allclose(scores, [10.0, 10 + 2 / 0.2 * 3, 10 + 2 / 0.2 * 2])


def test_weighted_interval_score_is_the_mean_pinball_loss_of_the_seven_quantiles():
    quantiles = np.array([1.0, 2.0, 4.0, 5.0, 6.5, 9.0, 12.0])
    levels = np.array([0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975])
    rows = pd.DataFrame(
        [
            dict(
                zip(
                    ["low95", "low80", "low50", "median", "high50", "high80", "high95"],
                    quantiles,
                    strict=True,
                )
            )
        ]
    )
    for actual in (0.3, 4.5, 8.0, 30.0):
        above = actual - quantiles
        pinball = np.where(above >= 0, levels * above, (levels - 1) * above)
        found = weighted_interval_score(rows.assign(actual=actual))[0]
        assert found == pytest.approx(2 * pinball.sum() / 7, rel=1e-12)


@pytest.fixture
def judged():
    """Ten firms: in the first eight the week lies inside every band, in two above all of them."""
    ends = {
        "low95": 0.0,
        "low80": 2.0,
        "low50": 4.0,
        "median": 5.0,
        "high50": 6.0,
        "high80": 8.0,
        "high95": 10.0,
    }
    keys = {
        "model": "m",
        "origin": WEEK,
        "purpose": "backtest",
        "outcome": "sales",
        "period": "week",
        "ahead": "1-4",
    }
    rows = [
        {
            "firm": f"f{k}",
            "week": WEEK + pd.Timedelta(weeks=t + 1),
            "actual": 5.5 if k < 8 else 11.0,
            **keys,
            **ends,
        }
        for k in range(10)
        for t in range(4)
    ]
    return pd.DataFrame(rows).assign(scale=lambda frame: frame["actual"])


def test_coverage_counts_every_firm_the_same(judged):
    con = duckdb.connect()
    weeks = pd.DataFrame({"firm": judged["firm"], "week": judged["week"].dt.date, "sales": judged["actual"]})
    con.register("firm_week", weeks)
    more = pd.concat([judged, judged[judged["firm"] == "f9"]])  # a firm with more forecasts counts no more
    rows = band_coverage(con, Relations(), (WEEK + pd.Timedelta(weeks=4)).date(), more)
    everyone = rows[rows["group_by"] == "all"].set_index("level")
    assert everyone["coverage"].tolist() == pytest.approx([80.0] * 3)
    assert everyone.loc[80, "width"] == pytest.approx(100 * 6 / 5)
    assert everyone.loc[80, "below"] == 0
    assert everyone.loc[80, "coverage_low"] < 80 < everyone.loc[80, "coverage_high"]
    by_size = rows[(rows["group_by"] == "size") & (rows["level"] == 80)].set_index("group")["coverage"]
    assert by_size["high"] < by_size["low"] == pytest.approx(100.0)


def test_pit_bins_say_where_outcomes_fell(judged):
    bins = band_pit(judged).set_index("bin")
    assert bins["expected"].sum() == pytest.approx(100)
    assert bins.loc[5, "share"] == pytest.approx(80)  # between median and the 75 % quantile
    assert bins.loc[8, "share"] == pytest.approx(20)
    assert bins["share"].sum() == pytest.approx(100)
