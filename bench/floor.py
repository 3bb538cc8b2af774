"""How low an error can be: forecasts of the simulator's sales with everything known but the future.

    python bench/floor.py                  the sixty firms of bench/accuracy.py
    python bench/floor.py --seed 504       those of another economy

Known are each firm's parameters, season and trend, the quality of every cohort, and all states of the drivers at
the origin. After it, states follow their expectations: deviations fade, steps stay, events come at their average
rate. The remaining error cannot be avoided by any model.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np

from cbmt_core.arrays import Floats
from cbmt_core.metrics import smape
from cbmt_core.simulate import Economy, behaviour, sample_cohorts, states
from cbmt_core.simulate.states import SIMULATED_DRIVERS
from cbmt_core.simulate.timeline import simulated_timeline

RECENT = 13
"""Weeks before the origin on which both forecasts are anchored: the samplers drop customers nobody has seen."""


class Expecting:
    """A random generator whose draws for weeks after the origin are their expectations."""

    def __init__(self, rng: np.random.Generator, weeks: int, origin: int) -> None:
        self.rng, self.weeks, self.origin = rng, weeks, origin

    def after(self, n: int) -> slice:
        """The weeks after the origin of a path of `n` weeks, which may begin before the timeline."""
        return slice(self.origin + n - self.weeks, None)

    def normal(self, loc: float = 0.0, scale: float = 1.0, size: int | None = None) -> Any:
        drawn = self.rng.normal(loc, scale, size)
        if size == self.weeks:
            drawn[self.after(size)] = loc
        return drawn

    def choice(self, values: list[float], n: int) -> Floats:
        drawn = self.rng.choice(values, n).astype(float)
        drawn[self.after(n)] = np.mean(values)
        return drawn

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rng, name)


def expected_ar1(draw: Callable[..., Floats]) -> Callable[..., Floats]:
    def made(rng: Expecting, weeks: int, persistence: float, spread: float) -> Floats:
        path = draw(rng.rng, weeks, persistence, spread)
        ahead = path[rng.after(weeks)]
        ahead[:] = path[-len(ahead) - 1] * persistence ** np.arange(1, len(ahead) + 1)
        return path

    return made


def expected_events(draw: Callable[..., Floats]) -> Callable[..., Floats]:
    def made(rng: Expecting, weeks: int, yearly: float) -> Floats:
        path = draw(rng.rng, weeks, yearly)
        path[rng.after(weeks)] = yearly / 52
        return path

    return made


def sales(b: behaviour.Behaviour, shift: dict[str, float], acquired: Floats) -> Floats:
    """[T] expected sales of a behaviour whose log paths are shifted."""
    customers = np.append(acquired, b.base * b.base_revealed)
    repeats = customers[:, None] * b.alive * b.rate * np.exp(shift["repeat_rate"])
    orders_value = (repeats * b.value).sum(axis=0) + acquired * b.first_value
    return np.asarray(orders_value * np.exp(shift["order_value"]))


def floor(economy: Economy, k: int) -> tuple[float, float]:
    """SMAPE of one firm's total sales: if the future's states were known too, and if they are only expected."""
    spec, timeline = economy.specs()[k], simulated_timeline(economy.design)
    panel = sample_cohorts(economy, spec).panel()
    seen = panel.until(panel.design.origin).n_weeks
    origin, weeks = timeline.study_start + seen, len(timeline)
    true = behaviour.behaviour_of(economy, spec)
    stream = Economy.stream
    with (
        patch.object(states, "_ar1", expected_ar1(states._ar1)),
        patch.object(states, "_events", expected_events(states._events)),
        patch.object(Economy, "stream", lambda *args: Expecting(stream(*args), weeks, origin)),
    ):
        calm = behaviour.behaviour_of(economy, spec)
    # Paths are centred over all weeks, the future's among them: the past must stay where it was.
    shift = {
        d: float((getattr(true.paths, d) - getattr(calm.paths, d))[:origin].mean()) for d in SIMULATED_DRIVERS
    }
    acquired = np.where(
        np.arange(weeks) < origin, true.acquisition, calm.acquisition * np.exp(shift["acquisition"])
    )
    known = sales(true, dict.fromkeys(SIMULATED_DRIVERS, 0.0), true.acquisition)[timeline.study]
    expected = sales(calm, shift, acquired)[timeline.study]
    if not np.allclose(known[:seen], expected[:seen], rtol=0.01):
        raise RuntimeError(f"{spec.name}: the past of the two does not agree")
    recent = slice(seen - RECENT, seen)
    anchor = panel.S[recent].sum() / known[recent].sum()
    actual = panel.S[seen:]
    return smape(actual, anchor * known[seen:]), smape(actual, anchor * expected[seen:])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=606, help="seed of the economy [%(default)s]")
    parser.add_argument("--firms", type=int, default=60, help="firms of the economy [%(default)s]")
    asked = parser.parse_args()
    economy = Economy(firms=asked.firms, seed=asked.seed)
    errors = np.array([floor(economy, k) for k in range(asked.firms)])
    for name, column in zip(
        ("states of the future known", "states of the future expected"), errors.T, strict=True
    ):
        print(f"{name}: SMAPE of total sales {column.mean():.2f}, median {np.median(column):.2f}")


if __name__ == "__main__":
    main()
