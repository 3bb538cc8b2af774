"""AdamW over flat vectors of parameters, one for each network."""

from __future__ import annotations

import math

import torch
from torch import Tensor

__all__ = ["AdamW"]

EPSILON = 1e-8


class AdamW:
    """Decoupled weight decay (Loshchilov & Hutter 2019, Algorithm 2); [G, P] parameters, each with a rate and
    a decay of its own."""

    def __init__(
        self, flat: Tensor, rate: Tensor, decay: Tensor, betas: tuple[float, float] = (0.9, 0.98)
    ) -> None:
        self.flat, self.rate, self.shrink, self.betas = flat, rate, rate * decay, betas
        self.mean, self.square, self.t = torch.zeros_like(flat), torch.zeros_like(flat), 0

    def step(self, gradient: Tensor, rate: float, clip: float) -> None:
        """`rate` multiplies the parameters' own; the gradient is clipped in place, network by network."""
        for own, norm in zip(gradient, gradient.norm(dim=1).tolist(), strict=True):
            if not math.isfinite(norm):
                own.zero_()  # skip one step rather than lose all parameters
            elif norm > clip:
                own.mul_(clip / norm)
        self.t += 1
        b1, b2 = self.betas
        self.mean.lerp_(gradient, 1 - b1)
        self.square.mul_(b2).addcmul_(gradient, gradient, value=1 - b2)
        scale = self.square.sqrt().mul_(1 / math.sqrt(1 - b2**self.t)).add_(EPSILON)
        self.flat.addcmul_(self.flat, self.shrink, value=-rate)
        self.flat.addcmul_(self.rate, self.mean / scale, value=-rate / (1 - b1**self.t))
