"""Meta-models: predict a model's holdout error from a firm's features, cross-validated across firms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import ElasticNetCV
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from cbmt_core.arrays import Floats, Ints

__all__ = ["BOOSTING", "FIRMS_NEEDED", "FOLDS", "META_MODELS", "CrossFit", "MetaModel", "cross_fit"]


FOLDS = 5
FIRMS_NEEDED = 30
"""Six firms a fold. With fewer, R² and predictions say more about the folds than about the firms."""


@dataclass(frozen=True)
class MetaModel:
    """A pipeline from raw features to SMAPE; imputation and scaling are fitted on the training firms too."""

    name: str
    label: str
    chain: Callable[[int], Pipeline]
    """Makes the pipeline from a seed."""


def _boosting(seed: int) -> Pipeline:
    # Low learning rate with subsampling: the best of seven settings tried on simulated panels of 40 and 150 firms.
    trees = GradientBoostingRegressor(
        n_estimators=200,
        learning_rate=0.03,
        max_depth=3,
        min_samples_leaf=3,
        subsample=0.7,
        max_features=0.5,
        random_state=seed,
    )
    return make_pipeline(_median(), trees)


def _elastic_net(seed: int) -> Pipeline:
    inner = KFold(FOLDS, shuffle=True, random_state=seed)
    net = ElasticNetCV(l1_ratio=[0.1, 0.5, 0.9], eps=0.01, alphas=30, cv=inner, max_iter=5000)
    # Scale spans orders of magnitude: in levels a single very large firm would determine the slope.
    return make_pipeline(_median(), FunctionTransformer(_signed_log), StandardScaler(), net)


def _median() -> SimpleImputer:
    return SimpleImputer(strategy="median", keep_empty_features=True)


def _signed_log(x: Floats) -> Floats:
    return np.sign(x) * np.log1p(np.abs(x))


BOOSTING = "gbr"
META_MODELS: dict[str, MetaModel] = {
    meta.name: meta
    for meta in (
        MetaModel(BOOSTING, "Gradient boosting", _boosting),
        MetaModel("elastic_net", "Elastic net", _elastic_net),
    )
}


@dataclass(frozen=True, eq=False)
class CrossFit:
    """A meta-model fitted once for each fold, without that fold's firms."""

    x: Floats
    """[n, features]"""
    y: Floats
    """[n] errors."""
    folds: tuple[Ints, ...]
    """Rows of each fold."""
    fitted: tuple[Pipeline, ...]
    """For each fold, the chain fitted on the other folds."""

    def predict(self, x: Floats) -> Floats:
        """[..., n] out-of-fold predictions from features [..., n, features] of the same firms."""
        predicted = np.empty(x.shape[:-1])
        for rows, chain in zip(self.folds, self.fitted, strict=True):
            part = x[..., rows, :]
            flat = chain.predict(part.reshape(-1, x.shape[-1]))
            predicted[..., rows] = flat.reshape(part.shape[:-1])
        return predicted

    @property
    def r2(self) -> float:
        """Mean of the folds' R² (Web App. table "Cross-Validated R²")."""
        predicted = self.predict(self.x)
        return float(np.mean([r2_score(self.y[rows], predicted[rows]) for rows in self.folds]))

    @property
    def pooled_r2(self) -> float:
        """R² of all out-of-fold predictions together: steadier when folds are small."""
        return float(r2_score(self.y, self.predict(self.x)))


def cross_fit(meta: MetaModel, x: Floats, y: Floats, seed: int) -> CrossFit:
    """Cross-fit a meta-model. Folds depend on the number of firms and the seed alone, never on the errors."""
    parts = list(KFold(FOLDS, shuffle=True, random_state=seed).split(x))
    fitted = tuple(meta.chain(seed).fit(x[train], y[train]) for train, _ in parts)
    return CrossFit(x, y, tuple(test for _, test in parts), fitted)
