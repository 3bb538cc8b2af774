"""Measures of common shocks, common rhythm, and their stability over time."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import maximum_filter1d, median_filter
from scipy.signal import coherence
from scipy.stats import median_abs_deviation
from sklearn.metrics import cohen_kappa_score

from cbmt_core.diagnostics.comovement.drivers import PAIRS, Drivers
from cbmt_core.diagnostics.comovement.measure import GROUPS, Measure

__all__ = ["MEASURES"]

WINDOW = 26
"""Weeks of a moving window or a spectral segment: half a year."""
SLOW = 8
"""Period in weeks from which a rhythm counts as slow."""
QUARTER = 13
SPIKE = 2.5


def spike_coincidence(d: Drivers) -> float:
    off = d.aligned - median_filter(d.aligned, size=(QUARTER, 1), mode="nearest")
    spread = median_abs_deviation(off, axis=0, scale="normal")
    spikes = maximum_filter1d((np.abs(off) > SPIKE * spread).astype(int), 3, axis=0)
    spiky = np.ptp(spikes, axis=0) > 0
    # Without spikes in one of two series, none coincide.
    agreement = [
        cohen_kappa_score(spikes[:, i], spikes[:, j]) if spiky[i] and spiky[j] else 0.0 for i, j in PAIRS
    ]
    return float(np.mean(agreement))


def mean_coherence(d: Drivers, slow: bool) -> float:
    x = d.aligned.T
    frequency, shared = coherence(
        x[[i for i, _ in PAIRS]], x[[j for _, j in PAIRS]], nperseg=min(WINDOW, x.shape[1] // 3)
    )
    band = (frequency > 0) & (frequency <= 1 / SLOW) if slow else frequency > 1 / SLOW
    return float(shared[:, band].mean())


def rolling_stability(d: Drivers) -> float:
    windows = np.lib.stride_tricks.sliding_window_view(d.aligned, min(WINDOW, len(d.aligned) // 2), axis=0)
    windows = windows - windows.mean(axis=2, keepdims=True)
    norm = np.sqrt((windows**2).sum(axis=2))
    steady = []
    for i, j in PAIRS:
        size = norm[:, i] * norm[:, j]
        moving = size > 1e-9
        if not moving.any():
            return float("nan")
        r = (windows[:, i] * windows[:, j]).sum(axis=1)[moving] / size[moving]
        steady.append(abs(r.mean()) / (1 + r.std()))
    return float(np.mean(steady))


GROUP = GROUPS[6]
COHERENCE = "Welch's estimate, Priestley 1981, ch. 9; aligned first as Jenkins and Watts 1968"
MEASURES = (
    Measure(
        "spike_coincidence", 22, "Spike coincidence", GROUP,
        f"mean over pairs of Cohen's κ of spikes, one week apart at most; a spike is {SPIKE:g} robust "
        "deviations off the median of the quarter around it; aligned",
        "Cohen 1960; events as Quian Quiroga et al. 2002", spike_coincidence,
    ),
    Measure(
        "coherence_slow", 23, "Spectral coherence", GROUP,
        f"mean over pairs and periods of {SLOW} weeks or longer of |S_xy|² / (S_xx S_yy)", COHERENCE,
        lambda d: mean_coherence(d, slow=True),
    ),
    Measure(
        "coherence_fast", 23, "Spectral coherence", GROUP,
        f"the same, periods shorter than {SLOW} weeks", COHERENCE, lambda d: mean_coherence(d, slow=False),
    ),
    Measure(
        "rolling_stability", 24, "Rolling-window stability", GROUP,
        f"mean over pairs of |mean r| / (1 + spread of r) over moving windows of {WINDOW} weeks; aligned",
        "own definition; the paper names the family", rolling_stability,
    ),
)  # fmt: skip
