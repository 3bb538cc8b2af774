"""Dropout masks that cost nothing: each network has a long strip of random zeros, a mask is a cut of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

__all__ = ["Dropout"]

STRIP = 8
"""Length of a strip, in masks."""
STEP = 16
"""Cuts begin at multiples of it, where memory is aligned."""


class Dropout:
    """Masks of networks side by side. The strip is the network's own, drawn from its generator; where to cut
    is the same for all, so that a network learns the same alone and among others."""

    def __init__(self, rates: Sequence[float], generators: Sequence[torch.Generator], largest: int) -> None:
        self.on = any(rates)
        self.largest = largest
        self.cuts = np.random.default_rng(0)
        if self.on:
            self.strips = torch.stack([_strip(r, g, largest) for r, g in zip(rates, generators, strict=True)])

    def mask(self, shape: torch.Size) -> Tensor | None:
        if not self.on:
            return None
        count = shape[1:].numel()
        start = STEP * int(self.cuts.integers((self.strips.shape[1] - count) // STEP + 1))
        return self.strips[:, start : start + count].view(shape)


def _strip(rate: float, generator: torch.Generator, largest: int) -> Tensor:
    # One random byte an entry, eight at a time: rates are in steps of 1/256.
    words = torch.empty(STRIP * largest // 8, dtype=torch.int64)
    words.random_(-(2**63), None, generator=generator)
    cut = round(256 * rate)
    return (words.view(torch.uint8) >= cut).to(torch.float32).mul_(256 / (256 - cut))
