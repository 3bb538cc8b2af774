"""The tree forecaster: a small search on the validation window, then a fit on everything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import optuna

from cbmt_core.arrays import Floats32
from cbmt_core.models.contract import CannotFit, FitRecord, ModelState, PrimitiveForecast
from cbmt_core.models.sequence import (
    LOOKBACK,
    History,
    Scaling,
    Windows,
    validation_split,
    walk_forward,
    walk_forward_error,
)
from cbmt_core.models.trees.boosting import Boosting
from cbmt_core.models.trees.data import Choice, Ensemble, Learner, TrainingSet, features
from cbmt_core.models.trees.forest import RandomForest
from cbmt_core.panel import FirmPanel

__all__ = ["LEARNERS", "FittedTrees", "TreeForecaster"]

LEARNERS: dict[str, Learner] = {"rf": RandomForest(), "xgb": Boosting()}

MIN_WEEKS = 8
MIN_SEARCH_WEEKS = 2 * LOOKBACK
"""A shorter panel leaves too few weeks on either side of the split, so the default setting is used."""
WORTH_LEAVING_DEFAULT = 0.93
"""A setting replaces the default when its error is at most this share of the default's: twenty weeks are
few, and the least of several errors is partly luck."""


@dataclass(frozen=True, eq=False)
class _OnWindows:
    """An ensemble as a one-step model."""

    ensemble: Ensemble

    def predict(self, windows: Windows) -> Floats32:
        return self.ensemble.predict(features(windows))


@dataclass(frozen=True, eq=False)
class FittedTrees:
    """A fitted tree ensemble with the history that its forecasts start from."""

    learner: str
    ensemble: Ensemble
    history: History
    scaling: Scaling
    record: FitRecord

    def forecast(self, horizon: int) -> PrimitiveForecast:
        return walk_forward(_OnWindows(self.ensemble), self.history, self.scaling, horizon)

    def state(self) -> ModelState:
        history = self.history.state()
        values: dict[str, Any] = {
            "learner": self.learner,
            "history": history.values,
            "scaling": self.scaling.values(),
            **self.record.values(),
        }
        trees = {f"trees.{name}": array for name, array in self.ensemble.arrays().items()}
        return ModelState(values, {**history.arrays, **trees})

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        values = state.values
        trees = {k.removeprefix("trees."): v for k, v in state.arrays.items() if k.startswith("trees.")}
        return cls(
            learner=values["learner"],
            ensemble=LEARNERS[values["learner"]].restore(trees),
            history=History.from_state(ModelState(values["history"], state.arrays)),
            scaling=Scaling(**values["scaling"]),
            record=FitRecord.from_values(values),
        )


@dataclass(frozen=True)
class TreeForecaster:
    """One multi-output one-step model, recursive (Web App. "Benchmark Model Implementation Details")."""

    learner: str
    """A name in `LEARNERS`."""
    trials: int = 8
    """Settings tried; the first is the learner's default."""

    def fit(self, panel: FirmPanel, *, seed: int) -> FittedTrees:
        if panel.n_weeks < MIN_WEEKS:
            raise CannotFit(
                self.learner, panel.firm, f"it has {panel.n_weeks} weeks; at least {MIN_WEEKS} are needed"
            )
        learner = LEARNERS[self.learner]
        if panel.n_weeks < MIN_SEARCH_WEEKS:
            choice, stage, error = learner.default, learner.stages[-1], None
            diagnosis = f"default setting: a search needs {MIN_SEARCH_WEEKS} weeks"
        else:
            choice, stage, error = self._search(learner, panel, seed)
            diagnosis = ""
        scaling, size = Scaling.of(panel), learner.final_size(stage)
        (ensemble,) = learner.grow(TrainingSet.of(panel, scaling, seed), choice, (size,), seed)
        record = FitRecord({**choice, "trees": size}, diagnosis=diagnosis, validation_error=error)
        return FittedTrees(self.learner, ensemble, History.of(panel).tail(LOOKBACK), scaling, record)

    def _search(self, learner: Learner, panel: FirmPanel, seed: int) -> tuple[Choice, int, float]:
        """A setting and its best stage, by walk-forward error over the validation window."""
        training = validation_split(panel)
        scaling, history = Scaling.of(training), History.of(training)
        data = TrainingSet.of(training, scaling, seed)
        horizon = panel.n_weeks - training.n_weeks

        def objective(trial: optuna.Trial) -> float:
            errors: list[float] = []
            for stage, ensemble in zip(
                learner.stages,
                learner.grow(data, learner.suggest(trial), learner.stages, seed),
                strict=True,
            ):
                drivers = walk_forward(_OnWindows(ensemble), history, scaling, horizon)
                errors.append(walk_forward_error(panel, training, drivers))
                if errors[-1] == min(errors):
                    trial.set_user_attr("stage", stage)
                trial.report(min(errors), stage)
                if trial.should_prune():
                    raise optuna.TrialPruned
            return min(errors)

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(
            sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=4),
            pruner=optuna.pruners.MedianPruner(n_startup_trials=2),
        )
        study.enqueue_trial(dict(learner.default))
        study.optimize(objective, n_trials=self.trials)
        default, best = study.trials[0], study.best_trial
        if best.values[0] > WORTH_LEAVING_DEFAULT * default.values[0]:
            best = default
        return best.params, best.user_attrs["stage"], float(best.values[0])
