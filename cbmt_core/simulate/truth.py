"""FirmTruth: the hidden parameters and states of a simulated firm, for tests and studies of the method, not for
models."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from cbmt_core.arrays import Floats
from cbmt_core.simulate.behaviour import behaviour_of
from cbmt_core.simulate.economy import Economy, FirmSpec
from cbmt_core.simulate.parameters import FirmParameters

__all__ = ["FirmTruth", "truth_of"]


@dataclass(frozen=True, eq=False)
class FirmTruth:
    firm: str
    industry: str
    parameters: FirmParameters
    weeks: npt.NDArray[np.datetime64]
    """[T] Sundays of the whole timeline, washout included."""
    acquisition: Floats
    """[T] expected new customers, at the economy's scale."""
    repeat_rate: Floats
    """[T] expected repeat orders of a settled live customer in a whole week."""
    order_value: Floats
    """[T] expected value of a new customer's repeat order."""
    states: dict[str, Floats]
    """Shared latent states by name, in logs; `comovement` is the strength with which drivers follow them."""

    @property
    def comovement(self) -> float:
        """Share of the drivers' movement that is common to all three, from 0 to 1."""
        return self.parameters.comovement

    def to_json(self) -> str:
        return json.dumps(
            {
                "firm": self.firm,
                "industry": self.industry,
                "comovement": self.comovement,
                "parameters": asdict(self.parameters),
                "weeks": [str(week) for week in self.weeks],
                "acquisition": self.acquisition.tolist(),
                "repeat_rate": self.repeat_rate.tolist(),
                "order_value": self.order_value.tolist(),
                "states": {name: path.tolist() for name, path in self.states.items()},
            },
            ensure_ascii=False,
        )


def truth_of(economy: Economy, spec: FirmSpec) -> FirmTruth:
    b = behaviour_of(economy, spec)
    p = spec.parameters
    return FirmTruth(
        firm=spec.name,
        industry=spec.industry,
        parameters=p,
        weeks=b.timeline.calendar.weeks,
        acquisition=b.acquisition,
        repeat_rate=p.repeat_rate * np.exp(b.paths.repeat_rate),
        order_value=p.order_value * np.exp(b.paths.order_value),
        states=b.paths.states,
    )
