"""Errors of the sales bridge and which models could be compared."""

from __future__ import annotations

from functools import partial

import pandas as pd

from cbmt_core.bridge import CONTRIBUTIONS
from cbmt_core.bridge.errors import PRIMARY, STRICT
from cbmt_core.exhibits.evidence import Evidence
from cbmt_core.exhibits.exhibit import FIRMS, LABEL, MODEL, Exhibit, number, table
from cbmt_core.exhibits.models import FULL_MODEL
from cbmt_core.schema import Column

__all__ = ["EXHIBITS"]

ORDER = (
    FULL_MODEL, "wg_pnbd_e_pp", "rf", "xgb", "wg_pnbd_fp", "wg_pnbd_pp", "wg_pnbd_e_fp", "lstm", "gls_v2",
    "gls_v1", "gls_v3", "lmp_v1", "lmp_v2", "ssw_v1", "ssw_v2", "ssw_v3",
)  # fmt: skip
"""Columns of the published tables, then the variants that were not eligible there."""
CONTRIBUTION = Column("contribution", "VARCHAR", f"one of {', '.join(CONTRIBUTIONS)}")
POINTS = number("mae_points", "mean absolute error in percent of baseline sales")


def mae(evidence: Evidence, sample: str) -> pd.DataFrame:
    rows = evidence.bridges.mae
    rows = evidence.ordered(rows[rows["sample"] == sample], ORDER)
    return pd.concat([rows[rows["contribution"] == name] for name in CONTRIBUTIONS])


def paired(evidence: Evidence) -> pd.DataFrame:
    rows = mae(evidence, PRIMARY)
    rows = rows[rows["model"] != evidence.reference]
    return evidence.ordered(rows, ORDER)


def eligibility(evidence: Evidence) -> pd.DataFrame:
    rows = evidence.ordered(evidence.bridges.methods, ORDER)
    return rows.assign(disposition=rows["compared"].map({True: "eligible", False: "ineligible"}))


EXHIBITS = (
    Exhibit(
        table(
            "bridge_mae",
            "Mean absolute error of the forecast sources of sales change.",
            CONTRIBUTION, MODEL, LABEL, FIRMS, POINTS,
        ),
        "Table: Mean Absolute Error in Total Sales Change and Its Sources (tab:source_mae_main)",
        "Every model over the same firms.",
        partial(mae, sample=PRIMARY),
    ),
    Exhibit(
        table(
            "bridge_mae_full",
            "The same in percent of baseline sales and in currency.",
            CONTRIBUTION, MODEL, LABEL, FIRMS, POINTS,
            number("mae_currency", "mean absolute error in currency; NULL where firms differ in it"),
        ),
        "Table: Full Mean Absolute Error Results on the Identical 965-Company Sample (tab:wa_source_mae_full)",
        "Currency is in units, not in millions.",
        partial(mae, sample=PRIMARY),
    ),
    Exhibit(
        table(
            "bridge_mae_paired",
            "Paired differences in absolute error from the reference.",
            MODEL, LABEL, CONTRIBUTION, FIRMS,
            number("difference", "mean of the model's error minus the reference's, in points"),
            number("difference_low", "lower end of its 95 % interval; NULL below 10 firms"),
            number("difference_high", "upper end of its 95 % interval; NULL below 10 firms"),
        ),
        "Table: Paired Differences in MAE Relative to CBMT (tab:wa_source_mae_paired)",
        "Percentiles of 10,000 paired resamples of firms, seed 20260626; positive favours the reference.",
        paired,
    ),
    Exhibit(
        table(
            "bridge_mae_sensitivity",
            "Mean absolute error over the strict sample.",
            CONTRIBUTION, MODEL, LABEL, FIRMS, POINTS,
        ),
        "Table: Prespecified 954-Company Sensitivity: Mean Absolute Error (tab:wa_source_mae_sensitivity)",
        "Firms with positive repeat sales and sums that hardly cancel, as they happened and by the reference.",
        partial(mae, sample=STRICT),
    ),
    Exhibit(
        table(
            "bridge_eligibility",
            "Whether each model's bridges could be compared, and if not, why.",
            MODEL, LABEL, FIRMS, Column("eligible_firms", "INTEGER", "firms on which its bridge is eligible"),
            Column("disposition", "VARCHAR", "eligible or ineligible"),
            Column("reason", "VARCHAR", "why some firms are not, with counts", nullable=True),
        ),
        "Table: Composition Eligibility of the 15 Benchmark Variants (tab:wa_source_eligibility)",
        "Firms are those whose realised and reference bridges are eligible; a model must have all of them.",
        eligibility,
    ),
)  # fmt: skip
