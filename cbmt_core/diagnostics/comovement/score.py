"""The Cross-Metric Co-Movement Score: first principal component of the battery, across firms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA

from cbmt_core.diagnostics.comovement.battery import MEASURES

__all__ = ["MIN_FIRMS", "WINSORISED", "ComovementScore", "ScoreModel", "comovement_score", "fit_score"]

MIN_FIRMS = 20
"""Minimum number of firms: with fewer, the first component of 34 columns does not generalise."""
WINSORISED = "tightness"
LIMITS = (0.01, 0.99)
LEAST_KNOWN = 0.5
"""Share of columns a firm must have, because missing ones are imputed by the median."""


@dataclass(frozen=True, eq=False)
class ScoreModel:
    """The fitted score: medians, limits, scales and loadings, so that other firms can be scored in the same way."""

    columns: pd.DataFrame
    """By measure: median, low, high (winsorising), mean, sd, loading."""
    scale: float
    """Standard deviation of the component among the firms it was fitted on."""
    explained: float

    def prepared(self, measures: pd.DataFrame) -> pd.DataFrame:
        """Columns imputed by the median, tightness winsorised, all standardised (Web App. "Measuring
        Cross-Metric Co-Movement")."""
        c = self.columns
        filled = measures[c.index].astype(float).fillna(c["median"])
        return (filled.clip(c["low"], c["high"], axis=1) - c["mean"]) / c["sd"]

    def values(self, measures: pd.DataFrame) -> pd.Series:
        """Scores in standard deviations of the firms the model was fitted on; NaN for firms with too few
        measures."""
        component = self.prepared(measures).to_numpy() @ self.columns["loading"].to_numpy() / self.scale
        known = measures[list(MEASURES)].notna().mean(axis=1) >= LEAST_KNOWN
        return pd.Series(component, measures.index, name="comovement").where(known)


@dataclass(frozen=True, eq=False)
class ComovementScore:
    values: pd.Series
    """By firm, in standard deviations; NaN without enough firms, or for a firm with too few measures."""
    loadings: pd.Series
    """By measure; NaN for one that never varies."""
    explained: float
    """Share of the variance of the columns."""
    firms: int
    """Number of firms the component was fitted on."""
    note: str
    """Why there is no score; empty if there is one."""
    model: ScoreModel | None


def fit_score(measures: pd.DataFrame) -> ScoreModel:
    """Learn the score from firms (rows) by measures (columns); columns that never vary are left out.

    The sign of a principal component is arbitrary. It is set so that the loadings of the measures that shared
    structure increases by construction (`Measure.rises`) have a positive sum.
    """
    frame = measures[list(MEASURES)].astype(float)
    frame = frame[frame.notna().mean(axis=1) >= LEAST_KNOWN]
    median = frame.median()
    filled = frame.fillna(median)
    low, high = (pd.Series(side, filled.columns) for side in (-np.inf, np.inf))
    low[WINSORISED], high[WINSORISED] = filled[WINSORISED].quantile(list(LIMITS))
    filled = filled.clip(low, high, axis=1)
    mean, sd = filled.mean(), filled.std(ddof=0)
    kept = sd > 1e-12 * (1 + mean.abs())
    names = list(filled.columns[kept])
    z = ((filled - mean) / sd)[names].to_numpy()
    pca = PCA(1, svd_solver="full").fit(z)
    rises = np.array([MEASURES[name].rises for name in names])
    loading = pca.components_[0] * (1.0 if pca.components_[0][rises].sum() >= 0 else -1.0)
    parts = {"median": median, "low": low, "high": high, "mean": mean, "sd": sd}
    return ScoreModel(
        columns=pd.DataFrame(parts).loc[names].assign(loading=loading),
        scale=float((z @ loading).std()),
        explained=float(pca.explained_variance_ratio_[0]),
    )


def comovement_score(measures: pd.DataFrame) -> ComovementScore:
    """The score of every firm, from a table of `measures_of` indexed by firm."""
    usable = int((measures[list(MEASURES)].notna().mean(axis=1) >= LEAST_KNOWN).sum())
    if usable < MIN_FIRMS:
        return ComovementScore(
            values=pd.Series(np.nan, measures.index, name="comovement"),
            loadings=pd.Series(np.nan, list(MEASURES), name="loading"),
            explained=float("nan"),
            firms=usable,
            note=f"{usable} firms with measures of co-movement; the score needs {MIN_FIRMS}",
            model=None,
        )
    model = fit_score(measures)
    return ComovementScore(
        values=model.values(measures),
        loadings=model.columns["loading"].reindex(list(MEASURES)),
        explained=model.explained,
        firms=usable,
        note="",
        model=model,
    )
