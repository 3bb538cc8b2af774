"""Cheap dropout masks: each network has one long random strip, and a mask is a slice of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = ["Dropout"]

STRIP = 8
"""Length of a strip, in masks."""
STEP = 16
"""Slices begin at multiples of it, for aligned memory."""
GOLDEN = 0.6180339887498949
"""Multiples of the golden ratio modulo 1 are spread as evenly as possible, so successive slices lie far apart."""


class Dropout:
    """Masks of networks side by side. The strip is drawn from the network's own generator; offsets are the same for
    all networks, so that a network trains the same alone and together with others."""

    def __init__(self, rates: Sequence[float], generators: Sequence[torch.Generator], largest: int) -> None:
        self.on, self.cuts = any(rates), 0
        if self.on:
            self.strips = torch.stack([_strip(r, g, largest) for r, g in zip(rates, generators, strict=True)])

    def mask(self, shape: torch.Size) -> Tensor | None:
        if not self.on:
            return None
        self.cuts += 1
        count = math.prod(shape[1:])
        room = (self.strips.shape[1] - count) // STEP
        return self.strips.narrow(1, STEP * int(self.cuts * GOLDEN % 1.0 * room), count).view(shape)


def _strip(rate: float, generator: torch.Generator, largest: int) -> Tensor:
    # One random byte an entry, eight at a time: rates are in steps of 1/256.
    words = torch.empty(STRIP * largest // 8, dtype=torch.int64)
    words.random_(-(2**63), None, generator=generator)
    cut = round(256 * rate)
    return (words.view(torch.uint8) >= cut).to(torch.float32).mul_(256 / (256 - cut))
