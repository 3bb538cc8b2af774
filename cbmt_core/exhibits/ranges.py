"""Ranges of the study's forecasts (not in the paper): their coverage, and a comparison of models."""

from __future__ import annotations

from itertools import pairwise

import pandas as pd

from cbmt_core.bands.coverage import QUANTILES
from cbmt_core.bands.scores import band_calibration, band_scores
from cbmt_core.exhibits.evidence import Evidence
from cbmt_core.exhibits.exhibit import FIRMS, LABEL, MODEL, Exhibit, number, table
from cbmt_core.exhibits.models import LABELS
from cbmt_core.schema import Column

__all__ = ["EXHIBITS", "NOT_IN_PAPER"]

REFERENCE = "cbmt_plus"
NOT_IN_PAPER = "not in the paper"


def _common(evidence: Evidence) -> pd.DataFrame:
    """Judged bands of the firms that every model has; models that lack more than a tenth of the firms are left out."""
    rows = evidence.ranges
    if rows.empty:
        return rows
    rows = rows[rows["firm"].isin(evidence.firms["firm"])]
    held = rows.groupby("model")["firm"].nunique()
    kept = held[held >= 0.9 * held.max()].index
    rows = rows[rows["model"].isin(kept)]
    whole = rows.groupby("firm")["model"].nunique()
    return rows[rows["firm"].isin(whole[whole == len(kept)].index)]


def _labelled(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.assign(label=rows["model"].map(lambda name: LABELS.get(name, name))) if len(rows) else rows


def scores(evidence: Evidence) -> pd.DataFrame:
    rows = _common(evidence)
    return _labelled(band_scores(rows, REFERENCE)) if len(rows) else pd.DataFrame()


def calibration(evidence: Evidence) -> pd.DataFrame:
    rows = _common(evidence)
    return _labelled(band_calibration(rows)) if len(rows) else pd.DataFrame()


_BINS = [*map(str, (0, *QUANTILES)), "100"]

EXHIBITS = (
    Exhibit(
        table(
            "band_scores",
            "Interval score and CRPS of every model's ranges of sales over the holdout, the best first.",
            MODEL, LABEL, FIRMS,
            Column("source", "VARCHAR", "what the ranges are calibrated on, as in forecast_band"),
            number("weeks_score", "interval score of 80 % bands of weekly sales, per cent of sales"),
            number("weeks_crps", "CRPS of weekly sales, by seven quantiles, per cent of sales"),
            number("total_score", "the interval score of the holdout's total sales"),
            number("total_crps", "the CRPS of the holdout's total sales"),
            number("difference", f"weeks_crps minus that of {REFERENCE}, the mean over firms; NULL for it"),
            number("difference_low", "lower end of its 95 % interval"),
            number("difference_high", "upper end"),
            number("worse", f"per cent of firms where weeks_crps is larger than that of {REFERENCE}"),
        ),
        NOT_IN_PAPER,
        "Made from what was known at the study's origin. Models without backtests borrow the errors of those that "
        "have them, so their ranges say more of the forecast's middle than of its width.",
        scores,
    ),
    Exhibit(
        table(
            "band_calibration",
            "Per cent of outcomes inside the bands, and between their ends (PIT), by model and weeks ahead.",
            MODEL, LABEL, Column("ahead", "VARCHAR", "weeks ahead, or horizon for the total"), FIRMS,
            *(number(f"coverage_{level}", f"per cent inside the {level} % band") for level in (50, 80, 95)),
            *(number(f"pit_{k}", f"per cent of outcomes between the quantiles {low} and {high} %")
              for k, (low, high) in enumerate(pairwise(_BINS), 1)),
        ),
        NOT_IN_PAPER,
        "Every firm counts the same in the coverage, every outcome in the PIT. Expected shares: 2.5, 7.5, 15, 25, 25, "
        "15, 7.5 and 2.5 %.",
        calibration,
    ),
)  # fmt: skip
