"""Forest and boosted trees: what they store, what they ignore, what they must get right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from helpers.panels import calibration, ordinary, simulate
from sklearn.ensemble import RandomForestRegressor

from cbmt_core.models.contract import CannotFit
from cbmt_core.models.sequence import LOOKBACK, OUTCOMES, History, Scaling, Sequences
from cbmt_core.models.trees import TreeForecaster
from cbmt_core.models.trees.data import TrainingSet, features
from cbmt_core.models.trees.forecaster import LEARNERS
from cbmt_core.models.trees.forest import Forest
from cbmt_core.panel import FirmPanel

V = OUTCOMES.index("V")
both = pytest.mark.parametrize("name", ["rf", "xgb"])


def training_set(panel: FirmPanel | None = None) -> TrainingSet:
    panel = panel or calibration(ordinary())
    return TrainingSet.of(panel, Scaling.of(panel), seed=3)


def constant_firm() -> FirmPanel:
    """Every week 20 customers join, order 0.1 times a week, and pay 30."""
    panel = simulate(1)
    R = np.where(panel.born, 0.1, np.nan)
    V = np.where(panel.born, 30.0, np.nan)
    size = np.where(panel.birth < 0, panel.size, 20.0)
    Y = size[:, None] * (panel.is_birth + R) * V
    flat = replace(panel, A=np.full(panel.n_weeks, 20.0), size=size, R=R, V=V, Y=Y)
    return calibration(replace(flat, S=np.nansum(Y, axis=0)))


def test_features_are_lags_then_the_target_weeks_covariates_then_ids() -> None:
    panel = calibration(ordinary())
    sequences = Sequences.of(History.of(panel), Scaling.of(panel))
    windows = sequences.windows(np.array([0, 5, 9]), np.array([50, 60, 70]))
    X = features(windows)
    covariates = windows.covariates.shape[-1]
    assert X.shape == (3, 5 * LOOKBACK + covariates + 3)
    np.testing.assert_array_equal(X[:, 4 * (LOOKBACK - 1) : 4 * LOOKBACK], windows.outcomes[:, -1])
    np.testing.assert_array_equal(X[:, 5 * LOOKBACK : -3], windows.covariates[:, -1])
    np.testing.assert_array_equal(X[:, -1], windows.cohort)


@pytest.mark.parametrize("leaf", [1, 7])
def test_stored_forest_predicts_what_sklearn_predicts(leaf: int) -> None:
    data = training_set()
    model = RandomForestRegressor(9, min_samples_leaf=leaf, max_features=0.3, random_state=1)
    model.fit(data.X[::3], data.targets[::3])
    forest = Forest.of(model, [tree.tree_.value[:, :, 0] for tree in model.estimators_])
    np.testing.assert_allclose(forest.predict(data.X), model.predict(data.X), rtol=1e-5, atol=1e-6)


@both
def test_restored_trees_predict_the_same(name: str) -> None:
    learner, data = LEARNERS[name], training_set()
    (grown,) = learner.grow(data, learner.default, (5,), seed=1)
    back = learner.restore({k: v.copy() for k, v in grown.arrays().items()})
    np.testing.assert_array_equal(back.predict(data.X), grown.predict(data.X))


@both
def test_stages_are_one_ensemble_that_grows(name: str) -> None:
    learner, data = LEARNERS[name], training_set()
    first, second = learner.grow(data, learner.default, (3, 6), seed=1)
    (whole,) = learner.grow(data, learner.default, (6,), seed=1)
    np.testing.assert_allclose(second.predict(data.X), whole.predict(data.X), atol=1e-6)
    assert np.abs(first.predict(data.X) - second.predict(data.X)).max() > 1e-3


def unknown_as(data: TrainingSet, value: float) -> TrainingSet:
    targets = data.targets.copy()
    targets[~data.known] = value
    return replace(data, targets=targets)


def test_boosting_is_blind_to_unknown_order_values() -> None:
    learner, data = LEARNERS["xgb"], training_set()
    assert 0.1 < (~data.known[:, V]).mean() < 0.9
    (low,), (high,) = (learner.grow(unknown_as(data, v), learner.default, (20,), 1) for v in (0.0, 50.0))
    np.testing.assert_array_equal(low.predict(data.X), high.predict(data.X))


def test_forest_forecasts_order_values_from_known_ones() -> None:
    """Known values are all 0.5: whatever stands in for the unknown ones, leaves that saw an order say 0.5."""
    learner, data = LEARNERS["rf"], training_set()
    targets = data.targets.copy()
    targets[:, V] = np.where(data.known[:, V], 0.5, 0.4)
    choice = {**learner.default, "min_samples_leaf": 60}
    (forest,) = learner.grow(replace(data, targets=targets), choice, (10,), seed=1)
    values: npt.NDArray[np.float32] = forest.predict(data.X[data.known[:, V]])[:, V]
    np.testing.assert_array_equal(values, 0.5)


@both
def test_weights_count_large_cohorts_more(name: str) -> None:
    """Two kinds of rows alike in all columns: the forecast is their mean, weighted by size^power."""
    learner, data = LEARNERS[name], training_set()
    n = len(data.X)
    big = np.arange(n) % 2 == 0
    twins = TrainingSet(
        X=np.zeros_like(data.X),
        targets=np.repeat(big[:, None], 4, axis=1).astype(np.float32),
        known=np.ones_like(data.known),
        size=np.where(big, 9.0, 1.0),
    )
    for power, expected in ((0.0, 0.5), (0.5, 0.75)):
        (grown,) = learner.grow(twins, {**learner.default, "weight_power": power}, (30,), seed=1)
        np.testing.assert_allclose(grown.predict(twins.X[:1]), expected, atol=0.02)


@both
def test_constant_firm_stays_constant(name: str) -> None:
    panel = constant_firm()
    forecast = TreeForecaster(name, trials=1).fit(panel, seed=1).forecast(30)
    born = ~np.isnan(forecast.R)
    np.testing.assert_allclose(forecast.A, 20, rtol=1e-5)
    np.testing.assert_allclose(forecast.R[born], 0.1, rtol=1e-5)
    np.testing.assert_allclose(forecast.V[born], 30, rtol=1e-5)


@both
def test_search_takes_the_setting_with_the_least_validation_error(name: str) -> None:
    panel = calibration(ordinary())
    one = TreeForecaster(name, trials=1).fit(panel, seed=1)
    some = TreeForecaster(name, trials=3).fit(panel, seed=1)
    learner = LEARNERS[name]
    assert {k: one.record.parameters[k] for k in learner.default} == dict(learner.default)
    assert one.record.validation_error is not None
    assert some.record.validation_error is not None
    assert some.record.validation_error <= one.record.validation_error


@both
def test_young_cohorts_are_told_from_the_left_censored_one(name: str) -> None:
    """Old customers order rarely and pay much, young ones often and little: the forecast keeps both."""
    panel, rng = simulate(1), np.random.default_rng(5)
    old = (panel.birth < 0)[:, None]
    R = np.where(panel.born, np.where(old, 0.05, 0.4), np.nan) * rng.lognormal(0, 0.2, panel.R.shape)
    V = np.where(panel.born, np.where(old, 90.0, 20.0), np.nan) * rng.lognormal(0, 0.2, panel.V.shape)
    Y = panel.size[:, None] * (panel.is_birth + R) * V
    split = calibration(replace(panel, R=R, V=V, Y=Y, S=np.nansum(Y, axis=0)))
    forecast = TreeForecaster(name, trials=1).fit(split, seed=1).forecast(40)
    assert forecast.R[0].mean() == pytest.approx(0.05, rel=0.3)
    assert forecast.V[0].mean() == pytest.approx(90, rel=0.1)
    assert np.nanmean(forecast.R[1:]) == pytest.approx(0.4, rel=0.1)
    assert np.nanmean(forecast.V[1:]) == pytest.approx(20, rel=0.1)


@both
def test_firm_without_a_single_order_is_forecast_without_one(name: str) -> None:
    panel = calibration(simulate(1, acquisition=lambda t: 0.0 * t))
    silent = replace(panel, S=panel.S * 0, R=panel.R * 0, V=panel.V * np.nan, Y=panel.Y * 0)
    forecast = TreeForecaster(name, trials=2).fit(silent, seed=1).forecast(10)
    assert (forecast.A == 0).all()
    assert np.nanmax(forecast.R) == 0


@both
def test_too_few_weeks_are_refused_and_few_weeks_take_the_default(name: str) -> None:
    panel = calibration(ordinary())
    with pytest.raises(CannotFit, match="5 weeks"):
        TreeForecaster(name).fit(panel.until(panel.weeks[4].astype(object)), seed=1)
    fitted = TreeForecaster(name).fit(panel.until(panel.weeks[30].astype(object)), seed=1)
    assert "default setting" in fitted.record.diagnosis
    assert fitted.record.validation_error is None
