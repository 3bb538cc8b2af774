"""Tree models: a random forest and boosted trees on the windows of the sequence models."""

from cbmt_core.models.trees.forecaster import FittedTrees, TreeForecaster

__all__ = ["FittedTrees", "TreeForecaster"]
