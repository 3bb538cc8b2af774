"""Networks: the joint model, its ablations, and the benchmark on sales alone."""

from cbmt_core.models.neural.direct import Direct, FittedDirect
from cbmt_core.models.neural.forecaster import FittedNeural, NeuralForecaster

__all__ = ["Direct", "FittedDirect", "FittedNeural", "NeuralForecaster"]
