"""The model itself: anchor, experts, network, and the weights that join them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cbmt_core.models.contract import FitRecord, FittedForecaster, PrimitiveForecast, State
from cbmt_core.models.neural.forecaster import FittedNeural, NeuralForecaster
from cbmt_core.models.plus.drivers import (
    ANCHOR,
    DRIVERS,
    EXPERTS,
    ORDERS,
    driver_totals,
    moved,
    sales_and_unborn,
)
from cbmt_core.models.plus.smoothing import Smoothed
from cbmt_core.models.plus.weights import ExpertWeights, log_ratio
from cbmt_core.models.registry import build
from cbmt_core.models.storage import class_name, restore
from cbmt_core.panel import FirmPanel

__all__ = ["NETWORK", "CbmtPlus", "FittedPlus"]

NETWORK = "cbmt"
"""The network among the experts. It is too dear to be trained at every earlier origin: its share is fixed."""
TRUST = {"acquisition": 0.5, "base": 0.4, "repeat": 0.4, "aov": 0.2}
"""Share of the way from the other experts' forecast to the network's, in logs; chosen on simulated firms other
than those of any reported comparison."""
SMOOTHED = 0.4
"""Share of the way that acquisition then goes to its own smoothed series, ..."""
TOPLINE = 0.25
"""... and that orders go to where sales would be those of their own smoothed series; chosen likewise."""


@dataclass(frozen=True)
class CohortBase:
    """What of a panel the totals of a forecast rest on."""

    size: npt.NDArray[np.float64]
    birth: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FittedPlus:
    cohorts: CohortBase
    parts: dict[str, FittedForecaster]
    """The anchor, every expert, the network."""
    acquired: Smoothed | None
    sales: Smoothed | None
    """Acquisition and sales by themselves; None of a history too short for that."""
    weights: ExpertWeights
    record: FitRecord

    def forecast(self, horizon: int) -> PrimitiveForecast:
        forecasts = {name: _drivers(part.forecast(horizon)) for name, part in self.parts.items()}
        totals = {name: driver_totals(self.cohorts, forecast) for name, forecast in forecasts.items()}
        by = self.weights.corrections(totals[ANCHOR], totals)
        told = {driver: totals[ANCHOR][driver] * np.exp(by[driver]) for driver in DRIVERS}
        for driver, trust in TRUST.items():
            by[driver] = by[driver] + trust * log_ratio(totals[NETWORK][driver], told[driver], driver)
        if self.acquired is None or self.sales is None:
            return moved(self.cohorts, forecasts[ANCHOR], by)
        acquired = totals[ANCHOR]["acquisition"] * np.exp(by["acquisition"])
        by["acquisition"] = by["acquisition"] + SMOOTHED * log_ratio(
            self.acquired.forecast(horizon), acquired, "acquisition"
        )
        sales, unborn = sales_and_unborn(self.cohorts, moved(self.cohorts, forecasts[ANCHOR], by))
        # Repeat orders of cohorts yet to be born move with their size and with their rate.
        step = TOPLINE * log_ratio(self.sales.forecast(horizon), sales, "sales") / (1.0 + unborn)
        by |= {driver: by[driver] + step for driver in ORDERS}
        return moved(self.cohorts, forecasts[ANCHOR], by)

    def state(self) -> State:
        values: dict[str, Any] = {
            "weights": self.weights.values(),
            "acquired": self.acquired and self.acquired.values(),
            "sales": self.sales and self.sales.values(),
            "parts": {},
            "parameters": dict(self.record.parameters),
            "diagnosis": self.record.diagnosis,
            "validation_error": self.record.validation_error,
        }
        arrays: dict[str, npt.NDArray[Any]] = {"size": self.cohorts.size, "birth": self.cohorts.birth}
        for name, part in self.parts.items():
            state = part.state()
            values["parts"][name] = {"class": class_name(part), "values": state.values}
            arrays |= {f"{name}/{key}": array for key, array in state.arrays.items()}
        return State(values, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        values = state.values
        return cls(
            cohorts=CohortBase(state.arrays["size"], state.arrays["birth"]),
            parts={name: _part(name, state) for name in values["parts"]},
            acquired=_smoothed(values["acquired"]),
            sales=_smoothed(values["sales"]),
            weights=ExpertWeights.from_values(values["weights"]),
            record=FitRecord(
                parameters=values["parameters"],
                diagnosis=values["diagnosis"],
                validation_error=values["validation_error"],
            ),
        )


def _smoothed(values: dict[str, Any] | None) -> Smoothed | None:
    return Smoothed.from_values(values) if values else None


def _drivers(forecast: Any) -> PrimitiveForecast:
    assert isinstance(forecast, PrimitiveForecast)
    return forecast


def _part(name: str, state: State) -> FittedForecaster:
    kept = state.values["parts"][name]
    prefix = f"{name}/"
    arrays = {k.removeprefix(prefix): v for k, v in state.arrays.items() if k.startswith(prefix)}
    return restore(kept["class"], State(kept["values"], arrays))


@dataclass(frozen=True)
class CbmtPlus:
    """`cohort_glm`'s drivers, corrected as earlier origins taught, then drawn towards the network's, and towards
    where acquisition and sales would go by themselves.

    The corrections are learned across firms (`weights`, made once for all of them by `learn_weights`); without
    them, as for a firm by itself, the anchor is drawn towards the network alone.
    """

    profile: str = "quick"
    storage: str | Path | None = None
    weights: ExpertWeights | None = None
    network: FittedNeural | None = None
    """A network already trained on the same panel; one is trained without it."""
    progress: Callable[[int, int], None] | None = None

    def fit(self, panel: FirmPanel, *, seed: int) -> FittedPlus:
        parts: dict[str, FittedForecaster] = {
            name: build(name).fit(panel, seed=seed) for name in (ANCHOR, *EXPERTS)
        }
        weights = self.weights or ExpertWeights.none()
        network = self.network or NeuralForecaster(
            NETWORK, self.profile, self.storage, progress=self.progress
        ).fit(panel, seed=seed)
        parts[NETWORK] = network
        record = FitRecord(
            parameters={"firms": weights.firms, "trust": TRUST, "network": dict(network.record.parameters)},
            diagnosis="" if weights.firms else "no weights learned across firms: cohort_glm is not corrected",
            validation_error=network.record.validation_error,
            trials=network.record.trials,
        )
        return FittedPlus(
            cohorts=CohortBase(panel.size.copy(), panel.birth.copy()),
            parts=parts,
            acquired=Smoothed.of(panel.A),
            sales=Smoothed.of(panel.S),
            weights=weights,
            record=record,
        )
