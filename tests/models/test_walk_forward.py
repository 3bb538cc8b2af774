"""The walk forward with models whose forecasts are known."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date, timedelta

import numpy as np
import numpy.typing as npt
import pytest
from helpers.panels import calibration, ordinary

from cbmt_core.arrays import Floats
from cbmt_core.compose import compose
from cbmt_core.design import StudyDesign
from cbmt_core.models.contract import PrimitiveForecast
from cbmt_core.models.sequence import (
    OUTCOMES,
    History,
    Scaling,
    Windows,
    validation_split,
    walk_forward,
    walk_forward_error,
)
from cbmt_core.panel import LEFT_CENSORED, FirmPanel

WEEKS, HORIZON, CENSORED = 30, 25, 500.0
BIRTH_R, BIRTH_V = 0.3, 50.0


def next_week(A: Floats, R: Floats, V: Floats, S: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """A rule without noise in which each driver needs another one's past."""
    return 0.9 * A + 3, 0.85 * R + 0.0002 * A, V * 1.004 + 2 * R, 0.97 * S + 10 * A


def rule_panel() -> FirmPanel:
    first, total = date(2017, 1, 1), WEEKS + HORIZON
    design = StudyDesign(
        observed_from=date(2016, 1, 3),
        first_week=date(2016, 1, 3),
        training_weeks=WEEKS - 5,
        validation_weeks=5,
        holdout_weeks=HORIZON,
        observed_to=first + timedelta(weeks=total) - timedelta(days=1),
    )
    birth = np.r_[LEFT_CENSORED, np.arange(total)]
    A, S = np.zeros(total), np.zeros(total)
    R, V = np.full((total + 1, total), np.nan), np.full((total + 1, total), np.nan)
    A[0], S[0], R[0, 0], V[0, 0] = 12.0, 9000.0, 0.2, 70.0
    R[1, 0], V[1, 0] = BIRTH_R, BIRTH_V
    for t in range(1, total):
        A[t], R[:, t], V[:, t], S[t] = next_week(A[t - 1], R[:, t - 1], V[:, t - 1], S[t - 1])
        R[t + 1, t], V[t + 1, t] = BIRTH_R, BIRTH_V
    size = np.r_[CENSORED, A]
    Y = size[:, None] * ((np.arange(total) == birth[:, None]) + R) * V
    return FirmPanel("rule", design, design.study.dates(), A, S, size, birth, R, V, Y)


@dataclass
class Oracle:
    """Knows the rule, and reads everything else from the windows it is given."""

    scaling: Scaling
    seen: list[Windows] = field(default_factory=list)

    def predict(self, windows: Windows) -> Floats:
        self.seen.append(windows)
        last = windows.outcomes[:, -1].astype(float)
        raw = [self.scaling.unscale(name, last[:, k]) for k, name in enumerate(OUTCOMES)]
        A, R, V, S = next_week(*raw)
        born = windows.is_birth == 1
        R, V = np.where(born, BIRTH_R, R), np.where(born, BIRTH_V, V)
        return np.column_stack(
            [self.scaling.scale(name, x) for name, x in zip(OUTCOMES, (A, R, V, S), strict=True)]
        )


def walked() -> tuple[FirmPanel, FirmPanel, Oracle, PrimitiveForecast]:
    full = rule_panel()
    panel = full.until(full.design.origin)
    oracle = Oracle(Scaling.of(panel))
    drivers = walk_forward(oracle, History.of(panel), oracle.scaling, HORIZON)
    return full, panel, oracle, drivers


def test_a_model_that_knows_the_rule_continues_the_truth() -> None:
    full, panel, _, drivers = walked()
    np.testing.assert_allclose(drivers.A, full.A[WEEKS:], rtol=1e-4)
    np.testing.assert_allclose(drivers.R, full.R[:, WEEKS:], rtol=1e-4)
    np.testing.assert_allclose(drivers.V, full.V[:, WEEKS:], rtol=1e-4)
    assert walk_forward_error(full, panel, drivers) > 0  # aux sales are not the composed ones
    consistent = replace(full, S=np.nansum(full.Y, axis=0))
    assert walk_forward_error(consistent, panel, drivers) == pytest.approx(0, abs=0.01)
    with pytest.raises(KeyError, match="sails"):
        walk_forward_error(consistent, panel, drivers, "sails")


def test_initial_orders_count_in_the_birth_week_only() -> None:
    full, panel, _, drivers = walked()
    np.testing.assert_allclose(compose(panel, drivers).Y, full.Y[:, WEEKS:], rtol=2e-4)


def test_predicted_acquisition_becomes_the_size_of_new_cohorts() -> None:
    _, panel, _, drivers = walked()
    np.testing.assert_array_equal(compose(panel, drivers).size[panel.n_cohorts :], drivers.A)


def test_new_cohort_starts_from_zero_history_in_its_birth_week() -> None:
    _, panel, oracle, drivers = walked()
    n = panel.n_cohorts
    for h, windows in enumerate(oracle.seen):
        np.testing.assert_array_equal(windows.row, np.arange(n + h + 1))
        np.testing.assert_array_equal(windows.week, WEEKS + h)
        np.testing.assert_array_equal(windows.outcomes[-1, :, 1:3], 0)
        np.testing.assert_array_equal(np.flatnonzero(windows.is_birth), [n + h])
    second = oracle.seen[1].outcomes[n, -1]
    assert second[1] == pytest.approx(float(oracle.scaling.scale("R", drivers.R[n, 0])))
    assert second[0] == pytest.approx(float(oracle.scaling.scale("A", drivers.A[0])))


def test_week_level_forecasts_are_averaged_over_the_samples() -> None:
    panel = calibration(ordinary())
    scaling = Scaling.of(panel)

    class ByRow:
        def predict(self, windows: Windows) -> Floats:
            return np.repeat(windows.row[:, None] / 100, 4, axis=1)

    drivers = walk_forward(ByRow(), History.of(panel), scaling, 3)
    n = panel.n_cohorts
    expected = [scaling.unscale("A", np.arange(n + h + 1).mean() / 100) for h in range(3)]
    np.testing.assert_allclose(drivers.A, expected)


def test_negative_forecasts_end_at_zero_and_re_enter_as_zero() -> None:
    panel = calibration(ordinary())
    scaling = Scaling.of(panel)
    entered: list[npt.NDArray[np.float32]] = []

    class Sinking:
        def predict(self, windows: Windows) -> Floats:
            entered.append(windows.outcomes[:, -1])
            return np.full((len(windows), 4), -100.0)

    drivers = walk_forward(Sinking(), History.of(panel), scaling, 2)
    assert (drivers.A == 0).all()
    assert np.nanmax(drivers.R) == np.nanmax(drivers.V) == 0
    zero = [float(scaling.scale(name, 0.0)) for name in OUTCOMES]
    np.testing.assert_allclose(entered[1][: panel.n_cohorts], [zero] * panel.n_cohorts, rtol=1e-5)


def test_order_of_the_cohorts_does_not_matter() -> None:
    _, panel, oracle, drivers = walked()
    history = History.of(panel)
    order = np.random.default_rng(3).permutation(panel.n_cohorts)
    names = ("size", "birth", "R", "V", "no_orders")
    shuffled = replace(history, **{name: getattr(history, name)[order] for name in names})
    again = walk_forward(oracle, shuffled, oracle.scaling, HORIZON)
    rows = np.r_[order, np.arange(panel.n_cohorts, panel.n_cohorts + HORIZON)]
    np.testing.assert_allclose(again.A, drivers.A, rtol=1e-6)
    np.testing.assert_allclose(again.R, drivers.R[rows], rtol=1e-6)
    np.testing.assert_allclose(again.V, drivers.V[rows], rtol=1e-6)


def test_validation_split_holds_back_the_designs_weeks() -> None:
    panel = calibration(ordinary())
    assert validation_split(panel).n_weeks == panel.n_weeks - 20
    short = panel.until(panel.weeks[39].astype(object))
    assert validation_split(short).n_weeks == 30
    unplanned = replace(panel, design=replace(panel.design, training_weeks=84, validation_weeks=0))
    assert validation_split(unplanned).n_weeks == 63
