"""How hard a firm is to forecast: contextual features, predicted holdout error (PHE), and what drives it."""

from cbmt_core.diagnostics.difficulty.explanation import COLUMNS, TARGET_OUTCOME, Explanation, explain
from cbmt_core.diagnostics.difficulty.features import FEATURES, SCALE, VOLATILITY, Feature, features_of
from cbmt_core.diagnostics.difficulty.meta_models import FIRMS_NEEDED, META_MODELS, MetaModel
from cbmt_core.diagnostics.difficulty.terciles import LEVELS, terciles

__all__ = [
    "COLUMNS",
    "FEATURES",
    "FIRMS_NEEDED",
    "LEVELS",
    "META_MODELS",
    "SCALE",
    "TARGET_OUTCOME",
    "VOLATILITY",
    "Explanation",
    "Feature",
    "MetaModel",
    "explain",
    "features_of",
    "terciles",
]
