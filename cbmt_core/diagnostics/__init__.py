"""Why joint forecasting helps, how hard a firm is to forecast, and which model to deploy."""
