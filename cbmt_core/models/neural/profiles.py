"""How much work a fit may be: from seconds in a test to a search as long as the paper's."""

from __future__ import annotations

from dataclasses import dataclass

from cbmt_core.errors import ConfigError
from cbmt_core.tuning import Stages

__all__ = ["PROFILES", "Profile", "profile_of"]


@dataclass(frozen=True)
class Profile:
    stages: Stages
    trial_steps: int
    """Optimiser steps of a trial of the search."""
    steps: int
    """Optimiser steps of a network that forecasts."""
    batch: int
    networks: int
    """Networks that each family trains for its forecast: as many seeds of one joint network, averaged, or the
    networks of single drivers with as many seeds fewer. So every family gets the same work."""
    direct_steps: int
    """Optimiser steps of each of the eight candidates of `direct`."""


PROFILES: dict[str, Profile] = {
    "smoke": Profile(Stages(random=1), trial_steps=8, steps=12, batch=32, networks=1, direct_steps=4),
    "quick": Profile(Stages(random=2), trial_steps=150, steps=300, batch=64, networks=3, direct_steps=100),
    "standard": Profile(
        Stages(random=6, grid=3, refined=3),
        trial_steps=300,
        steps=300,
        batch=64,
        networks=6,
        direct_steps=300,
    ),
    "paper": Profile(
        Stages(random=32, grid=16, refined=16),
        trial_steps=400,
        steps=400,
        batch=96,
        networks=9,
        direct_steps=1000,
    ),
}


def profile_of(name: str) -> Profile:
    """The profile of that name."""
    if name not in PROFILES:
        raise ConfigError(f"no profile is called {name!r}; there are {', '.join(PROFILES)}")
    return PROFILES[name]
