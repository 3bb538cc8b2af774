"""The objective: one squared error for each outcome, and the revenue alignment."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cbmt_core.models.neural.config import LossWeights
from cbmt_core.models.sequence import Scaling

__all__ = ["Objective"]


@dataclass(frozen=True, eq=False)
class Objective:
    """Σ ω_k L_k + ω_C L_C (Web App. "Objective Function and Optimization Details")."""

    outcomes: tuple[str, ...]
    weights: Tensor
    """[K] ω"""
    alignment: float
    """ω_C"""
    low: Tensor
    span: Tensor
    """[K] of the outcomes' scaling."""
    sales_span: float
    observed_size: bool = False
    """Whether the alignment takes the observed size of a cohort already born, instead of the acquisition
    forecast for the target week: the exact identity, where the paper has a looser link."""

    @classmethod
    def of(
        cls,
        outcomes: tuple[str, ...],
        weights: LossWeights,
        scaling: Scaling,
        *,
        observed_size: bool = False,
    ) -> Objective:
        return cls(
            outcomes=outcomes,
            weights=torch.tensor(weights.of(outcomes), dtype=torch.float32),
            alignment=weights.C if {"A", "R", "V"} <= set(outcomes) else 0.0,
            low=torch.tensor([scaling.low[k] for k in outcomes]),
            span=torch.tensor([scaling.span[k] for k in outcomes]),
            sales_span=scaling.span["Y"],
            observed_size=observed_size,
        )

    def __call__(
        self,
        predicted: Tensor,
        target: Tensor,
        known: Tensor,
        is_birth: Tensor,
        size: Tensor,
        sales: Tensor,
    ) -> Tensor:
        """Mean over the batch. `known` is 0 where a target carries no loss; `size` and `sales` are the
        cohort's, in original units."""
        error = (predicted - target) * known
        total = (error * error).mean(0) @ self.weights
        if self.alignment:
            missed = (self.implied_sales(predicted, is_birth, size) - sales) * (1.0 / self.sales_span)
            total = total + self.alignment * (missed * missed).mean()
        return total

    def implied_sales(self, predicted: Tensor, is_birth: Tensor, size: Tensor) -> Tensor:
        """Ŷ^aux = Â (1[birth] + R̂) V̂ in original units (Web App. "Auxiliary revenue-alignment regularizer").

        Only the span of s_Y matters to L_C: its low cancels in the difference.
        """
        drivers = predicted * self.span + self.low
        a, r, v = (drivers[:, self.outcomes.index(k)] for k in "ARV")
        if self.observed_size:
            a = torch.where(is_birth > 0, a, size)
        return a * (is_birth + r) * v
