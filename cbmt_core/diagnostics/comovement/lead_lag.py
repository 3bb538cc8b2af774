"""Measures of lead and lag: movement in one driver followed by movement in another."""

from __future__ import annotations

import numpy as np

from cbmt_core.diagnostics.comovement.drivers import PAIRS, Drivers
from cbmt_core.diagnostics.comovement.measure import GROUPS, Measure
from cbmt_core.diagnostics.comovement.series import Floats

__all__ = ["MEASURES"]

SHORT, LONG = 4, 13
"""Weeks of lead or lag: a month and a quarter."""
LATER = 8
"""Largest lag in weeks of orders and spend behind acquisition."""
DECAY = 0.8
"""Factor of the weight for each further week of lag."""


def _cross(d: Drivers, i: int, j: int, most: int) -> Floats:
    """[2 most + 1] |corr(x_i(t), x_j(t + k))| for k = -most ... most, in the usual scaling by 1/T."""
    n = len(d.z)
    full = np.correlate(d.z[:, j], d.z[:, i], mode="full") / n
    return np.abs(full[n - 1 - most : n + most])


def max_lead_lag(d: Drivers, most: int) -> float:
    return float(np.mean([_cross(d, i, j, most).max() for i, j in PAIRS]))


def decay_weighted(d: Drivers) -> float:
    weight = DECAY ** np.abs(np.arange(-LONG, LONG + 1))
    return float(np.mean([np.average(_cross(d, i, j, LONG), weights=weight) for i, j in PAIRS]))


def acquisition_leads(d: Drivers, other: int) -> float:
    return float(_cross(d, 0, other, LATER)[LATER + 1 :].max())


GROUP = GROUPS[1]
CROSS = "Box and Jenkins 1970, ch. 11"
MEASURES = (
    Measure(
        "max_lead_lag_short", 4, "Max lead-lag correlation", GROUP,
        f"mean over pairs of the largest |r(k)|, |k| ≤ {SHORT} weeks", CROSS,
        lambda d: max_lead_lag(d, SHORT),
    ),
    Measure(
        "max_lead_lag_long", 4, "Max lead-lag correlation", GROUP,
        f"the same, |k| ≤ {LONG} weeks", CROSS, lambda d: max_lead_lag(d, LONG),
    ),
    Measure(
        "decay_weighted_lag", 5, "Decay-weighted lag correlation", GROUP,
        f"mean over pairs of Σ_k {DECAY}^|k| |r(k)| / Σ_k {DECAY}^|k|, |k| ≤ {LONG} weeks", CROSS,
        decay_weighted,
    ),
    Measure(
        "acquisition_to_orders", 6, "Acquisition-to-order/spend correlation", GROUP,
        f"largest |corr(A_t, R_(t+k))|, k = 1 ... {LATER} weeks", CROSS, lambda d: acquisition_leads(d, 1),
    ),
    Measure(
        "acquisition_to_spend", 6, "Acquisition-to-order/spend correlation", GROUP,
        f"largest |corr(A_t, V_(t+k))|, k = 1 ... {LATER} weeks", CROSS, lambda d: acquisition_leads(d, 2),
    ),
)  # fmt: skip
