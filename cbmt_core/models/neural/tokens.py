"""Tokens: a week's numbers and entities, projected and positioned (Web App. "Input scaling and embeddings")."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from cbmt_core.models.neural.batch import Batch
from cbmt_core.models.neural.parts import Gradients, Parameters

__all__ = ["tokens"]

Note = Callable[[Tensor, Gradients], None]
"""Takes the gradient of a part's value and stores those of its parameters; its input is data."""


def tokens(p: Parameters, batch: Batch, positions: Tensor) -> tuple[Tensor, Note]:
    """[G, d, B·L].

    Concatenating embeddings and projecting them is the same as adding their projections; the projections
    of weeks and of cohorts are made once for each, not once for each window.
    """
    (L, d), G = positions.shape, len(p["input.bias"])
    numeric = batch.numeric.flatten(2).transpose(0, 1).expand(G, -1, -1)
    B, U = numeric.shape[2] // L, len(batch.week_of_year)
    covariates = batch.week_covariates.expand(G, -1, -1)
    season, note_season = _entities(p, "week", batch.week_of_year[None])
    cohort, note_cohort = _entities(p, "cohort", batch.cohort)
    month, note_month = _entities(p, "month", batch.month)
    weeks = torch.baddbmm(season, covariates, p["input.covariates"]).add_(p["input.bias"])
    # The weeks of a window follow each other: in the table of weeks a window is one long row.
    rows = weeks.view(G * U, d).as_strided((G * U - L + 1, L * d), (d, 1))
    first = _below(batch.first_week, G, U)
    x = rows.index_select(0, first).view(G, B, L, d)
    x.add_(positions).add_((cohort + month)[:, :, None])
    value = torch.baddbmm(x.view(G, B * L, d).transpose(1, 2), p["input.numeric"], numeric)

    def note(grad: Tensor, g: Gradients) -> None:
        g["input.numeric"] = torch.bmm(grad, numeric.transpose(1, 2))
        dx = grad.transpose(1, 2).reshape(G * B * L, d)
        each = (first[:, None] + torch.arange(L)).flatten()
        dweeks = dx.new_zeros(G * U, d).index_add_(0, each, dx).view(G, U, d)
        g["input.bias"] = dweeks.sum(1, keepdim=True)
        g["input.covariates"] = torch.bmm(covariates.transpose(1, 2), dweeks)
        note_season(dweeks, g)
        of_window = dx.view(G, B, L, d).sum(2)
        note_cohort(of_window, g)
        note_month(of_window, g)

    return value, note


def _entities(p: Parameters, name: str, index: Tensor) -> tuple[Tensor, Note]:
    """[G, B, d], the projected embeddings of [G, B] levels."""
    entity, project = p[f"entity.{name}"], p[f"input.{name}"]
    G, levels, _ = entity.shape
    at = _below(index, G, levels)
    table = torch.bmm(entity, project).view(G * levels, -1)

    def note(grad: Tensor, g: Gradients) -> None:
        dtable = torch.zeros_like(table).index_add_(0, at, grad.flatten(0, 1)).view(G, levels, -1)
        g[f"entity.{name}"] = torch.bmm(dtable, project.transpose(1, 2))
        g[f"input.{name}"] = torch.bmm(entity.transpose(1, 2), dtable)

    return table.index_select(0, at).view(G, -1, table.shape[1]), note


def _below(index: Tensor, G: int, levels: int) -> Tensor:
    """[G·B] rows in the tables of G networks, one below the other."""
    return (index + levels * torch.arange(G)[:, None]).flatten()
