"""Levels and the calendar's way from them, by hand and by what must not change them."""

from __future__ import annotations

import numpy as np
import pytest
from panels import calibration, ordinary

from cbmt_core.models.neural.baseline import WAVES, Baseline, calendar_size
from cbmt_core.models.sequence import LOOKBACK, OUTCOMES, YOUNG, History, Scaling, Sequences, Windows
from cbmt_core.models.sequence.windows import WEEK_COVARIATES
from cbmt_core.panel import LEFT_CENSORED

PANEL = calibration(ordinary())
SCALING = Scaling.of(PANEL)
WEEKS = range(30, PANEL.n_weeks)


def windows() -> Windows:
    sequences = Sequences.of(History.of(PANEL), SCALING)
    return sequences.windows(*sequences.pairs(WEEKS))


def test_typical_repeat_rate_is_that_of_young_cohorts() -> None:
    customers = orders = 0.0
    for i in range(PANEL.n_cohorts):
        for t in range(PANEL.n_weeks):
            if PANEL.birth[i] != LEFT_CENSORED and 0 <= t - PANEL.birth[i] < YOUNG:
                customers += PANEL.size[i]
                orders += PANEL.size[i] * PANEL.R[i, t]
    assert SCALING.typical["R"] == pytest.approx(orders / customers)
    assert SCALING.typical["A"] == pytest.approx(PANEL.A.mean())


def test_level_is_the_mean_of_the_window_and_unborn_weeks_count_as_typical() -> None:
    w = windows()
    level = Baseline.of(w, OUTCOMES, SCALING).level * [[SCALING.span[k]] for k in OUTCOMES]
    for b in range(0, len(w), 37):
        row, week = int(w.row[b]), int(w.week[b])
        window = range(week - LOOKBACK, week)
        assert level[0, b] == pytest.approx(PANEL.A[window].mean(), rel=1e-4)
        rates = [PANEL.R[row, t] if t >= PANEL.birth[row] else SCALING.typical["R"] for t in window]
        floor = 0.02 * SCALING.typical["R"]
        assert level[1, b] == pytest.approx(max(np.mean(rates), floor), rel=1e-4)


def test_relative_and_scaled_are_each_others_inverse() -> None:
    baseline = Baseline.of(windows(), OUTCOMES, SCALING)
    values = np.random.default_rng(1).random(baseline.level.shape).astype(np.float32)
    np.testing.assert_allclose(baseline.scaled(baseline.relative(values)), values, rtol=1e-4, atol=1e-5)
    sunk = baseline.scaled(np.full_like(values, -5.0))
    assert SCALING.unscale("A", sunk[0]).min() == 0.0, "no forecast falls below zero"


def test_history_of_twice_the_sales_is_the_same_share_of_its_level() -> None:
    """A firm's size is in its level alone."""
    twice = {**SCALING.span, "A": 2 * SCALING.span["A"]}
    low, typical = ({**each, "A": 2 * each["A"]} for each in (SCALING.low, SCALING.typical))
    other = Scaling(low, twice, SCALING.weeks, SCALING.oldest, typical)
    one, two = (Baseline.of(windows(), ("A",), s) for s in (SCALING, other))
    np.testing.assert_allclose(one.history, two.history, rtol=1e-4, atol=1e-5)
    assert one.history.shape[-1] == LOOKBACK + 1


def test_calendar_tells_how_the_target_week_differs_from_the_window_before() -> None:
    w = windows()
    calendar = Baseline.of(w, OUTCOMES, SCALING).calendar
    holidays = w.covariates.shape[-1] - 4 - len(WEEK_COVARIATES)
    assert len(calendar) == holidays + 2 * WAVES + 1 == calendar_size(holidays + len(WEEK_COVARIATES))
    turn = 2 * np.pi * w.week_of_year / 52
    wave = np.cos(turn[:, -1]) - np.cos(turn[:, :-1]).mean(axis=1)
    np.testing.assert_allclose(calendar[holidays], wave, atol=1e-5)
    censored = w.row == int(np.flatnonzero(PANEL.birth == LEFT_CENSORED)[0])
    age = w.week[censored][:, None] + 1 + PANEL.design.washout_weeks - np.arange(LOOKBACK + 1)
    older = np.log1p(age[:, 0]) - np.log1p(age[:, 1:]).mean(axis=1)
    np.testing.assert_allclose(calendar[-1][censored], older, atol=1e-4)
    grown = w.week - LOOKBACK >= PANEL.birth[w.row]
    assert (calendar[-1][grown] > 0).all(), "cohorts grow older"
