"""explain: the predicted forecast error of each firm (PHE) and its drivers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from cbmt_core.diagnostics.difficulty.drivers import REPEATS, permutation_importance, shap_values
from cbmt_core.diagnostics.difficulty.features import FEATURES, SCALE, VOLATILITY
from cbmt_core.diagnostics.difficulty.meta_models import BOOSTING, FIRMS_NEEDED, META_MODELS, cross_fit
from cbmt_core.diagnostics.difficulty.terciles import (
    LEVELS,
    errors_by_band,
    terciles,
    terciles_like,
    win_grid,
)
from cbmt_core.evaluation.comparison import COVERAGE, reference_of
from cbmt_core.evaluation.paired import SEED, common_sample

__all__ = ["COLUMNS", "TARGET_OUTCOME", "Explanation", "explain"]

TARGET_OUTCOME = "cohort_sales"
"""Section "Performance Across Difficulty Levels": PHE predicts the error of cohort-week sales."""
COLUMNS = {
    "r2": ("outcome", "model", "meta_model", "firms", "firms_needed", "r2", "pooled_r2"),
    "phe": ("firm", "firms", "firms_needed", "phe", "band", "out_of_fold", "smape"),
    "bands": (
        "band", "model", "firms", "firms_needed", "in_band", "phe", "smape", "reduction", "wins",
    ),
    "importance": ("feature", "firms", "firms_needed", "importance", "low", "high"),
    "dependence": ("firm", "feature", "firms", "firms_needed", "value", "shap"),
    "grid": (
        "scale", "volatility", "model", "firms", "firms_needed", "in_cell", "wins", "win_rate", "low", "high",
    ),
}  # fmt: skip
"""Columns of the tables below. `firms` is the number of firms that were used; where it is below `firms_needed`, the
numbers are missing."""


@dataclass(frozen=True, eq=False)
class Explanation:
    """Tables in long format; all but `r2` concern one model's error in one outcome."""

    model: str | None
    """Model whose error is explained; None without any error."""
    outcome: str
    r2: pd.DataFrame
    """Cross-validated R² of each meta-model, by outcome and model."""
    phe: pd.DataFrame
    """Predicted holdout error of every firm with features, and its band. Out of fold for firms with a holdout;
    for others from all firms with one."""
    bands: pd.DataFrame
    """Realised error of the compared models in each band of PHE, over the firms they all have."""
    importance: pd.DataFrame
    """Permutation importance, largest first."""
    dependence: pd.DataFrame
    """SHAP value of each feature for each firm with a holdout, beside the feature's value."""
    grid: pd.DataFrame
    """Win rates of the compared models by terciles of scale and volatility."""


def explain(
    features: pd.DataFrame,
    errors: pd.DataFrame,
    seed: int = SEED,
    *,
    model: str | None = None,
    outcome: str = TARGET_OUTCOME,
    models: Sequence[str] | None = None,
    repeats: int = REPEATS,
) -> Explanation:
    """Relate the features of firms to the errors models made on them.

    The order of rows does not matter.

    Args:
        features: indexed by firm, with the columns `FEATURES`.
        errors: firm, model, outcome and smape, for one origin and one horizon.
        seed: seed of folds and shuffles.
        model: model whose error is predicted; by default the reference.
        outcome: outcome whose error is predicted.
        models: models to compare; all by default.
        repeats: shuffles of each feature.
    """
    x = features.loc[:, list(FEATURES)].astype(float).sort_index().replace([np.inf, -np.inf], np.nan)
    known = errors[errors["firm"].isin(x.index) & errors["smape"].notna()]
    if models is not None:
        known = known[known["model"].isin(models)]
    if known.duplicated(["firm", "model", "outcome"]).any():
        raise ValueError("errors must have one row a firm, model and outcome: choose one origin and horizon")
    smape = {
        (str(key[0]), str(key[1])): rows.set_index("firm")["smape"].astype(float).sort_index()
        for key, rows in known.groupby(["outcome", "model"])
    }
    present = [name for o, name in smape if o == outcome]
    chosen = reference_of(present, model) if present else None
    target = smape[outcome, chosen] if chosen else pd.Series(dtype=float)
    order = present if models is None else [name for name in models if name in present]
    sample = _comparable(pd.DataFrame({name: smape[outcome, name] for name in order}), chosen)
    phe, bands, importance, dependence = _predicted(x, target, sample, chosen, seed, repeats)
    return Explanation(
        chosen, outcome, _r2(x, smape, seed), phe, bands, importance, dependence, _grid(x, sample)
    )


def _r2(x: pd.DataFrame, smape: dict[tuple[str, str], pd.Series[float]], seed: int) -> pd.DataFrame:
    rows = []
    for ((outcome, model), y), meta in product(smape.items(), META_MODELS.values()):
        row = {"outcome": outcome, "model": model, "meta_model": meta.name, "firms": len(y)}
        if len(y) >= FIRMS_NEEDED:
            fit = cross_fit(meta, x.loc[y.index].to_numpy(float), np.asarray(y, dtype=float), seed)
            row |= {"r2": fit.r2, "pooled_r2": fit.pooled_r2}
        rows.append(row)
    return _tidy("r2", pd.DataFrame(rows))


def _predicted(
    x: pd.DataFrame,
    target: pd.Series[float],
    sample: pd.DataFrame,
    model: str | None,
    seed: int,
    repeats: int,
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """The tables `phe`, `bands`, `importance` and `dependence`."""
    names = [str(name) for name in x]
    seen, y = x.loc[target.index], np.asarray(target, dtype=float)
    phe = pd.DataFrame({"firm": x.index, "firms": len(y), "out_of_fold": x.index.isin(target.index)})
    phe["smape"] = target.reindex(x.index).to_numpy(float)
    dependence = pd.DataFrame(
        {
            "firm": np.repeat(seen.index, len(names)),
            "feature": np.tile(names, len(seen)),
            "firms": len(y),
            "value": seen.to_numpy().ravel(),
        }
    )
    if model is None or len(y) < FIRMS_NEEDED:
        bands = pd.DataFrame(product(LEVELS, sample), columns=["band", "model"])
        importance = pd.DataFrame({"feature": names})
    else:
        boosting = META_MODELS[BOOSTING]
        fit = cross_fit(boosting, seen.to_numpy(), y, seed)
        own = pd.Series(fit.predict(fit.x), index=target.index)
        whole = boosting.chain(seed).fit(fit.x, y)
        later = x.index.difference(target.index)
        new = pd.Series(
            whole.predict(x.loc[later].to_numpy()) if len(later) else [], index=later, dtype=float
        )
        phe["phe"] = pd.concat([own, new]).reindex(x.index).to_numpy(float)
        phe["band"] = pd.concat([terciles(own), terciles_like(own, new)]).reindex(x.index).to_numpy(object)
        bands = errors_by_band(own, sample, model)
        importance = permutation_importance(fit, names, seed, repeats)
        dependence["shap"] = shap_values(whole, fit.x).ravel()
    return (
        _tidy("phe", phe),
        _tidy("bands", bands.assign(firms=len(sample))),
        _tidy("importance", importance.assign(firms=len(y))),
        _tidy("dependence", dependence),
    )


def _grid(x: pd.DataFrame, sample: pd.DataFrame) -> pd.DataFrame:
    placed = sample[x.loc[sample.index, [SCALE, VOLATILITY]].notna().all(axis=1)]
    if len(placed) < FIRMS_NEEDED:
        grid = pd.DataFrame(product(LEVELS, LEVELS, sample), columns=["scale", "volatility", "model"])
    else:
        grid = win_grid(x[SCALE], x[VOLATILITY], placed)
    return _tidy("grid", grid.assign(firms=len(placed)))


def _comparable(errors: pd.DataFrame, reference: str | None) -> pd.DataFrame:
    """Firms × models without missing values: models with nearly all of the reference's firms, and the firms they all
    have."""
    if reference is None:
        return errors
    models, firms = common_sample(errors.notna(), reference, COVERAGE)
    return errors.loc[firms, models]


def _tidy(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(firms_needed=FIRMS_NEEDED).reindex(columns=list(COLUMNS[name]))
