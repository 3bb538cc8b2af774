"""BandFactors: calibration factors of a model's own distribution, learned from its backtests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.stats import norm

from cbmt_core.arrays import Floats
from cbmt_core.uncertainty import DRIVERS

__all__ = ["SHIPPED", "BandFactors", "history_scale", "learn_factors"]


CALIBRATED, SHRUNK, BORROWED = "calibrated", "shrunk", "borrowed"
FULL_FIRMS, LEAST_FIRMS = 40, 10
"""Number of firms from which on learned factors are used unshrunk; below the second number only the shipped ones
are used."""
FULL_QUARTERS = 12
"""Observed quarters from which on learned factors are used unshrunk: errors of many firms in one year are not
independent."""
SETTLED_WEEKS, LEAST_WEEKS = 91, 52
"""Weeks of history from which on lasting errors are not widened (there are enough years to compare), and weeks
below which they are widened no further."""
HISTORY_POWER = np.array([0.3, 1.2, 1.0])
"""By driver: how fast lasting errors grow with a shorter history."""
LASTING_GRID = np.exp(np.linspace(np.log(0.4), np.log(3.0), 25))
WEEKLY_GRID = np.exp(np.linspace(np.log(0.9), np.log(1.6), 12))
MEAN_WEEKS = (26, 39, 52)
"""Weeks ahead whose mean errors the lasting factor is learned from."""
WEEKLY_STRIDE = 3
"""The weekly factor is learned from every third week: errors of neighbouring weeks are much alike."""
DIGITS = 12
"""Decimals kept of scores, so that the order in which firms are summed makes no difference."""
ADAPTING_RATE, ADAPTING_RANGE = 0.1, (0.7, 1.6)
"""The firm's own multiplier: change of its log per quarter, and its limits."""
QUARTER = 13
MISSES = 0.2
"""Share of weeks that should lie outside an 80 % band."""


@dataclass(frozen=True, eq=False)
class BandFactors:
    """Factors of the lasting and the weekly errors of each driver, in the order of `DRIVERS`."""

    lasting: Floats
    weekly: Floats
    source: str = BORROWED
    """calibrated: learned from the other firms; shrunk: partly; borrowed: shipped, not calibrated on these data."""
    firms: int = 0
    """Firms they were learned from."""
    own: float = 1.0
    """The firm's own multiplier, which follows how often its bands missed."""

    def at(self, history: int) -> BandFactors:
        """The factors of a forecast made from `history` weeks, the firm's own multiplier included."""
        return replace(
            self, lasting=self.lasting * (history_scale(history) * self.own), weekly=self.weekly * self.own
        )


SHIPPED = BandFactors(lasting=np.array([1.05, 1.0, 1.1]), weekly=np.array([0.95, 0.9, 1.0]))
"""Learned from simulated firms other than those of any reported comparison."""


def history_scale(weeks: npt.ArrayLike) -> Floats:
    """[..., 3] factor of each driver's lasting errors by weeks of history; 1 from `SETTLED_WEEKS` on."""
    seen = np.clip(np.asarray(weeks, float), LEAST_WEEKS, SETTLED_WEEKS)
    return np.asarray((SETTLED_WEEKS / seen[..., None]) ** HISTORY_POWER)


def learn_factors(errors: pd.DataFrame) -> dict[str, BandFactors]:
    """The factors of each firm, learned from the other firms' errors, and adapted to its own misses.

    The factors minimise the mean CRPS of the errors that backtests made: the lasting ones that of mean errors over
    half a year and more, the weekly ones that of single weeks. With fewer than `FULL_FIRMS` firms or `FULL_QUARTERS`
    observed quarters they are shrunk, in logs, towards the shipped ones.

    Args:
        errors: of one model, as `realised_errors` gives them.
    """
    firms = sorted(errors["firm"].unique())
    if not firms:
        return {}
    found = _learned(errors, firms) if len(firms) >= LEAST_FIRMS else {}
    trust = min(1.0, len(firms) / FULL_FIRMS) * min(1.0, errors["quarter"].nunique() / FULL_QUARTERS)
    own = _adapted(errors, found, trust)
    return {firm: replace(_shrunk(found.get(firm), trust, len(firms)), own=own[firm]) for firm in firms}


def _shrunk(learned: BandFactors | None, trust: float, firms: int) -> BandFactors:
    if learned is None:
        return SHIPPED
    lasting, weekly = (
        np.exp(trust * np.log(mine) + (1 - trust) * np.log(shipped))
        for mine, shipped in ((learned.lasting, SHIPPED.lasting), (learned.weekly, SHIPPED.weekly))
    )
    return BandFactors(lasting, weekly, CALIBRATED if trust == 1.0 else SHRUNK, firms - 1)


def _learned(errors: pd.DataFrame, firms: list[str]) -> dict[str, BandFactors]:
    """Factors that leave the firm itself out."""
    means = errors[errors["horizon"].isin(MEAN_WEEKS)]
    weeks = errors[errors["horizon"] % WEEKLY_STRIDE == 1]
    best = []
    for driver in DRIVERS:
        scores = _scores(weeks, firms, driver, "")
        if len(means):
            scores += _scores(means, firms, driver, "_mean")
        others = np.round(scores.sum(axis=0) - scores, DIGITS).reshape(len(firms), -1)
        best.append(np.unravel_index(others.argmin(axis=1), scores.shape[1:]))
    lasting = np.stack([LASTING_GRID[k] for k, _ in best], axis=1)
    weekly = np.stack([WEEKLY_GRID[k] for _, k in best], axis=1)
    return {firm: BandFactors(lasting[k], weekly[k]) for k, firm in enumerate(firms)}


def _scores(rows: pd.DataFrame, firms: list[str], driver: str, of: str) -> Floats:
    """[firms, lasting factors, weekly factors] CRPS in units of the model's own spread, as a share of all rows.

    Args:
        of: "_mean" for mean errors up to a week, "" for single weeks.
    """
    error, lasting, weekly, count = _columns(rows, driver, of)
    known = np.isfinite(error) & (lasting > 0)
    error, lasting, weekly, count = (x[known] for x in (error, lasting, weekly, count))
    place = np.searchsorted(firms, rows["firm"].to_numpy(str)[known])
    usual = np.sqrt(lasting**2 + weekly**2 + count) * max(len(error), 1)
    found = np.empty((len(firms), len(LASTING_GRID), len(WEEKLY_GRID)))
    for i, stays in enumerate(LASTING_GRID):
        for j, comes in enumerate(WEEKLY_GRID):
            sd = np.sqrt((stays * lasting) ** 2 + (comes * weekly) ** 2 + count)
            found[:, i, j] = np.bincount(place, _crps(sd, error) / usual, len(firms))
    return found


def _columns(rows: pd.DataFrame, driver: str, of: str) -> tuple[Floats, Floats, Floats, Floats]:
    """Errors with the standard deviations of their lasting and weekly parts, and the variance of counting."""
    error, lasting, weekly, count = (
        rows[f"{driver}_{name}{of}"].to_numpy(float) for name in ("error", "lasting", "weekly", "count")
    )
    scale = history_scale(rows["history"].to_numpy(float))[:, DRIVERS.index(driver)]
    return error, lasting * scale, weekly, count


def _crps(sd: Floats, error: Floats) -> Floats:
    """Continuous ranked probability score of a normal distribution (Gneiting and Raftery 2007, Equation 21)."""
    z = error / sd
    return np.asarray(sd * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / np.sqrt(np.pi)))


def _adapted(errors: pd.DataFrame, found: Mapping[str, BandFactors], trust: float) -> dict[str, float]:
    """By firm: its own multiplier, by adaptive conformal inference (Gibbs and Candes 2021) on a log scale.

    With every quarter that was observed the multiplier grows where the firm's weeks lay outside their 80 % bands more
    often than they should, and falls where less often.
    """
    z = norm.ppf(1 - MISSES / 2)
    made = {}
    for firm, rows in errors.groupby("firm", sort=True):
        base = _shrunk(found.get(str(firm)), trust, 0)
        outside = []
        for d, driver in enumerate(DRIVERS):
            error, lasting, weekly, count = _columns(rows, driver, "")
            sd = np.sqrt((base.lasting[d] * lasting) ** 2 + (base.weekly[d] * weekly) ** 2 + count)
            outside.append(np.abs(error) / sd)
        distance = pd.DataFrame(np.array(outside).T, index=rows["quarter"])
        own = 1.0
        for _, quarter in distance.groupby(level=0, sort=True):
            missed = np.nanmean(quarter.to_numpy() > z * own)
            own = float(np.clip(own * np.exp(ADAPTING_RATE * (missed - MISSES)), *ADAPTING_RANGE))
        made[str(firm)] = own
    return made
