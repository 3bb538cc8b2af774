"""Networks: the joint model, its ablations, the benchmark on sales alone, and what goes beyond them."""

from cbmt_core.models.neural.direct import Direct, FittedDirect
from cbmt_core.models.neural.forecaster import FittedNeural, NeuralForecaster
from cbmt_core.models.neural.plus import CbmtPlus, FittedPlus

__all__ = ["CbmtPlus", "Direct", "FittedDirect", "FittedNeural", "FittedPlus", "NeuralForecaster"]
