"""Windows as tensors, built once and cut into batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from torch import Tensor

from cbmt_core.models.sequence import LOOKBACK, OUTCOMES, Windows
from cbmt_core.models.sequence.windows import COHORT_COVARIATES

__all__ = ["Batch"]

_COHORT = len(COHORT_COVARIATES)


@dataclass(frozen=True, eq=False)
class Batch:
    """B windows. Week τ of a window carries the outcomes of τ and the covariates of τ + 1, which are
    known at τ: so the last week brings the target week's season, holidays and tenure."""

    numeric: Tensor
    """[B, 20, C] outcomes, flags, cohort covariates."""
    history: Tensor
    """[K, B, 20] the outcomes once more, one after the other, for the heads."""
    week: Tensor
    """[B, 20] index into the next two."""
    week_covariates: Tensor
    """[U, C]"""
    week_of_year: Tensor
    """[U]"""
    month: Tensor
    """[B]"""
    cohort: Tensor
    """[B]"""

    def __len__(self) -> int:
        return len(self.cohort)

    @classmethod
    def of(cls, windows: Windows, outcomes: tuple[str, ...]) -> Self:
        columns = [OUTCOMES.index(name) for name in outcomes]
        seen = windows.outcomes[..., columns]
        # A trend or tenure beyond all that training saw is taken as the longest it saw: a network that
        # extrapolates its own curvature for a year walks away.
        covariates = np.minimum(windows.covariates, 1.0)
        numeric = np.concatenate([seen, windows.flags, covariates[:, 1:, :_COHORT]], axis=-1)
        weeks = windows.week[:, None] + np.arange(1 - LOOKBACK, 1)
        _, first, position = np.unique(weeks, return_index=True, return_inverse=True)
        sample, lag = np.divmod(first, LOOKBACK)
        return cls(
            numeric=torch.from_numpy(numeric),
            history=torch.from_numpy(np.ascontiguousarray(np.moveaxis(seen, -1, 0))),
            week=torch.from_numpy(position.reshape(weeks.shape)),
            week_covariates=torch.from_numpy(covariates[sample, lag + 1, _COHORT:]),
            week_of_year=torch.from_numpy(windows.week_of_year[sample, lag + 1]),
            month=torch.from_numpy(windows.month),
            cohort=torch.from_numpy(windows.cohort),
        )

    def take(self, rows: Tensor, cohort: Tensor | None = None) -> Batch:
        """The windows `rows`, with other cohort ids if given."""
        return Batch(
            numeric=self.numeric[rows],
            history=self.history[:, rows],
            week=self.week[rows],
            week_covariates=self.week_covariates,
            week_of_year=self.week_of_year,
            month=self.month[rows],
            cohort=self.cohort[rows] if cohort is None else cohort,
        )
