"""Hand-made panels: one ordinary firm and the odd ones every model must survive."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import numpy.typing as npt

from cbmt_core.design import StudyDesign
from cbmt_core.panel import LEFT_CENSORED, CustomerHistory, FirmPanel

__all__ = [
    "HOLDOUT",
    "ODD_FIRMS",
    "big_panel",
    "calibration",
    "ordinary",
    "panel_with",
    "scramble_after",
    "simulate",
]

WEEKS = 84
HOLDOUT = 13
CENSORED = 160

Weekly = Callable[[npt.NDArray[np.int64]], npt.NDArray[np.float64]]


def design(weeks: int = WEEKS, holdout: int = HOLDOUT, washout: int = 52) -> StudyDesign:
    first = date(2016, 1, 3)
    return StudyDesign(
        observed_from=first,
        first_week=first,
        washout_weeks=washout,
        training_weeks=weeks - 20,
        validation_weeks=20,
        holdout_weeks=holdout,
        observed_to=first + timedelta(days=7 * (washout + weeks + holdout) - 1),
    )


def seasonal(t: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    return 1 + 0.25 * np.sin(2 * np.pi * t / 52)


def simulate(
    seed: int,
    *,
    firm: str = "ordinary",
    weeks: int = WEEKS,
    holdout: int = HOLDOUT,
    washout: int = 52,
    acquisition: Weekly = lambda t: 18 * seasonal(t),
    activity: Weekly = seasonal,
    censored: int = CENSORED,
) -> FirmPanel:
    """Single customers with gamma rates and exponential lifetimes, counted into weekly cohorts."""
    rng = np.random.default_rng(seed)
    plan = design(weeks, holdout, washout)
    t = np.arange(weeks + holdout)
    arrivals = rng.poisson(acquisition(t))
    kept = arrivals > 0
    birth = np.r_[[LEFT_CENSORED] * (censored > 0), t[kept]].astype(np.int64)
    size = np.r_[[censored] * (censored > 0), arrivals[kept]].astype(np.int64)
    cohort = np.repeat(np.arange(len(size)), size)
    born = birth[cohort][:, None]
    death = born + np.where(born < 0, 150, 60) * rng.exponential(size=(len(cohort), 1))
    rate = rng.gamma(1.5, 0.08, size=(len(cohort), 1)) * activity(t)
    repeat = rng.poisson(np.where((t >= born) & (t <= death), rate * np.where(t == born, 0.3, 1.0), 0.0))
    orders = repeat + (t == born)
    by_cohort = np.zeros((len(size), len(t)))
    np.add.at(by_cohort, cohort, orders)
    alive = t >= birth[:, None]
    price = 40 * rng.lognormal(0, 0.1, size=by_cohort.shape) * (1 + 0.1 * seasonal(t))
    sales = np.where(alive, by_cohort * price, np.nan)
    with np.errstate(invalid="ignore"):
        value = np.where(by_cohort > 0, price, np.nan)
    seen = orders.sum(axis=1) > 0
    return FirmPanel(
        firm=firm,
        design=plan,
        weeks=plan.study.dates(),
        A=arrivals.astype(float),
        S=np.nansum(sales, axis=0),
        size=size.astype(float),
        birth=birth,
        R=np.where(alive, (by_cohort - size[:, None] * (t == birth[:, None])) / size[:, None], np.nan),
        V=value,
        Y=sales,
        customers=CustomerHistory(
            cohort=cohort[seen].astype(np.int32),
            start=np.r_[0, np.cumsum(orders[seen].sum(axis=1))],
            week=np.concatenate([np.repeat(t, row) for row in orders[seen]]).astype(np.int16),
        ),
    )


def calibration(panel: FirmPanel) -> FirmPanel:
    """What a model may see of the panel."""
    return panel.until(panel.design.origin)


def ordinary(seed: int = 1) -> FirmPanel:
    return simulate(seed, firm=f"ordinary {seed}")


def panel_with(panel: FirmPanel, repeat_rate: Callable[..., npt.NDArray[np.float64]]) -> FirmPanel:
    """The panel with ROPC replaced by rate(birth, week, month)."""
    birth, week = panel.birth[:, None], np.arange(panel.n_weeks)
    rate = np.broadcast_to(repeat_rate(birth, week, panel.calendar().month), panel.R.shape)
    return replace(panel, R=np.where(panel.born, rate, np.nan), customers=None)


def big_panel(weeks: int = 118) -> FirmPanel:
    """Two hundred new customers a week, so that chance plays little part."""
    return calibration(
        simulate(3, weeks=weeks, holdout=0, acquisition=lambda t: 200 + 0.0 * t, censored=4000)
    )


def scramble_after(panel: FirmPanel, origin: date, seed: int = 0) -> FirmPanel:
    """The same past with another future: other sizes, orders and prices after the origin."""
    rng = np.random.default_rng(seed)
    later = panel.weeks > np.datetime64(origin)
    factor = np.where(later, rng.uniform(3, 9, size=panel.n_weeks), 1.0)
    unborn = panel.birth >= int((~later).sum())
    customers = panel.customers
    if customers is not None:
        moved = customers.week >= int((~later).sum())
        customers = replace(customers, week=np.where(moved, panel.n_weeks - 1, customers.week))
    return replace(
        panel,
        A=panel.A * factor,
        S=panel.S * factor**3,
        size=np.where(unborn, panel.size * 7, panel.size),
        R=panel.R * factor,
        V=panel.V * factor,
        Y=panel.Y * factor**3,
        customers=customers,
    )


def _outlier() -> FirmPanel:
    """One order ten thousand times the usual value, and one week with fifty times the customers' orders."""
    panel = simulate(5, firm="outlier")
    V, R = panel.V.copy(), panel.R.copy()
    V[0, 70] = 4e5
    R[0, 50] *= 50
    Y = np.where(panel.born, panel.size[:, None] * (panel.is_birth + R) * np.nan_to_num(V), np.nan)
    return replace(panel, V=V, R=R, Y=Y, S=np.nansum(Y, axis=0))


def _huge() -> FirmPanel:
    """A firm of millions of customers, for whom no single histories are at hand."""
    panel = simulate(6, firm="huge")
    k = 1e5
    return replace(panel, A=panel.A * k, S=panel.S * k, size=panel.size * k, Y=panel.Y * k, customers=None)


def _one_price() -> FirmPanel:
    panel = simulate(7, firm="one price")
    V = np.where(np.isnan(panel.V), np.nan, 25.0)
    Y = np.where(panel.born, panel.orders * 25.0, np.nan)
    return replace(panel, V=V, Y=Y, S=np.nansum(Y, axis=0))


def _only_censored() -> FirmPanel:
    return simulate(8, firm="nobody new", acquisition=lambda t: 0.0 * t)


def _first_week_only() -> FirmPanel:
    return simulate(
        9, firm="one cohort", acquisition=lambda t: np.where(t == 0, 200.0, 0.0), censored=0, washout=0
    )


def _dead() -> FirmPanel:
    def until_dead(t: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        return np.where(t < WEEKS - 30, 1.0, 0.0)

    return simulate(10, firm="dead", acquisition=lambda t: 18 * until_dead(t), activity=until_dead)


ODD_FIRMS: dict[str, Callable[[], FirmPanel]] = {
    "three weeks": lambda: (p := simulate(2, firm="three weeks")).until(p.weeks[2].astype(object)),
    "nine weeks": lambda: (p := simulate(2, firm="nine weeks")).until(p.weeks[8].astype(object)),
    "forty weeks": lambda: (p := simulate(2, firm="forty weeks")).until(p.weeks[39].astype(object)),
    "nobody new": _only_censored,
    "one cohort": _first_week_only,
    "dead": _dead,
    "gaps in acquisition": lambda: simulate(
        3, firm="gaps", acquisition=lambda t: np.where(t % 3 == 0, 18.0, 0.0)
    ),
    "rare customers": lambda: simulate(11, firm="rare", acquisition=lambda t: 0.3 + 0.0 * t, censored=12),
    "no left-censored cohort": lambda: simulate(4, firm="no washout", censored=0, washout=0),
    "outlier": _outlier,
    "huge": _huge,
    "one price": _one_price,
}
"""Firms as a model may see them, by what is odd about them; longer ones still need `calibration`."""
