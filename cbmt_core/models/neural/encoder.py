"""One Transformer encoder layer with its own backward pass, for windows of a few weeks on one core.

General-purpose layers spend most of their time, at this size, in softmax and norms along short rows,
in layout changes and in bookkeeping. Here features come first ([d, B·L]), so that norms run along long
contiguous rows, and the backward pass reuses what the forward pass made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

__all__ = ["encoder_layer", "norm"]

EPSILON = 1e-5
BOUND = 50.0
"""Attention scores are kept within ±50, so that exp needs no row maxima. Trained ones stay far inside."""


def _normalise(x: Tensor) -> tuple[Tensor, Tensor]:
    """Layer norm over the features of [d, N], and 1/sd. The affine part is left to the next matrix."""
    y = x - x.mean(0)
    inverse = torch.rsqrt((y * y).mean(0).add_(EPSILON))
    return y.mul_(inverse), inverse


def _through_norm(grad: Tensor, y: Tensor, inverse: Tensor) -> Tensor:
    slope = (grad * y).mean(0)
    return (grad - grad.mean(0)).addcmul_(y, slope, value=-1.0).mul_(inverse)


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y, inverse = _normalise(x)
        ctx.save_for_backward(y, inverse)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return _through_norm(grad, *ctx.saved_tensors)


def norm(x: Tensor) -> Tensor:
    """Layer norm over the features of [d, N] with a gradient."""
    return _Norm.apply(x)  # type: ignore[no-any-return,no-untyped-call]


class _EncoderLayer(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        qkv: Tensor,
        qkv_bias: Tensor,
        out: Tensor,
        out_bias: Tensor,
        up: Tensor,
        up_bias: Tensor,
        down: Tensor,
        down_bias: Tensor,
        batch: int,
        heads: int,
        mask1: Tensor | None,
        mask2: Tensor | None,
    ) -> Tensor:
        d, N = x.shape
        L, e = N // batch, d // heads
        y1, inverse1 = _normalise(x)
        z = torch.mm(qkv, y1).add_(qkv_bias[:, None])
        z = z.view(3, heads, e, batch, L).permute(0, 3, 1, 2, 4).reshape(3, batch * heads, e, L)
        q, k, v = z.unbind(0)
        q.mul_(1.0 / math.sqrt(e))
        p = torch.bmm(k.transpose(1, 2), q).clamp_(-BOUND, BOUND).exp_()  # [B·H, key, query]
        p.div_(p.sum(1, keepdim=True))
        o = torch.bmm(v, p)
        a = o.view(batch, heads, e, L).permute(1, 2, 0, 3).reshape(d, N)
        branch = torch.mm(out, a).add_(out_bias[:, None])
        if mask1 is not None:
            branch.mul_(mask1)
        x1 = branch.add_(x)
        y2, inverse2 = _normalise(x1)
        h = torch.mm(up, y2).add_(up_bias[:, None]).relu_()
        branch = torch.mm(down, h).add_(down_bias[:, None])
        if mask2 is not None:
            branch.mul_(mask2)
        ctx.save_for_backward(qkv, out, up, down, y1, inverse1, z, p, o, a, y2, inverse2, h, mask1, mask2)
        ctx.batch, ctx.heads = batch, heads
        return branch.add_(x1)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        qkv, out, up, down, y1, inverse1, z, p, o, a, y2, inverse2, h, mask1, mask2 = ctx.saved_tensors
        batch, heads = ctx.batch, ctx.heads
        d, N = grad.shape
        L, e = N // batch, d // heads

        g2 = grad if mask2 is None else grad * mask2
        d_down, d_down_bias = torch.mm(g2, h.t()), g2.sum(1)
        dh = torch.ops.aten.threshold_backward(torch.mm(down.t(), g2), h, 0.0)
        d_up, d_up_bias = torch.mm(dh, y2.t()), dh.sum(1)
        dx1 = _through_norm(torch.mm(up.t(), dh), y2, inverse2).add_(grad)

        g1 = dx1 if mask1 is None else dx1 * mask1
        d_out, d_out_bias = torch.mm(g1, a.t()), g1.sum(1)
        do = torch.mm(out.t(), g1).view(heads, e, batch, L).permute(2, 0, 1, 3).reshape(o.shape)
        q, k, v = z.unbind(0)
        dz = torch.empty_like(z)
        torch.bmm(do, p.transpose(1, 2), out=dz[2])
        # Through the softmax: p (dp - Σ p dp), and Σ over keys of p dp is Σ over features of o do.
        ds = torch.bmm(v.transpose(1, 2), do).sub_((o * do).sum(1, keepdim=True)).mul_(p)
        torch.bmm(k, ds, out=dz[0])
        dz[0].mul_(1.0 / math.sqrt(e))
        torch.bmm(q, ds.transpose(1, 2), out=dz[1])
        dz = dz.view(3, batch, heads, e, L).permute(0, 2, 3, 1, 4).reshape(3 * d, N)
        d_qkv, d_qkv_bias = torch.mm(dz, y1.t()), dz.sum(1)
        dx = _through_norm(torch.mm(qkv.t(), dz), y1, inverse1).add_(dx1)
        grads = (dx, d_qkv, d_qkv_bias, d_out, d_out_bias, d_up, d_up_bias, d_down, d_down_bias)
        return (*grads, None, None, None, None)


def encoder_layer(
    x: Tensor,
    p: Mapping[str, Tensor],
    batch: int,
    heads: int,
    mask: Callable[[torch.Size], Tensor | None] = lambda _: None,
) -> Tensor:
    """x + attention(norm x), then x + feed-forward(norm x), on [d, B·L]; `mask` draws dropout masks."""
    names = ("qkv", "qkv_bias", "out", "out_bias", "up", "up_bias", "down", "down_bias")
    weights = [p[name] for name in names]
    return _EncoderLayer.apply(x, *weights, batch, heads, mask(x.shape), mask(x.shape))  # type: ignore[no-any-return,no-untyped-call]
