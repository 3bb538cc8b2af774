"""The network as a function of its parameters: shared backbone, one head for each outcome."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import torch
from torch import Tensor

from cbmt_core.models.neural.batch import Batch
from cbmt_core.models.neural.config import NetworkConfig
from cbmt_core.models.neural.decoder import decoder
from cbmt_core.models.neural.encoder import encoder_layer
from cbmt_core.models.neural.heads import heads, linear_heads
from cbmt_core.models.neural.lstm import lstm
from cbmt_core.models.neural.parts import Gradients, Mask, Parameters, Pullback
from cbmt_core.models.neural.tokens import tokens
from cbmt_core.models.sequence.windows import N_MONTHS, N_WEEKS_OF_YEAR

__all__ = ["RECENT", "Dimensions", "Network", "positions"]

_SILENT = ("head.third", "head.only")
"""Matrices that start at zero."""
RECENT = 13
"""Initially a head forecasts the mean of this many last weeks of its outcome."""
SEASON = 0.7
"""Amplitude of the first wave of the year in the embedding of its weeks, before training."""


@dataclass(frozen=True)
class Dimensions:
    """Sizes that follow from the data."""

    numeric: int
    """Outcomes, flags and cohort covariates of a week."""
    week_covariates: int
    n_ids: int


def positions(length: int, width: int) -> Tensor:
    """[length, width] sinusoidal encodings."""
    at = torch.arange(length, dtype=torch.float32)[:, None]
    rate = torch.exp(torch.arange(0, width, 2) * (-math.log(10_000.0) / width))
    waves = torch.zeros(length, width)
    waves[:, 0::2], waves[:, 1::2] = torch.sin(at * rate), torch.cos(at * rate)[:, : width // 2]
    return waves


def _nothing_dropped(_: torch.Size) -> None:
    return None


class Network:
    """Shapes, initial values, the forward pass and its pullback. The parameters themselves live elsewhere:
    in one flat vector a network, so that an optimiser step is a handful of operations, and those of G
    networks of the same shapes are stacked, so that they are computed side by side."""

    def __init__(self, config: NetworkConfig, dimensions: Dimensions) -> None:
        self.config, self.dimensions = config, dimensions
        self.positions = positions(config.lookback, config.width)
        self.shapes = _shapes(config, dimensions)
        self.sizes = [math.prod(shape) for shape in self.shapes.values()]

    def values(self) -> dict[str, Any]:
        """JSON-ready; `from_values` reads it back."""
        return {"config": self.config.values(), "dimensions": asdict(self.dimensions)}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        return cls(NetworkConfig.from_values(values["config"]), Dimensions(**values["dimensions"]))

    def initial(self, generator: torch.Generator) -> Tensor:
        """A flat vector of fresh parameters."""
        parts = []
        for name, shape in self.shapes.items():
            if name == "head.only_bias":
                value = torch.full(shape, 0.5)  # the middle of the range
            elif name.endswith("bias") or name in _SILENT:
                value = torch.zeros(shape)
            elif name == "head.shortcut":
                value = torch.zeros(shape)
                value[..., -RECENT:] = 1.0 / min(RECENT, shape[-1])  # a forecast that does not drift
            elif name == "entity.week":
                value = 0.1 * torch.randn(shape, generator=generator) + _harmonics(*shape)
            elif name.startswith("entity."):
                value = 0.3 * torch.randn(shape, generator=generator)
            else:
                reach = math.sqrt(6.0 / sum(self._fans(name)))
                value = reach * (2 * torch.rand(shape, generator=generator) - 1)
            parts.append(value.reshape(-1))
        return torch.cat(parts)

    def _fans(self, name: str) -> tuple[int, int]:
        *_, out, into = self.shapes[name]
        if name.endswith("qkv"):
            return into, into
        if name in ("head.first", "head.history"):  # two halves of one matrix
            return self.config.width + self.config.lookback, out
        return into, out

    def named(self, flat: Tensor) -> dict[str, Tensor]:
        """One flat vector, or G of them, as named views [G, …]."""
        stacked = flat if flat.ndim == 2 else flat[None]
        parts = torch.split(stacked, self.sizes, 1)
        return {
            name: part.view(len(stacked), *shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def by_part(self, backbone: float, heads: float, *, aov_head: float | None = None) -> Tensor:
        """A flat vector with one value for the backbone and one for the heads, and optionally another for the AOV
        head."""
        parts = []
        for name, shape in self.shapes.items():
            value = torch.full(shape, heads if name.startswith("head.") else backbone)
            if name.startswith("head.") and aov_head is not None and "V" in self.config.outcomes:
                value[self.config.outcomes.index("V")] = aov_head
            parts.append(value.reshape(-1))
        return torch.cat(parts)

    def moved(self, flat: Tensor, start: Tensor) -> float:
        """How far the backbone moved from its initial values, as a share of their norm."""
        backbone = self.by_part(1.0, 0.0)
        return float(((flat - start) * backbone).norm() / (start * backbone).norm())

    def decayed(self) -> Tensor:
        """1 where weight decay applies: everything but biases and the shortcut, whose initial values should be
        kept."""
        return torch.cat(
            [
                torch.full((size,), float(not name.endswith("bias") and name != "head.shortcut"))
                for name, size in zip(self.shapes, self.sizes, strict=True)
            ]
        )

    def __call__(self, flat: Tensor, batch: Batch) -> Tensor:
        """[B, K] scaled forecasts of a network, or [G, B, K] of networks side by side."""
        value = self.forward(self.named(flat), batch)[0].transpose(1, 2)
        return value if flat.ndim == 2 else value[0]

    def forward(
        self, p: Parameters, batch: Batch, mask: Mask = _nothing_dropped
    ) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """[G, K, B] scaled forecasts, and their pullback to the gradient of the parameters, [G, P]."""
        c = self.config
        x, note_tokens = tokens(p, batch, self.positions.to(batch.numeric.dtype))
        dropped = mask(x.shape)
        if dropped is not None:
            x.mul_(dropped)
        backs: list[Pullback] = []
        if c.backbone == "lstm":
            x, back = lstm(x, p, c.encoder_layers, c.lookback)
            backs.append(back)
        else:
            for k in range(c.encoder_layers):
                x, back = encoder_layer(x, p, f"encoder{k}", c.lookback, c.heads, mask)
                backs.append(back)
            x, back = decoder(x, p, c.decoder_layers, c.lookback, c.heads, mask)
            backs.append(back)
        hidden = mask(x.shape)
        shared = x if hidden is None else x * hidden
        if c.linear_heads:
            value, head_back = linear_heads(shared, p)
        else:
            history = batch.numeric[: len(c.outcomes)].transpose(0, 1).expand(len(x), -1, -1, -1)
            value, head_back = heads(shared, history, p)

        def pull(grad: Tensor) -> Tensor:
            g: Gradients = {}
            dx = head_back(grad, g)
            if hidden is not None:
                dx.mul_(hidden)
            for back in reversed(backs):
                dx = back(dx, g)
            if dropped is not None:
                dx.mul_(dropped)
            note_tokens(dx, g)
            return torch.cat([g[name].reshape(len(grad), -1) for name in self.shapes], 1)

        return value, pull


def _shapes(config: NetworkConfig, dimensions: Dimensions) -> dict[str, tuple[int, ...]]:
    d, f, K, w = config.width, config.feed_forward, len(config.outcomes), config.head_width
    entities = {"week": N_WEEKS_OF_YEAR, "month": N_MONTHS, "cohort": dimensions.n_ids}
    shapes: dict[str, tuple[int, ...]] = {
        "input.numeric": (d, dimensions.numeric),
        "input.covariates": (dimensions.week_covariates, d),
        "input.bias": (1, d),
    }
    for name, levels in entities.items():
        width = max(1, round(math.sqrt(levels)))
        shapes |= {f"entity.{name}": (levels, width), f"input.{name}": (width, d)}

    def affine(name: str, out: int, into: int, heads: tuple[int, ...] = ()) -> None:
        shapes.update({name: (*heads, out, into), f"{name}_bias": (*heads, out, 1)})

    for k in range(config.encoder_layers):
        if config.backbone == "lstm":
            affine(f"lstm{k}.input", 4 * d, d)
            shapes[f"lstm{k}.state"] = (4 * d, d)
        else:
            affine(f"encoder{k}.qkv", 3 * d, d)
            affine(f"encoder{k}.out", d, d)
            affine(f"encoder{k}.up", f, d)
            affine(f"encoder{k}.down", d, f)
    for k in range(config.decoder_layers if config.backbone == "transformer" else 0):
        affine(f"decoder{k}.self", d, d)
        affine(f"decoder{k}.query", d, d)
        shapes |= {f"decoder{k}.key": (d, d), f"decoder{k}.value": (d, d)}
        affine(f"decoder{k}.out", d, d)
        affine(f"decoder{k}.up", f, d)
        affine(f"decoder{k}.down", d, f)
    if config.linear_heads:
        affine("head.only", 1, d, (K,))
    else:
        affine("head.first", w, d, (K,))
        affine("head.second", w, w, (K,))
        affine("head.third", 1, w, (K,))
        shapes |= {"head.history": (K, w, config.lookback), "head.shortcut": (K, 1, config.lookback)}
    return shapes


def _harmonics(levels: int, width: int) -> Tensor:
    """Waves of one, two, three ... cycles a year: neighbouring weeks start with similar vectors, which trains
    faster than 52 unrelated ones."""
    turn = 2 * math.pi * torch.arange(levels) / levels
    waves = [
        torch.cos(k * turn) if first else torch.sin(k * turn) for k in range(1, width) for first in (1, 0)
    ]
    scale = torch.tensor([SEASON / math.sqrt(k) for k in range(1, width) for _ in (1, 0)])
    return (torch.stack(waves, 1) * scale)[:, :width] if width > 1 else torch.zeros(levels, width)
