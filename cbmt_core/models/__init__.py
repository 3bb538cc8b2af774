"""Forecasting models: one contract, one registry, one file or folder for each family."""

from cbmt_core.models.contract import CannotFit, FitRecord, FittedForecaster, Forecaster, PrimitiveForecast
from cbmt_core.models.registry import (
    MODELS,
    benchmarks,
    build,
    networks,
    options_of,
    register_model,
    unregister_model,
)
from cbmt_core.models.storage import load, save

__all__ = [
    "MODELS",
    "CannotFit",
    "FitRecord",
    "FittedForecaster",
    "Forecaster",
    "PrimitiveForecast",
    "benchmarks",
    "build",
    "load",
    "networks",
    "options_of",
    "register_model",
    "save",
    "unregister_model",
]
