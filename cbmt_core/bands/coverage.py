"""Coverage of bands: share of outcomes inside, width, interval score, CRPS and PIT."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import duckdb
import numpy as np
import pandas as pd

from cbmt_core.bands.quantiles import LEVELS
from cbmt_core.evaluation.relations import Relations
from cbmt_core.schema import TABLES

__all__ = ["band_coverage", "band_pit", "interval_score", "weighted_interval_score"]

TERCILES = ("low", "middle", "high")
LEAST_FIRMS = 9
"""Fewest firms for coverage by tercile."""
QUANTILES = (2.5, 10, 25, 50, 75, 90, 97.5)


def band_coverage(
    con: duckdb.DuckDBPyConnection, relations: Relations, week: date, rows: pd.DataFrame
) -> pd.DataFrame:
    """Rows of the table `band_coverage` without origin and purpose.

    Args:
        week: last week that was observed.
        rows: of `judged_bands`.
    """
    firms = _firms(con, relations, week)
    keys = ["model", "purpose", "outcome", "ahead"]
    frames: list[dict[str, object]] = []
    for group_by in ("all", "size", "volatility"):
        if group_by == "all":
            group = pd.Series("all", rows.index)
        elif rows["firm"].nunique() >= LEAST_FIRMS:
            group = rows["firm"].map(firms[group_by]).fillna(TERCILES[0])
        else:
            continue
        for key, part in rows.groupby([*keys, group.rename("group")], sort=True):
            named = dict(zip([*keys, "group"], key, strict=True))
            frames.extend(
                {**named, "group_by": group_by, "level": level, **_scores(part, level)} for level in LEVELS
            )
    table = TABLES["band_coverage"]
    columns = [name for name in table.column_names if name not in ("origin", "purpose")]
    frame = pd.DataFrame(frames).rename(columns={"purpose": "of_purpose"})
    return frame.reindex(columns=columns) if len(frame) else pd.DataFrame(columns=columns)


def _scores(part: pd.DataFrame, level: int) -> dict[str, object]:
    low, high, actual = (part[name].to_numpy(float) for name in (f"low{level}", f"high{level}", "actual"))
    inside = (low <= actual) & (actual <= high)
    by_firm = pd.Series(inside, part["firm"].to_numpy()).groupby(level=0).mean()
    half = 1.96 * by_firm.std() / np.sqrt(len(by_firm)) if len(by_firm) > 1 else np.nan
    coverage = by_firm.mean()
    scale = part["scale"].abs().to_numpy(float)
    share = np.where(scale > 0, scale, np.nan)
    middle = part["median"].abs().to_numpy(float)
    width = (high - low) / np.where(middle > 0, middle, np.nan)
    score = interval_score(low, high, actual, level) / share
    return {
        "firms": len(by_firm),
        "outcomes": len(part),
        "coverage": 100 * coverage,
        "coverage_low": 100 * max(0.0, coverage - half) if np.isfinite(half) else None,
        "coverage_high": 100 * min(1.0, coverage + half) if np.isfinite(half) else None,
        "below": 100 * float(np.mean(actual < low)),
        "width": _percent(width, np.nanmedian),
        "interval_score": _percent(score, np.nanmean),
        "crps": _percent(weighted_interval_score(part) / share, np.nanmean),
    }


def _percent(values: np.ndarray, how: object) -> float | None:
    known = values[np.isfinite(values)]
    return 100 * float(how(known)) if len(known) else None  # type: ignore[operator]


def interval_score(low: np.ndarray, high: np.ndarray, actual: np.ndarray, level: int) -> np.ndarray:
    """Width of the band, and 2 / alpha times how far outside the outcome fell (Gneiting and Raftery 2007)."""
    alpha = 1 - level / 100
    outside = np.maximum(low - actual, 0) + np.maximum(actual - high, 0)
    return np.asarray(high - low + 2 / alpha * outside)


def weighted_interval_score(rows: pd.DataFrame) -> np.ndarray:
    """The CRPS approximated from the median and the bands (Bracher et al. 2021)."""
    actual = rows["actual"].to_numpy(float)
    total = 0.5 * np.abs(actual - rows["median"].to_numpy(float))
    for level in LEVELS:
        low, high = rows[f"low{level}"].to_numpy(float), rows[f"high{level}"].to_numpy(float)
        total = total + (1 - level / 100) / 2 * interval_score(low, high, actual, level)
    return np.asarray(total / (len(LEVELS) + 0.5))


def band_pit(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of the table `band_pit` without origin and purpose, from `judged_bands`."""
    ends = [f"low{level}" for level in sorted(LEVELS, reverse=True)]
    ends += ["median", *(f"high{level}" for level in sorted(LEVELS))]
    place = (rows[ends].to_numpy(float) < rows["actual"].to_numpy(float)[:, None]).sum(axis=1)
    expected = np.diff([0.0, *QUANTILES, 100.0])
    frames = []
    for key, bins in pd.Series(place, rows.index).groupby(
        [rows[name] for name in ("model", "purpose", "outcome", "ahead")], sort=True
    ):
        count = np.bincount(bins, minlength=len(expected))
        model, purpose, outcome, ahead = key
        frames += [
            (model, purpose, outcome, ahead, k + 1, expected[k], 100 * count[k] / len(bins), len(bins))
            for k in range(len(expected))
        ]
    names: Sequence[str] = ("model", "of_purpose", "outcome", "ahead", "bin", "expected", "share", "outcomes")
    return pd.DataFrame(frames, columns=list(names))


def _firms(con: duckdb.DuckDBPyConnection, relations: Relations, week: date) -> pd.DataFrame:
    """Terciles of firms by yearly sales and by how much their weekly sales vary, over the year up to `week`."""
    frame = con.execute(
        f"""SELECT firm, CAST(sum(sales) AS DOUBLE) AS size,
            CAST(stddev_samp(sales) AS DOUBLE) / nullif(CAST(avg(sales) AS DOUBLE), 0) AS volatility
        FROM {relations.firm_week} WHERE week <= $week AND week > $week - 364 GROUP BY firm ORDER BY firm""",
        {"week": week},
    ).df()
    terciles = {}
    for name in ("size", "volatility"):
        rank = frame[name].fillna(0.0).rank(method="first") - 1
        terciles[name] = [TERCILES[int(3 * r // max(len(frame), 1))] for r in rank]
    return pd.DataFrame(terciles, index=frame["firm"])
