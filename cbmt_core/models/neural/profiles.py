"""How much work a fit may be: from seconds in a test to a search as long as the paper's."""

from __future__ import annotations

from dataclasses import dataclass

from cbmt_core.errors import ConfigError
from cbmt_core.tuning import Stages

__all__ = ["PROFILES", "Profile", "profile_of"]


@dataclass(frozen=True)
class Profile:
    stages: Stages
    steps: int
    """Optimiser steps of a trial."""
    batch: int
    members: int
    """Networks that differ by their seed only, averaged in the forecast."""
    direct_steps: int
    """Optimiser steps of each of the eight candidates of `direct`."""


PROFILES: dict[str, Profile] = {
    "smoke": Profile(Stages(random=1), steps=12, batch=32, members=1, direct_steps=4),
    "quick": Profile(Stages(random=2), steps=150, batch=64, members=3, direct_steps=120),
    "standard": Profile(
        Stages(random=6, grid=3, refined=3), steps=300, batch=64, members=5, direct_steps=300
    ),
    "paper": Profile(
        Stages(random=32, grid=16, refined=16), steps=600, batch=96, members=8, direct_steps=1000
    ),
}


def profile_of(name: str) -> Profile:
    """The profile of that name."""
    if name not in PROFILES:
        raise ConfigError(f"no profile is called {name!r}; there are {', '.join(PROFILES)}")
    return PROFILES[name]
