"""Building blocks of the layers. Each returns its value and its pullback.

G networks of one shape are computed side by side: the first axis of every tensor. Features come second and
the positions they are computed at last ([G, d, N]), so that norms run along long contiguous rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

__all__ = [
    "Gradients",
    "Mask",
    "Parameters",
    "Pullback",
    "add_branch",
    "affine",
    "feed_forward",
    "normalise",
    "through_affine",
    "through_norm",
    "through_relu",
]

Parameters = Mapping[str, Tensor]
"""Of G networks, [G, …]; a bias is a column, [G, d, 1]."""
Gradients = dict[str, Tensor]
Pullback = Callable[[Tensor, Gradients], Tensor]
"""Takes the gradient of a part's value, stores the gradients of its parameters, returns that of its input."""
Mask = Callable[[torch.Size], Tensor | None]
"""Draws a dropout mask; None where nothing is dropped."""

EPSILON = 1e-5


def normalise(x: Tensor) -> tuple[Tensor, Tensor]:
    """Layer norm over the features, and 1/sd. The affine part is left to the matrix that follows."""
    share = 1.0 / x.shape[1]
    y = torch.sub(x, x.sum(1, keepdim=True), alpha=share)
    inverse = (y * y).sum(1, keepdim=True).mul_(share).add_(EPSILON).rsqrt_()
    return y.mul_(inverse), inverse


def through_norm(grad: Tensor, y: Tensor, inverse: Tensor) -> Tensor:
    share = 1.0 / grad.shape[1]
    slope = (grad * y).sum(1, keepdim=True)
    centred = torch.sub(grad, grad.sum(1, keepdim=True), alpha=share)
    return centred.addcmul_(y, slope, value=-share).mul_(inverse)


def affine(x: Tensor, p: Parameters, name: str) -> Tensor:
    return torch.baddbmm(p[f"{name}_bias"], p[name], x)


def through_affine(grad: Tensor, x: Tensor, p: Parameters, name: str, g: Gradients) -> Tensor:
    g[name] = torch.bmm(grad, x.transpose(1, 2))
    g[f"{name}_bias"] = grad.sum(2, keepdim=True)
    return torch.bmm(p[name].transpose(1, 2), grad)


def through_relu(grad: Tensor, value: Tensor) -> Tensor:
    back: Tensor = torch.ops.aten.threshold_backward(grad, value, 0.0)
    return back


def add_branch(x: Tensor, branch: Tensor, mask: Tensor | None) -> Tensor:
    """x + dropout(branch); overwrites the branch."""
    return branch.add_(x) if mask is None else torch.addcmul(x, branch, mask)


def feed_forward(x: Tensor, p: Parameters, name: str, mask: Mask) -> tuple[Tensor, Pullback]:
    """x + dropout(down(relu(up(norm x))))."""
    kept = mask(x.shape)
    y, inverse = normalise(x)
    h = affine(y, p, f"{name}.up").relu_()
    value = add_branch(x, affine(h, p, f"{name}.down"), kept)

    def pull(grad: Tensor, g: Gradients) -> Tensor:
        branch = grad if kept is None else grad * kept
        dh = through_relu(through_affine(branch, h, p, f"{name}.down", g), h)
        return through_norm(through_affine(dh, y, p, f"{name}.up", g), y, inverse).add_(grad)

    return value, pull
