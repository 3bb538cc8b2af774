"""The paper's 14 figures: where each is drawn, and its data."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FIGURES", "PaperFigure"]

PAPER = "report/paper.html"
DIAGNOSTICS = "report/diagnostics.html"
PANEL = "report/index.html"


@dataclass(frozen=True)
class PaperFigure:
    label: str
    title: str
    page: str
    """Page of the report that shows it."""
    drawn_from: str
    """Relations, or the code, that it is drawn from."""


FIGURES: tuple[PaperFigure, ...] = (
    PaperFigure(
        "fig:substantive_goal",
        "Decomposing revenue into its three drivers",
        PAPER,
        "`firm_week`, `cohort_week`",
    ),
    PaperFigure(
        "fig:earnest_visualize",
        "Active customers, sales and order value of all firms",
        PAPER,
        "`firm_week`, `firm`",
    ),
    PaperFigure(
        "fig:cohorted_data_wayfair", "Cohorted panel data, cell by cell", "report/firms/", "`cohort_week`"
    ),
    PaperFigure(
        "fig:model-free-evidence",
        "Weekly acquisition, and ROPC of each cohort by tenure",
        PAPER,
        "`firm_week`, `cohort_week`",
    ),
    PaperFigure(
        "fig:simpler_model",
        "CBMT in brief",
        PAPER,
        "the paper's layers, the code's sizes",
    ),
    PaperFigure(
        "fig:cohort-triangle", "Calibration, holdout, and the three kinds of cohort", PAPER, "`study_window`"
    ),
    PaperFigure(
        "fig:source_cases", "Realised and predicted sources of sales change of two firms", PAPER, "`bridge`"
    ),
    PaperFigure(
        "fig:dependence_tercile",
        "Win rate by tercile of co-movement",
        DIAGNOSTICS,
        "`exhibit.comovement_terciles`",
    ),
    PaperFigure(
        "fig:shap_dependence",
        "SHAP dependence on scale and volatility",
        DIAGNOSTICS,
        "`exhibit.shap_dependence`",
    ),
    PaperFigure("fig:hetero_horizon", "Accuracy by horizon", PANEL, "`exhibit.horizon`"),
    PaperFigure("fig:MTL", "CBMT's architecture", PAPER, "the paper's layers, the code's sizes"),
    PaperFigure(
        "fig:top_features_GBR",
        "Permutation importance of contextual features",
        DIAGNOSTICS,
        "`exhibit.feature_importance`",
    ),
    PaperFigure(
        "fig:winrate_tercile_2drivers",
        "Win rates by scale and volatility",
        DIAGNOSTICS,
        "`exhibit.win_rates`",
    ),
    PaperFigure("fig:hetero_industry_sales", "Total-sales error by industry", PANEL, "`exhibit.industry`"),
)
