"""Choose a model from the errors of backtests."""

from cbmt_core.backtest.choice import forecast_choices

__all__ = ["forecast_choices"]
