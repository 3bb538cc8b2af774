"""Errors equal hand-computed ones and those of an independent library."""

from datetime import date, timedelta

import numpy as np
import pandas as pd
import pytest
from utilsforecast import losses

from cbmt_core.compose import compose
from cbmt_core.design import StudyDesign
from cbmt_core.metrics import FULL, OUTCOMES, mase, score, smape
from cbmt_core.models.contract import PrimitiveForecast
from cbmt_core.panel import LEFT_CENSORED, FirmPanel

NAN = float("nan")


def test_smape_by_hand():
    # |3-1|/2 = 1 and |4-4|/4 = 0: their mean is 1/2.
    assert smape(np.array([1.0, 4.0]), np.array([3.0, 4.0])) == pytest.approx(50.0)


def test_smape_zero_over_zero_counts_as_zero_and_one_sided_zero_as_two_hundred():
    assert smape(np.array([0.0, 0.0]), np.array([0.0, 5.0])) == pytest.approx(100.0)


def test_smape_weights_and_unknown_values():
    actual = np.array([[1.0, NAN], [2.0, 2.0]])
    forecast = np.array([[3.0, 7.0], [2.0, 6.0]])
    # weights 3 and 1: (3 * 1 + 1 * 0 + 1 * 1) / 5
    assert smape(actual, forecast, np.array([[3.0], [1.0]])) == pytest.approx(80.0)


def test_mase_by_hand():
    # errors 1, 0, 3 (mean 4/3); steps 2, 1 (mean 3/2)
    assert mase(np.array([1.0, 3.0, 2.0]), np.array([2.0, 3.0, 5.0])) == pytest.approx(8 / 9)


def test_mase_of_rows_pools_errors_and_steps():
    actual = np.array([[1.0, NAN, 4.0], [5.0, 5.0, 5.0]])
    forecast = np.array([[2.0, 9.0, 4.0], [5.0, 6.0, 5.0]])
    # weights 2, 1: errors (2*1 + 2*0 + 0 + 1 + 0) / 7; steps (2*|4-1| + 0 + 0) / 4
    assert mase(actual, forecast, np.array([[2.0], [1.0]])) == pytest.approx((3 / 7) / (6 / 4))


def test_mase_without_a_scale_is_unknown_unless_the_forecast_is_perfect():
    flat = np.array([2.0, 2.0, 2.0])
    assert np.isnan(mase(flat, flat + 1))
    assert mase(flat, flat) == 0.0
    assert np.isnan(mase(np.array([2.0]), np.array([3.0])))
    assert np.isnan(mase(np.array([NAN, NAN]), np.array([3.0, 1.0])))


def test_both_agree_with_utilsforecast():
    rng = np.random.default_rng(0)
    actual, forecast = rng.gamma(2, 10, 47), rng.gamma(2, 10, 47)
    frame = pd.DataFrame(
        {"unique_id": "a", "ds": np.arange(47), "y": actual, "model": forecast},
    )
    # utilsforecast halves SMAPE (its denominator is |X| + |F|) and scales MASE by a training frame.
    theirs = losses.smape(frame, ["model"])["model"].iloc[0]
    assert smape(actual, forecast) == pytest.approx(200 * theirs)
    theirs = losses.mase(frame, ["model"], seasonality=1, train_df=frame[["unique_id", "ds", "y"]])
    assert mase(actual, forecast) == pytest.approx(theirs["model"].iloc[0])


ORIGIN_WEEKS = 52


def firm(holdout=2):
    """A left-censored cohort of 10, one of 4 born in the last seen week, one of 2 in holdout week 1."""
    first = date(2017, 1, 1)
    design = StudyDesign(
        observed_from=first - timedelta(days=7),
        first_week=first - timedelta(days=7),
        washout_weeks=1,
        training_weeks=ORIGIN_WEEKS,
        validation_weeks=0,
        holdout_weeks=holdout,
        observed_to=first + timedelta(days=7 * (ORIGIN_WEEKS + holdout)),
    )
    T = ORIGIN_WEEKS + holdout
    birth = np.array([LEFT_CENSORED, ORIGIN_WEEKS - 1, ORIGIN_WEEKS + 1])
    size = np.array([10.0, 4.0, 2.0])
    A = np.zeros(T)
    A[birth[1:]] = size[1:]
    born = np.arange(T) >= birth[:, None]
    R = np.where(born, 0.5, np.nan)
    R[1, ORIGIN_WEEKS] = 0.0
    R[2] = np.where(born[2], 0.0, np.nan)
    V = np.where(born, 20.0, np.nan)
    V[1, ORIGIN_WEEKS] = np.nan
    orders = np.nan_to_num(size[:, None] * ((np.arange(T) == birth[:, None]) + R))
    Y = np.where(born, orders * np.nan_to_num(V), np.nan)
    return FirmPanel("firm", design, design.study.dates(), A, np.nansum(Y, axis=0), size, birth, R, V, Y)


def test_score_by_hand():
    full = firm()
    seen = full.until(full.design.origin)
    drivers = PrimitiveForecast(
        A=np.array([1.0, 2.0]),
        R=np.array([[0.5, 0.5], [0.0, 0.5], [0.1, 0.1], [NAN, 0.0]]),
        V=np.array([[20.0, 60.0], [33.0, 20.0], [20.0, 20.0], [NAN, 20.0]]),
    )
    scores = {s.outcome: s for s in score(full, compose(seen, drivers), full.design.origin)}
    assert set(scores) == set(OUTCOMES)
    assert all(s.horizon == FULL and s.weeks == 2 for s in scores.values())
    # A: actual 0, 2; forecast 1, 2.
    assert scores["acquisition"].smape == pytest.approx(100.0)
    assert scores["acquisition"].mase == pytest.approx(0.5 / 2)
    assert scores["ropc"].smape == pytest.approx(0.0)
    # Weights 10, 10 | 4 in its second week only | 2: one miss, |60 - 20| / 40 = 1, of weight 10.
    assert scores["aov"].smape == pytest.approx(100 * 10 / 26)
    # Sales of five cohort-weeks: 100, 100 | 0, 40 | 40; the forecast errs once: 300 against 100.
    assert scores["cohort_sales"].smape == pytest.approx(100 * 1 / 5)
    # Total: 100, 180. Forecast: 100 + 22 from a cohort nobody joined, then 300 + 40 + 2 + 40.
    assert scores["total_sales"].smape == pytest.approx(
        100 * np.mean([22 / ((100 + 122) / 2), 202 / ((180 + 382) / 2)])
    )


def test_repeat_orders_are_weighted_by_cohort_size():
    full = firm()
    drivers = PrimitiveForecast(
        A=np.array([0.0, 2.0]),
        R=np.array([[0.5, 1.5], [0.0, 0.5], [0.0, 0.0], [NAN, 0.0]]),
        V=np.full((4, 2), 20.0),
    )
    scores = {
        s.outcome: s
        for s in score(full, compose(full.until(full.design.origin), drivers), full.design.origin)
    }
    # Weights 10, 10 | 4, 4 | 2: one miss, |1.5 - 0.5| / 1 = 1, of weight 10.
    assert scores["ropc"].smape == pytest.approx(100 * 10 / 30)


def test_a_perfect_forecast_scores_zero_at_every_horizon():
    full = firm(holdout=40)
    seen = full.until(full.design.origin)
    H, N = 40, seen.n_cohorts
    # Weeks without a new customer have a cohort of nobody.
    R = np.where(np.arange(H) >= np.arange(-N, H)[:, None], 0.0, NAN)
    V = R.copy()
    for row in range(full.n_cohorts):
        to = row if row < N else N + int(full.birth[row]) - ORIGIN_WEEKS
        R[to], V[to] = full.R[row, -H:], np.nan_to_num(full.V[row, -H:])
    forecast = compose(seen, PrimitiveForecast(full.A[-H:], R, V))
    scores = score(full, forecast, full.design.origin)
    assert {(s.horizon, s.weeks) for s in scores} == {("1q", 13), ("2q", 26), ("3q", 39), (FULL, 40)}
    assert all(s.smape == 0 for s in scores)
    assert all(s.mase == 0 for s in scores)


@pytest.mark.parametrize("weeks", [13, 26])
def test_weeks_that_have_not_come_yet_are_not_scored(weeks):
    """A horizon that ends with the panel is scored; a longer forecast scores like its first weeks."""
    full, H = firm(holdout=weeks), 40
    seen = full.until(full.design.origin)
    born = np.arange(H) >= np.arange(-seen.n_cohorts, H)[:, None]

    def scored(H):
        R = np.where(born, 0.3, NAN)[: seen.n_cohorts + H, :H]
        forecast = compose(seen, PrimitiveForecast(np.ones(40)[:H], R, 7 * R))
        return score(full, forecast, full.design.origin)

    assert {s.horizon for s in scored(40)} == {"1q", FULL} | ({"2q"} if weeks == 26 else set())
    assert all(s.weeks == weeks for s in scored(40) if s.horizon in (FULL, "2q"))
    assert list(map(repr, scored(40))) == list(map(repr, scored(weeks)))


def test_a_panel_without_the_forecast_weeks_is_refused():
    full = firm()
    seen = full.until(full.design.origin)
    forecast = compose(seen, PrimitiveForecast(np.ones(1), np.ones((3, 1)), np.ones((3, 1))))
    with pytest.raises(ValueError, match="must hold"):
        score(seen, forecast, full.design.origin)
