"""Windows as tensors, built once and cut into batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
    """B windows for each of G networks, or B that all networks share (G = 1).

    Week τ of a window carries the outcomes of τ and the covariates of τ + 1, which are known at τ: so the
    last week brings the target week's season, holidays and tenure.
    """

    numeric: Tensor
    """[C, G, B, L] the network's K outcomes first, then flags and cohort covariates."""
    first_week: Tensor
    """[G, B] index of the window's first week in `week_covariates` and `week_of_year`; its other weeks follow."""
    week_covariates: Tensor
    """[U, C]"""
    week_of_year: Tensor
    """[U]"""
    month: Tensor
    """[G, B]"""
    cohort: Tensor
    """[G, B]"""

    def __len__(self) -> int:
        return self.cohort.numel()

    @classmethod
    def of(cls, windows: Windows, outcomes: tuple[str, ...]) -> Self:
        columns = [OUTCOMES.index(name) for name in outcomes]
        # Trend and tenure are capped at the largest values seen in training: extrapolated for a year, a network's
        # curvature diverges.
        covariates = np.minimum(windows.covariates, 1.0)
        numeric = np.concatenate(
            [windows.outcomes[..., columns], windows.flags, covariates[:, 1:, :_COHORT]], axis=-1
        )
        numeric = np.ascontiguousarray(np.moveaxis(numeric, -1, 0))[:, None]
        # Windows of one target week share their weeks, so these are taken from one of them.
        target, sample = np.unique(windows.week, return_index=True)
        weeks = np.unique(target[:, None] + np.arange(1 - LOOKBACK, 1))
        latest = np.searchsorted(target, weeks)
        lag = LOOKBACK - (target[latest] - weeks)
        return cls(
            numeric=torch.from_numpy(numeric),
            first_week=torch.from_numpy(np.searchsorted(weeks, windows.week + 1 - LOOKBACK)[None]),
            week_covariates=torch.from_numpy(covariates[sample[latest], lag, _COHORT:]),
            week_of_year=torch.from_numpy(windows.week_of_year[sample[latest], lag]),
            month=torch.from_numpy(windows.month[None]),
            cohort=torch.from_numpy(windows.cohort[None]),
        )

    @classmethod
    def together(cls, batches: Sequence[Batch]) -> Batch:
        """The windows of several batches of the same weeks, one after the other."""
        first = batches[0]
        if len(batches) == 1:
            return first
        return replace(
            first,
            numeric=torch.cat([b.numeric for b in batches], 2),
            first_week=torch.cat([b.first_week for b in batches], 1),
            month=torch.cat([b.month for b in batches], 1),
            cohort=torch.cat([b.cohort for b in batches], 1),
        )

    def take(self, rows: Tensor, cohort: Tensor) -> Batch:
        """The windows `rows` [G, B], with these cohort ids."""
        numeric = self.numeric.flatten(1, 2).index_select(1, rows.flatten())
        return replace(
            self,
            numeric=numeric.view(len(numeric), *rows.shape, -1),
            first_week=self.first_week[0][rows],
            month=self.month[0][rows],
            cohort=cohort,
        )
