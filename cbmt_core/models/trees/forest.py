"""Random forest with several outputs, stored as plain arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import optuna
from sklearn.ensemble import RandomForestRegressor

from cbmt_core.arrays import Floats, Floats32
from cbmt_core.models.sequence import OUTCOMES
from cbmt_core.models.trees.data import Choice, TrainingSet

__all__ = ["Forest", "RandomForest"]


_ARRAYS = ("root", "feature", "threshold", "child", "value", "depth")
_V = OUTCOMES.index("V")
EMPHASIS = np.array([1.0, 4.0, 2.0, 1.0], np.float32)
"""Weights of A, R, V and S in a split, in units of their own spread. Acquisition and sales are the same for all
cohorts of a week and easy to split on; with equal weights they determine nearly every split, and R suffers."""


@dataclass(frozen=True, eq=False)
class Forest:
    """The nodes of all trees, one tree after the other; a leaf is its own child."""

    root: npt.NDArray[np.int32]
    """[trees] index of each tree's first node"""
    feature: npt.NDArray[np.int32]
    threshold: Floats
    child: npt.NDArray[np.int32]
    """[nodes, 2] left (value <= threshold) and right"""
    value: Floats
    """[nodes, 4]"""
    depth: npt.NDArray[np.int32]
    """[trees]"""

    @classmethod
    def of(cls, model: RandomForestRegressor, values: list[Floats]) -> Self:
        """The trees of `model` with the node values `values`."""
        trees = [estimator.tree_ for estimator in model.estimators_]
        root = np.cumsum([0, *(tree.node_count for tree in trees[:-1])])
        sides = np.concatenate([np.column_stack([t.children_left, t.children_right]) for t in trees])
        first = np.repeat(root, [tree.node_count for tree in trees])[:, None]
        return cls(
            root=root.astype(np.int32),
            feature=np.concatenate([np.maximum(tree.feature, 0) for tree in trees]).astype(np.int32),
            threshold=np.concatenate([tree.threshold for tree in trees]),
            child=np.where(sides < 0, np.arange(len(sides))[:, None], first + sides).astype(np.int32),
            value=np.concatenate(values),
            depth=np.array([tree.max_depth for tree in trees], np.int32),
        )

    def predict(self, X: Floats32) -> Floats32:
        node = np.broadcast_to(self.root, (len(X), len(self.root))).ravel()
        row = np.repeat(np.arange(len(X)) * X.shape[1], len(self.root))
        flat, child = X.ravel(), self.child.ravel()
        for _ in range(self.depth.max()):
            right = flat[row + self.feature[node]] > self.threshold[node]
            node = child[2 * node + right]
        by_tree: Floats = self.value[node].reshape(len(X), len(self.root), -1)
        return np.asarray(by_tree.mean(axis=1), np.float32)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {name: getattr(self, name) for name in _ARRAYS}


def _node_values(model: RandomForestRegressor, data: TrainingSet, spread: Floats32) -> list[Floats]:
    """[nodes, 4] of each tree: the means of its draws, but of V over the known targets only.

    An unknown V is replaced by the last known one to find the splits, because a forest with several outputs has no
    weights by output; the forecasts use known values only. A leaf without any keeps the replaced values. Row weights
    are already in the bootstrap draws.
    """
    values = []
    for estimator, drawn in zip(model.estimators_, model.estimators_samples_, strict=True):
        value = estimator.tree_.value[:, :, 0] * spread
        known = drawn[data.known[drawn, _V]]
        leaf = estimator.tree_.apply(data.X[known])
        count = np.bincount(leaf, minlength=len(value))
        total = np.bincount(leaf, data.targets[known, _V], len(value))
        value[count > 0, _V] = total[count > 0] / count[count > 0]
        values.append(value)
    return values


@dataclass(frozen=True)
class RandomForest:
    """scikit-learn's forest, grown on scaled targets."""

    default: Choice = field(
        default_factory=lambda: {"min_samples_leaf": 5, "max_features": 0.2, "weight_power": 0.5}
    )
    stages: tuple[int, ...] = (8, 24)
    final: int = 64

    def suggest(self, trial: optuna.Trial) -> Choice:
        return {
            "min_samples_leaf": trial.suggest_int("min_samples_leaf", 2, 20, log=True),
            "max_features": trial.suggest_float("max_features", 0.1, 0.4),
            "weight_power": trial.suggest_categorical("weight_power", [0.0, 0.5]),
        }

    def grow(self, data: TrainingSet, choice: Choice, stages: tuple[int, ...], seed: int) -> Iterator[Forest]:
        model = RandomForestRegressor(
            min_samples_leaf=choice["min_samples_leaf"],
            max_features=choice["max_features"],
            max_samples=0.5,
            random_state=seed,
            n_jobs=1,
            warm_start=True,
        )
        weight = data.weight(choice["weight_power"])
        spread = np.maximum(data.targets.std(axis=0), 1e-6) / EMPHASIS
        for stage in stages:
            model.set_params(n_estimators=stage).fit(data.X, data.targets / spread, sample_weight=weight)
            yield Forest.of(model, _node_values(model, data, spread))

    def final_size(self, stage: int) -> int:
        return self.final  # more trees never hurt a forest

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Forest:
        return Forest(**{name: arrays[name] for name in _ARRAYS})
