"""DriverUncertainty: the joint Gaussian distribution of the drivers' logs around a forecast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cbmt_core.arrays import Floats

__all__ = ["DRIVERS", "Deviations", "DriverUncertainty", "Spread"]


DRIVERS = ("acquisition", "repeat", "order_value")
"""Customers acquired; repeat orders per customer; order value."""


class Deviations(NamedTuple):
    """K draws of how far the logs of the drivers lie from their forecast: each [K, 3, H], in the order of `DRIVERS`.

    The Poisson noise of counting customers and orders is not included.
    """

    lasting: Floats
    """Errors of level, trend and season, which persist."""
    weekly: Floats
    """Transient errors of single weeks."""


class Spread(NamedTuple):
    """Standard deviations of the drivers' logs, each [3, H]: of each week, and of the mean of weeks 1 to h."""

    lasting: Floats
    lasting_mean: Floats
    weekly: Floats
    weekly_mean: Floats


@dataclass(frozen=True, eq=False)
class DriverUncertainty:
    """A model's own error distribution."""

    covariance: Floats
    """[2 * 3 * H, 2 * 3 * H] of the lasting and the weekly errors of each driver in each week."""
    white: Floats
    """[3] standard deviation of further weekly errors that are independent of all others."""

    @property
    def horizon(self) -> int:
        return len(self.covariance) // (2 * len(DRIVERS))

    def draw(self, draws: int, rng: np.random.Generator) -> Deviations:
        """Joint draws."""
        shape = (draws, 2, len(DRIVERS), self.horizon)
        factor = np.linalg.cholesky(self.covariance)
        lasting, weekly = (rng.standard_normal((draws, len(factor))) @ factor.T).reshape(shape).swapaxes(0, 1)
        noise = rng.standard_normal(weekly.shape) * self.white[:, None]
        return Deviations(lasting=lasting, weekly=weekly + noise)

    def spread(self) -> Spread:
        """Standard deviations, exactly."""
        H, D = self.horizon, len(DRIVERS)
        own = self.covariance.reshape(2, D, H, 2, D, H)
        square = np.stack([[own[part, d, :, part, d, :] for d in range(D)] for part in range(2)])
        square[1] += self.white[:, None, None] ** 2 * np.eye(H)
        mean = np.tril(np.ones((H, H))) / np.arange(1, H + 1)[:, None]
        week = np.sqrt(np.diagonal(square, axis1=2, axis2=3))
        running = np.sqrt(np.einsum("ht,pdts,hs->pdh", mean, square, mean))
        return Spread(week[0], running[0], week[1], running[1])
