"""FEATURES: the 21 contextual features of a firm in their 10 groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cbmt_core.diagnostics.difficulty import measures, series
from cbmt_core.diagnostics.difficulty.measures import weekly_orders
from cbmt_core.panel import FirmPanel

__all__ = ["FEATURES", "SCALE", "VOLATILITY", "Feature", "features_of"]


@dataclass(frozen=True)
class Feature:
    """A contextual feature: a number known at the forecast origin that may explain how hard a firm is to forecast."""

    name: str
    group: str
    label: str
    formula: str
    description: str
    of: Callable[[FirmPanel], float]


# Web App. table "List of Contextual Features for Meta-model Analysis"; where the paper leaves a formula open,
# the one here is ours.
_FEATURES = (
    Feature(
        "total_sales", "Scale", "Total sales", "Σ_t S_t",
        "sales of the calibration window",
        lambda p: float(p.S.sum()),
    ),
    Feature(
        "total_orders", "Scale", "Total orders", "Σ_t O_t",
        "orders of the calibration window, initial ones included",
        lambda p: float(weekly_orders(p).sum()),
    ),
    Feature(
        "sales_hhi", "Temporal concentration", "Sales HHI", "Σ_t (S_t / Σ S)²",
        "how much of the sales fell into few weeks",
        lambda p: series.herfindahl(p.S),
    ),
    Feature(
        "cohort_orders_hhi", "Temporal concentration", "Cohort-orders HHI",
        "Σ_i A_i Σ_t (O_it / Σ_t O_it)² / Σ_i A_i",
        "the same for the orders of a cohort; mean over cohorts at least 13 weeks old",
        measures.cohort_orders_hhi,
    ),
    Feature(
        "acquisition_hhi", "Temporal concentration", "Acquisition HHI", "Σ_t (A_t / Σ A)²",
        "how much of the acquisition fell into few weeks",
        lambda p: series.herfindahl(p.A),
    ),
    Feature(
        "cohort_sales_cv", "Volatility", "Cohort-sales CV", "Σ_i A_i sd_t(Y_it) / mean_t(Y_it) / Σ_i A_i",
        "variation of a cohort's weekly sales; mean over cohorts at least 13 weeks old",
        measures.cohort_sales_cv,
    ),
    Feature(
        "sales_mad", "Volatility", "Sales MAD", "median_t |S_t - S_(t-1)|",
        "median change of sales from one week to the next, in currency",
        lambda p: float(np.median(np.abs(np.diff(p.S)))) if p.n_weeks > 1 else float("nan"),
    ),
    Feature(
        "sales_growth", "Trend dynamics", "Sales growth", "log(S_LTM / S_FTM) · 52 / (T - 52)",
        "annual log growth of sales from the first to the last twelve months",
        lambda p: measures.annual_growth(p.S),
    ),
    Feature(
        "orders_growth", "Trend dynamics", "Orders growth", "log(O_LTM / O_FTM) · 52 / (T - 52)",
        "annual log growth of orders from the first to the last twelve months",
        lambda p: measures.annual_growth(weekly_orders(p)),
    ),
    Feature(
        "sales_acceleration", "Trend dynamics", "Sales growth acceleration",
        "growth(S_MTM → S_LTM) - growth(S_FTM → S_MTM)",
        "change of the annual log growth, halved at the middle twelve months",
        lambda p: measures.acceleration(p.S),
    ),
    Feature(
        "acquisition_intensity", "Acquisition vs. repeat mix", "Acquisition intensity",
        "Σ_LTM Σ_(i: tenure < 4) Y_it / S_LTM",
        "share of the last twelve months' sales from cohorts in their first four weeks",
        measures.acquisition_intensity,
    ),
    Feature(
        "active_decay", "Retention and repeat intensity", "Active customers after a year",
        "Σ_i active_i(weeks 48-51) / Σ_i A_i",
        "share of customers with an order in their twelfth month, cohorts at least a year old; "
        "needs single customers",
        measures.active_decay,
    ),
    Feature(
        "orders_per_active", "Retention and repeat intensity", "Orders per active customer",
        "O_LTM / active_LTM",
        "orders of the last twelve months per customer who placed one; needs single customers",
        measures.orders_per_active,
    ),
    Feature(
        "sales_acf_1", "Dependence", "Sales ACF(1)", "corr(s_t, s_(t-1)), s = S - line",
        "lag-1 autocorrelation of weekly sales around their straight line",
        lambda p: series.autocorrelation(p.S, 1),
    ),
    Feature(
        "sales_pacf_4", "Dependence", "Sales PACF(4)", "φ_44 of s = S - line",
        "lag-4 partial autocorrelation of weekly sales around their straight line",
        lambda p: series.partial_autocorrelation(p.S, 4),
    ),
    Feature(
        "cohort_orders_fit", "Regularity and simple-model fit", "Cohort-orders cubic R²",
        "Σ_i A_i R²(log(O_it + 1) ~ t, t², t³) / Σ_i A_i",
        "how well a cubic describes a cohort's orders; mean over cohorts at least 13 weeks old",
        measures.cohort_orders_fit,
    ),
    Feature(
        "orders_fit", "Regularity and simple-model fit", "Orders cubic + season R²",
        "R²(log(O_t + 1) ~ t, t², t³, month)",
        "how well a cubic and the months describe weekly orders",
        measures.orders_fit,
    ),
    Feature(
        "cohort_aov_fit", "Regularity and simple-model fit", "Cohort-AOV trend + season R²",
        "Σ_i A_i R²(log(V_it + 1) ~ t, month) / Σ_i A_i",
        "how well a line and the months describe a cohort's order value; mean over cohorts that ordered in "
        "at least 52 weeks",
        measures.cohort_aov_fit,
    ),
    Feature(
        "cohort_size_gini", "Inter-cohort heterogeneity", "Gini of cohort sizes",
        "Σ_i Σ_j |A_i - A_j| / (2 C Σ_j A_j)",
        "inequality of cohort sizes",
        measures.cohort_size_gini,
    ),
    Feature(
        "sales_entropy", "Irregular shocks", "Spectral entropy of sales", "-Σ_k p_k log p_k / log K",
        "0 for one clean wave, 1 for noise",
        lambda p: series.spectral_entropy(p.S),
    ),
    Feature(
        "sales_changepoints", "Irregular shocks", "Changepoints in sales",
        "argmin_m SSE_m(log(S_t + 1)) + 2 m σ² log T",
        "changes of level in the best piecewise-constant mean of log sales",
        lambda p: series.changepoints(p.S),
    ),
)  # fmt: skip

FEATURES: dict[str, Feature] = {feature.name: feature for feature in _FEATURES}
SCALE, VOLATILITY = "total_orders", "cohort_sales_cv"
"""The two features that span the win-rate grid (section "Drivers of Forecast Accuracy")."""


def features_of(panel: FirmPanel) -> dict[str, float]:
    """All features of a firm from a panel that ends at the forecast origin; pass `panel.until(origin)`.

    NaN where the panel is too short or holds no single customers.
    """
    return {name: feature.of(panel) for name, feature in FEATURES.items()}
