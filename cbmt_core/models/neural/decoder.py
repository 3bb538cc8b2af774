"""The decoder: the last encoded week attends to all encoded weeks (Web App. "Shared layer")."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from cbmt_core.models.neural.parts import (
    Gradients,
    Mask,
    Parameters,
    Pullback,
    add_branch,
    affine,
    feed_forward,
    normalise,
    through_affine,
    through_norm,
)

__all__ = ["decoder"]


def decoder(
    x: Tensor, p: Parameters, layers: int, length: int, heads: int, mask: Mask
) -> tuple[Tensor, Pullback]:
    """[G, d, B] from the encoder's [G, d, B·L]."""
    G, d, N = x.shape
    B = N // length
    y, inverse = normalise(x)
    memory = y.view(G, d, B, length).transpose(1, 2).contiguous().view(G * B, d, length)
    last = x.view(G, d, B, length)[..., -1].contiguous()
    backs = []
    for k in range(layers):
        last, back = _layer(last, memory, p, f"decoder{k}", heads, mask)
        backs.append(back)
    shared, spread = normalise(last)

    def pull(grad: Tensor, g: Gradients) -> Tensor:
        to_last = through_norm(grad, shared, spread)
        to_memory = torch.zeros_like(memory)
        for back in reversed(backs):
            to_last = back(to_last, to_memory, g)
        dy = to_memory.view(G, B, d, length).transpose(1, 2).reshape(G, d, N)
        dx = through_norm(dy, y, inverse)
        dx.view(G, d, B, length)[..., -1] += to_last
        return dx

    return shared, pull


def _layer(
    x: Tensor, memory: Tensor, p: Parameters, name: str, heads: int, mask: Mask
) -> tuple[Tensor, Callable[[Tensor, Tensor, Gradients], Tensor]]:
    """One layer on [G, d, B]; its pullback adds to the gradient of the memory, its second argument."""
    # Attention of a single query to itself is a linear map.
    kept = mask(x.shape)
    y, inverse = normalise(x)
    x1 = add_branch(x, affine(y, p, f"{name}.self"), kept)
    x2, cross_back = _cross(x1, memory, p, name, heads, mask)
    x3, feed_back = feed_forward(x2, p, name, mask)

    def pull(grad: Tensor, to_memory: Tensor, g: Gradients) -> Tensor:
        grad = cross_back(feed_back(grad, g), to_memory, g)
        branch = grad if kept is None else grad * kept
        return through_norm(through_affine(branch, y, p, f"{name}.self", g), y, inverse).add_(grad)

    return x3, pull


def _cross(
    x: Tensor, memory: Tensor, p: Parameters, name: str, heads: int, mask: Mask
) -> tuple[Tensor, Callable[[Tensor, Tensor, Gradients], Tensor]]:
    G, d, B = x.shape
    e, scale = d // heads, 1.0 / math.sqrt(d // heads)
    key, value = (p[f"{name}.{n}"].reshape(G * heads, e, d) for n in ("key", "value"))

    def to_windows(t: Tensor) -> Tensor:
        """[G·H, d, B] -> [G·B, H, d]"""
        return t.view(G, heads, d, B).permute(0, 3, 1, 2).contiguous().view(G * B, heads, d)

    def to_heads(t: Tensor) -> Tensor:
        return t.view(G, B, heads, d).permute(0, 2, 3, 1).reshape(G * heads, d, B)

    y, inverse = normalise(x)
    query = affine(y, p, f"{name}.query").view(G * heads, e, B)
    # q'(W m) = (W'q)'m: with one query per window, keys and values of its weeks need not be computed.
    keyed = to_windows(torch.bmm(key.transpose(1, 2), query).mul_(scale))
    weight = torch.softmax(torch.bmm(keyed, memory), -1)
    seen = to_heads(torch.bmm(weight, memory.transpose(1, 2)))
    a = torch.bmm(value, seen).view(G, d, B)
    kept = mask(x.shape)
    out = add_branch(x, affine(a, p, f"{name}.out"), kept)

    def pull(grad: Tensor, to_memory: Tensor, g: Gradients) -> Tensor:
        branch = grad if kept is None else grad * kept
        da = through_affine(branch, a, p, f"{name}.out", g).view(G * heads, e, B)
        g[f"{name}.value"] = torch.bmm(da, seen.transpose(1, 2))
        dseen = to_windows(torch.bmm(value.transpose(1, 2), da))
        to_memory.baddbmm_(dseen.transpose(1, 2), weight)
        dweight = torch.bmm(dseen, memory)
        ds = weight * (dweight - (weight * dweight).sum(-1, keepdim=True))
        to_memory.baddbmm_(keyed.transpose(1, 2), ds)
        dkeyed = to_heads(torch.bmm(ds, memory.transpose(1, 2))).mul_(scale)
        g[f"{name}.key"] = torch.bmm(query, dkeyed.transpose(1, 2))
        dquery = torch.bmm(key, dkeyed).view(G, d, B)
        return through_norm(through_affine(dquery, y, p, f"{name}.query", g), y, inverse).add_(grad)

    return out, pull
