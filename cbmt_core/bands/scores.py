"""Models side by side: scores of their ranges over the firms that all of them have."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cbmt_core.bands.coverage import band_pit, interval_score, weighted_interval_score
from cbmt_core.bands.judged import AHEAD
from cbmt_core.bands.quantiles import LEVELS

__all__ = ["band_calibration", "band_scores"]

LEVEL = 80
"""Level of the band that interval scores are computed for."""


def band_scores(rows: pd.DataFrame, reference: str) -> pd.DataFrame:
    """A row for each model, the smallest CRPS of weekly sales first; every firm counts the same.

    Scores are sums over a firm's weeks (or whole forecasts), per cent of its actual sales: `weeks_score`, `weeks_crps`,
    `total_score`, `total_crps`. `difference` is the mean over firms of the model's weekly CRPS minus the reference's,
    with its 95 % interval, and `worse` the per cent of firms where the model's is larger.

    Args:
        rows: of `judged_bands`, of firms that every model has.
        reference: model that the others are compared with.
    """
    rows = rows[(rows["outcome"] == "sales") & (rows["actual"] > 0)]
    if rows.empty:
        return pd.DataFrame()
    kinds = {"weeks": rows["period"] == "week", "total": rows["period"] != "week"}
    made = {}
    for kind, chosen in kinds.items():
        part = rows[chosen]
        low, high = part[f"low{LEVEL}"].to_numpy(float), part[f"high{LEVEL}"].to_numpy(float)
        scored = part[["model", "firm", "actual"]].assign(
            score=interval_score(low, high, part["actual"].to_numpy(float), LEVEL),
            crps=weighted_interval_score(part),
        )
        sums = scored.groupby(["model", "firm"]).sum()
        for name in ("score", "crps"):
            made[f"{kind}_{name}"] = 100 * (sums[name] / sums["actual"]).unstack("model")  # noqa: PD010
    table = pd.DataFrame({name: values.mean() for name, values in made.items()})
    paired = made["weeks_crps"]
    if reference in paired:
        apart = paired.sub(paired[reference], axis=0).drop(columns=reference)
        half = 1.96 * apart.std() / np.sqrt(len(apart)) if len(apart) > 1 else np.nan
        mean = apart.mean()
        table = table.join(
            pd.DataFrame(
                {
                    "difference": mean,
                    "difference_low": mean - half,
                    "difference_high": mean + half,
                    "worse": 100 * (apart > 0).mean(),
                }
            )
        )
    sources = rows.groupby("model")["source"].agg(lambda found: " and ".join(sorted(found.unique())))
    table = table.assign(source=sources, firms=paired.notna().sum())
    return table.sort_values("weeks_crps").rename_axis("model").reset_index()


def band_calibration(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each model and group of weeks ahead: per cent inside each band, every firm counting the same, and
    `pit_1` to `pit_8`, the per cent of outcomes between neighbouring quantiles."""
    rows = rows[rows["outcome"] == "sales"]
    if rows.empty:
        return pd.DataFrame()
    actual = rows["actual"]
    inside = {
        f"coverage_{level}": 100.0 * actual.between(rows[f"low{level}"], rows[f"high{level}"])
        for level in LEVELS
    }
    keys = ["model", "ahead"]
    held = rows[[*keys, "firm"]].assign(**inside)
    by_firm = held.groupby([*keys, "firm"])[list(inside)].mean()
    table = by_firm.groupby(level=keys).mean().join(by_firm.groupby(level=keys).size().rename("firms"))
    pit = band_pit(rows).pivot_table(index=keys, columns="bin", values="share")
    table = table.join(pit.rename(columns=lambda k: f"pit_{k}")).reset_index()
    order = {name: k for k, name in enumerate(AHEAD)}
    return table.sort_values(
        keys, key=lambda x: x.map(lambda name: order.get(name, len(order))) if x.name == "ahead" else x
    )
