"""The Gaussian process of the weekly series: covariance, marginal likelihood, and its maximum."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from cbmt_core.arrays import Floats
from cbmt_core.models.plus.regressors import regressors
from cbmt_core.models.plus.series import WeeklySeries

__all__ = [
    "COMPONENTS",
    "LEVEL_VARIANCE",
    "SCALED",
    "FirmBatch",
    "Hyperparameters",
    "Weeks",
    "batches",
    "covariance",
    "fit_own",
    "learn_common",
]


COMPONENTS = ("trend", "calendar", "walk", "brief")
"""A path is the sum of a straight line; waves of the year and holidays; a random walk; and brief deviations (AR(1))."""
SCALED = np.array([False, False, True, True])
"""Components whose standard deviation is multiplied by the firm's scale."""
LEVEL_VARIANCE = 4.0
"""Prior variance of a series' level around its mean: wide, so that the level follows the data."""
SCALE_SD, COMOVEMENT_SD = 0.35, 1.5
"""Standard deviation over firms of the log of their scale, and of the logit of their co-movement."""
PRIOR_SD = {"sd": 1.0, "shared": 1.0, "memory": 0.5, "weight": 1.0, "mean": 0.5}
"""Prior standard deviation of each hyperparameter around its default, on its unbounded scale."""
RATE = 0.1
"""Learning rate of Adam."""
BATCH = 8
"""Number of firms whose matrices are factored together; they fit into the processor's cache."""


@dataclass(frozen=True, eq=False)
class Hyperparameters:
    """The numbers of a prior (see `PathPrior`) on unbounded scales."""

    sd: Tensor
    """[5, D] logs."""
    shared: Tensor
    """[4, D] inverse hyperbolic tangents."""
    memory: Tensor
    """[1] log."""
    weight: Tensor
    """[Q] logs."""
    mean: Tensor
    """[1 + Q, D] in `unit`."""
    unit: Tensor
    """[1 + Q, D] three default standard deviations of such an effect."""

    @classmethod
    def of(cls, numbers: Mapping[str, Floats], unit: Floats) -> Hyperparameters:
        return cls(
            sd=torch.from_numpy(np.log(numbers["sd"])),
            shared=torch.from_numpy(np.arctanh(numbers["shared"])),
            memory=torch.from_numpy(np.log(numbers["memory"])),
            weight=torch.from_numpy(np.log(numbers["weight"])),
            mean=torch.from_numpy(numbers["mean"] / unit),
            unit=torch.from_numpy(unit),
        )

    def numbers(self) -> dict[str, Floats]:
        """The inverse of `of`."""
        with torch.no_grad():
            arrays = {
                "sd": self.sd.exp(),
                "shared": self.shared.tanh(),
                "memory": self.memory.exp(),
                "weight": self.weight.exp(),
                "mean": self.mean * self.unit,
            }
        return {name: array.numpy().copy() for name, array in arrays.items()}

    def learned(self) -> dict[str, Tensor]:
        return {name: getattr(self, name) for name in PRIOR_SD}


@dataclass(frozen=True, eq=False)
class Weeks:
    """T observed weeks and H weeks after them: their place in time and their calendar regressors."""

    years: Tensor
    """[T + H] years from the middle of the T weeks."""
    regressors: Tensor
    """[T + H, Q]"""

    @classmethod
    def of(cls, first_week: date, weeks: int, horizon: int, country: str) -> Weeks:
        years = (np.arange(weeks + horizon) - weeks / 2) / 52
        known = regressors(first_week, weeks + horizon, country)
        return cls(torch.from_numpy(years), torch.from_numpy(known))

    def mean(self, common: Hyperparameters) -> Tensor:
        """[T + H, D] prior mean of the paths around their levels."""
        mean = common.mean * common.unit
        return self.years[:, None] * mean[0] + self.regressors @ mean[1:]

    def kernels(self, common: Hyperparameters) -> Tensor:
        """[4, T + H, T + H] covariance of each component between weeks, at a standard deviation of one."""
        week = torch.arange(len(self.years), dtype=torch.float64)
        distance = (week[:, None] - week).abs()
        memory, weighted = common.memory.exp(), self.regressors * common.weight.exp()
        return torch.stack(
            [
                torch.outer(self.years, self.years),
                weighted @ weighted.T,
                torch.minimum(week[:, None], week) + 1.0,
                torch.exp(-distance / memory),
            ]
        )


def covariance(kernels: Tensor, common: Hyperparameters, scale: Tensor, comovement: Tensor) -> Tensor:
    """[n, D, S, D, T] prior covariance of n firms' series between S weeks and T weeks.

    A component covaries between two series of a firm by the firm's co-movement times both series' shared parts.

    Args:
        kernels: [4, S, T] of `Weeks.kernels`.
        common: hyperparameters that all firms share.
        scale: [n, D] factor of each firm's random components.
        comovement: [n] of each firm, 0 to 1.
    """
    n, D = scale.shape
    components, S, T = kernels.shape
    factor = torch.where(torch.from_numpy(SCALED)[:, None], scale[:, None], torch.ones(()).double())
    sd = common.sd[:components].exp() * factor
    part = sd * common.shared.tanh()
    both = comovement[:, None, None, None] * part[..., :, None] * part[..., None, :]
    alone = torch.diag_embed(sd**2 - comovement[:, None, None] * part**2)
    between = (both + alone).permute(0, 2, 3, 1).reshape(n * D * D, components)
    made = (between @ kernels.reshape(components, S * T)).reshape(n, D, D, S, T)
    level = LEVEL_VARIANCE * torch.eye(D, dtype=torch.float64)[:, :, None, None]
    return (made + level).permute(0, 1, 3, 2, 4)


class _NegativeLogDensity(torch.autograd.Function):
    """-log N(residual; 0, K) without its constant; the gradient in K is (K^-1 - alpha alpha') / 2."""

    @staticmethod
    def forward(ctx: Any, square: Tensor, residual: Tensor) -> Tensor:
        """[n, m, m] covariances and [n, m, 1] residuals, summed over n."""
        factor = torch.linalg.cholesky(square)
        alpha = torch.cholesky_solve(residual, factor)
        ctx.save_for_backward(factor, alpha)
        density: Tensor = 0.5 * (residual * alpha).sum() + factor.diagonal(dim1=1, dim2=2).log().sum()
        return density

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, Tensor]:
        factor, alpha = ctx.saved_tensors
        (gradient,) = gradients
        inverse = torch.cholesky_inverse(factor)
        return 0.5 * gradient * (inverse - alpha @ alpha.mT), gradient * alpha


@dataclass(frozen=True, eq=False)
class FirmBatch:
    """Firms with the same weeks, and their own parameters."""

    weeks: Weeks
    value: Tensor
    """[n, D, T] around each series' mean."""
    noise: Tensor
    """[n, D, T]"""
    scale: Tensor
    """[n, D] logs."""
    comovement: Tensor
    """[n] logits."""

    def gaussian(self, common: Hyperparameters, kernels: Tensor) -> tuple[Tensor, Tensor]:
        """[n, D T, D T] marginal covariances of the values, and [n, D T, 1] values less their prior mean."""
        n, D, T = self.value.shape
        scale = self.scale.exp()
        prior = covariance(kernels, common, scale, torch.sigmoid(self.comovement))
        white = (scale * common.sd[-1].exp())[..., None] ** 2 + self.noise
        square = prior.reshape(n, D * T, D * T)
        square.diagonal(dim1=1, dim2=2).add_(white.reshape(n, D * T))
        residual = self.value - self.weeks.mean(common).T
        return square, residual.reshape(n, D * T, 1)

    def negative_log_posterior(self, common: Hyperparameters, kernels: Tensor) -> Tensor:
        density: Tensor = _NegativeLogDensity.apply(*self.gaussian(common, kernels))  # type: ignore[no-untyped-call]
        own = (self.scale / SCALE_SD).square().sum() + (self.comovement / COMOVEMENT_SD).square().sum()
        return density + 0.5 * own


def batches(series: Sequence[WeeklySeries], step_variance: Floats) -> list[FirmBatch]:
    """The firms in batches; each firm's scale starts from the variance of its weekly steps.

    Args:
        series: of firms with the same weeks.
        step_variance: [D] variance of a week's step under the prior, at a scale of one and without noise.
    """
    first = series[0]
    weeks = Weeks.of(first.first_week, first.n_weeks, 0, first.country)
    made = []
    for at in range(0, len(series), BATCH):
        some = series[at : at + BATCH]
        value = np.stack([one.value for one in some])
        noise = np.stack([one.noise for one in some])
        steps = np.diff(value, axis=2).var(axis=2)
        start = 0.5 * np.log((steps + 1e-6) / (step_variance + 2 * noise.mean(axis=2)))
        made.append(
            FirmBatch(
                weeks=weeks,
                value=torch.from_numpy(value - value.mean(axis=2, keepdims=True)),
                noise=torch.from_numpy(noise),
                scale=torch.from_numpy(np.clip(start, -1.0, 1.0)).requires_grad_(),
                comovement=torch.zeros(len(some), dtype=torch.float64, requires_grad=True),
            )
        )
    return made


def fit_own(batch: FirmBatch, common: Hyperparameters, evaluations: int) -> None:
    """Set the firms' scale and co-movement, in place, to the maximum of their posterior (L-BFGS).

    Args:
        batch: firms whose `scale` and `comovement` are set. common: hyperparameters, unchanged. evaluations:
        maximum number of evaluations of the posterior and its gradient.
    """
    own = [x for x in (batch.scale, batch.comovement) if x.requires_grad]
    kernels = batch.weeks.kernels(common)
    places = np.cumsum([x.numel() for x in own])[:-1]

    def put(at: Floats) -> None:
        with torch.no_grad():
            for x, values in zip(own, np.split(at, places), strict=True):
                x.copy_(torch.from_numpy(values).reshape(x.shape))

    def evaluate(at: Floats) -> tuple[float, Floats]:
        put(at)
        loss = batch.negative_log_posterior(common, kernels)
        slope = torch.autograd.grad(loss, own)
        return float(loss.detach()), np.concatenate([x.numpy().ravel() for x in slope])

    start = np.concatenate([x.detach().numpy().ravel() for x in own])
    limits = {"maxfun": evaluations, "ftol": 1e-9, "gtol": 1e-3}
    put(minimize(evaluate, start, jac=True, method="L-BFGS-B", options=limits).x)


def learn_common(
    firms: Sequence[FirmBatch],
    common: Hyperparameters,
    default: Hyperparameters,
    steps: int,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Move the hyperparameters, and the firms' own parameters, towards the maximum of their posterior (Adam).

    With a single firm the mean effects stay as they are.

    Args:
        firms: all with the same weeks.
        common: hyperparameters, moved in place.
        default: centre of the prior of `common`.
        steps: number of optimiser steps; the rate falls to nearly zero.
        progress: called with the steps done and the steps to do.
    """
    own = [x for batch in firms for x in (batch.scale, batch.comovement)]
    centre = default.learned()
    # With one firm, mean effects and the firm's own effects are not identified.
    single = sum(len(batch.scale) for batch in firms) == 1
    learned = {
        name: x.requires_grad_() for name, x in common.learned().items() if not (single and name == "mean")
    }
    optimiser = torch.optim.Adam([*own, *learned.values()], lr=RATE)
    falling = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, total_iters=steps)
    for step in range(steps):
        optimiser.zero_grad()
        of_common = firms[0].weeks.kernels(common)
        kernels = of_common.detach().requires_grad_()
        for batch in firms:
            batch.negative_log_posterior(common, kernels).backward()  # type: ignore[no-untyped-call]
        of_common.backward(kernels.grad)  # type: ignore[no-untyped-call]
        distance = [((x - centre[name]) / PRIOR_SD[name]).square().sum() for name, x in learned.items()]
        (0.5 * torch.stack(distance).sum()).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        falling.step()
        if progress is not None:
            progress(step + 1, steps)
