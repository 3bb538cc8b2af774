"""PathPriors: the priors of all groups of series, learned from the weeks of all firms."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import pandas as pd

from cbmt_core.models.plus.paths import CLEAR, learn_prior
from cbmt_core.models.plus.prior import PathPrior
from cbmt_core.models.plus.series import GROUPS, WeeklySeries, series_from_frame

__all__ = ["PathPriors", "is_clear", "learn_priors"]


@dataclass(frozen=True, eq=False)
class PathPriors:
    groups: dict[str, PathPrior]

    @classmethod
    def of_one(cls, series: Mapping[str, WeeklySeries], country: str) -> Self:
        """Those of a firm by itself, from its series of each group: the usual ones, as far as it says otherwise."""
        return cls(
            {group: learn_prior([one], PathPrior.usual(group, country)) for group, one in series.items()}
        )

    @property
    def firms(self) -> int:
        return min(prior.firms for prior in self.groups.values())

    def frame(self) -> pd.DataFrame:
        """One row for each number; `from_frame` reads it back."""
        return pd.concat([prior.frame() for prior in self.groups.values()], ignore_index=True)

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, country: str) -> Self:
        return cls({group: PathPrior.from_frame(frame, group, country) for group in GROUPS})


def is_clear(series: pd.DataFrame) -> bool:
    """Whether a firm's `weekly_series` show its moves above the noise of counting few orders, in every group."""
    means = [series.loc[series["series"].isin(names), "noise"].mean() for names in GROUPS.values()]
    return bool(all(mean <= CLEAR for mean in means))


def learn_priors(
    series: pd.DataFrame, country: str, progress: Callable[[int, int], None] | None = None
) -> PathPriors:
    """From the weekly series of any number of firms (`SERIES_COLUMNS`), in any order."""
    made = {}
    for k, group in enumerate(GROUPS):

        def tell(step: int, steps: int, before: int = k) -> None:
            if progress is not None:
                progress(before * steps + step, len(GROUPS) * steps)

        firms = series_from_frame(series, group, country)
        made[group] = learn_prior(firms, PathPrior.usual(group, country), tell)
    return PathPriors(made)
