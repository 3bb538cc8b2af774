"""Firms whose drivers are built to share something, or nothing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cbmt_core.arrays import Floats
from cbmt_core.design import StudyDesign
from cbmt_core.panel import LEFT_CENSORED, FirmPanel

__all__ = ["CASES", "WEEKS", "firm_with"]


DESIGN = StudyDesign()
WEEKS = len(DESIGN.calibration)


def firm_with(
    a: Floats,
    r: Floats,
    v: Floats,
    rng: np.random.Generator,
    *,
    base: float = 4000.0,
    orders: float = 0.3,
    cohort_R: Floats | None = None,
    cohort_V: Floats | None = None,
) -> FirmPanel:
    """A firm whose weekly drivers follow a, r and v (in units of 20 %), and whose cohorts scatter around them."""
    t = np.arange(WEEKS)
    acquired = np.round(300 * np.exp(0.2 * a))
    birth = np.append(LEFT_CENSORED, t)
    size = np.append(base, acquired)
    born = t >= birth[:, None]
    shape = (WEEKS + 1, WEEKS)
    scatter_R = 0.1 * rng.standard_normal(shape) if cohort_R is None else cohort_R
    scatter_V = 0.1 * rng.standard_normal(shape) if cohort_V is None else cohort_V
    R = np.where(born, orders * np.exp(0.2 * r + scatter_R), np.nan)
    V = np.where(born, 50 * np.exp(0.2 * v + scatter_V), np.nan)
    Y = size[:, None] * (np.equal(t, birth[:, None]) + R) * V
    return FirmPanel(
        firm="planted",
        design=DESIGN,
        weeks=DESIGN.calibration.dates(),
        A=acquired,
        S=np.nansum(Y, axis=0),
        size=size,
        birth=birth,
        R=R,
        V=V,
        Y=Y,
    )


def _noise(rng: np.random.Generator) -> FirmPanel:
    return firm_with(*rng.standard_normal((3, WEEKS)), rng)


def _shared(rng: np.random.Generator) -> FirmPanel:
    common, own = rng.standard_normal(WEEKS), rng.standard_normal((3, WEEKS))
    return firm_with(*(0.9 * common + 0.44 * own), rng)


def _opposed(rng: np.random.Generator) -> FirmPanel:
    """What brings customers and orders takes from the value of an order, as discounts do."""
    common, own = rng.standard_normal(WEEKS), rng.standard_normal((3, WEEKS))
    return firm_with(*(np.array([[1], [0], [-1]]) * common + 0.3 * own), rng)


def _lagged(rng: np.random.Generator) -> FirmPanel:
    """Orders follow acquisition after one week, spend after two."""
    common, own = rng.standard_normal(WEEKS + 2), rng.standard_normal((3, WEEKS))
    moved = np.array([common[2 - k : 2 - k + WEEKS] for k in (0, 1, 2)])
    return firm_with(*(0.9 * moved + 0.44 * own), rng)


def _square(rng: np.random.Generator) -> FirmPanel:
    """Spend is high when acquisition is unusual in either direction, orders are then unusual in any:
    dependent, not correlated."""
    a = rng.uniform(-1.7, 1.7, WEEKS)
    return firm_with(a, rng.choice([-1, 1], WEEKS) * a, 1.1 * (a**2 - 1), rng)


def _cohorts(rng: np.random.Generator) -> FirmPanel:
    """Good cohorts order and spend more; how far cohorts differ depends on the week's acquisition."""
    a, r, v = rng.standard_normal((3, WEEKS))
    quality = 0.15 * rng.standard_normal((WEEKS + 1, WEEKS)) * np.exp(0.5 * a)
    return firm_with(a, r, v, rng, cohort_R=quality, cohort_V=quality)


def _first_orders(rng: np.random.Generator) -> FirmPanel:
    """Hardly anyone comes back, so that sales are new customers times order value."""
    return firm_with(*rng.standard_normal((3, WEEKS)), rng, base=1.0, orders=1e-4)


def _spikes(rng: np.random.Generator) -> FirmPanel:
    """Eight promotions that everything answers, two weeks later in the case of spend."""
    x = 0.3 * rng.standard_normal((3, WEEKS))
    weeks = rng.choice(np.arange(5, WEEKS - 5, 4), 8, replace=False)
    for row, delay in zip(x, (0, 0, 2), strict=True):
        row[weeks + delay] += 4
    return firm_with(*x, rng)


CASES: dict[str, Callable[[np.random.Generator], FirmPanel]] = {
    "noise": _noise,
    "shared": _shared,
    "opposed": _opposed,
    "lagged": _lagged,
    "square": _square,
    "cohorts": _cohorts,
    "first_orders": _first_orders,
    "spikes": _spikes,
}
