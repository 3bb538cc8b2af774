"""Forecasts from earlier weeks, and what follows from how they turned out."""

from cbmt_core.backtest.choice import forecast_choices

__all__ = ["forecast_choices"]
