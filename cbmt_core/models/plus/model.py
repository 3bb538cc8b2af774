"""The model itself: cohorts, paths, network, and how far it goes from one to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cbmt_core.models.cohort_glm import CohortGlm, FittedCohortGlm
from cbmt_core.models.contract import CannotFit, FitRecord, PrimitiveForecast, State
from cbmt_core.models.neural.forecaster import FittedNeural, NeuralForecaster
from cbmt_core.models.plus.drivers import (
    DRIVERS,
    ORDERS,
    driver_totals,
    log_ratio,
    moved,
    sales_and_unborn,
)
from cbmt_core.models.plus.paths import FittedPaths, fit_paths
from cbmt_core.models.plus.priors import PathPriors
from cbmt_core.models.plus.series import HALF, half_an_order, series_of
from cbmt_core.panel import FirmPanel

__all__ = ["NETWORK", "CbmtPlus", "FittedPlus"]

Floats = npt.NDArray[np.float64]

NETWORK = "cbmt"
TRUST = 0.2
"""Share of the way from the drivers' own paths to the network's forecast, in logs; ..."""
TOPLINE = 0.3
"""... and that orders then go to where sales would be on their own path. Both were chosen on simulated firms other
than those of any reported comparison."""


@dataclass(frozen=True)
class CohortBase:
    """What of a panel the totals of a forecast rest on."""

    size: Floats
    birth: npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FittedPlus:
    cohorts: CohortBase
    glm: FittedCohortGlm
    paths: dict[str, FittedPaths]
    """Of each group of series."""
    half_order: float
    network: FittedNeural
    record: FitRecord

    def forecast(self, horizon: int) -> PrimitiveForecast:
        own = self.own_paths(horizon)
        totals = driver_totals(self.cohorts, own)
        said = driver_totals(self.cohorts, self.network.forecast(horizon))
        by = {driver: TRUST * log_ratio(said[driver], totals[driver], driver) for driver in DRIVERS}
        sales, unborn = sales_and_unborn(self.cohorts, moved(self.cohorts, own, by))
        # Repeat orders of cohorts yet to be born move with their size and with their rate.
        step = TOPLINE * log_ratio(self._sales(horizon), sales, "sales") / (1.0 + unborn)
        return moved(self.cohorts, own, by | {driver: by[driver] + step for driver in ORDERS})

    def own_paths(self, horizon: int) -> PrimitiveForecast:
        """Cohorts that age as `cohort_glm` says, in weeks that go on as the drivers' paths do."""
        acquired, repeat, aov = self.paths["drivers"].forecast(horizon)
        R, V = self.glm.cohorts_alone(horizon)
        A = np.maximum(np.exp(acquired) - HALF, 0.0)
        return PrimitiveForecast(A=A, R=R * np.exp(repeat), V=V * np.exp(aov))

    def _sales(self, horizon: int) -> Floats:
        (sales,) = self.paths["sales"].forecast(horizon)
        return np.asarray(np.maximum(np.exp(sales) - self.half_order, 0.0))

    def state(self) -> State:
        glm, network = self.glm.state(), self.network.state()
        values: dict[str, Any] = {
            "glm": glm.values,
            "network": network.values,
            "paths": {group: paths.values() for group, paths in self.paths.items()},
            "half_order": self.half_order,
            **self.record.values(),
        }
        arrays: dict[str, npt.NDArray[Any]] = {"size": self.cohorts.size, "birth": self.cohorts.birth}
        arrays |= {f"glm/{key}": array for key, array in glm.arrays.items()}
        arrays |= {f"network/{key}": array for key, array in network.arrays.items()}
        return State(values, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        values = state.values
        return cls(
            cohorts=CohortBase(state.arrays["size"], state.arrays["birth"]),
            glm=FittedCohortGlm.from_state(_part("glm", state)),
            paths={group: FittedPaths.from_values(kept) for group, kept in values["paths"].items()},
            half_order=values["half_order"],
            network=FittedNeural.from_state(_part("network", state)),
            record=FitRecord.from_values(values),
        )


def _part(name: str, state: State) -> State:
    prefix = f"{name}/"
    arrays = {k.removeprefix(prefix): v for k, v in state.arrays.items() if k.startswith(prefix)}
    return State(state.values[name], arrays)


@dataclass(frozen=True)
class CbmtPlus:
    """Cohorts age as `cohort_glm` says; acquisition, repeat orders and order values go on along paths whose prior is
    learned across firms, drawn towards the network's forecast and towards the path of sales by itself.

    `priors` are made once for all firms by `learn_priors`; without them the firm's own weeks alone teach.
    """

    profile: str = "quick"
    storage: str | Path | None = None
    priors: PathPriors | None = None
    network: FittedNeural | None = None
    """A network already trained on the same panel; one is trained without it."""
    progress: Callable[[int, int], None] | None = None

    def fit(self, panel: FirmPanel, *, seed: int) -> FittedPlus:
        try:
            glm = CohortGlm().fit(panel, seed=seed)
        except CannotFit as error:
            raise CannotFit("cbmt_plus", panel.firm, error.reason) from error
        series = series_of(panel, glm)
        priors = self.priors or PathPriors.of_one(series, panel.design.country)
        paths = {group: fit_paths(one, priors.groups[group]) for group, one in series.items()}
        network = self.network or NeuralForecaster(
            NETWORK, self.profile, self.storage, progress=self.progress
        ).fit(panel, seed=seed)
        record = FitRecord(
            parameters={
                "firms": priors.firms,
                "comovement": paths["drivers"].comovement,
                "restlessness": paths["drivers"].scale.tolist(),
                "network": dict(network.record.parameters),
            },
            diagnosis="" if priors.firms > 1 else "the prior of its paths rests on one firm's weeks",
            validation_error=network.record.validation_error,
            trials=network.record.trials,
        )
        return FittedPlus(
            cohorts=CohortBase(panel.size.copy(), panel.birth.copy()),
            glm=glm,
            paths=paths,
            half_order=half_an_order(panel),
            network=network,
            record=record,
        )
