"""Heads: one for each outcome, which also sees the outcome's own history (Web App. "Task-specific output
layers")."""

from __future__ import annotations

import torch
from torch import Tensor

from cbmt_core.models.neural.parts import (
    Gradients,
    Parameters,
    Pullback,
    affine,
    through_affine,
    through_relu,
)

__all__ = ["heads", "linear_heads"]


def linear_heads(shared: Tensor, p: Parameters) -> tuple[Tensor, Pullback]:
    """[G, K, B] from the shared representation [G, d, B] alone."""
    flat = {name: p[name].flatten(1, 2) for name in ("head.only", "head.only_bias")}

    def pull(grad: Tensor, g: Gradients) -> Tensor:
        return through_affine(grad, shared, flat, "head.only", g)

    return affine(shared, flat, "head.only"), pull


def heads(shared: Tensor, history: Tensor, p: Parameters) -> tuple[Tensor, Pullback]:
    """[G, K, B] from the shared representation [G, d, B] and each outcome's own weeks [G, K, B, L]: three layers,
    and a shortcut from the weeks to the forecast."""
    G, K, B, L = history.shape
    d = shared.shape[1]
    own = history.reshape(G * K, B, L)
    weeks = own.transpose(1, 2)
    q = {name: value.flatten(0, 1) for name, value in p.items() if name.startswith("head.")}
    w = q["head.first"].shape[1]
    first = p["head.first"].reshape(G, K * w, d)
    x = torch.bmm(first, shared).view(G * K, w, B).add_(q["head.first_bias"])
    x = x.baddbmm_(q["head.history"], weeks).relu_()
    y = affine(x, q, "head.second").relu_()
    z = affine(y, q, "head.third").baddbmm_(q["head.shortcut"], weeks)

    def pull(grad: Tensor, g: Gradients) -> Tensor:
        dz = grad.reshape(G * K, 1, B)
        g["head.shortcut"] = torch.bmm(dz, own)
        dy = through_relu(through_affine(dz, y, q, "head.third", g), y)
        dx = through_relu(through_affine(dy, x, q, "head.second", g), x)
        g["head.history"] = torch.bmm(dx, own)
        g["head.first_bias"] = dx.sum(2)
        dx = dx.view(G, K * w, B)
        g["head.first"] = torch.bmm(dx, shared.transpose(1, 2))
        return torch.bmm(first.transpose(1, 2), dx)

    return z.view(G, K, B), pull
