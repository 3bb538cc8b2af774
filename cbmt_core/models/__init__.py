"""Forecasting models: one contract, one registry, one file or folder a family."""

from cbmt_core.models.contract import CannotFit, FitRecord, FittedForecaster, Forecaster, PrimitiveForecast
from cbmt_core.models.registry import BENCHMARK_MODELS, MODELS, build
from cbmt_core.models.storage import load, save

__all__ = [
    "BENCHMARK_MODELS",
    "MODELS",
    "CannotFit",
    "FitRecord",
    "FittedForecaster",
    "Forecaster",
    "PrimitiveForecast",
    "build",
    "load",
    "save",
]
