"""PathPrior: how the weekly series of firms move, as far as firms have that in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from cbmt_core.calendar import calendar_of
from cbmt_core.models.plus.series import GROUPS
from cbmt_core.models.regression import season_waves

__all__ = ["MOVES", "RANDOM", "PathPrior", "regressor_names", "regressors"]

Floats = npt.NDArray[np.float64]

MOVES = ("trend", "calendar", "slow", "walk", "brief")
"""What a path is the sum of: a straight line; waves of the year and holidays; deviations that fade slowly; steps
that stay; deviations that fade at once."""
RANDOM = np.array([False, False, True, True, True])
"""Which of them are larger in a restless firm."""
WAVES = 4
BEFORE = "week before "

USUAL: dict[str, dict[str, tuple[float, ...]]] = {
    "drivers": {
        "trend": (0.13, 0.04, 0.02),
        "calendar": (0.075, 0.06, 0.02),
        "slow": (0.085, 0.045, 0.03),
        "walk": (0.026, 0.014, 0.004),
        "brief": (0.165, 0.087, 0.033),
        "white": (0.03, 0.01, 0.005),
    },
    "sales": {
        "trend": (0.105,),
        "calendar": (0.085,),
        "slow": (0.065,),
        "walk": (0.017,),
        "brief": (0.097,),
        "white": (0.02,),
    },
}
"""Standard deviations in log points (trend: a year's, walk: a week's) where no firm has told otherwise; rounded
from simulated firms other than those of any reported comparison."""
SHARED = (0.2, 0.9, 0.9, 0.9, 0.5)
MEMORY = (40.0, 1.6)
ARRAYS = ("sd", "shared", "memory", "weight", "mean")


@lru_cache(maxsize=8)
def regressors(first_week: date, weeks: int, country: str) -> Floats:
    """[weeks, Q] what the calendar says of each week: waves, holidays, and whether one comes next week."""
    calendar = calendar_of(first_week, weeks + 1, country)
    waves = season_waves(calendar, WAVES)[:-1]
    return np.column_stack([waves, calendar.holiday[:-1], calendar.holiday[1:]])


def regressor_names(country: str) -> tuple[str, ...]:
    waves = [f"{name} {k}" for k in range(1, WAVES + 1) for name in ("sine", "cosine")]
    holidays = calendar_of(date(2017, 1, 1), 1, country).holiday_names
    return (*waves, *holidays, *(BEFORE + name for name in holidays))


@dataclass(frozen=True, eq=False)
class PathPrior:
    """A Gaussian prior of the paths of D series of any firm of a country."""

    group: str
    country: str
    sd: Floats
    """[6, D] standard deviation of each move, and of white noise; of the calendar: of a regressor of weight 1."""
    shared: Floats
    """[5, D] how far a move goes with the other series of a firm where everything moves together; -1 to 1."""
    memory: Floats
    """[2] weeks over which slow and brief deviations fade."""
    weight: Floats
    """[Q] size of each regressor's effects relative to the others'."""
    mean: Floats
    """[1 + Q, D] average over firms of the yearly trend, and of each regressor's effect."""
    firms: int
    """Firms it was learned from."""

    @classmethod
    def usual(cls, group: str, country: str) -> Self:
        """What is assumed before any firm has told."""
        names = regressor_names(country)
        sd = np.array([USUAL[group][move] for move in (*MOVES, "white")])
        waves = np.repeat(1.0 / np.arange(1, WAVES + 1) ** 2, 2)
        events = np.where([name.startswith(BEFORE) for name in names[2 * WAVES :]], 0.4, 1.0)
        return cls(
            group=group,
            country=country,
            sd=sd,
            shared=np.repeat(np.array(SHARED)[:, None], sd.shape[1], axis=1),
            memory=np.array(MEMORY),
            weight=np.concatenate([waves, events]),
            mean=np.zeros((1 + len(names), sd.shape[1])),
            firms=0,
        )

    def frame(self) -> pd.DataFrame:
        """One row for each number; `from_frame` reads it back."""
        series, names = GROUPS[self.group], regressor_names(self.country)
        rows: list[tuple[str, str, str, float]] = []
        for d, one in enumerate(series):
            rows += [(one, "sd", move, self.sd[k, d]) for k, move in enumerate((*MOVES, "white"))]
            rows += [(one, "shared", move, self.shared[k, d]) for k, move in enumerate(MOVES)]
            rows += [(one, "mean", name, self.mean[k, d]) for k, name in enumerate(("trend", *names))]
        rows += [("", "memory", move, self.memory[k]) for k, move in enumerate(("slow", "brief"))]
        rows += [("", "weight", name, self.weight[k]) for k, name in enumerate(names)]
        frame = pd.DataFrame(rows, columns=["series", "parameter", "part", "value"])
        frame.insert(0, "scope", self.group)
        return frame.assign(firms=self.firms)

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, group: str, country: str) -> Self:
        own = frame[frame["scope"] == group]
        keys = zip(own["series"], own["parameter"], own["part"], strict=True)
        told = dict(zip(keys, own["value"].astype(float), strict=True))
        series, names = GROUPS[group], regressor_names(country)

        def table(parameter: str, parts: tuple[str, ...]) -> Floats:
            return np.array([[told[one, parameter, part] for one in series] for part in parts])

        return cls(
            group=group,
            country=country,
            sd=table("sd", (*MOVES, "white")),
            shared=table("shared", MOVES),
            memory=np.array([told["", "memory", move] for move in ("slow", "brief")]),
            weight=np.array([told["", "weight", name] for name in names]),
            mean=table("mean", ("trend", *names)),
            firms=int(own["firms"].iloc[0]),
        )

    def values(self) -> dict[str, Any]:
        """JSON-ready; `from_values` reads it back."""
        arrays = {name: getattr(self, name).tolist() for name in ARRAYS}
        return {"group": self.group, "country": self.country, "firms": self.firms, **arrays}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        arrays = {name: np.array(values[name], float) for name in ARRAYS}
        return cls(**{**values, **arrays})
