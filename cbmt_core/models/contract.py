"""The contract of models: fit on a panel, forecast the three drivers, be saved and loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, runtime_checkable

import numpy.typing as npt

from cbmt_core.arrays import Floats
from cbmt_core.errors import CbmtError
from cbmt_core.panel import FirmPanel
from cbmt_core.uncertainty import DriverUncertainty

__all__ = [
    "CannotFit",
    "FitRecord",
    "FittedForecaster",
    "Forecaster",
    "KnowsItsErrors",
    "ModelState",
    "PrimitiveForecast",
    "SalesForecast",
]


class CannotFit(CbmtError):
    """The model cannot be fitted to this panel; the message says what is missing."""

    def __init__(self, model: str, firm: str, reason: str) -> None:
        super().__init__(f"{model} cannot be fitted to firm {firm!r}: {reason}")
        self.model = model
        self.firm = firm
        self.reason = reason


@dataclass(frozen=True)
class FitRecord:
    """Facts about one fit, stored in the table `model_fit`."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    """JSON-ready estimates and choices."""
    converged: bool = True
    diagnosis: str = ""
    """Problems of the fit and how they were handled, in words; empty without any."""
    validation_error: float | None = None
    """Error over the validation window, for models that choose settings by it; the mean if each driver has its
    own."""
    trials: Sequence[Mapping[str, Any]] = field(default=(), compare=False)
    """The search behind the choice, trial by trial (`Found.history` of `cbmt_core.tuning`), with a `driver` where
    a model's drivers have searches of their own; not part of the saved model."""

    def values(self) -> dict[str, Any]:
        """The fields that are stored with a saved model, JSON-ready."""
        return {
            "parameters": dict(self.parameters),
            "converged": self.converged,
            "diagnosis": self.diagnosis,
            "validation_error": self.validation_error,
        }

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `values`; other keys are ignored, and fields that an older version did not store have their
        defaults."""
        return cls(
            parameters=values["parameters"],
            converged=values.get("converged", True),
            diagnosis=values.get("diagnosis", ""),
            validation_error=values.get("validation_error"),
        )


@dataclass(frozen=True, eq=False)
class PrimitiveForecast:
    """Drivers over H weeks. Rows: the panel's N cohorts, then one cohort born in each forecast week.

    Row N + k is the cohort born in forecast week k. R and V are NaN before birth, and finite and
    not negative from birth on. A may be fractional.
    """

    A: Floats
    """[H] customers acquired."""
    R: Floats
    """[N + H, H] repeat orders per customer."""
    V: Floats
    """[N + H, H] average order value."""

    @property
    def horizon(self) -> int:
        return len(self.A)


@dataclass(frozen=True, eq=False)
class SalesForecast:
    """Total sales over H weeks, from a model that does not forecast drivers."""

    S: Floats
    """[H]"""

    @property
    def horizon(self) -> int:
        return len(self.S)


@dataclass(frozen=True, eq=False)
class ModelState:
    """A fitted model as plain data: JSON-ready values and arrays, never pickled objects."""

    values: Mapping[str, Any]
    arrays: Mapping[str, npt.NDArray[Any]]


class FittedForecaster(Protocol):
    @property
    def record(self) -> FitRecord: ...

    def forecast(self, horizon: int) -> PrimitiveForecast | SalesForecast: ...

    def state(self) -> ModelState: ...

    @classmethod
    def from_state(cls, state: ModelState) -> Self: ...


class Forecaster(Protocol):
    def fit(self, panel: FirmPanel, *, seed: int) -> FittedForecaster:
        """Fit on all weeks of the panel; raise CannotFit where they are not enough."""
        ...


@runtime_checkable
class KnowsItsErrors(Protocol):
    """A fitted model with its own error distribution."""

    def uncertainty(self, horizon: int) -> DriverUncertainty: ...
