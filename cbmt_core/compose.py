"""Compose revenue from the drivers. All sales in the product are computed here."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cbmt_core.arrays import Bools, Floats, Ints
from cbmt_core.errors import CbmtError
from cbmt_core.models.contract import PrimitiveForecast, SalesForecast
from cbmt_core.panel import FirmPanel

__all__ = ["BadForecast", "DrawnForecast", "DriverDraws", "RevenueForecast", "compose", "compose_draws"]


class BadForecast(CbmtError):
    """A model's forecast breaks the model contract: wrong shape, not finite, or negative."""


@dataclass(frozen=True, eq=False)
class RevenueForecast:
    """A forecast of the drivers and the sales they imply, for the H weeks after the origin.

    Rows are the panel's N cohorts and one cohort for each forecast week, as in PrimitiveForecast. A model
    that forecasts sales alone leaves everything but `S` unknown (NaN).
    """

    weeks: npt.NDArray[np.datetime64]
    A: Floats
    R: Floats
    V: Floats
    size: Floats
    """[N + H] observed size of cohorts born before the origin, predicted size of later ones."""
    birth: Ints
    """[N + H] birth as an index into `weeks`; negative for cohorts born before."""
    Y: Floats
    """[N + H, H] sales of the cohort; NaN before birth."""
    S: Floats
    """[H] total sales."""

    @property
    def has_drivers(self) -> bool:
        return not bool(np.isnan(self.A).all())


def compose(panel: FirmPanel, drivers: PrimitiveForecast | SalesForecast) -> RevenueForecast:
    """Y = size (1[birth] + R) V (Web App. "Walk-Forward Inference Algorithm").

    `panel` is the one the model was fitted on. Raises BadForecast for values that are not finite and positive: a sum
    over cohorts would hide them.
    """
    horizon = drivers.horizon
    if isinstance(drivers, SalesForecast):
        _must_be_known("sales", drivers.S, np.ones(horizon, bool))
        unknown = np.full((panel.n_cohorts + horizon, horizon), np.nan)
        return replace(_composed(panel, PrimitiveForecast(unknown[0], unknown, unknown)), S=drivers.S)
    born = np.arange(horizon) >= np.arange(-panel.n_cohorts, horizon)[:, None]
    _must_be_known("acquisition", drivers.A, np.ones(horizon, bool))
    _must_be_known("repeat orders per customer", drivers.R, born)
    _must_be_known("order values", drivers.V, born)
    return _composed(panel, drivers)


def _must_be_known(what: str, values: Floats, where: Bools) -> None:
    if values.shape != where.shape:
        raise BadForecast(f"its forecast of {what} has the shape {values.shape}, not {where.shape}")
    bad = np.argwhere(where & ~(np.isfinite(values) & (values >= 0)))
    if len(bad):
        place = tuple(bad[0])
        at = f"week {place[-1] + 1}" + (f" for cohort {place[0]}" if len(place) > 1 else "")
        raise BadForecast(f"its forecast of {what} is {values[place]} in {at}; {len(bad)} such values")


def _composed(panel: FirmPanel, drivers: PrimitiveForecast) -> RevenueForecast:
    horizon = drivers.horizon
    size = np.concatenate([panel.size, drivers.A])
    birth = np.concatenate([panel.birth - panel.n_weeks, np.arange(horizon)])
    is_birth = np.arange(horizon) == birth[:, None]
    sales = size[:, None] * (is_birth + drivers.R) * drivers.V
    return RevenueForecast(
        weeks=panel.weeks[-1] + 7 * np.arange(1, horizon + 1),
        A=drivers.A,
        R=drivers.R,
        V=drivers.V,
        size=size,
        birth=birth,
        Y=sales,
        S=np.nansum(sales, axis=0),
    )


@dataclass(frozen=True, eq=False)
class DriverDraws:
    """K joint paths of the drivers around one forecast.

    In draw k the cohorts born in week t are `acquired[k, t]` customers, and every cohort's repeat orders per customer
    and order value are those of `centre`, times the draw's factor of that week.
    """

    centre: RevenueForecast
    acquired: Floats
    """[K, H] customers acquired."""
    repeat_existing: Floats
    """[K, H] factor of the repeat orders per customer of the panel's own cohorts."""
    repeat_new: Floats
    """[K, H] the same for cohorts born after the origin. Equal to `repeat_existing` unless a scenario changes one."""
    order_value: Floats
    """[K, H] factor of the order value of all cohorts."""

    @property
    def n_draws(self) -> int:
        return len(self.acquired)

    @property
    def horizon(self) -> int:
        return int(self.acquired.shape[1])


@dataclass(frozen=True, eq=False)
class DrawnForecast:
    """Sales and orders composed from each draw of the drivers, by week; every array is [K, H].

    `base_...` are sums over the cohorts of the bridge's existing base, the others over later cohorts. For a model
    that forecasts sales alone, everything but `sales` is NaN.
    """

    weeks: npt.NDArray[np.datetime64]
    acquired: Floats
    base_orders: Floats
    """Repeat orders of the base."""
    base_sales: Floats
    """Sales of the base."""
    new_orders: Floats
    """Orders of later cohorts, first ones included."""
    new_sales: Floats
    """Sales of later cohorts."""
    sales: Floats
    """base_sales + new_sales"""

    @property
    def orders(self) -> Floats:
        return self.base_orders + self.new_orders

    @property
    def has_drivers(self) -> bool:
        return not bool(np.isnan(self.acquired).all())


def compose_draws(draws: DriverDraws, base: Bools | None = None) -> DrawnForecast:
    """`compose` for every draw, summed over the cohorts of the base and over later ones.

    A draw's factors are the same for all cohorts of a week, so the sums over cohorts are taken once:
    this equals `compose` of each draw by itself.

    Args:
        draws: of the drivers.
        base: [N] which of the panel's cohorts are the existing base; all of them unless stated.
    """
    centre, H = draws.centre, draws.horizon
    N = len(centre.size) - H
    member = np.ones(N, bool) if base is None else base
    R, V = np.nan_to_num(centre.R), np.nan_to_num(centre.V)
    orders = centre.size[:N, None] * R[:N]
    existing = {
        "base": (orders[member].sum(axis=0), (orders * V[:N])[member].sum(axis=0)),
        "later": (orders[~member].sum(axis=0), (orders * V[:N])[~member].sum(axis=0)),
    }
    volume = {name: draws.repeat_existing * sums[0] for name, sums in existing.items()}
    value = {name: draws.repeat_existing * draws.order_value * sums[1] for name, sums in existing.items()}
    unborn_R, unborn_V = R[N:], V[N:]
    first_value = np.diagonal(unborn_V)
    new_orders = draws.acquired + draws.repeat_new * (draws.acquired @ unborn_R)
    new_sales = draws.order_value * (
        draws.acquired * first_value + draws.repeat_new * (draws.acquired @ (unborn_R * unborn_V))
    )
    new_orders, new_sales = new_orders + volume["later"], new_sales + value["later"]
    return DrawnForecast(
        weeks=centre.weeks,
        acquired=draws.acquired,
        base_orders=volume["base"],
        base_sales=value["base"],
        new_orders=new_orders,
        new_sales=new_sales,
        sales=value["base"] + new_sales,
    )
