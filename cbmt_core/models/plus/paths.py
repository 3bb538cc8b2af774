"""FittedPaths: the posterior of one firm's weekly series, and its forecast.

All firms share the prior. A firm has its own scale of random moves and its own co-movement, at the maximum of their
posterior; its season, trend and level follow from its weeks by Bayes' rule, in closed form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Self

import numpy as np
import torch

from cbmt_core.arrays import Floats
from cbmt_core.models.neural.training import one_thread
from cbmt_core.models.plus.likelihood import COMPONENTS, Weeks, batches, covariance, fit_own
from cbmt_core.models.plus.prior import PathPrior
from cbmt_core.models.plus.series import WeeklySeries
from cbmt_core.uncertainty import DriverUncertainty

__all__ = ["FittedPaths", "fit_paths"]


FITTING_EVALUATIONS = 40
"""Maximum number of evaluations of the posterior of a firm's scale and co-movement."""
ARRAYS = ("level", "scale", "alpha", "noise", "bounds")
REACH = 1.0
"""Log points by which a forecast may leave the observed range of its series."""
JITTER = 1e-9
"""Added to variances before a covariance is factored."""


@dataclass(frozen=True, eq=False)
class FittedPaths:
    """The Gaussian posterior of one firm's D series, given T weeks.

    With `prior`, `scale`, `comovement` and `noise` the covariance K of the observed weeks can be recomputed, and
    from it the posterior covariance of any weeks.
    """

    prior: PathPrior
    first_week: date
    level: Floats
    """[D] mean of each series over the weeks seen."""
    scale: Floats
    """[D] factor of the random components' standard deviations."""
    comovement: float
    """0: the series share nothing; 1: as much as the prior's shared parts allow."""
    alpha: Floats
    """[D, T] K^-1 (y - mean)"""
    noise: Floats
    """[D, T] sampling variance of the weeks seen."""
    bounds: Floats
    """[2, D] least and largest forecast of each series."""

    @property
    def n_weeks(self) -> int:
        return int(self.alpha.shape[1])

    def forecast(self, horizon: int) -> Floats:
        """[D, horizon] posterior mean of the logs of the series in the weeks ahead."""
        T, size = self.n_weeks, self.alpha.size
        weeks = Weeks.of(self.first_week, T, horizon, self.prior.country)
        with one_thread(), torch.no_grad():
            common = self.prior.hyperparameters()
            kernels = weeks.kernels(common)[:, T:, :T]
            scale = torch.from_numpy(self.scale)[None]
            comovement = torch.tensor([self.comovement], dtype=torch.float64)
            between = covariance(kernels, common, scale, comovement).reshape(-1, size)
            deviation = between @ torch.from_numpy(self.alpha).reshape(size)
            mean = weeks.mean(common)[T:].T
        ahead = self.level[:, None] + (mean + deviation.reshape(mean.shape)).numpy()
        return np.asarray(np.clip(ahead, self.bounds[0][:, None], self.bounds[1][:, None]))

    def uncertainty(self, horizon: int) -> DriverUncertainty:
        """The posterior of the D series in the weeks ahead, around its mean.

        Lasting errors are those of level, trend, season and random walk; weekly ones are brief deviations and noise.
        """
        T, D = self.n_weeks, len(self.level)
        weeks = Weeks.of(self.first_week, T, horizon, self.prior.country)
        with one_thread(), torch.no_grad():
            common = self.prior.hyperparameters()
            kernels = weeks.kernels(common)
            stays = kernels * torch.tensor([name != "brief" for name in COMPONENTS])[:, None, None]
            scale = torch.from_numpy(self.scale)[None]
            comovement = torch.tensor([self.comovement], dtype=torch.float64)
            full = covariance(kernels, common, scale, comovement)[0]
            lasting = covariance(stays, common, scale, comovement)[0]
            white = scale[0] * common.sd[-1].exp()
            parts = torch.stack([lasting, full - lasting])
            ahead = parts[:, :, T:, :, T:].reshape(2, D * horizon, D * horizon)
            between = parts[:, :, T:, :, :T].reshape(2 * D * horizon, D * T)
            seen = full[:, :T, :, :T].reshape(D * T, D * T)
            seen.diagonal().add_((white[:, None] ** 2 + torch.from_numpy(self.noise)).reshape(D * T))
            explained = between @ torch.cholesky_solve(between.T, torch.linalg.cholesky(seen))
            posterior = torch.block_diag(*ahead) - explained  # type: ignore[no-untyped-call]
            posterior.diagonal().add_(JITTER)
        return DriverUncertainty(covariance=posterior.numpy(), white=white.numpy().copy())

    def values(self) -> dict[str, Any]:
        """JSON-ready; `from_values` reads it back."""
        arrays = {name: getattr(self, name).tolist() for name in ARRAYS}
        plain = {"first_week": self.first_week.isoformat(), "comovement": self.comovement}
        return {"prior": self.prior.values(), **plain, **arrays}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        return cls(
            prior=PathPrior.from_values(values["prior"]),
            first_week=date.fromisoformat(values["first_week"]),
            comovement=values["comovement"],
            **{name: np.array(values[name], float) for name in ARRAYS},
        )


def fit_paths(series: WeeklySeries, prior: PathPrior) -> FittedPaths:
    """The paths of one firm under a given prior."""
    with one_thread():
        common = prior.hyperparameters()
        (batch,) = batches([series], prior.step_variance())
        fit_own(batch, common, FITTING_EVALUATIONS)
        with torch.no_grad():
            square, residual = batch.gaussian(common, batch.weeks.kernels(common))
            alpha = torch.cholesky_solve(residual, torch.linalg.cholesky(square)).reshape(series.value.shape)
            scale, comovement = batch.scale.exp()[0], torch.sigmoid(batch.comovement)[0]
    return FittedPaths(
        prior=prior,
        first_week=series.first_week,
        level=series.value.mean(axis=1),
        scale=scale.numpy().copy(),
        comovement=float(comovement),
        alpha=alpha.numpy().copy(),
        noise=series.noise.copy(),
        bounds=np.stack([series.value.min(axis=1) - REACH, series.value.max(axis=1) + REACH]),
    )
