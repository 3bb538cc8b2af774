"""How far to follow each expert away from the anchor, learned from forecasts at earlier origins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from cbmt_core.models.plus.drivers import ANCHOR, DRIVERS, EXPERTS, FLOOR, YEAR

__all__ = ["FEATURES", "ExpertWeights", "learn_weights", "log_ratio"]

Floats = npt.NDArray[np.float64]

REACH = 1.0
"""Log ratios are held within a factor e either way."""
SHRINKAGE = 10.0
"""Penalty on squared weights, against ..."""
EFFECTIVE = 2.0
"""... as many independent observations as this from each origin: neighbouring weeks err alike. Both were
chosen on simulated firms other than those of any reported comparison."""

MIN_FIRMS = 10
"""From fewer firms nothing is learned: the origins of one firm overlap, and tell of one year of it."""

TIME = ("constant", "horizon", "horizon_squared")
RATIOS = tuple(f"{expert}_{driver}" for expert in EXPERTS for driver in DRIVERS)
FEATURES = (*TIME, *RATIOS, *(f"{name}_by_horizon" for name in RATIOS))
"""A driver's correction may use what the experts say of the other drivers too: that is the joint part."""


def log_ratio(value: Floats, anchor: Floats, driver: str) -> Floats:
    floor = FLOOR[driver]
    ratio = np.log(np.maximum(value, floor) / np.maximum(anchor, floor))
    return np.asarray(np.clip(ratio, -REACH, REACH))


def features(horizon: Floats, ratios: Mapping[str, Floats]) -> Floats:
    """[n, len(FEATURES)]; `horizon` counts weeks from 1, `ratios` has a column for each name in RATIOS."""
    h = (np.asarray(horizon, float) - 1) / YEAR
    columns = [ratios[name] for name in RATIOS]
    return np.column_stack([np.ones_like(h), h, h * h, *columns, *(column * h for column in columns)])


@dataclass(frozen=True, eq=False)
class ExpertWeights:
    """Linear corrections of the anchor's log drivers; all zero where nothing was learned."""

    weights: dict[str, Floats]
    """[len(FEATURES)] for each driver."""
    firms: int
    """Firms they were learned from."""

    @classmethod
    def none(cls) -> Self:
        return cls({driver: np.zeros(len(FEATURES)) for driver in DRIVERS}, 0)

    def corrections(
        self, anchor: Mapping[str, Floats], experts: Mapping[str, Mapping[str, Floats]]
    ) -> dict[str, Floats]:
        """[H] what to add to the log of each driver, from the drivers' totals of anchor and experts."""
        ratios = {
            f"{expert}_{driver}": log_ratio(experts[expert][driver], anchor[driver], driver)
            for expert in EXPERTS
            for driver in DRIVERS
        }
        horizon = np.arange(1, len(anchor["acquisition"]) + 1)
        x = features(np.minimum(horizon, YEAR), ratios)
        return {driver: np.clip(x @ self.weights[driver], -REACH, REACH) for driver in DRIVERS}

    def frame(self) -> pd.DataFrame:
        """One row for each driver and feature; `from_frame` reads it back."""
        return pd.DataFrame(
            [
                {"driver": driver, "feature": name, "weight": float(weight), "firms": self.firms}
                for driver in DRIVERS
                for name, weight in zip(FEATURES, self.weights[driver], strict=True)
            ]
        )

    @classmethod
    def from_frame(cls, frame: pd.DataFrame) -> Self:
        table = frame.pivot_table(index="driver", columns="feature", values="weight")
        weights = {driver: table.loc[driver, list(FEATURES)].to_numpy(float) for driver in DRIVERS}
        return cls(weights, int(frame["firms"].iloc[0]))

    def values(self) -> dict[str, Any]:
        """JSON-ready; `from_values` reads it back."""
        return {"firms": self.firms, "weights": {k: v.tolist() for k, v in self.weights.items()}}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        return cls({k: np.array(v) for k, v in values["weights"].items()}, values["firms"])


def learn_weights(inner: pd.DataFrame) -> ExpertWeights:
    """A ridge regression of log(actual / anchor), one for each driver, over all firms, origins and weeks.

    `inner` has the columns of `inner_forecasts`. With few firms the penalty rules, with fewer than
    `MIN_FIRMS` the anchor stays as it is; the order of the rows does not matter.
    """
    firms = int(inner["firm"].nunique())
    if firms < MIN_FIRMS:
        return ExpertWeights.none()
    keys = ["firm", "origin", "horizon"]
    wide = inner.pivot_table(index=keys, columns=["driver", "model"], values="forecast")
    actual = inner[inner["model"] == ANCHOR].pivot_table(index=keys, columns="driver", values="actual")
    wide = wide.astype(float)
    anchor = {driver: wide[(driver, ANCHOR)].to_numpy() for driver in DRIVERS}
    ratios = {
        f"{expert}_{driver}": log_ratio(wide[(driver, expert)].to_numpy(), anchor[driver], driver)
        for expert in EXPERTS
        for driver in DRIVERS
    }
    horizon = np.minimum(wide.index.get_level_values("horizon").to_numpy(float), YEAR)
    x = features(horizon, ratios)
    origins = len({(firm, origin) for firm, origin, _ in wide.index})
    share = EFFECTIVE * origins / len(x)
    gram = share * (x.T @ x) + SHRINKAGE * np.eye(len(FEATURES))
    missed = {d: log_ratio(actual[d].to_numpy(float), anchor[d], d) for d in DRIVERS}
    weights = {d: np.asarray(np.linalg.solve(gram, share * (x.T @ missed[d])), float) for d in DRIVERS}
    return ExpertWeights(weights, firms)
