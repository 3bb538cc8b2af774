"""Budgets of a fit: from seconds in a test to a search as long as the paper's."""

from __future__ import annotations

from dataclasses import dataclass

from cbmt_core.errors import ConfigError
from cbmt_core.tuning import Stages

__all__ = ["PROFILES", "Profile", "profile_of"]


@dataclass(frozen=True)
class Profile:
    """Profiles differ in trials and in the longest training; the protocol is the same in all of them."""

    stages: Stages
    """Trials of each search; every family searches, and each driver of a family of single drivers."""
    steps: int
    """Maximum number of optimiser steps of a training."""
    batch: int
    direct_steps: int
    """Optimiser steps of each of the eight candidates of `direct`."""


PROFILES: dict[str, Profile] = {
    "smoke": Profile(Stages(random=1), steps=12, batch=32, direct_steps=4),
    "demo": Profile(Stages(random=2, grid=1, refined=1), steps=30, batch=64, direct_steps=12),
    "quick": Profile(Stages(random=2, grid=1, refined=1), steps=400, batch=64, direct_steps=100),
    "standard": Profile(Stages(random=8, grid=4, refined=4), steps=400, batch=64, direct_steps=300),
    "paper": Profile(Stages(random=32, grid=16, refined=16), steps=600, batch=96, direct_steps=1000),
}


def profile_of(name: str) -> Profile:
    """The profile of that name."""
    if name not in PROFILES:
        raise ConfigError(f"no profile is called {name!r}; there are {', '.join(PROFILES)}")
    return PROFILES[name]
