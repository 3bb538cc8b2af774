"""Terciles of firms: by one measure, errors within them, and winners on a grid of two measures."""

from __future__ import annotations

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint

__all__ = ["LEVELS", "errors_by_band", "terciles", "terciles_like", "win_grid", "wins_of"]


LEVELS = ("low", "medium", "high")


def terciles(values: pd.Series[float]) -> pd.Series[str]:
    """Terciles of equal size, up to one firm; ties are ordered by firm."""
    rank = values.sort_index().rank(method="first") - 1
    part = (rank * len(LEVELS) // max(len(values), 1)).astype(int)
    return part.map(dict(enumerate(LEVELS))).reindex(values.index)


def terciles_like(known: pd.Series[float], values: pd.Series[float]) -> pd.Series[str]:
    """Terciles of other firms, by the limits that those of `known` have."""
    top = known.groupby(terciles(known)).max().reindex(LEVELS[:-1]).to_numpy(float)
    part = np.searchsorted(top, values.to_numpy(float), side="left")
    return pd.Series([LEVELS[k] for k in part], index=values.index, dtype=object)


def wins_of(errors: pd.DataFrame) -> pd.DataFrame:
    """Firms × models: 1 for the lowest error of a firm, shared between models that tie."""
    lowest = errors.eq(errors.min(axis=1), axis=0).astype(float)
    return lowest.div(lowest.sum(axis=1), axis=0)


def errors_by_band(phe: pd.Series[float], errors: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Realised error of every model by tercile of the predicted one (table "…by Predicted Difficulty Bands").

    `errors` is firms × models without gaps; its firms have a prediction. `reduction` is how much lower, in
    percent, the reference's mean error is than the model's.
    """
    band, wins = terciles(phe).reindex(errors.index), wins_of(errors)
    rows = []
    for level in LEVELS:
        inside = errors.index[band == level]
        means = errors.loc[inside].mean()
        rows += [
            {
                "band": level,
                "model": model,
                "in_band": len(inside),
                "phe": phe[inside].mean(),
                "smape": mean,
                "reduction": 100 * (1 - means[reference] / mean),
                "wins": wins[model][inside].sum(),
            }
            for model, mean in zip(errors, means, strict=True)
        ]
    return pd.DataFrame(rows)


def win_grid(scale: pd.Series[float], volatility: pd.Series[float], errors: pd.DataFrame) -> pd.DataFrame:
    """Share of firms each model wins, by terciles of scale and volatility, with Wilson's 95 % interval.

    Web App. figure "Model Win Rates Across Firm Scale and Cohort-Sales Volatility". NaN in an empty cell.
    """
    by_scale, by_volatility = (terciles(x.reindex(errors.index)) for x in (scale, volatility))
    wins = wins_of(errors)
    rows = []
    for s in LEVELS:
        for v in LEVELS:
            cell = wins[(by_scale == s) & (by_volatility == v)]
            for model, won in cell.sum().items():
                low, high = (
                    proportion_confint(won, len(cell), method="wilson") if len(cell) else (np.nan,) * 2
                )
                rows.append(
                    {
                        "scale": s,
                        "volatility": v,
                        "model": model,
                        "in_cell": len(cell),
                        "wins": won,
                        "win_rate": won / len(cell) if len(cell) else np.nan,
                        "low": low,
                        "high": high,
                    }
                )
    return pd.DataFrame(rows)
