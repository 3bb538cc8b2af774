"""PathPrior: what the weekly series of firms have in common, learned from many firms or from one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from cbmt_core.arrays import Floats
from cbmt_core.errors import BadFirmData
from cbmt_core.models.neural.training import one_thread
from cbmt_core.models.plus.likelihood import COMPONENTS, Hyperparameters, batches, learn_common
from cbmt_core.models.plus.regressors import WAVES, regressor_names
from cbmt_core.models.plus.series import GROUPS, WeeklySeries

__all__ = ["PathPrior"]


DEFAULT_SD: dict[str, dict[str, tuple[float, ...]]] = {
    "drivers": {
        "trend": (0.13, 0.04, 0.02),
        "calendar": (0.075, 0.06, 0.02),
        "walk": (0.026, 0.014, 0.004),
        "brief": (0.165, 0.087, 0.033),
        "white": (0.03, 0.01, 0.005),
    },
    "sales": {
        "trend": (0.105,),
        "calendar": (0.085,),
        "walk": (0.017,),
        "brief": (0.097,),
        "white": (0.02,),
    },
}
"""Standard deviation of each group's series in log points (trend: a year's, walk: a week's), rounded from simulated
firms other than those of any reported comparison."""
DEFAULT_SHARED = (0.2, 0.9, 0.9, 0.5)
DEFAULT_MEMORY = 1.6
ARRAYS = ("sd", "shared", "memory", "weight", "mean")
MOST_FIRMS = 60
"""Maximum number of firms that a prior is learned from: more cost time and change little."""
MOST_NOISE = 0.25
"""Mean sampling variance of the series, that of about five orders a week, above which a firm is not used for
learning."""
LEARNING_STEPS = 60


@dataclass(frozen=True, eq=False)
class PathPrior:
    """Gaussian prior of the paths of a firm's D series of a group, the same for all firms of a country."""

    group: str
    country: str
    sd: Floats
    """[5, D] standard deviation of each component and of white noise; of the calendar: of a regressor of weight 1."""
    shared: Floats
    """[4, D] share of a component that goes with the firm's other series at a co-movement of 1; -1 to 1."""
    memory: Floats
    """[1] weeks over which brief deviations fade by 1 / e."""
    weight: Floats
    """[Q] standard deviation of each regressor's effects relative to the others'."""
    mean: Floats
    """[1 + Q, D] mean over firms of the yearly trend, and of each regressor's effect."""
    firms: int
    """Firms it was learned from; 0: the default."""

    @classmethod
    def default(cls, group: str, country: str) -> Self:
        """The prior before any firm is seen."""
        names = regressor_names(country)
        sd = np.array([DEFAULT_SD[group][part] for part in (*COMPONENTS, "white")])
        waves = np.repeat(1.0 / np.arange(1, WAVES + 1) ** 2, 2)
        return cls(
            group=group,
            country=country,
            sd=sd,
            shared=np.repeat(np.array(DEFAULT_SHARED)[:, None], sd.shape[1], axis=1),
            memory=np.array([DEFAULT_MEMORY]),
            weight=np.concatenate([waves, np.ones(len(names) - len(waves))]),
            mean=np.zeros((1 + len(names), sd.shape[1])),
            firms=0,
        )

    @classmethod
    def learned(
        cls,
        series: Sequence[WeeklySeries],
        group: str,
        country: str,
        progress: Callable[[int, int], None] | None = None,
    ) -> Self:
        """The prior of highest posterior given the firms' series of a group; the default without any.

        At most `MOST_FIRMS` firms are used, a fixed choice; firms with few orders a week only if there are no
        others. All of them must have the same weeks.
        """
        default = cls.default(group, country)
        firms = [one for one in series if one.noise.mean() <= MOST_NOISE] or list(series)
        firms = sorted(firms, key=lambda one: hashlib.sha256(one.firm.encode()).digest())[:MOST_FIRMS]
        if not firms:
            return default
        for one in firms:
            if (one.first_week, one.n_weeks) != (firms[0].first_week, firms[0].n_weeks):
                raise BadFirmData(
                    one.firm,
                    f"its series has {one.n_weeks} weeks from {one.first_week}, that of {firms[0].firm!r} has "
                    f"{firms[0].n_weeks} from {firms[0].first_week}: make the series of both again",
                )
        with one_thread():
            common = default.hyperparameters()
            taught = batches(firms, default.step_variance())
            learn_common(taught, common, default.hyperparameters(), LEARNING_STEPS, progress)
        return cls(group=group, country=country, **common.numbers(), firms=len(firms))

    def hyperparameters(self) -> Hyperparameters:
        sd = np.array([DEFAULT_SD[self.group][part] for part in ("trend", "calendar")])
        unit = 3 * np.repeat(sd, [1, len(self.weight)], axis=0)
        return Hyperparameters.of({name: getattr(self, name) for name in ARRAYS}, unit)

    def step_variance(self) -> Floats:
        """[D] variance of a week's random step at a scale of one."""
        _, _, walk, brief, white = self.sd**2
        return np.asarray(walk + 2 * (brief * (1 - np.exp(-1 / self.memory)) + white))

    def frame(self) -> pd.DataFrame:
        """One row for each number; `from_frame` reads it back."""
        names = regressor_names(self.country)
        rows: list[tuple[str, str, str, float]] = []
        for d, series in enumerate(GROUPS[self.group]):
            rows += [(series, "sd", part, self.sd[k, d]) for k, part in enumerate((*COMPONENTS, "white"))]
            rows += [(series, "shared", part, self.shared[k, d]) for k, part in enumerate(COMPONENTS)]
            rows += [(series, "mean", part, self.mean[k, d]) for k, part in enumerate(("trend", *names))]
        rows += [("", "memory", "brief", self.memory[0])]
        rows += [("", "weight", part, self.weight[k]) for k, part in enumerate(names)]
        frame = pd.DataFrame(rows, columns=["series", "parameter", "part", "value"])
        frame.insert(0, "scope", self.group)
        return frame.assign(firms=self.firms)

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, group: str, country: str) -> Self:
        own = frame[frame["scope"] == group]
        keys = zip(own["series"], own["parameter"], own["part"], strict=True)
        number = dict(zip(keys, own["value"].astype(float), strict=True))
        names = regressor_names(country)

        def table(parameter: str, parts: tuple[str, ...]) -> Floats:
            return np.array([[number[series, parameter, part] for series in GROUPS[group]] for part in parts])

        return cls(
            group=group,
            country=country,
            sd=table("sd", (*COMPONENTS, "white")),
            shared=table("shared", COMPONENTS),
            memory=np.array([number["", "memory", "brief"]]),
            weight=np.array([number["", "weight", name] for name in names]),
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
