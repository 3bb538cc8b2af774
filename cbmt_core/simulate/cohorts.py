"""Cohort-level sampler: draws a firm's cohort-weeks without its single customers, and their expectation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from cbmt_core.arrays import Floats, Ints
from cbmt_core.design import StudyDesign
from cbmt_core.errors import BadFirmData
from cbmt_core.panel import LEFT_CENSORED, FirmPanel
from cbmt_core.simulate.behaviour import Behaviour, behaviour_of, silent
from cbmt_core.simulate.economy import Economy, FirmSpec, Stream

__all__ = ["CohortSample", "expected_cohorts", "sample_cohorts"]


@dataclass(frozen=True, eq=False)
class CohortSample:
    """Cohort-weeks of the study (rows: cohorts, columns: weeks); 0 before a cohort's birth.

    The left-censored cohort comes first, unless the design has no washout. Every study week has a row, also one
    without new customers.
    """

    firm: str
    design: StudyDesign
    size: Floats
    """[N] customers."""
    birth: Ints
    """[N] birth week, counted from the first week of the study, or LEFT_CENSORED."""
    repeat_orders: Floats
    sales: Floats
    active: Floats
    """[N, T] customers with at least one order in the week."""

    @property
    def acquired(self) -> Floats:
        """[T] new customers."""
        return np.asarray(self.size[self.birth != LEFT_CENSORED])

    @property
    def orders(self) -> Floats:
        """[N, T] orders, first ones included."""
        first = np.equal(np.arange(self.repeat_orders.shape[1]), self.birth[:, None])
        return np.asarray(self.repeat_orders + first * self.size[:, None])

    def panel(self) -> FirmPanel:
        """The panel a model is fitted on. Single customers are not sampled, so it holds none."""
        kept = self.size > 0
        if not kept.any():
            raise BadFirmData(self.firm, "has no customer at this scale; raise the economy's scale")
        size, birth, orders = self.size[kept], self.birth[kept], self.orders[kept]
        born = np.arange(orders.shape[1]) >= birth[:, None]
        sales = np.where(born, self.sales[kept], np.nan)
        repeat = np.where(born, self.repeat_orders[kept], np.nan)
        value = np.divide(sales, orders, out=np.full_like(sales, np.nan), where=orders > 0)
        return FirmPanel(
            firm=self.firm,
            design=self.design,
            weeks=self.design.study.dates(),
            A=self.acquired.copy(),
            S=np.nansum(sales, axis=0),
            size=size,
            birth=birth,
            R=repeat / size[:, None],
            V=value,
            Y=sales,
        )


def sample_cohorts(economy: Economy, spec: FirmSpec) -> CohortSample:
    """Draw a firm's cohort-weeks.

    Orders follow exactly the law of the customer-level sampler: of n customers with gamma rates, the sum
    of the rates of those still alive is gamma, and loses a beta share when some leave. Distinct customers
    and spend are drawn around their exact conditional means.
    """
    b = behaviour_of(economy, spec)
    rng = economy.stream(spec.index, Stream.COHORTS)
    T, shape = b.weeks, b.parameters.rate_shape
    size = rng.poisson(b.acquisition).astype(float)
    revealed = float(rng.poisson(b.base * b.base_revealed))

    alive, rates = _survivors(b, size, rng)
    repeat = rng.poisson(rates * b.rate[:T]).astype(float)
    active = repeat - _thinned(repeat, repeat - _distinct(repeat, alive, shape), rng)
    active[np.arange(T), np.arange(T)] = size

    base_repeat, base_active = _sample_base(b, revealed, rng)
    sales = _sample_sales(b, size, revealed, repeat, base_repeat, rng)
    return _collapse(
        spec.name,
        economy,
        b,
        np.append(size, revealed),
        np.vstack([repeat, base_repeat]),
        sales,
        np.vstack([active, base_active]),
    )


def expected_cohorts(economy: Economy, spec: FirmSpec) -> CohortSample:
    """The expectation of both samplers, in closed form."""
    b = behaviour_of(economy, spec)
    T, shape = b.weeks, b.parameters.rate_shape
    live = b.acquisition[:, None] * b.alive[:T]
    repeat = live * b.rate[:T]
    active = live * (1 - silent(b.rate[:T], shape))
    active[np.arange(T), np.arange(T)] = b.acquisition
    revealed, mean_rate, seen = _revealed(b)
    base_live = b.base * b.alive[T] * revealed
    base_repeat = base_live * mean_rate * b.rate[T]
    sales = b.value * np.vstack([repeat, base_repeat])
    sales[np.arange(T), np.arange(T)] += b.acquisition * b.first_value
    return _collapse(
        spec.name,
        economy,
        b,
        np.append(b.acquisition, b.base * b.base_revealed),
        np.vstack([repeat, base_repeat]),
        sales,
        np.vstack([active, base_live * seen]),
    )


def _revealed(b: Behaviour) -> tuple[float, float, Floats]:
    """Of base customers who outlive the washout: P(ordered in it), and of those who did the mean rate λ
    and P(order in week t).

    E[λ exp(-λH)] = (1 + H/r) ** -(r+1) for λ ~ gamma(r, mean 1), and conditioning on an order in the
    washout, whose expected number is λH, subtracts the part of the customers without one.
    """
    shape, H = b.parameters.rate_shape, b.base_washout_orders
    revealed = float(1 - silent(H, shape))
    if revealed <= 0:
        return 0.0, 0.0, np.zeros(b.weeks)
    mean_rate = (1 - (1 + H / shape) ** -(shape + 1)) / revealed
    week = b.rate[-1]
    seen = 1 - silent(week, shape) - (silent(H, shape) - silent(H + week, shape))
    return revealed, float(mean_rate), np.asarray(seen / revealed)


def _survivors(b: Behaviour, size: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """[T, T] live customers and the sum of their rates λ, cohort by week."""
    T, shape = b.weeks, b.parameters.rate_shape
    alive, rates = np.zeros((T, T)), np.zeros((T, T))
    live = np.zeros(T, np.int64)
    total = np.zeros(T)
    for t in range(T):
        if t:
            stay = rng.binomial(live[:t], b.alive[:t, t] / b.alive[:t, t - 1])
            left = live[:t] - stay
            share = rng.beta(np.maximum(shape * stay, 1e-9), np.maximum(shape * left, 1e-9))
            total[:t] = np.where(left == 0, total[:t], np.where(stay == 0, 0.0, total[:t] * share))
            live[:t] = stay
        live[t] = int(size[t])
        total[t] = rng.gamma(shape * size[t]) / shape
        alive[:, t], rates[:, t] = live, total
    return alive, rates


def _distinct(orders: Floats, alive: Floats, shape: float) -> Floats:
    """Expected distinct customers behind `orders` orders of `alive` customers with gamma rates.

    A customer has none of k orders with probability Π_{i<k} ((n-1)r + i) / (nr + i) (Pólya's urn).
    """
    n, k = np.maximum(alive, 1.0), orders
    others, everyone = np.maximum((n - 1) * shape, 1e-9), n * shape
    none = np.exp(gammaln(others + k) - gammaln(others) - gammaln(everyone + k) + gammaln(everyone))
    return np.asarray(np.clip(n * (1 - none), np.minimum(k, 1), np.minimum(k, n)))


def _thinned(orders: Floats, surplus: Floats, rng: np.random.Generator) -> Floats:
    """Orders beyond a customer's first of the week: binomial of mean `surplus`, below `orders`."""
    rest = np.maximum(orders - 1, 0)
    share = np.divide(surplus, rest, out=np.zeros_like(surplus), where=rest > 0)
    return rng.binomial(rest.astype(np.int64), np.clip(share, 0, 1)).astype(float)


def _sample_base(b: Behaviour, revealed: float, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """[T] repeat orders and active customers of the base in study weeks (0 in the washout, unneeded)."""
    T, start = b.weeks, b.timeline.study_start
    repeat, active = np.zeros(T), np.zeros(T)
    share, mean_rate, seen = _revealed(b)
    if revealed == 0 or share == 0:
        return repeat, active
    live = int(rng.binomial(int(revealed), min(1.0, b.alive[T, start] * share / b.base_revealed)))
    crowd = rng.normal(1, 1 / np.sqrt(max(live, 1) * b.parameters.rate_shape))
    for t in range(start, T):
        if t > start:
            live = int(rng.binomial(live, b.alive[T, t] / b.alive[T, t - 1]))
        repeat[t] = rng.poisson(live * mean_rate * max(crowd, 0.0) * b.rate[T, t])
    expected = mean_rate * b.rate[T]
    distinct = repeat * np.divide(seen, expected, out=np.ones(T), where=expected > 0)
    distinct = np.maximum(distinct, np.minimum(repeat, 1))
    return repeat, repeat - _thinned(repeat, repeat - distinct, rng)


def _sample_sales(
    b: Behaviour, size: Floats, revealed: float, repeat: Floats, base: Floats, rng: np.random.Generator
) -> Floats:
    """[T+1, T] sales: a sum over orders, times the cohort's random spending level."""
    T, p = b.weeks, b.parameters
    between, within = np.expm1(p.customer_spread**2), np.expm1(p.order_spread**2)
    spread = between + within + between * within
    orders = np.vstack([repeat, base])
    customers = np.maximum(np.append(size, revealed), 1.0)
    weight = customers / (between * (1 + 1 / p.rate_shape))
    crowd = rng.gamma(weight) / weight
    total = b.value * _spend(orders, spread, rng)
    total[np.arange(T), np.arange(T)] += b.first_value * _spend(size, spread, rng)
    placed = orders.copy()
    placed[np.arange(T), np.arange(T)] += size
    return np.asarray(np.maximum(np.round(crowd[:, None] * total, 2), placed / 100))


def _spend(orders: Floats, spread: float, rng: np.random.Generator) -> Floats:
    """Sum of `orders` lognormal amounts of mean 1 and variance `spread`: lognormal with the same two
    moments, which is exact for one order (Fenton and Wilkinson)."""
    variance = np.log1p(spread / np.maximum(orders, 1))
    return np.asarray(orders * np.exp(np.sqrt(variance) * rng.standard_normal(orders.shape) - variance / 2))


def _collapse(
    firm: str, economy: Economy, b: Behaviour, size: Floats, repeat: Floats, sales: Floats, active: Floats
) -> CohortSample:
    """Study weeks only, and one left-censored row for the base and everyone acquired before the study."""
    start, study = b.timeline.study_start, b.timeline.study
    weeks = b.timeline.study_weeks
    birth = np.arange(weeks, dtype=np.int64)
    if b.timeline.washout:
        birth = np.append(np.int64(LEFT_CENSORED), birth)

    def merged(rows: Floats) -> Floats:
        new = rows[study]
        if not b.timeline.washout:
            return new
        return np.concatenate([rows[:start].sum(axis=0, keepdims=True) + rows[-1:], new])

    return CohortSample(
        firm=firm,
        design=economy.design,
        size=merged(size),
        birth=birth,
        repeat_orders=merged(repeat[:, study]),
        sales=merged(sales[:, study]),
        active=merged(active[:, study]),
    )
