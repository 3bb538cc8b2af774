"""A stacked LSTM as the shared backbone, for the benchmark of that name."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from cbmt_core.models.neural.parts import Gradients, Parameters, Pullback, affine, through_affine

__all__ = ["lstm"]


def lstm(x: Tensor, p: Parameters, layers: int, length: int) -> tuple[Tensor, Pullback]:
    """[G, d, B], the last state of the last layer, from tokens [G, d, B·L]."""
    G, d, N = x.shape
    B = N // length
    states = x.view(G, d, B, length).transpose(2, 3).reshape(G, d, N)  # week by week from here on
    backs = []
    for k in range(layers):
        states, back = _layer(states, p, f"lstm{k}", length)
        backs.append(back)
    last = states.view(G, d, length, B)[:, :, -1].contiguous()

    def pull(grad: Tensor, g: Gradients) -> Tensor:
        dstates = x.new_zeros(G, d, length, B)
        dstates[:, :, -1] = grad
        dx = dstates.view(G, d, N)
        for back in reversed(backs):
            dx = back(dx, g)
        return dx.view(G, d, length, B).transpose(2, 3).reshape(G, d, N)

    return last, pull


def _layer(x: Tensor, p: Parameters, name: str, length: int) -> tuple[Tensor, Pullback]:
    """States [G, d, L·B] from inputs [G, d, L·B]. Gates: input, forget, output, candidate."""
    G, d, N = x.shape
    B = N // length
    recurrent = p[f"{name}.state"]

    def by_week(t: Tensor) -> Tensor:
        """[G, k, L·B] -> [L, G, k, B]"""
        return t.view(G, -1, length, B).permute(2, 0, 1, 3).contiguous()

    def together(t: Tensor) -> Tensor:
        return t.permute(1, 2, 0, 3).reshape(G, -1, N)

    # tanh x = 2 σ(2x) - 1, and σ is several times faster: the candidate is doubled on its way in.
    gates = by_week(affine(x, p, f"{name}.input"))
    apart = gates.view(length, G, 4, d, B)
    apart[:, :, 3].mul_(2.0)
    doubled = recurrent.clone()
    doubled[:, 3 * d :].mul_(2.0)
    i, f, o, c = apart.unbind(2)
    cells, bent, states = (x.new_zeros(length + 1, G, d, B) for _ in range(3))
    before, after = slice(None, -1), slice(1, None)
    steps = (gates, i, f, o, c, cells[before], states[before], cells[after], bent[after], states[after])
    for gate, i_t, f_t, o_t, c_t, cell, state, next_cell, tanh_t, next_state in _each(*steps):
        gate.baddbmm_(doubled, state).sigmoid_()
        c_t.mul_(2.0).sub_(1.0)
        torch.mul(f_t, cell, out=next_cell).addcmul_(i_t, c_t)
        torch.mul(next_cell, 2.0, out=tanh_t).sigmoid_().mul_(2.0).sub_(1.0)
        torch.mul(o_t, tanh_t, out=next_state)

    def pull(grad: Tensor, g: Gradients) -> Tensor:
        tanh = bent[after]
        # Factors of the gradients of cell and state with respect to the gates.
        factors = torch.addcmul(apart, apart, apart, value=-1.0)
        factors[:, :, 0].mul_(c)
        factors[:, :, 1].mul_(cells[before])
        factors[:, :, 2].mul_(tanh)
        torch.addcmul(i, i, c * c, value=-1.0, out=factors[:, :, 3])
        of_cell = torch.addcmul(o, o, tanh * tanh, value=-1.0)
        dgates = torch.empty_like(apart)
        dcell = torch.zeros_like(cells[0])
        later = torch.zeros_like(gates[0])
        back = recurrent.transpose(1, 2)
        steps = (by_week(grad), f, of_cell, factors, dgates, factors[:, :, 2], dgates[:, :, 2])
        for dstate, f_t, to_cell, factor, dgate, of_output, to_output in reversed(list(_each(*steps))):
            dstate.baddbmm_(back, later)
            dcell.addcmul_(dstate, to_cell)
            torch.mul(dcell[:, None], factor, out=dgate)
            torch.mul(dstate, of_output, out=to_output)
            dcell.mul_(f_t)
            later = dgate.view(G, 4 * d, B)
        dz = together(dgates.view(gates.shape))
        g[f"{name}.state"] = torch.bmm(dz, together(states[before]).transpose(1, 2))
        return through_affine(dz, x, p, f"{name}.input", g)

    return together(states[after]), pull


def _each(*series: Tensor) -> Iterator[tuple[Tensor, ...]]:
    """The series' weeks, side by side."""
    return zip(*(t.unbind(0) for t in series), strict=True)
