"""`cbmt_plus`: the joint network as deviations from a structural baseline, as far as they earn trust."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cbmt_core.models.cohort_glm import CohortGlm, FittedCohortGlm
from cbmt_core.models.contract import FitRecord, PrimitiveForecast, State
from cbmt_core.models.neural.forecaster import MIN_SEARCH_WEEKS, FittedNeural, NeuralForecaster
from cbmt_core.models.neural.training import one_thread
from cbmt_core.models.sequence import validation_split, walk_forward_error
from cbmt_core.panel import FirmPanel
from cbmt_core.tuning import Progress

__all__ = ["CbmtPlus", "FittedPlus", "deviate"]

Floats = npt.NDArray[np.float64]

TRUST = {"A": 0.5, "R": 0.4, "V": 0.2}
"""Share of the network's log deviation that is kept when nothing is known about its worth; chosen on
simulated firms other than those of any reported comparison."""
FACTORS = (0.0, 0.5, 1.0, 1.5)
"""What the validation window may multiply it with."""
LONGEST = 1.0
"""A network may not leave its baseline by more than a factor e."""
FLOOR = 1e-9


def deviate(
    baseline: PrimitiveForecast, network: PrimitiveForecast, trust: Mapping[str, float]
) -> PrimitiveForecast:
    """baseline · (network / baseline)^trust, for each driver."""

    def driver(name: str) -> Floats:
        structural, learned = getattr(baseline, name), getattr(network, name)
        ratio = np.log(np.maximum(learned, FLOOR) / np.maximum(structural, FLOOR))
        return np.asarray(structural * np.exp(trust[name] * np.clip(ratio, -LONGEST, LONGEST)))

    return PrimitiveForecast(A=driver("A"), R=driver("R"), V=driver("V"))


@dataclass(frozen=True, eq=False)
class FittedPlus:
    baseline: FittedCohortGlm
    network: FittedNeural
    trust: dict[str, float]
    record: FitRecord

    def forecast(self, horizon: int) -> PrimitiveForecast:
        return deviate(self.baseline.forecast(horizon), self.network.forecast(horizon), self.trust)

    def state(self) -> State:
        baseline, network = self.baseline.state(), self.network.state()
        values: dict[str, Any] = {
            "baseline": baseline.values,
            "network": network.values,
            "trust": self.trust,
            "parameters": dict(self.record.parameters),
            "diagnosis": self.record.diagnosis,
            "validation_error": self.record.validation_error,
        }
        arrays = {f"baseline/{k}": v for k, v in baseline.arrays.items()}
        return State(values, arrays | {f"network/{k}": v for k, v in network.arrays.items()})

    @classmethod
    def from_state(cls, state: State) -> Self:
        values = state.values

        def part(name: str) -> State:
            prefix = f"{name}/"
            arrays = {k.removeprefix(prefix): v for k, v in state.arrays.items() if k.startswith(prefix)}
            return State(values[name], arrays)

        return cls(
            baseline=FittedCohortGlm.from_state(part("baseline")),
            network=FittedNeural.from_state(part("network")),
            trust=values["trust"],
            record=FitRecord(
                parameters=values["parameters"],
                diagnosis=values["diagnosis"],
                validation_error=values["validation_error"],
            ),
        )


@dataclass(frozen=True)
class CbmtPlus:
    """The joint network aligned with the observed size of cohorts, shrunken towards `cohort_glm`.

    How far is learned on the validation window: both parts are fitted without it, and the factor on the
    usual trust that forecasts it best is averaged with one, because twenty weeks are few.
    """

    profile: str = "quick"
    storage: str | Path | None = None
    progress: Progress | None = field(default=None, compare=False)

    def fit(self, panel: FirmPanel, *, seed: int) -> FittedPlus:
        network = NeuralForecaster("cbmt_plus", self.profile, self.storage, self.progress)
        with one_thread():
            chosen = network.choose(panel, seed)
            factor, error = self._factor(panel, network, chosen, seed)
            fitted = network.train(panel, chosen, seed)
        trust = _trust(factor)
        record = replace(chosen, parameters={**chosen.parameters, "trust": trust}, validation_error=error)
        return FittedPlus(CohortGlm().fit(panel, seed=seed), fitted, trust, record)

    def _factor(
        self, panel: FirmPanel, network: NeuralForecaster, chosen: FitRecord, seed: int
    ) -> tuple[float, float | None]:
        if panel.n_weeks < MIN_SEARCH_WEEKS:
            return 0.5, None
        training = validation_split(panel)
        horizon = panel.n_weeks - training.n_weeks
        baseline = CohortGlm().fit(training, seed=seed).forecast(horizon)
        learned = network.train(training, chosen, seed).forecast(horizon)
        errors = [
            walk_forward_error(panel, training, deviate(baseline, learned, _trust(factor)))
            for factor in FACTORS
        ]
        if not np.isfinite(errors).any():
            return 1.0, None
        return (1.0 + FACTORS[int(np.nanargmin(errors))]) / 2, float(np.nanmin(errors))


def _trust(factor: float) -> dict[str, float]:
    return {name: factor * share for name, share in TRUST.items()}
