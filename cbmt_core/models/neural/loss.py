"""The objective: one squared error for each outcome, and the revenue alignment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from cbmt_core.models.neural.config import LossWeights
from cbmt_core.models.sequence import Scaling

__all__ = ["Objective", "Truth"]


@dataclass(frozen=True, eq=False)
class Truth:
    """Targets of n windows."""

    targets: Tensor
    """[K, n] scaled."""
    known: Tensor
    """[K, n] 1, or 0 where the target carries no loss."""
    is_birth: Tensor
    """[n]"""
    sales: Tensor
    """[n] of the cohort in the target week, original units."""

    @classmethod
    def together(cls, parts: Sequence[Truth]) -> Truth:
        """Several sets of windows, one after the other."""
        return cls(*(torch.cat([getattr(t, f.name) for t in parts], -1) for f in fields(cls)))

    def take(self, rows: Tensor) -> Truth:
        """The windows `rows`, an index of any shape that takes the place of n."""
        return Truth(
            self.targets[:, rows],
            self.known[:, rows],
            self.is_birth[rows],
            self.sales[rows],
        )


@dataclass(frozen=True, eq=False)
class Objective:
    """Σ ω_k L_k + ω_C L_C (Web App. "Objective Function and Optimization Details") of G networks."""

    outcomes: tuple[str, ...]
    weights: Tensor
    """[K, G, 1] ω"""
    alignment: Tensor
    """[G, 1] ω_C"""
    aligned: bool
    """Whether there is any alignment: it takes all three drivers from one network."""
    low: tuple[float, ...]
    span: tuple[float, ...]
    """Of the outcomes: original units = low + span · scaled."""
    sales_span: float

    @classmethod
    def of(
        cls, outcomes: Sequence[tuple[str, ...]], weights: Sequence[LossWeights], scaling: Scaling
    ) -> Objective:
        """The objective of networks with these outcomes and weights."""
        each = [w.of(names) for names, w in zip(outcomes, weights, strict=True)]
        joint = all({"A", "R", "V"} <= set(names) for names in outcomes)
        return cls(
            outcomes=outcomes[0],
            weights=torch.tensor(each, dtype=torch.float32).t()[..., None],
            alignment=torch.tensor([[w.C] for w in weights], dtype=torch.float32),
            aligned=joint and any(w.C for w in weights),
            low=tuple(scaling.low[name] for name in outcomes[0]),
            span=tuple(scaling.span[name] for name in outcomes[0]),
            sales_span=scaling.span["Y"],
        )

    def __call__(self, predicted: Tensor, truth: Truth) -> tuple[Tensor, Tensor]:
        """[G] losses, each the mean over its B windows, and their gradient with respect to the forecasts
        [K, G, B]."""
        B = predicted.shape[-1]
        error = (predicted - truth.targets) * truth.known
        gradient = error * self.weights * (2.0 / B)
        loss = 0.5 * (error * gradient).sum((0, 2))
        if self.aligned:
            a, r, v = map(self.outcomes.index, "ARV")
            acquired, orders, value = self._drivers(predicted, truth)
            missed = (acquired * orders * value - truth.sales) * (1.0 / self.sales_span)
            pull = missed * self.alignment * (2.0 / B)
            loss = loss + 0.5 * (missed * pull).sum(1)
            pull = pull * (1.0 / self.sales_span)
            gradient[a] += pull * orders * value * self.span[a]
            gradient[r] += pull * acquired * value * self.span[r]
            gradient[v] += pull * acquired * orders * self.span[v]
        return loss, gradient

    def implied_sales(self, predicted: Tensor, truth: Truth) -> Tensor:
        """Ŷ^aux = Â (1[birth] + R̂) V̂ in original units (Web App. Equation `wa_aux_sales`).

        Â is the forecast of the week's acquisition, whatever the cohort's age, so this is no cohort's sales but
        links the sizes of the drivers. L_C uses only the span of s_Y: its low cancels in the difference. Training
        also needs the drivers separately; this function is the equation alone, for tests.
        """
        acquired, orders, value = self._drivers(predicted, truth)
        return acquired * orders * value

    def _drivers(self, predicted: Tensor, truth: Truth) -> tuple[Tensor, Tensor, Tensor]:
        """Customers acquired in the week, orders of each, value of an order."""
        a, r, v = (self.low[k] + self.span[k] * predicted[k] for k in map(self.outcomes.index, "ARV"))
        return a, truth.is_birth + r, v
