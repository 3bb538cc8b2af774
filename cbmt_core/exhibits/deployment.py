"""Exhibits of model routing and of the external calibration."""

from __future__ import annotations

import pandas as pd

from cbmt_core.exhibits.evidence import Evidence
from cbmt_core.exhibits.exhibit import LABEL, MODEL, Exhibit, number, table
from cbmt_core.exhibits.models import LABELS
from cbmt_core.schema import Column

__all__ = ["EXHIBITS", "POLICY_LABELS"]

POLICY_LABELS = {
    "always_single_task": "Always single-task",
    "always_cbmt": "Always CBMT",
    "logistic": "Logistic regression",
    "tree": "Decision tree",
    "boosted": "Gradient-boosted classifier",
    "oracle": "Oracle (two-model choice)",
}
POLICY = Column("policy", "VARCHAR", "name of the policy in routing_policy")
POLICY_LABEL = Column("label", "VARCHAR", "name for readers")


def base_rates(evidence: Evidence) -> pd.DataFrame:
    rows = evidence.result("routing_policy")
    return _ordered(rows[rows["sample"] == "all firms"])


def resplits(evidence: Evidence) -> pd.DataFrame:
    """Each policy's mean and spread over the re-splits, beside the primary split and always-CBMT."""
    rows = evidence.result("routing_policy")
    primary = rows[rows["sample"] == "primary"].set_index("policy")
    again = rows[rows["sample"] == "re-split"]
    if again.empty:
        return pd.DataFrame()
    fixed = again[again["policy"] == "always_cbmt"].set_index("split")["smape"]
    # Equal choices give equal means up to rounding.
    change = (again["smape"] - again["split"].map(fixed)).round(9)
    groups = again.assign(better=change < 0, worse=change > 0).groupby("policy")
    made = groups.agg(
        smape=("smape", "mean"), sd=("smape", "std"), splits=("split", "size"), better=("better", "sum"),
        worse=("worse", "sum"), to_single_task=("to_single_task", "mean"), firms=("firms", "max"),
    )  # fmt: skip
    made = made.join(primary[["smape", "to_single_task"]].add_prefix("primary_"))
    return _ordered(made.reset_index())


def calibration(evidence: Evidence) -> pd.DataFrame:
    rows = evidence.result("calibration_summary")
    rows = rows.assign(label=rows["model"].map(lambda name: LABELS.get(name, name)))
    return rows.sort_values("horizon", key=lambda names: names.str[1:].astype(int), kind="stable")


def _ordered(rows: pd.DataFrame) -> pd.DataFrame:
    order = list(POLICY_LABELS)
    rows = rows.sort_values("policy", key=lambda names: names.map(order.index), kind="stable")
    return rows.assign(label=rows["policy"].map(POLICY_LABELS))


EXHIBITS = (
    Exhibit(
        table(
            "base_rates",
            "Mean error of total sales if every firm got one model, or each its better one.",
            POLICY, POLICY_LABEL, Column("firms", "INTEGER", "firms with both forecasts"),
            number("smape", "mean SMAPE of total sales over the holdout"),
            Column("to_cbmt", "INTEGER", "firms that get CBMT"),
            Column("to_single_task", "INTEGER", "firms that get the single-task model"),
        ),
        "Table: Base-Rate Policy Comparison Over All Firms (tab:deployment_baserates)",
        "The oracle knows the holdout. Empty until cbmt and single_task have run.",
        base_rates,
    ),
    Exhibit(
        table(
            "routing_resplits",
            "Error of held-out firms under each policy, over 100 re-randomised splits.",
            POLICY, POLICY_LABEL, Column("firms", "INTEGER", "firms held out in a split"),
            Column("splits", "INTEGER", "re-splits"),
            number("smape", "mean over the splits of the held-out firms' mean SMAPE"),
            number("sd", "its standard deviation across splits"),
            Column("better", "INTEGER", "splits where the policy beats always CBMT"),
            Column("worse", "INTEGER", "splits where it does worse"),
            number("to_single_task", "held-out firms that get the single-task model, mean over splits"),
            number("primary_smape", "mean SMAPE of the held-out firms of the primary split"),
            number("primary_to_single_task", "of these, firms that get the single-task model"),
        ),
        "Table: Out-of-Sample Policy Comparison Across 100 Re-Randomized Splits (tab:deployment_resplit)",
        "All that is learned is learned inside the training firms of each split. Empty below 40 firms.",
        resplits,
    ),
    Exhibit(
        table(
            "external_calibration",
            "Errors by fiscal quarter ahead: the model's of panel sales, analysts' of reported revenue.",
            Column("horizon", "VARCHAR", "fiscal quarters after the forecast origin: Q1, Q2, ..."),
            MODEL, LABEL, Column("firms", "INTEGER", "tickers"),
            number("model_smape", "mean SMAPE of the model against panel sales"),
            number("model_se", "its standard error over 1,000 resamples; NULL below 10 tickers"),
            number("analyst_smape", "mean SMAPE of analysts against reported revenue"),
            number("analyst_se", "its standard error, likewise"),
        ),
        "Table: External Calibration Using Analyst Revenue Forecasts (tab:analyst_comparison_main)",
        "Two targets and two sets of information: a scale to read errors on, not a contest. "
        "Empty without the tables of [calibration] in cbmt.toml.",
        calibration,
    ),
)  # fmt: skip
