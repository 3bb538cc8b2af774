"""Diagnostics across firms: when joint forecasting helps, how hard a firm is to forecast, which model to deploy."""
