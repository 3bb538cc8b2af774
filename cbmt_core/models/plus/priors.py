"""PathPriors: the priors of all groups of series."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import pandas as pd

from cbmt_core.models.plus.prior import MOST_NOISE, PathPrior
from cbmt_core.models.plus.series import GROUPS, WeeklySeries, series_from_frame

__all__ = ["PathPriors", "is_clear", "learn_priors"]


@dataclass(frozen=True, eq=False)
class PathPriors:
    """A prior for each group of series."""

    groups: dict[str, PathPrior]

    @classmethod
    def default(cls, country: str) -> Self:
        """The priors before any firm is seen."""
        return cls({group: PathPrior.default(group, country) for group in GROUPS})

    @classmethod
    def of_one(cls, series: Mapping[str, WeeklySeries], country: str) -> Self:
        """The priors learned from one firm's own series of each group."""
        return cls({group: PathPrior.learned([one], group, country) for group, one in series.items()})

    @property
    def firms(self) -> int:
        """Firms they were learned from; 0: the defaults."""
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
    return bool(all(mean <= MOST_NOISE for mean in means))


def learn_priors(
    series: pd.DataFrame, country: str, progress: Callable[[int, int], None] | None = None
) -> PathPriors:
    """The priors learned from the weekly series of any number of firms.

    Args:
        series: rows of `SERIES_COLUMNS`, in any order.
        country: of the holiday calendar.
        progress: called with the steps done and the steps to do.
    """
    groups = {}
    for k, group in enumerate(GROUPS):

        def report(step: int, steps: int, before: int = k) -> None:
            if progress is not None:
                progress(before * steps + step, len(GROUPS) * steps)

        firms = series_from_frame(series, group, country)
        groups[group] = PathPrior.learned(firms, group, country, report)
    return PathPriors(groups)
