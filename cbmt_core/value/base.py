"""Value of today's customers and of those to come, with the tail beyond the horizon apart."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cbmt_core.arrays import Floats
from cbmt_core.compose import DrawnForecast, DriverDraws, compose_draws
from cbmt_core.panel import FirmPanel
from cbmt_core.scenarios.apply import centre_only
from cbmt_core.scenarios.outcome import interval
from cbmt_core.timeline import SEASON
from cbmt_core.value.terms import ValueTerms

__all__ = ["base_value"]


def base_value(panel: FirmPanel, draws: DriverDraws, terms: ValueTerms) -> pd.DataFrame:
    """Rows existing, to_come, total and tail: sales, discounted sales and value, with the middle 80 % of draws.

    Existing and to_come add up to total in every draw, and total sales are the revenue forecast's. The tail carries
    the existing base on beyond the horizon at the yearly rate by which customers of more than a year fall from
    the last 52 weeks to the next 52; NaN where the history is too short to estimate it.
    """
    weeks = terms.horizon_weeks
    single, many = compose_draws(centre_only(draws.centre)), compose_draws(draws)
    discount = np.where(np.arange(draws.horizon) < weeks, terms.discount(draws.horizon), 0.0)
    plain = (discount > 0).astype(float)
    parts = {
        "existing": ("base_sales",),
        "to_come": ("new_sales",),
        "total": ("base_sales", "new_sales"),
    }
    rows = []
    customers = {"existing": float(panel.size.sum()), "to_come": float(draws.centre.A[:weeks].sum())}
    for part, names in parts.items():
        sums = {
            (which, kind): _summed(forecast, names, weight)
            for which, forecast in (("centre", single), ("draws", many))
            for kind, weight in (("sales", plain), ("discounted", discount))
        }
        rows.append(_row(part, customers.get(part, sum(customers.values())), sums, terms))
    rows.append(_row("tail", customers["existing"], _tail(panel, draws, terms), terms))
    return pd.DataFrame(rows)


def _summed(forecast: DrawnForecast, names: tuple[str, ...], weight: Floats) -> Floats:
    parts: list[Floats] = [getattr(forecast, name) @ weight for name in names]
    return np.asarray(np.sum(parts, axis=0))


def _row(
    part: str, customers: float, sums: dict[tuple[str, str], Floats], terms: ValueTerms
) -> dict[str, object]:
    sales, discounted = float(sums["centre", "sales"][0]), float(sums["centre", "discounted"][0])
    low, high = interval(sums["draws", "sales"])
    value_low, value_high = interval(terms.margin * sums["draws", "discounted"])
    return {
        "part": part,
        "customers": customers,
        "sales": sales,
        "sales_low": float(low),
        "sales_high": float(high),
        "discounted_sales": discounted,
        "value": terms.margin * discounted,
        "value_low": float(value_low),
        "value_high": float(value_high),
    }


def _tail(panel: FirmPanel, draws: DriverDraws, terms: ValueTerms) -> dict[tuple[str, str], Floats]:
    """A geometric series from the last year of the horizon on."""
    unknown = np.full(1, np.nan)
    kept = None if panel.n_weeks < 2 * SEASON or terms.horizon_weeks < SEASON else _kept(panel, draws)
    sums: dict[tuple[str, str], Floats] = {}
    for which, one in (("centre", centre_only(draws.centre)), ("draws", draws)):
        if kept is None:
            sums[which, "sales"] = sums[which, "discounted"] = unknown
            continue
        year = compose_draws(one).base_sales[:, :SEASON]
        rate = kept[which][:, None] ** np.arange(1, terms.tail_years + 1)
        yearly = (1 + terms.discount_rate) ** -np.arange(1, terms.tail_years + 1.0)
        sums[which, "sales"] = year.sum(axis=1) * rate.sum(axis=1)
        sums[which, "discounted"] = (year @ terms.discount(SEASON)) * (rate @ yearly)
    return sums


def _kept(panel: FirmPanel, draws: DriverDraws) -> dict[str, Floats] | None:
    """Share of a year's sales that customers of more than a year keep in the next, of the forecast and each draw.

    It is at most 1: an ageing base does not grow for ever.
    """
    old = panel.birth < panel.n_weeks - SEASON
    before = float(np.nansum(panel.Y[old, -SEASON:]))
    if before <= 0:
        return None
    many = [centre_only(draws.centre), draws]
    after = [compose_draws(one, base=old).base_sales[:, :SEASON].sum(axis=1) for one in many]
    return {
        name: np.minimum(1.0, sums / before) for name, sums in zip(("centre", "draws"), after, strict=True)
    }
