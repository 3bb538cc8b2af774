"""Boosted trees with several outputs, stored in xgboost's portable format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import optuna
import xgboost

from cbmt_core.arrays import Floats32
from cbmt_core.models.trees.data import Choice, TrainingSet

__all__ = ["Boosted", "Boosting"]


@dataclass(frozen=True, eq=False)
class Boosted:
    booster: xgboost.Booster
    base: Floats32
    """[4] where boosting starts: the mean of the known targets."""

    def predict(self, X: Floats32) -> Floats32:
        return self.base + self.booster.inplace_predict(X)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {"base": self.base, "booster": np.frombuffer(self.booster.save_raw("ubj"), np.uint8)}


@dataclass(frozen=True)
class Boosting:
    """xgboost's histogram trees under squared error of the known targets."""

    default: Choice = field(
        default_factory=lambda: {
            "max_depth": 5,
            "min_child_weight": 10.0,
            "colsample": 0.5,
            "weight_power": 0.0,
        }
    )
    stages: tuple[int, ...] = (25, 50)
    eta: float = 0.15
    """High enough for a few dozen rounds to reach the level of an unusual cohort."""

    def suggest(self, trial: optuna.Trial) -> Choice:
        return {
            "max_depth": trial.suggest_int("max_depth", 3, 7),
            "min_child_weight": trial.suggest_float("min_child_weight", 3.0, 60.0, log=True),
            "colsample": trial.suggest_float("colsample", 0.3, 0.8),
            "weight_power": trial.suggest_categorical("weight_power", [0.0, 0.5]),
        }

    def grow(
        self, data: TrainingSet, choice: Choice, stages: tuple[int, ...], seed: int
    ) -> Iterator[Boosted]:
        weight = np.where(data.known, data.weight(choice["weight_power"])[:, None], 0.0)
        total = np.maximum(weight.sum(axis=0), 1e-9)  # no AOV is known of a firm without a single order
        base = ((data.targets * weight).sum(axis=0) / total).astype(np.float32)
        residual = data.targets - base
        matrix = xgboost.QuantileDMatrix(data.X, label=residual, max_bin=64, nthread=1)
        booster = xgboost.Booster(
            {
                "objective": "reg:squarederror",
                "base_score": 0.0,
                "tree_method": "hist",
                "multi_strategy": "one_output_per_tree",
                "eta": self.eta,
                "max_depth": choice["max_depth"],
                "min_child_weight": choice["min_child_weight"],
                "colsample_bytree": choice["colsample"],
                "subsample": 0.7,
                "max_bin": 64,
                "nthread": 1,
                "seed": seed,
                "verbosity": 0,
            },
            [matrix],
        )
        grown = 0
        for stage in stages:
            for step in range(grown, stage):
                margin = booster.predict(matrix, output_margin=True, training=True)
                booster.boost(matrix, step, grad=(margin - residual) * weight, hess=weight)
            grown = stage
            yield Boosted(booster.copy(), base)

    def final_size(self, stage: int) -> int:
        return stage

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Boosted:
        booster = xgboost.Booster({"nthread": 1})
        booster.load_model(bytearray(arrays["booster"].tobytes()))
        return Boosted(booster, arrays["base"])
