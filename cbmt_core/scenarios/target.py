"""The inverse of a scenario: how far drivers must move for sales to reach a target with a given probability."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np

from cbmt_core.arrays import Bools, Floats
from cbmt_core.compose import DriverDraws, compose_draws
from cbmt_core.errors import ConfigError
from cbmt_core.scenarios.apply import apply
from cbmt_core.scenarios.definition import ALL_DRIVERS, SCENARIO_DRIVERS, Change, Driver, Scenario

__all__ = ["MOST", "Move", "moves_needed"]


MOST = 10.0
"""Largest factor tried; beyond it a driver counts as unable to reach the target."""


@dataclass(frozen=True)
class Move:
    """The change of one driver alone, or of all together, that reaches the target."""

    driver: str
    change: float | None
    """Percent from the first week of the change on; None where no factor up to MOST reaches the target."""
    reached: float
    """Probability of the target after the move; without one, at the largest factor that was tried."""


def moves_needed(
    draws: DriverDraws,
    wanted: float,
    probability: float,
    *,
    first: date | None = None,
    covered: Bools | None = None,
) -> list[Move]:
    """How far each driver alone, and all together, must move so that `probability` of the draws reach `wanted`.

    Args:
        wanted: sales over the covered weeks.
        probability: between 0 and 1, both excluded.
        first: day from which drivers can be moved; the first week unless stated.
        covered: [H] weeks that the target covers; all unless stated.
    """
    if not 0 < probability < 1:
        raise ConfigError(f"a probability lies between 0 and 100 %, not at {100 * probability:g} %")
    if not (math.isfinite(wanted) and wanted > 0):
        raise ConfigError(f"sales to reach must be positive, not {wanted:g}")
    weeks = np.ones(draws.horizon, bool) if covered is None else covered
    each: list[tuple[str, Sequence[Driver]]] = [(driver, (driver,)) for driver in SCENARIO_DRIVERS]
    return [
        _move(draws, name, drivers, wanted, probability, first, weeks)
        for name, drivers in [*each, (ALL_DRIVERS, SCENARIO_DRIVERS)]
    ]


def _move(
    draws: DriverDraws,
    name: str,
    drivers: Sequence[Driver],
    wanted: float,
    probability: float,
    first: date | None,
    weeks: Bools,
) -> Move:
    from scipy.optimize import brentq  # Slow to import, and needed by few commands.

    # The draw that must reach the target: with it, `probability` of all draws do.
    place = draws.n_draws - math.ceil(probability * draws.n_draws - 1e-9)

    def totals(factor: float) -> Floats:
        changes = tuple(Change(driver, factor=factor, first=first) for driver in drivers)
        return np.asarray(compose_draws(apply(draws, Scenario(name, changes))).sales[:, weeks].sum(axis=1))

    def gap(factor: float) -> float:
        return float(np.partition(totals(factor), place)[place]) - wanted

    def share(factor: float) -> float:
        return float(np.mean(totals(factor) >= wanted))

    # Sales rise with every driver, so there is at most one crossing.
    if gap(0.0) >= 0:
        return Move(name, -100.0, share(0.0))
    if gap(MOST) < 0:
        return Move(name, None, share(MOST))
    root = float(brentq(gap, 0.0, MOST, xtol=1e-10, rtol=1e-12))
    # The root itself may fall short by a rounding error.
    while gap(root) < 0:
        root += 1e-9
    return Move(name, 100 * (root - 1), share(root))
