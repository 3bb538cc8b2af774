"""Revenue from drivers: the only place where sales are composed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cbmt_core.errors import CbmtError
from cbmt_core.models.contract import PrimitiveForecast, SalesForecast
from cbmt_core.panel import FirmPanel

__all__ = ["BadForecast", "RevenueForecast", "compose"]

Floats = npt.NDArray[np.float64]


class BadForecast(CbmtError):
    """A model's forecast is not what the contract says."""


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
    birth: npt.NDArray[np.int64]
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

    `panel` is the one the model was fitted on. A forecast that is not finite and positive where it should be is
    refused: a sum over cohorts would hide it.
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


def _must_be_known(what: str, values: Floats, where: npt.NDArray[np.bool_]) -> None:
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
