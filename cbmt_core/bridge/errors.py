"""Errors of forecast bridge contributions, over one common sample of firms for every model.

Web App. "Benchmark Eligibility and Identical Common Samples" and what follows there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cbmt_core.bridge.contributions import CONTRIBUTIONS
from cbmt_core.bridge.table import REALISED
from cbmt_core.evaluation.comparison import reference_of
from cbmt_core.evaluation.paired import RESAMPLES, SEED, bootstrap_means, common_sample

__all__ = ["PRIMARY", "STRICT", "BridgeErrors", "bridge_errors"]

PRIMARY = "primary"
STRICT = "strict"

_MAE = [
    "sample", "contribution", "model", "reference", "firms", "mae_points", "mae_currency", "difference",
    "difference_low", "difference_high",
]  # fmt: skip
_METHODS = ["model", "reference", "firms", "eligible_firms", "compared", "reason"]


@dataclass(frozen=True, eq=False)
class BridgeErrors:
    mae: pd.DataFrame
    """Rows of the table `bridge_mae`."""
    methods: pd.DataFrame
    """Rows of the table `bridge_method`: which models were compared, and why others were not."""


def bridge_errors(
    bridge: pd.DataFrame,
    firms: pd.DataFrame,
    *,
    models: Sequence[str] | None = None,
    reference: str | None = None,
    coverage: float = 1.0,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> BridgeErrors:
    """Mean absolute errors of the contributions, and paired differences from the reference.

    The sample is the firms whose realised bridge and whose reference forecast can be used; it is the same for every
    model. A model is compared when it has at least the share `coverage` of these firms (in the paper: all of them).
    The strict sample (firms where both pass the strict rule) has no intervals. Errors in currency are left out where
    firms have different currencies. `firms` lists the firms to use (`whole_firms`).

    Args:
        bridge: rows of that table, between one pair of windows.
        models: models to compare; all of them by default.
        reference: model that the others are compared with; by default `reference_of`.
        coverage: share of the sample that a model must have, 0 to 1.
        resamples: number of bootstrap resamples.
        seed: seed of the resamples.
    """
    if len(bridge[["baseline_first", "target_first"]].drop_duplicates()) > 1:
        raise ValueError("compare bridges between the same two windows; there are others in the table")
    known = bridge[bridge["firm"].isin(firms["firm"])].set_index(["firm", "model"]).sort_index()
    names = [name for name in known.index.unique("model") if name != REALISED]
    names = [name for name in names if models is None or name in models]
    if not names or REALISED not in known.index.unique("model"):
        return BridgeErrors(pd.DataFrame(columns=_MAE), pd.DataFrame(columns=_METHODS))
    chosen = reference_of(names, reference)
    usable = _wide(known, "eligible").eq(True)
    usable = usable.loc[usable[REALISED], names]
    compared, sample = common_sample(usable, chosen, coverage)
    strict = _wide(known, "strict").loc[sample, [REALISED, chosen]].astype(bool)
    frames = []
    for name, kept, draws in (
        (PRIMARY, sample, resamples),
        (STRICT, sample[strict[REALISED] & strict[chosen]], 0),
    ):
        if len(kept):
            frames.append(_mae(known, kept, compared, chosen, draws, seed).assign(sample=name))
    mae = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=_MAE)
    if len(set(firms.set_index("firm").loc[sample, "currency"])) > 1:
        mae["mae_currency"] = np.nan
    return BridgeErrors(mae[_MAE], _methods(known, usable, chosen, compared))


def _wide(known: pd.DataFrame, column: str) -> pd.DataFrame:
    """Firms in rows, models in columns."""
    return known[column].unstack("model")  # noqa: PD010  pivot_table would average duplicates


def _mae(
    known: pd.DataFrame, sample: pd.Index[str], models: list[str], reference: str, resamples: int, seed: int
) -> pd.DataFrame:
    """Mean absolute error of every contribution and model. All of them use the same bootstrap resamples."""

    def errors(column: str) -> pd.DataFrame:
        table = _wide(known, column).loc[sample]
        return table[models].sub(table[REALISED], axis=0).abs()

    points = {name: errors(f"{name}_points") for name in CONTRIBUTIONS}
    excess = {name: table.sub(table[reference], axis=0) for name, table in points.items()}
    stacked = np.hstack([table.to_numpy(float) for table in excess.values()])
    low, high = bootstrap_means(stacked, resamples=resamples, seed=seed)
    frame = pd.DataFrame(
        {
            "contribution": np.repeat(CONTRIBUTIONS, len(models)),
            "model": models * len(CONTRIBUTIONS),
            "reference": reference,
            "firms": len(sample),
            "mae_points": np.hstack([table.mean() for table in points.values()]),
            "mae_currency": np.hstack([errors(name).mean() for name in CONTRIBUTIONS]),
            "difference": stacked.mean(axis=0),
            "difference_low": low,
            "difference_high": high,
        }
    )
    # The reference is not compared with itself.
    frame.loc[frame["model"] == reference, ["difference", "difference_low", "difference_high"]] = np.nan
    return frame


def _methods(known: pd.DataFrame, usable: pd.DataFrame, reference: str, compared: list[str]) -> pd.DataFrame:
    base = usable.index[usable[reference]]
    rows = []
    for model in usable.columns:
        lacking = base[~usable.loc[base, model]]
        why = known["reason"].reindex([(firm, model) for firm in lacking]).fillna("the model was not run")
        reasons = "; ".join(f"{reason} ({count})" for reason, count in why.value_counts().head(3).items())
        rows.append(
            (model, reference, len(base), len(base) - len(lacking), model in compared, reasons or None)
        )
    return pd.DataFrame(rows, columns=_METHODS)
