"""The network as a pure function of its parameters: shared backbone, one head for each outcome."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import functional

from cbmt_core.models.neural.batch import Batch
from cbmt_core.models.neural.config import NetworkConfig
from cbmt_core.models.neural.encoder import encoder_layer, norm
from cbmt_core.models.sequence.windows import N_MONTHS, N_WEEKS_OF_YEAR

__all__ = ["Dimensions", "Network", "Parameters", "positions"]

Parameters = Mapping[str, Tensor]

SHORTCUT_WEEKS = 13
"""The shortcut of a head starts as the mean of this many last weeks."""


@dataclass(frozen=True)
class Dimensions:
    """What the data dictate."""

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


def _entity_width(levels: int) -> int:
    return max(1, round(math.sqrt(levels)))


class Network:
    """Shapes, initial values and the forward pass. The parameters themselves live elsewhere: in one
    flat vector, so that an optimiser step is a handful of operations."""

    def __init__(self, config: NetworkConfig, dimensions: Dimensions) -> None:
        self.config, self.dimensions = config, dimensions
        self.positions = positions(config.lookback, config.width)
        d, f, K, w = config.width, config.feed_forward, len(config.outcomes), config.head_width
        entities = {"week": N_WEEKS_OF_YEAR, "month": N_MONTHS, "cohort": dimensions.n_ids}
        self.shapes: dict[str, tuple[int, ...]] = {
            "input.numeric": (dimensions.numeric, d),
            "input.covariates": (dimensions.week_covariates, d),
            "input.bias": (d,),
        }
        for name, levels in entities.items():
            self.shapes[f"entity.{name}"] = (levels, _entity_width(levels))
            self.shapes[f"input.{name}"] = (_entity_width(levels), d)
        if config.backbone == "lstm":
            for k in range(config.encoder_layers):
                self.shapes |= {f"lstm{k}.input": (4 * d, d), f"lstm{k}.state": (4 * d, d)}
                self.shapes |= {f"lstm{k}.input_bias": (4 * d,), f"lstm{k}.state_bias": (4 * d,)}
        else:
            for k in range(config.encoder_layers):
                self.shapes |= {
                    f"encoder{k}.qkv": (3 * d, d),
                    f"encoder{k}.qkv_bias": (3 * d,),
                    f"encoder{k}.out": (d, d),
                    f"encoder{k}.out_bias": (d,),
                    f"encoder{k}.up": (f, d),
                    f"encoder{k}.up_bias": (f,),
                    f"encoder{k}.down": (d, f),
                    f"encoder{k}.down_bias": (d,),
                }
            for k in range(config.decoder_layers):
                self.shapes |= {
                    f"decoder{k}.self": (d, d),
                    f"decoder{k}.self_bias": (d,),
                    f"decoder{k}.query": (d, d),
                    f"decoder{k}.query_bias": (d,),
                    f"decoder{k}.key": (d, d),
                    f"decoder{k}.value": (d, d),
                    f"decoder{k}.out": (d, d),
                    f"decoder{k}.out_bias": (d,),
                    f"decoder{k}.up": (d, f),
                    f"decoder{k}.up_bias": (f,),
                    f"decoder{k}.down": (f, d),
                    f"decoder{k}.down_bias": (d,),
                }
        if config.linear_heads:
            self.shapes |= {"head.only": (K, d, 1), "head.only_bias": (K, 1, 1)}
        else:
            self.shapes |= {
                "head.first": (K, d + config.lookback, w),
                "head.first_bias": (K, 1, w),
                "head.second": (K, w, w),
                "head.second_bias": (K, 1, w),
                "head.third": (K, w, 1),
                "head.third_bias": (K, 1, 1),
                "head.shortcut": (K, config.lookback, 1),
            }
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
            elif name.endswith("bias") or name in ("head.third", "head.only"):
                value = torch.zeros(shape)  # every head starts as its shortcut
            elif name == "head.shortcut":
                value = torch.zeros(shape)
                value[:, -SHORTCUT_WEEKS:] = self.config.shortcut / SHORTCUT_WEEKS
            elif name.startswith("entity."):
                value = 0.3 * torch.randn(shape, generator=generator)
            else:
                fan_in, fan_out = _fans(name, shape)
                reach = math.sqrt(6.0 / (fan_in + fan_out))
                value = reach * (2 * torch.rand(shape, generator=generator) - 1)
            parts.append(value.reshape(-1))
        return torch.cat(parts)

    def named(self, flat: Tensor) -> dict[str, Tensor]:
        """The flat vector as named views."""
        parts = torch.split(flat, self.sizes)
        return {
            name: part.view(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def by_part(self, backbone: float, heads: float, aov_head: float | None = None) -> Tensor:
        """A flat vector that holds one value for the backbone, one for the heads, one for the AOV head."""
        parts = []
        for name, shape in self.shapes.items():
            value = torch.full(shape, heads if name.startswith("head.") else backbone)
            if name.startswith("head.") and aov_head is not None and "V" in self.config.outcomes:
                value[self.config.outcomes.index("V")] = aov_head
            parts.append(value.reshape(-1))
        return torch.cat(parts)

    def decayed(self) -> Tensor:
        """1 where weight decay applies: matrices; the shortcut decays towards where it starts."""
        return torch.cat(
            [
                torch.full((size,), float(not name.endswith("bias") and name != "head.shortcut"))
                for name, size in zip(self.shapes, self.sizes, strict=True)
            ]
        )

    def __call__(self, p: Parameters, batch: Batch, generator: torch.Generator | None = None) -> Tensor:
        """[B, K] scaled forecasts. With a generator dropout is on."""
        drop = _Dropout(self.config.dropout, generator)
        tokens = drop(self._tokens(p, batch))
        recurrent = self.config.backbone == "lstm"
        shared = self._recurrent(p, tokens) if recurrent else self._attentive(p, tokens, drop)
        return self._heads(p, drop(shared), batch)

    def _tokens(self, p: Parameters, batch: Batch) -> Tensor:
        """[B, 20, d]: scaled numbers and embedded entities, projected and positioned.

        Concatenating embeddings and projecting them is the same as adding their projections; the
        projections of weeks and of cohorts are made once for each, not once for each window.
        """
        weeks = batch.week_covariates @ p["input.covariates"] + p["input.bias"]
        weeks = weeks + (p["entity.week"] @ p["input.week"])[batch.week_of_year]
        cohorts = functional.embedding(batch.cohort, p["entity.cohort"] @ p["input.cohort"])
        cohorts = cohorts + functional.embedding(batch.month, p["entity.month"] @ p["input.month"])
        tokens = batch.numeric @ p["input.numeric"]
        return tokens + functional.embedding(batch.week, weeks) + (cohorts[:, None] + self.positions)

    def _attentive(self, p: Parameters, tokens: Tensor, drop: _Dropout) -> Tensor:
        """[B, d] (Web App. "Shared layer")."""
        B, L, d = tokens.shape
        H = self.config.heads
        x = tokens.permute(2, 0, 1).reshape(d, B * L)
        for k in range(self.config.encoder_layers):
            x = encoder_layer(x, {n: p[f"encoder{k}.{n}"] for n in _ENCODER}, B, H, drop.mask)
        memory = norm(x).view(d, B, L).transpose(0, 1).contiguous()
        last = x.view(d, B, L)[:, :, -1].t()
        for k in range(self.config.decoder_layers):
            q = {n: p[f"decoder{k}.{n}"] for n in _DECODER}
            # Attention of a single query to itself is a linear map.
            last = last + drop(torch.addmm(q["self_bias"], functional.layer_norm(last, (d,)), q["self"]))
            query = torch.addmm(q["query_bias"], functional.layer_norm(last, (d,)), q["query"]).view(
                B, H, d // H
            )
            # q'(W m) = (W'q)'m: one query a window, so keys and values of its 20 weeks need not be made.
            keyed = torch.bmm(query.transpose(0, 1), q["key"].view(H, d // H, d)).transpose(0, 1)
            score = torch.bmm(keyed, memory) * (1.0 / math.sqrt(d // H))
            seen = torch.bmm(torch.softmax(score, -1), memory.transpose(1, 2)).transpose(0, 1)
            value = torch.bmm(seen, q["value"].view(H, d, d // H)).transpose(0, 1).reshape(B, d)
            last = last + drop(torch.addmm(q["out_bias"], value, q["out"]))
            up = torch.relu(torch.addmm(q["up_bias"], functional.layer_norm(last, (d,)), q["up"]))
            last = last + drop(torch.addmm(q["down_bias"], up, q["down"]))
        return functional.layer_norm(last, (d,))

    def _recurrent(self, p: Parameters, tokens: Tensor) -> Tensor:
        """[B, d]: the last state of a stacked LSTM."""
        layers = range(self.config.encoder_layers)
        weights = [p[f"lstm{k}.{n}"] for k in layers for n in ("input", "state", "input_bias", "state_bias")]
        start = tokens.new_zeros(len(layers), len(tokens), self.config.width)
        out: Tensor = torch.lstm(tokens, (start, start), weights, True, len(layers), 0.0, True, False, True)[
            0
        ]
        return out[:, -1]

    def _heads(self, p: Parameters, shared: Tensor, batch: Batch) -> Tensor:
        """Three layers for each outcome, its own history in the input and as a shortcut
        (Web App. "Task-specific output layers")."""
        history = batch.history
        if self.config.linear_heads:
            shared = shared.expand(len(history), *shared.shape)
            return torch.baddbmm(p["head.only_bias"], shared, p["head.only"])[..., 0].t()
        x = torch.cat([shared.expand(len(history), *shared.shape), history], -1)
        x = torch.relu(torch.baddbmm(p["head.first_bias"], x, p["head.first"]))
        x = torch.relu(torch.baddbmm(p["head.second_bias"], x, p["head.second"]))
        x = torch.baddbmm(p["head.third_bias"], x, p["head.third"])
        return torch.baddbmm(x, history, p["head.shortcut"])[..., 0].t()


_ENCODER = ("qkv", "qkv_bias", "out", "out_bias", "up", "up_bias", "down", "down_bias")
_DECODER = (
    "self",
    "self_bias",
    "query",
    "query_bias",
    "key",
    "value",
    "out",
    "out_bias",
    "up",
    "up_bias",
    "down",
    "down_bias",
)


def _fans(name: str, shape: tuple[int, ...]) -> tuple[int, int]:
    if name.endswith("qkv"):
        return shape[1], shape[1]
    return shape[-2], shape[-1]


class _Dropout:
    """Dropout from a generator of its own; nothing at all without one or at rate 0."""

    def __init__(self, rate: float, generator: torch.Generator | None) -> None:
        self.rate, self.generator = rate, generator

    def mask(self, shape: torch.Size) -> Tensor | None:
        if self.generator is None or self.rate == 0.0:
            return None
        # One random byte an entry, eight at a time: rates are in steps of 1/256.
        count, cut = shape.numel(), round(256 * self.rate)
        words = torch.empty(-(-count // 8), dtype=torch.int64)
        words.random_(-(2**63), None, generator=self.generator)
        kept = words.view(torch.uint8)[:count] >= cut
        return kept.view(shape).to(torch.float32).mul_(256 / (256 - cut))

    def __call__(self, x: Tensor) -> Tensor:
        mask = self.mask(x.shape)
        return x if mask is None else x * mask
