"""Comparison of models across firms: means, ranks, paired differences, by outcome, horizon and industry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from cbmt_core.arrays import Floats
from cbmt_core.evaluation.paired import (
    RESAMPLES,
    SEED,
    bootstrap_means,
    common_sample,
    paired_tests,
)
from cbmt_core.metrics import FULL, OUTCOMES

__all__ = ["ALL_INDUSTRIES", "COVERAGE", "METRICS", "NO_INDUSTRY", "REFERENCES", "compare", "reference_of"]


METRICS = ("smape", "mase")
REFERENCES = ("cbmt", "cbmt_plus", "cohort_glm", "seasonal_naive")
"""The model others are compared with: the first of these that is present."""
ALL_INDUSTRIES = "(all)"
NO_INDUSTRY = "(none)"
COVERAGE = 0.9
"""Share of the reference's firms that a model must have to be compared."""


@dataclass(frozen=True, eq=False)
class _Cell:
    """Errors of the compared models for one metric, outcome and horizon, over their common sample."""

    metric: str
    outcome: str
    horizon: str
    models: list[str]
    firms: list[str]
    errors: Floats
    """[firms, models]"""


def reference_of(models: Iterable[str], reference: str | None = None) -> str:
    """The model to compare with: the one asked for, or the first of `REFERENCES`, or the first by name."""
    present = set(models)
    if reference is not None and reference not in present:
        raise ValueError(f"there is no forecast by {reference!r}; there are: {', '.join(sorted(present))}")
    return reference or next((name for name in REFERENCES if name in present), min(present))


def compare(
    accuracy: pd.DataFrame,
    firms: pd.DataFrame,
    *,
    models: Sequence[str] | None = None,
    reference: str | None = None,
    coverage: float = COVERAGE,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> pd.DataFrame:
    """Rows of the table `accuracy_summary` from the errors at one origin.

    `firms` names the firms and their industries (`whole_firms`). Each combination of metric, outcome and horizon has
    one sample, the same firms for every model in it; industries divide the sample of the full horizon. Ranks are
    among the models that forecast all five outcomes (section "Absolute and Relative Performance Evaluation"); where
    models tie for the first rank on a firm, each counts a fraction of it.

    Args:
        accuracy: rows of that table, of one origin.
        firms: firms to use, with their industries (`whole_firms`).
        models: models to compare; all of them by default.
        reference: model that the others are compared with; by default `reference_of`.
        coverage: share of the reference's firms that a model must have.
        resamples: number of bootstrap resamples; 0: no intervals.
        seed: seed of the resamples.
    """
    known = accuracy[accuracy["firm"].isin(firms["firm"])]
    if models is not None:
        known = known[known["model"].isin(models)]
    if known.empty:
        return pd.DataFrame(columns=_COLUMNS)
    if len(set(known["origin"])) > 1:
        raise ValueError("compare errors at one origin at a time; there are several in the table")
    chosen = reference_of(known["model"], reference)
    industry = firms.set_index("firm")["industry"].fillna(NO_INDUSTRY)
    offered = known.groupby("model")["outcome"].nunique()
    ranked = set(offered.index[offered == len(OUTCOMES)])
    cells = _cells(known, chosen, coverage)
    frames = _summaries(cells, ALL_INDUSTRIES, chosen, ranked, resamples, seed)
    full = [cell for cell in cells if cell.horizon == FULL]
    for name in sorted(industry[industry.index.isin(known["firm"])].unique()):
        part = [_within(cell, industry, name) for cell in full]
        frames += _summaries([c for c in part if c.firms], name, chosen, ranked, resamples, seed)
    return pd.concat(frames, ignore_index=True)[_COLUMNS] if frames else pd.DataFrame(columns=_COLUMNS)


_COLUMNS = [
    "metric", "outcome", "horizon", "industry", "model", "reference", "firms", "mean", "sd", "median", "gap",
    "median_gap", "models_ranked", "average_rank", "first_rank", "difference", "difference_low",
    "difference_high", "t_p", "wilcoxon_p", "win_rate",
]  # fmt: skip


def _cells(accuracy: pd.DataFrame, reference: str, coverage: float) -> list[_Cell]:
    cells = []
    for (outcome, horizon), rows in accuracy.groupby(["outcome", "horizon"], sort=True):
        for metric in METRICS:
            errors = rows.pivot(index="firm", columns="model", values=metric)  # noqa: PD010  the other averages duplicates
            if reference not in errors:
                continue
            models, sample = common_sample(errors.notna(), reference, coverage)
            if len(sample):
                values = errors.loc[sample, models].to_numpy(float)
                cells.append(_Cell(metric, str(outcome), str(horizon), models, list(sample), values))
    return cells


def _within(cell: _Cell, industry: pd.Series[str], name: str) -> _Cell:
    inside = np.array([industry[firm] == name for firm in cell.firms])
    firms = [firm for firm, kept in zip(cell.firms, inside, strict=True) if kept]
    return _Cell(cell.metric, cell.outcome, cell.horizon, cell.models, firms, cell.errors[inside])


def _summaries(
    cells: list[_Cell], industry: str, reference: str, ranked: set[str], resamples: int, seed: int
) -> list[pd.DataFrame]:
    """One frame for each cell. Cells over the same firms use the same bootstrap resamples."""
    differences = {
        k: cell.errors - cell.errors[:, [cell.models.index(reference)]] for k, cell in enumerate(cells)
    }
    samples: dict[tuple[str, ...], list[int]] = {}
    for k, cell in enumerate(cells):
        samples.setdefault(tuple(cell.firms), []).append(k)
    frames: dict[int, pd.DataFrame] = {}
    for members in samples.values():
        stacked = np.hstack([differences[k] for k in members])
        low, high = bootstrap_means(stacked, resamples=resamples, seed=seed)
        start = 0
        for k in members:
            width = len(cells[k].models)
            part = slice(start, start + width)
            frames[k] = _summary(cells[k], industry, reference, ranked, differences[k], low[part], high[part])
            start += width
    return [frames[k] for k in sorted(frames)]


def _summary(
    cell: _Cell,
    industry: str,
    reference: str,
    ranked: set[str],
    difference: Floats,
    low: Floats,
    high: Floats,
) -> pd.DataFrame:
    at = cell.models.index(reference)
    errors, n = cell.errors, len(cell.firms)
    mean, median = errors.mean(axis=0), np.median(errors, axis=0)
    in_ranks = [name in ranked for name in cell.models]
    rank, first = (np.full(len(cell.models), np.nan) for _ in range(2))
    if any(in_ranks):
        rank[in_ranks] = stats.rankdata(errors[:, in_ranks], axis=1).mean(axis=0)
        best = errors[:, in_ranks] == errors[:, in_ranks].min(axis=1, keepdims=True)
        first[in_ranks] = (best / best.sum(axis=1, keepdims=True)).mean(axis=0)
    t_p, wilcoxon_p = paired_tests(difference)
    frame = pd.DataFrame(
        {
            "metric": cell.metric,
            "outcome": cell.outcome,
            "horizon": cell.horizon,
            "industry": industry,
            "model": cell.models,
            "reference": reference,
            "firms": n,
            "mean": mean,
            "sd": errors.std(axis=0, ddof=1) if n > 1 else np.nan,
            "median": median,
            "gap": _gap(mean, mean[at]),
            "median_gap": _gap(median, median[at]),
            "models_ranked": sum(in_ranks),
            "average_rank": rank,
            "first_rank": first,
            "difference": difference.mean(axis=0),
            "difference_low": low,
            "difference_high": high,
            "t_p": t_p,
            "wilcoxon_p": wilcoxon_p,
            "win_rate": (difference < 0).mean(axis=0),
        }
    )
    # The reference is not compared with itself.
    own = ["gap", "median_gap", "difference", "difference_low", "difference_high", "win_rate"]
    frame.loc[at, own] = np.nan
    return frame


def _gap(error: Floats, reference: float) -> Floats:
    """The reference's reduction of a model's error, in percent of it (note to the evaluation table)."""
    return 100 * np.divide(error - reference, error, out=np.full_like(error, np.nan), where=error > 0)
