"""Parameters of a firm: its size, its customers' habits, and how its drivers move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cbmt_core.arrays import Floats
from cbmt_core.simulate.industries import Industry

__all__ = ["FirmParameters", "Population", "draw_parameters"]


@dataclass(frozen=True)
class FirmParameters:
    """One firm's true parameters, at full scale. Time is in weeks, money in dollars."""

    acquisition: float
    """Customers acquired in a typical week."""
    saturation: float
    """Yearly fall of log acquisition: a fixed panel runs out of people who are not yet customers."""
    base: float
    """Live customers at the start who were acquired before it, in weeks of acquisition."""
    repeat_rate: float
    """Repeat orders a week of a live customer past the first enthusiasm."""
    rate_shape: float
    """Shape of the gamma distribution (mean 1) of customers' rates."""
    novelty: float
    """Extra rate of a new customer: the rate starts at 1 + novelty times its later level ..."""
    novelty_weeks: float
    """... and the extra fades with this time constant."""
    core: float
    """Share of customers who leave only by `core_churn`; the others by a Pareto law."""
    core_spread: float
    """Spread of the logit of `core` between cohorts."""
    core_churn: float
    """Weekly hazard at which core customers leave."""
    dropout_shape: float
    """Pareto law of the others, P(alive at tenure u) = (scale / (scale + u)) ** shape."""
    dropout_scale: float
    quality_drift: float
    """Yearly change of the log rate from one acquisition year to the next."""
    quality_spread: float
    """Spread of the log rate between cohorts of neighbouring weeks."""
    rate_trend: float
    """Yearly change of everybody's log rate."""
    order_value: float
    value_trend: float
    """Yearly change of the log order value."""
    first_order: float
    """Value of a first order relative to a repeat order."""
    loyal_value: float
    """How much the log order value grows with tenure in the end."""
    customer_spread: float
    """Spread of log spend between customers."""
    order_spread: float
    """Spread of log spend between a customer's orders."""
    comovement: float
    """0: the drivers' states are independent; 1: all states are shared."""
    volatility: float
    """Factor of everything that moves the drivers except the seasons."""
    noise: tuple[float, float, float]
    """Spread of weekly noise in log acquisition, rate and value."""
    lag: tuple[int, int, int]
    """Weeks by which each driver follows the shared states."""


@dataclass(frozen=True)
class Population:
    """How firms differ: means and spreads of the logs, set so that the quartiles of the economy are the
    paper's (table "Summary Statistics"). A spread has two sides, below and above the median, because
    the paper's quartiles are skewed even in logs.
    """

    acquisition: tuple[float, float, float] = (6.59, 1.13, 1.32)
    repeat_rate: tuple[float, float, float] = (0.65, 0.50, 1.15)
    """Median relative to the industry's frequency, in logs."""
    order_value: tuple[float, float, float] = (0.045, 0.66, 0.59)
    """Median relative to the industry's order value, in logs."""
    base: tuple[float, float, float] = (3.35, 0.5, 0.5)
    """Live base in weeks of acquisition, in logs."""
    size_rate: float = -0.24
    """Correlations of the firms' deviations."""
    size_value: float = -0.1
    rate_value: float = -0.22
    size_base: float = 0.2
    bend: float = 0.3
    """Extra rate deviation of firms far from the median size: small firms depend on regular customers, and the
    largest are large because customers come back; firms in between have neither."""
    core: float = 0.30
    core_churn: float = 0.003
    rate_trend: float = -0.005
    most_acquired: float = 9000.0
    """Upper limit of weekly acquisition: a panel of 2.3 million people has no more customers to acquire over the
    years."""
    most_orders: float = 1.5
    """Upper limit of a firm's mean orders per customer and week."""
    saturation: float = 0.145
    saturation_size: float = 0.08
    """How much faster a firm one spread larger saturates."""

    def deviations(self, rng: np.random.Generator) -> Floats:
        """Correlated standard normals: size, rate, value, base."""
        correlation = np.eye(4)
        pairs = {(0, 1): self.size_rate, (0, 2): self.size_value, (1, 2): self.rate_value}
        for (i, j), value in {**pairs, (0, 3): self.size_base}.items():
            correlation[i, j] = correlation[j, i] = value
        return np.asarray(np.linalg.cholesky(correlation) @ rng.standard_normal(4))


def _two_sided(law: tuple[float, float, float], deviation: float) -> float:
    median, below, above = law
    return median + deviation * (below if deviation < 0 else above)


def _below(limit: float, value: float) -> float:
    """A smooth upper limit: `value` where it is far below the limit, and never above it."""
    return float(limit * np.tanh(value / limit))


def _logit(share: float) -> float:
    return float(np.log(share / (1 - share)))


def _share(logit: float) -> float:
    return float(1 / (1 + np.exp(-logit)))


def draw_parameters(
    industry: Industry, rng: np.random.Generator, population: Population | None = None
) -> FirmParameters:
    """Draw the parameters of a firm of the industry."""
    law = population or Population()
    size, rate, value, base = (float(z) for z in law.deviations(rng))
    rate += law.bend * (abs(size) - np.sqrt(2 / np.pi))
    volatility = float(np.exp(rng.normal(0, 0.35)))
    noise = volatility * np.exp(rng.normal(0, 0.3, 3)) * np.array([0.07, 0.025, 0.012])
    return FirmParameters(
        acquisition=_below(law.most_acquired, np.exp(_two_sided(law.acquisition, size))),
        saturation=law.saturation + law.saturation_size * size + float(rng.normal(0, 0.10)),
        base=float(np.exp(_two_sided(law.base, base))),
        repeat_rate=_below(law.most_orders, industry.frequency * np.exp(_two_sided(law.repeat_rate, rate))),
        rate_shape=float(np.exp(rng.normal(np.log(0.45), 0.3))),
        novelty=float(np.exp(rng.normal(np.log(0.5), 0.5))),
        novelty_weeks=float(np.exp(rng.normal(np.log(8), 0.3))),
        core=_share(_logit(law.core) + industry.loyalty + float(rng.normal(0, 0.35))),
        core_spread=float(np.exp(rng.normal(np.log(0.12), 0.4))),
        core_churn=float(np.exp(rng.normal(np.log(law.core_churn), 0.4))),
        dropout_shape=float(np.exp(rng.normal(np.log(1.1), 0.25))),
        dropout_scale=float(np.exp(rng.normal(np.log(9), 0.35))),
        quality_drift=float(rng.normal(0.0, 0.05)),
        quality_spread=float(np.exp(rng.normal(np.log(0.05), 0.4))),
        rate_trend=law.rate_trend + float(rng.normal(0.0, 0.05)),
        order_value=industry.order_value * float(np.exp(_two_sided(law.order_value, value))),
        value_trend=float(rng.normal(0.0, 0.02)),
        first_order=float(np.exp(rng.normal(-0.03, 0.08))),
        loyal_value=float(rng.normal(0.03, 0.05)),
        customer_spread=float(np.exp(rng.normal(np.log(0.40), 0.25))),
        order_spread=float(np.exp(rng.normal(np.log(0.55), 0.25))),
        comovement=float(rng.beta(1.3, 1.3)),
        volatility=volatility,
        noise=(float(noise[0]), float(noise[1]), float(noise[2])),
        lag=(0, int(rng.integers(0, 5)), int(rng.integers(0, 7))),
    )
