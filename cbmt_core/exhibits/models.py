"""Which models the paper's tables show, in what order and under what name."""

from __future__ import annotations

from cbmt_core.models import MODELS

__all__ = [
    "BENCHMARKS",
    "DIRECT",
    "FULL_MODEL",
    "INDUSTRY_MODELS",
    "LABELS",
    "NESTED_MODELS",
    "REPRESENTATIVES",
]

FULL_MODEL = "cbmt"
DIRECT = "direct"

LABELS = {
    "cbmt": "CBMT",
    "lstm": "LSTM",
    "rf": "RF",
    "xgb": "XGB",
    "wg_pnbd_e_fp": "WG-PNBD-E FP",
    "wg_pnbd_e_pp": "WG-PNBD-E PP",
    "wg_pnbd_fp": "WG-PNBD FP",
    "wg_pnbd_pp": "WG-PNBD PP",
    "gls_v1": "GLS V1",
    "gls_v2": "GLS V2",
    "gls_v3": "GLS V3",
    "lmp_v1": "LMP V1",
    "lmp_v2": "LMP V2",
    "ssw_v1": "SSW V1",
    "ssw_v2": "SSW V2",
    "ssw_v3": "SSW V3",
    "direct": "Direct",
    "joint": "Joint",
    "single_task": "Single-task",
    "cbmt_plus": "CBMT+",
    "cohort_glm": "Cohort GLM",
    "seasonal_naive": "Seasonal naive",
}
"""Names for readers; the order is that of the full rank table, then models it does not show."""

_NOT_RANKED = ("direct", "joint", "single_task")
BENCHMARKS = tuple(
    name for name in LABELS if MODELS[name].in_paper and name not in (FULL_MODEL, *_NOT_RANKED)
)
"""The 15 variants of Web App. "Model Selection Results"."""
REPRESENTATIVES = ("cbmt", "gls_v2", "wg_pnbd_e_pp", "lstm", "rf")
INDUSTRY_MODELS = ("cbmt", "wg_pnbd_e_pp", "lstm")
NESTED_MODELS = ("single_task", "joint", "cbmt")
"""Each adds to the one before: shared representation, then revenue alignment."""
