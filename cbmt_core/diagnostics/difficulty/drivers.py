"""Drivers of difficulty: importance of the features, and the effect of each on the predicted error."""

from __future__ import annotations

import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from cbmt_core.arrays import Floats
from cbmt_core.diagnostics.difficulty.meta_models import CrossFit

__all__ = ["REPEATS", "permutation_importance", "shap_values"]


REPEATS = 200


def permutation_importance(
    fit: CrossFit, names: list[str], seed: int, repeats: int = REPEATS
) -> pd.DataFrame:
    """Decline of the out-of-fold R² when a feature is shuffled across firms, largest first.

    `importance` is the mean over the repeats, `low` and `high` hold 95 % of them (Web App. figure "Permutation
    Importance of Contextual Features"). Every firm is predicted by the model fitted without it, so a feature that is
    merely overfitted has no importance.
    """
    base = _squared_error(fit.y, fit.predict(fit.x))
    total = _squared_error(fit.y, fit.y.mean())
    rows = []
    for k, name in enumerate(names):
        rng = np.random.default_rng([seed, k])
        shuffled = np.repeat(fit.x[None], repeats, axis=0)
        shuffled[:, :, k] = rng.permuted(shuffled[:, :, k], axis=1)
        decline = (_squared_error(fit.y, fit.predict(shuffled)) - base) / total
        low, high = np.quantile(decline, [0.025, 0.975])
        rows.append({"feature": name, "importance": decline.mean(), "low": low, "high": high})
    return pd.DataFrame(rows).sort_values("importance", ascending=False, kind="stable", ignore_index=True)


def shap_values(boosting: Pipeline, x: Floats) -> Floats:
    """[n, features] contribution of each feature to each firm's prediction (Lundberg & Lee 2017).

    With a constant they add up to the prediction.
    """
    from shap import TreeExplainer  # Takes seconds to import, and only this function needs it.

    return np.asarray(TreeExplainer(boosting[-1]).shap_values(boosting[:-1].transform(x)), dtype=float)


def _squared_error(y: Floats, predicted: Floats | float) -> Floats:
    return np.asarray(np.sum((y - predicted) ** 2, axis=-1))
