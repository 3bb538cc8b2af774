"""Economy: the list of firms, and the random streams of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from cbmt_core.design import StudyDesign
from cbmt_core.names import Unit
from cbmt_core.simulate.firm_names import firm_names
from cbmt_core.simulate.industries import allocate
from cbmt_core.simulate.parameters import FirmParameters, draw_parameters

__all__ = ["Economy", "FirmSpec", "Stream"]


class Stream(IntEnum):
    """Independent random streams of a firm: draws from one do not change another."""

    PARAMETERS = 0
    PATHS = 1
    COHORTS = 2
    ORDERS = 3


@dataclass(frozen=True)
class FirmSpec:
    name: str
    industry: str
    index: int
    parameters: FirmParameters = field(repr=False)

    @property
    def slug(self) -> str:
        return Unit(self.name).slug


@dataclass(frozen=True)
class Economy:
    """A synthetic economy. `scale` multiplies every firm's number of customers and changes nothing else."""

    firms: int = 966
    scale: float = 1.0
    seed: int = 20260626
    design: StudyDesign = field(default_factory=StudyDesign)

    def __post_init__(self) -> None:
        if self.firms < 1:
            raise ValueError(f"an economy needs at least one firm, got {self.firms}")
        if not 0 < self.scale < np.inf:
            raise ValueError(f"scale must be positive and finite, got {self.scale}")
        if self.seed < 0:
            raise ValueError(f"seed must not be negative, got {self.seed}")

    def specs(self) -> list[FirmSpec]:
        """Every firm's specification; fast even for all firms."""
        industries = allocate(self.firms)
        names = firm_names(industries, self.seed)
        return [
            FirmSpec(
                name, industry.name, index, draw_parameters(industry, self.stream(index, Stream.PARAMETERS))
            )
            for index, (industry, name) in enumerate(zip(industries, names, strict=True))
        ]

    def stream(self, index: int, purpose: Stream) -> np.random.Generator:
        """A firm's random generator: the same for any number and order of firms, in any process."""
        return np.random.default_rng(np.random.SeedSequence(self.seed, spawn_key=(index, purpose)))
