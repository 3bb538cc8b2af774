"""Measure: a co-movement measure with its column, its place in the paper's list, and its function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cbmt_core.diagnostics.comovement.drivers import Drivers

__all__ = ["GROUPS", "Measure"]

GROUPS = (
    "Linear and rank co-movement",
    "Lead-lag co-movement",
    "Cohort-level co-movement",
    "Nonlinear co-movement",
    "Predictive and directed dependence",
    "Covariance and latent-state structure",
    "Regime, spectral, and panel-aware measures",
    "Decomposition diagnostic",
)
"""Table "Cross-Metric Co-Movement Measures"."""


@dataclass(frozen=True)
class Measure:
    """One column of the battery. Pairs are A-R, A-V and R-V. Unless stated otherwise, absolute values are averaged
    over them, because a shared driver may move two primitives in opposite directions."""

    name: str
    number: int
    """Number of the family, 1 to 28, as in the paper."""
    family: str
    group: str
    formula: str
    reference: str
    compute: Callable[[Drivers], float] = field(repr=False)
    rises: bool = True
    """Whether more shared structure always raises it; these measures set the sign of the score."""
