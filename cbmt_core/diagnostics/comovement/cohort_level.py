"""Measures of co-movement in the cohort panel: by cohort, by tenure, between the cohorts of a week."""

from __future__ import annotations

import numpy as np

from cbmt_core.diagnostics.comovement.drivers import Drivers
from cbmt_core.diagnostics.comovement.measure import GROUPS, Measure
from cbmt_core.diagnostics.comovement.series import Floats, correlation, weekly_means

__all__ = ["COHORT", "PANEL"]

BANDS = ((1, 4), (5, 13), (14, 26), (27, 52))
"""First and last week of tenure."""
YOUNG = (1, 8)
LATER = 4
"""Largest lag in weeks between the drivers of a cohort."""
LEAST_COHORTS = 8
LEAST_WEEKS = 20


def _coupling(d: Drivers, first: int, last: int) -> float:
    """Mean |r| over the pairs of acquisition and the band's ROPC and AOV, cohorts weighted by size."""
    weight = np.where((d.tenure >= first) & (d.tenure <= last), d.size, 0.0)
    r, v = (d.adjusted(weekly_means(x, weight)) for x in (d.aged_R, d.aged_V))
    a, r, v = d.meet((0, d.z[:, 0]), (1, r), (2, v))
    return float(np.mean(np.abs([correlation(a, r), correlation(a, v), correlation(r, v)])))


def tenure_coupling(d: Drivers) -> float:
    bands = np.array([_coupling(d, *band) for band in BANDS])
    known = np.isfinite(bands)
    return float(bands[known].mean()) if known.any() else float("nan")


def directional(d: Drivers) -> float:
    R, V = d.adjusted(d.aged_R), d.adjusted(d.aged_V)
    A = np.broadcast_to(d.z[:, 0], R.shape)
    steps = ((A, R), (A, V), (R, V), (V, R))
    strongest = [
        np.max([_cohort_mean(x[:, :-k], y[:, k:], d.size[:, 0]) for k in range(1, LATER + 1)])
        for x, y in steps
    ]
    return float(np.mean(strongest))


def _cohort_mean(x: Floats, y: Floats, size: Floats) -> float:
    """|mean over cohorts of their r|: the noise of single cohorts averages out."""
    known = np.isfinite(x) & np.isfinite(y)
    n = known.sum(axis=1)
    x, y = (np.where(known, values, 0.0) for values in (x, y))
    x, y = (np.where(known, v - (v.sum(axis=1) / np.maximum(n, 1))[:, None], 0.0) for v in (x, y))
    norm = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    kept = (n >= LEAST_WEEKS) & (norm > 1e-9)
    if kept.sum() < LEAST_COHORTS:
        return float("nan")
    r = (x * y).sum(axis=1)[kept] / norm[kept]
    return float(np.abs(np.average(r, weights=size[kept] * n[kept])))


def order_spend(d: Drivers) -> float:
    known = np.isfinite(d.aged_R) & np.isfinite(d.aged_V)
    weeks = known.sum(axis=0) >= LEAST_COHORTS
    if weeks.sum() < LEAST_WEEKS:
        return float("nan")
    w = np.where(known, d.size, 0.0)[:, weeks]
    w = w / w.sum(axis=0)
    R, V = (np.where(known, x, 0.0)[:, weeks] for x in (d.aged_R, d.aged_V))
    R, V = (x - (w * x).sum(axis=0) for x in (R, V))
    norm = np.sqrt((w * R**2).sum(axis=0) * (w * V**2).sum(axis=0))
    moving = norm > 1e-12
    if moving.sum() < LEAST_WEEKS:
        return float("nan")
    return float(np.abs(((w * R * V).sum(axis=0)[moving] / norm[moving]).mean()))


def acquisition_dispersion(d: Drivers, driver: int) -> float:
    values = d.aged_R if driver == 1 else d.aged_V
    mean = weekly_means(values, d.size)
    spread = np.sqrt(weekly_means((values - mean) ** 2, d.size))
    spread = np.where(np.isfinite(values).sum(axis=0) >= LEAST_COHORTS, spread, np.nan)
    pair = d.z[:, 0], d.adjusted(spread)
    return max(abs(correlation(*pair)), abs(correlation(*d.meet((0, pair[0]), (driver, pair[1])))))


OWN = "own definition; the paper names the family"
AGED = "deviations of log(1 + x) from the mean of their tenure"
COHORT = (
    Measure(
        "cohort_directional", 7, "Cohort-averaged directional dependence", GROUPS[2],
        "mean over A→R, A→V, R→V, V→R of the largest |size-weighted mean over cohorts of "
        f"corr(x_t, y_(t+k))|, k = 1 ... {LATER} weeks, {AGED}",
        OWN, directional,
    ),
    Measure(
        "tenure_coupling", 8, "Tenure-specific coupling", GROUPS[2],
        "mean |r| over pairs of A_t and the R_t, V_t of cohorts in tenure weeks 1-4, 5-13, 14-26, 27-52, "
        "averaged over these bands; aligned", OWN, tenure_coupling,
    ),
)  # fmt: skip
PANEL = (
    Measure(
        "order_spend_coupling", 25, "Within-week cross-cohort order-spend coupling", GROUPS[6],
        f"|mean over weeks of the size-weighted correlation between cohorts of R and V|, {AGED}", OWN,
        order_spend,
    ),
    Measure(
        "acquisition_dispersion_orders", 26, "Acquisition-dispersion link", GROUPS[6],
        "|corr(A_t, spread of R between the cohorts of week t)|; same week or aligned, the larger", OWN,
        lambda d: acquisition_dispersion(d, 1),
    ),
    Measure(
        "acquisition_dispersion_spend", 26, "Acquisition-dispersion link", GROUPS[6],
        "|corr(A_t, spread of V between the cohorts of week t)|; same week or aligned, the larger", OWN,
        lambda d: acquisition_dispersion(d, 2),
    ),
    Measure(
        "young_cohorts", 27, "Young-cohort correlation", GROUPS[6],
        "mean |r| over pairs of A_t and the R_t, V_t of cohorts in tenure weeks 1-8; aligned", OWN,
        lambda d: _coupling(d, *YOUNG),
    ),
)  # fmt: skip
