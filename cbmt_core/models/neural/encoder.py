"""The encoder: layers of attention among the weeks of a window, and feed-forward."""

from __future__ import annotations

import math

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

__all__ = ["encoder_layer"]

BOUND = 50.0
"""Attention scores are kept within ±50, so that exp needs no row maxima. Trained ones stay far inside."""


def encoder_layer(
    x: Tensor, p: Parameters, name: str, length: int, heads: int, mask: Mask
) -> tuple[Tensor, Pullback]:
    """x + attention(norm x), then x + feed-forward(norm x), on [G, d, B·L]."""
    attended, attention_back = _attention(x, p, name, length, heads, mask)
    value, feed_back = feed_forward(attended, p, name, mask)

    def pull(grad: Tensor, g: Gradients) -> Tensor:
        return attention_back(feed_back(grad, g), g)

    return value, pull


def _attention(
    x: Tensor, p: Parameters, name: str, length: int, heads: int, mask: Mask
) -> tuple[Tensor, Pullback]:
    G, d, N = x.shape
    B, e = N // length, d // heads
    scale = 1.0 / math.sqrt(e)

    def to_windows(t: Tensor) -> Tensor:
        """[G, H, k, B, L] -> [G·B·H, k, L], as attention wants them."""
        return t.permute(0, 3, 1, 2, 4).reshape(-1, t.shape[2], length)

    def to_features(t: Tensor) -> Tensor:
        return t.view(G, B, heads, -1, length).permute(0, 2, 3, 1, 4)

    y, inverse = normalise(x)
    z = affine(y, p, f"{name}.qkv").view(G, 3, heads, e, B, length)
    q, k = to_windows(z[:, 0]).mul_(scale), to_windows(z[:, 1])
    # A row of ones is appended to the values, so that their product with the weights contains the weights' sum.
    v = x.new_empty(G * B * heads, e + 1, length)
    v[:, e] = 1.0
    to_features(v)[:, :, :e] = z[:, 2]
    weight = torch.bmm(k.transpose(1, 2), q).clamp_(-BOUND, BOUND).exp_()  # [G·B·H, key, query]
    summed = to_features(torch.bmm(v, weight)).contiguous()
    total = summed[:, :, e:]
    o = summed[:, :, :e] / total
    a = o.view(G, d, N)
    kept = mask(x.shape)
    value = add_branch(x, affine(a, p, f"{name}.out"), kept)

    def pull(grad: Tensor, g: Gradients) -> Tensor:
        branch = grad if kept is None else grad * kept
        da = through_affine(branch, a, p, f"{name}.out", g).view(o.shape)
        # Through the softmax: w (dw - Σ w dw), where Σ w dw over keys is Σ o do over features. The weights are not
        # normalised, so do is divided instead; the row of ones yields the subtraction.
        parts = torch.empty_like(summed)
        torch.div(da, total, out=parts[:, :, :e])
        torch.sum(o * parts[:, :, :e], 2, out=parts[:, :, e]).neg_()
        do = to_windows(parts)
        ds = torch.bmm(v.transpose(1, 2), do).mul_(weight)
        dz = torch.empty_like(z)
        dz[:, 0] = to_features(torch.bmm(k, ds).mul_(scale))
        dz[:, 1] = to_features(torch.bmm(q, ds.transpose(1, 2)))
        dz[:, 2] = to_features(torch.bmm(do[:, :e], weight.transpose(1, 2)))
        dy = through_affine(dz.view(G, 3 * d, N), y, p, f"{name}.qkv", g)
        return through_norm(dy, y, inverse).add_(grad)

    return value, pull
