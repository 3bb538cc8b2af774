"""Exhibits of forecast difficulty: features, predicted error, its drivers, and win rates."""

from __future__ import annotations

import pandas as pd

from cbmt_core.exhibits.evidence import Evidence
from cbmt_core.exhibits.exhibit import FIRMS, LABEL, MODEL, OUTCOME, Exhibit, number, table
from cbmt_core.exhibits.models import LABELS
from cbmt_core.metrics import OUTCOMES
from cbmt_core.schema import Column

__all__ = ["EXHIBITS", "SHOWN_FEATURES"]

LEVELS = ("low", "medium", "high")
SHOWN_FEATURES = 10
"""Features of the importance figure that stand alone; the rest is one row."""
OTHERS = "all other features"
EXPLAINED = Column("model", "VARCHAR", "model whose error is predicted")


def contextual_features(evidence: Evidence) -> pd.DataFrame:
    from cbmt_core.diagnostics.difficulty import FEATURES

    rows = [(f.group, f.name, f.label, f.formula, f.description) for f in FEATURES.values()]
    return pd.DataFrame(rows, columns=["group", "feature", "label", "formula", "meaning"])


def bands(evidence: Evidence) -> pd.DataFrame:
    rows = _labelled(evidence, evidence.result("difficulty_band"))
    return rows.sort_values("band", key=lambda names: names.map(LEVELS.index), kind="stable")


def r2(evidence: Evidence) -> pd.DataFrame:
    rows = _labelled(evidence, evidence.result("difficulty_r2"))
    rows = rows.sort_values("meta_model", ascending=False, key=lambda names: names == "gbr", kind="stable")
    return rows.sort_values("outcome", key=lambda names: names.map(OUTCOMES.index), kind="stable")


def importance(evidence: Evidence) -> pd.DataFrame:
    """The leading features, then all others as the sum of their declines."""
    from cbmt_core.diagnostics.difficulty import FEATURES

    rows = evidence.result("difficulty_importance").sort_values("importance", ascending=False, kind="stable")
    rows = rows.assign(label=rows["feature"].map({name: f.label for name, f in FEATURES.items()}))
    if len(rows) <= SHOWN_FEATURES:
        return rows
    rest = rows.iloc[SHOWN_FEATURES:]
    last = rows.iloc[[0]].assign(
        feature=OTHERS, label="All other features", importance=rest["importance"].sum(min_count=1), low=None, high=None
    )  # fmt: skip
    return pd.concat([rows.iloc[:SHOWN_FEATURES], last.astype(rows.dtypes.to_dict())])


def dependence(evidence: Evidence) -> pd.DataFrame:
    """The two features of the paper's figure, from their lowest value to the highest."""
    from cbmt_core.diagnostics.difficulty import FEATURES, SCALE, VOLATILITY

    rows = evidence.result("difficulty_dependence").dropna(subset=["value", "shap"])
    parts = [rows[rows["feature"] == name].sort_values(["value", "firm"]) for name in (SCALE, VOLATILITY)]
    shown = pd.concat(parts)
    return shown.assign(label=shown["feature"].map({name: f.label for name, f in FEATURES.items()}))


def grid(evidence: Evidence) -> pd.DataFrame:
    rows = _labelled(evidence, evidence.result("difficulty_grid"))
    for column in ("volatility", "scale"):
        rows = rows.sort_values(column, key=lambda names: names.map(LEVELS.index), kind="stable")
    return rows


def _labelled(evidence: Evidence, rows: pd.DataFrame) -> pd.DataFrame:
    return evidence.ordered(rows, list(LABELS))


EXHIBITS = (
    Exhibit(
        table(
            "contextual_features",
            "The contextual features of a firm that its forecast error is related to.",
            Column("group", "VARCHAR", "one of ten groups"),
            Column("feature", "VARCHAR", "name in the tables difficulty_*"),
            Column("label", "VARCHAR", "name for readers"),
            Column("formula", "VARCHAR", "how it is computed"),
            Column("meaning", "VARCHAR", "what it tells"),
        ),
        "Table: List of Contextual Features for Meta-model Analysis (tab:feature_blocks)",
        "From the registry; values by firm are in difficulty_feature.",
        contextual_features,
    ),
    Exhibit(
        table(
            "predicted_difficulty",
            "Holdout error of cohort sales by tercile of the predicted error (PHE).",
            Column("band", "VARCHAR", "low, medium or high predicted error"),
            MODEL, LABEL, FIRMS, Column("in_band", "INTEGER", "firms of the band", nullable=True),
            number("phe", "mean predicted error of the reference in the band"),
            number("smape", "mean realised error of the model"),
            number("reduction", "percent by which the reference's mean error is lower"),
            number("wins", "firms where the model errs least of those shown; ties are shared"),
        ),
        "Table: Average Holdout SMAPE by Predicted Difficulty Bands (tab:phe_bands)",
        "Predictions are out of fold; equal ones are ranked by name. Without numbers below 30 firms.",
        bands,
    ),
    Exhibit(
        table(
            "difficulty_r2",
            "Cross-validated R² of errors on the contextual features.",
            OUTCOME, Column("meta_model", "VARCHAR", "gbr (gradient boosting) or elastic_net"),
            MODEL, LABEL, FIRMS, number("r2", "mean R² of five folds"),
            number("pooled_r2", "R² of all out-of-fold predictions together"),
        ),
        "Table: Cross-Validated R² by Process, Meta-Model, and Prediction Model (tab:cv_r2)",
        "Negative where the features predict worse than the mean. Without numbers below 30 firms.",
        r2,
    ),
    Exhibit(
        table(
            "feature_importance",
            "Permutation importance of the contextual features for the predicted error.",
            Column("feature", "VARCHAR", "name of the feature, or all other features"),
            Column("label", "VARCHAR", "name for readers"),
            EXPLAINED, FIRMS, number("importance", "mean decline of R² over 200 shuffles; summed for the others"),
            number("low", "lower end of what 95 % of the shuffles give"), number("high", "upper end"),
        ),
        "Figure: Permutation Importance of Contextual Features for CBMT Forecast Error (fig:top_features_GBR)",
        "Firms are predicted out of fold. Without numbers below 30 firms.",
        importance,
    ),
    Exhibit(
        table(
            "shap_dependence",
            "Contribution of scale and volatility to each firm's predicted error.",
            Column("feature", "VARCHAR", "total_orders or cohort_sales_cv"),
            Column("label", "VARCHAR", "name for readers"),
            Column("firm", "VARCHAR", "firm"), EXPLAINED, number("value", "value of the feature"),
            number("shap", "its contribution to the predicted SMAPE, in points"),
        ),
        "Figure: SHAP Dependence Plots for Firm Scale and Cohort-Sales Volatility (fig:shap_dependence)",
        "All features are in difficulty_dependence. Empty below 30 firms.",
        dependence,
    ),
    Exhibit(
        table(
            "win_rates",
            "Share of firms where each model errs least, by terciles of scale and volatility.",
            Column("scale", "VARCHAR", "low, medium or high total orders"),
            Column("volatility", "VARCHAR", "low, medium or high variation of cohort sales"),
            MODEL, LABEL, FIRMS, Column("in_cell", "INTEGER", "firms of the cell", nullable=True),
            number("win_rate", "share of them where the model errs least"),
            number("low", "lower end of Wilson's 95 % interval"), number("high", "upper end"),
        ),
        "Figure: Model Win Rates Across Firm Scale and Cohort-Sales Volatility (fig:winrate_tercile_2drivers)",
        "SMAPE of cohort sales. Without numbers below 30 firms.",
        grid,
    ),
)  # fmt: skip
