"""Windows, scaling and ids of the one-step models, against a panel small enough to check by hand."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pytest
from helpers.panels import calibration, ordinary

from cbmt_core.design import StudyDesign
from cbmt_core.models.sequence import LOOKBACK, OUTCOMES, History, Scaling, Sequences, Windows, hide_cohorts
from cbmt_core.models.sequence.windows import COHORT_COVARIATES, FLAGS, N_MONTHS
from cbmt_core.panel import LEFT_CENSORED, FirmPanel

NAN = np.nan
NO_ORDERS, BEFORE_PANEL = (FLAGS.index(name) for name in ("no_orders", "before_panel"))
TENURE, BORN, BIRTH = (COHORT_COVARIATES.index(name) for name in ("tenure", "born", "birth"))


def tiny() -> FirmPanel:
    """Five weeks from 2017-01-01: the left-censored cohort and two others, born in weeks 0 and 3."""
    design = StudyDesign(training_weeks=4, validation_weeks=1, holdout_weeks=0)
    size = np.array([10.0, 4.0, 8.0])
    birth = np.array([LEFT_CENSORED, 0, 3])
    R = np.array([[0.2, 0.1, 0.0, 0.3, 0.1], [0.0, 0.0, 0.5, 0.0, 0.25], [NAN, NAN, NAN, 0.0, 0.5]])
    V = np.array([[30.0, 40, NAN, 20, 30], [50.0, NAN, 40, NAN, 20], [NAN, NAN, NAN, 60, 20]])
    is_birth = np.arange(5) == birth[:, None]
    Y = np.where(np.isnan(R), NAN, size[:, None] * (is_birth + R) * np.nan_to_num(V))
    return FirmPanel(
        firm="tiny",
        design=design,
        weeks=design.calibration.dates(),
        A=np.array([4.0, 0, 0, 8, 0]),
        S=np.nansum(Y, axis=0),
        size=size,
        birth=birth,
        R=R,
        V=V,
        Y=Y,
    )


IDENTITY = Scaling(
    low=dict.fromkeys((*OUTCOMES, "Y"), 0.0),
    span=dict.fromkeys((*OUTCOMES, "Y"), 1.0),
    weeks=5,
    oldest=57,
)


def one(sequences: Sequences, row: int, week: int) -> Windows:
    return sequences.windows(np.array([row]), np.array([week]))


def test_window_holds_the_weeks_before_its_target() -> None:
    window = one(Sequences.of(History.of(tiny()), IDENTITY), row=1, week=4)
    assert window.outcomes.shape == (1, LOOKBACK, 4)
    expected = [  # A, R, V (carried where unknown), S
        [4, 0.0, 50, 10 * 0.2 * 30 + 4 * 50],
        [0, 0.0, 50, 10 * 0.1 * 40],
        [0, 0.5, 40, 4 * 0.5 * 40],
        [8, 0.0, 40, 10 * 0.3 * 20 + 8 * 60],
    ]
    np.testing.assert_allclose(window.outcomes[0, -4:], expected, rtol=1e-6)
    np.testing.assert_array_equal(window.outcomes[0, :-4], 0)
    np.testing.assert_array_equal(window.flags[0, -4:, NO_ORDERS], [0, 1, 0, 1])
    np.testing.assert_array_equal(window.flags[0, :, BEFORE_PANEL], [1] * 16 + [0] * 4)


def test_covariates_reach_the_target_week() -> None:
    """Week 4 of 2017 counts from 1 January: the Wednesday 2017-02-01 has four whole weeks before it."""
    window = one(Sequences.of(History.of(tiny()), IDENTITY), row=1, week=4)
    assert window.covariates.shape[1] == LOOKBACK + 1
    np.testing.assert_allclose(window.covariates[0, -5:, TENURE] * 57, [0, 1, 2, 3, 4], rtol=1e-6)
    np.testing.assert_array_equal(window.covariates[0, -6:, BORN], [0, 1, 1, 1, 1, 1])
    np.testing.assert_array_equal(window.covariates[0, -6:, BIRTH], [0, 1, 0, 0, 0, 0])
    np.testing.assert_array_equal(window.week_of_year[0, -5:], [0, 1, 2, 3, 4])
    assert window.month[0] == 0


def test_birth_week_is_a_target_whose_window_is_all_before_birth() -> None:
    sequences = Sequences.of(History.of(tiny()), IDENTITY)
    samples = sequences.samples(np.array([2]), np.array([3]))
    np.testing.assert_array_equal(samples.windows.outcomes[0, :, 1:3], 0)
    np.testing.assert_array_equal(samples.windows.covariates[0, :-1, BORN], 0)
    assert samples.windows.is_birth[0] == 1
    np.testing.assert_allclose(samples.targets[0], [8, 0, 60, 540])


def test_every_cohort_week_since_birth_is_a_sample() -> None:
    row, week = Sequences.of(History.of(tiny()), IDENTITY).pairs(range(1, 5))
    assert sorted(zip(row.tolist(), week.tolist(), strict=True)) == [
        *[(0, t) for t in (1, 2, 3, 4)],
        *[(1, t) for t in (1, 2, 3, 4)],
        *[(2, t) for t in (3, 4)],
    ]


def test_unknown_order_value_carries_no_loss_and_no_zero() -> None:
    sequences = Sequences.of(History.of(tiny()), IDENTITY)
    samples = sequences.samples(np.array([0, 0, 1]), np.array([2, 3, 3]))
    v = OUTCOMES.index("V")
    np.testing.assert_array_equal(samples.known[:, v], [False, True, False])
    assert samples.known[:, [0, 1, 3]].all()
    np.testing.assert_allclose(samples.targets[:, v], [40, 20, 40])


def test_order_value_that_was_never_known_is_zero_with_a_flag() -> None:
    panel = tiny()
    V = panel.V.copy()
    V[0, :2] = NAN
    window = one(Sequences.of(History.of(replace(panel, V=V)), IDENTITY), row=0, week=2)
    np.testing.assert_array_equal(window.outcomes[0, -2:, OUTCOMES.index("V")], 0)
    np.testing.assert_array_equal(window.flags[0, -2:, NO_ORDERS], 1)


def test_left_censored_cohort_keeps_apart_from_the_young_ones() -> None:
    sequences = Sequences.of(History.of(tiny()), IDENTITY)
    window = one(sequences, row=0, week=0)
    assert window.month[0] == N_MONTHS - 1
    assert window.is_birth[0] == 0
    np.testing.assert_allclose(window.covariates[0, -1, TENURE] * 57, 53, rtol=1e-6)  # 52 of washout
    assert sequences.cohort_covariates[..., TENURE].max() == pytest.approx(1)


@pytest.mark.parametrize("target", [1, 30, 70, 83])
def test_no_window_sees_its_target_week_or_later(target: int) -> None:
    panel = calibration(ordinary())
    rng = np.random.default_rng(0)
    later = np.arange(panel.n_weeks) >= target
    factor = np.where(later, rng.uniform(2, 5, panel.n_weeks), 1)
    other = replace(
        panel,
        A=panel.A * factor,
        S=panel.S * factor,
        R=panel.R * factor + later,
        V=np.where(later & (rng.random(panel.V.shape) < 0.5), NAN, panel.V * factor),
    )
    scaling = Scaling.of(panel)
    before, after = (Sequences.of(History.of(p), scaling) for p in (panel, other))
    row, week = before.pairs(range(1, target + 1))
    one, two = before.windows(row, week), after.windows(row, week)
    for name in ("outcomes", "flags", "covariates", "week_of_year", "month", "cohort"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)


def test_last_weeks_are_all_a_forecast_needs() -> None:
    panel = calibration(ordinary())
    history, scaling = History.of(panel), Scaling.of(panel)
    whole = Sequences.of(history, scaling, horizon=2)
    tail = Sequences.of(history.tail(LOOKBACK), scaling, horizon=2)
    row = np.arange(panel.n_cohorts + 1)
    week = np.full(len(row), panel.n_weeks)
    one, two = whole.windows(row, week), tail.windows(row, week)
    for name in ("outcomes", "flags", "covariates", "week_of_year", "month", "cohort"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)


def test_history_survives_its_state() -> None:
    history = History.of(tiny())
    back = History.from_state(history.state())
    assert back.first_week == history.first_week == date(2017, 1, 1)
    for name in ("A", "S", "R", "V", "no_orders", "size", "birth"):
        np.testing.assert_array_equal(getattr(back, name), getattr(history, name))


def test_a_target_after_the_origin_is_refused() -> None:
    sequences = Sequences.of(History.of(tiny()), IDENTITY, horizon=1)
    with pytest.raises(ValueError, match="after the origin"):
        sequences.samples(np.array([0]), np.array([5]))


def test_cohorts_unseen_in_training_share_one_id() -> None:
    history = History.of(tiny())
    np.testing.assert_array_equal(Sequences.of(history, IDENTITY, horizon=2).cohort, [0, 1, 2, 3, 3])
    trained_on_two = Sequences.of(history, IDENTITY, horizon=2, known_cohorts=2)
    np.testing.assert_array_equal(trained_on_two.cohort, [0, 1, 2, 2, 2])
    assert trained_on_two.new_id == 2


def test_training_visits_the_shared_id() -> None:
    panel = calibration(ordinary())
    sequences = Sequences.of(History.of(panel), Scaling.of(panel))
    windows = sequences.windows(*sequences.pairs(range(1, panel.n_weeks)))
    hide = [
        hide_cohorts(windows, sequences.new_id, 0.2, np.random.default_rng(seed)).cohort for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(hide[0], hide[1])
    assert (hide[0] != hide[2]).any()
    hidden = hide[0] == sequences.new_id
    assert hidden.mean() == pytest.approx(0.2, abs=0.02)
    np.testing.assert_array_equal(hide[0][~hidden], windows.cohort[~hidden])


def test_scaling_maps_what_it_saw_to_the_unit_interval_and_back() -> None:
    panel = tiny()
    scaling = Scaling.of(panel)
    for name in (*OUTCOMES, "Y"):
        values = getattr(panel, name)
        known = values[np.isfinite(values)]
        scaled = scaling.scale(name, known)
        assert (scaled.min(), scaled.max()) == pytest.approx((0, 1))
        np.testing.assert_allclose(scaling.unscale(name, scaled), known)
    assert scaling.unscale("V", -5.0) == 0
    assert Scaling(**scaling.values()) == scaling
    assert [scaling.low[k] for k in OUTCOMES] == pytest.approx([0, 0, 20, panel.S.min()])
    assert [scaling.span[k] for k in OUTCOMES] == pytest.approx([8, 0.5, 40, np.ptp(panel.S)])


def test_a_series_that_never_moved_scales_without_division_by_zero() -> None:
    panel = tiny()
    scaling = Scaling.of(replace(panel, A=np.full(5, 7.0), V=np.full((3, 5), NAN)))
    assert scaling.scale("A", 7.0) == 0
    assert scaling.unscale("A", 0.0) == 7
    assert scaling.unscale("V", 0.25) == 0.25
