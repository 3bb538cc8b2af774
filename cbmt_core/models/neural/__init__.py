"""Networks: the joint model, its ablations, and what goes beyond them."""

from cbmt_core.models.neural.forecaster import FittedNeural, NeuralForecaster

__all__ = ["FittedNeural", "NeuralForecaster"]
