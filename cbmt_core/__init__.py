"""Customer-base forecasting as a plain library."""
