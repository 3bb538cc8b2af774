"""Warnings from a firm's observed weeks: old customers, cohort quality and acquisition, up to the last week."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, timedelta

import duckdb
import pandas as pd

from cbmt_core.report.numbers import count, day, percent
from cbmt_core.report.words import FLAT, weeks_to
from cbmt_core.timeline import SEASON

__all__ = ["EARLY_WEEKS", "Watch", "acquisition_trend", "cohort_quality", "left_censored", "read_watch"]

EARLY_WEEKS = 13
"""Weeks after the first order by which cohorts' quality is compared."""
ENOUGH_CUSTOMERS = 50
"""Minimum number of customers of a year's cohorts for a statement on their quality."""
HEAVY_CENSORED = 0.25
"""Share of sales from customers of unknown age above which the page warns about them."""


@dataclass(frozen=True)
class Watch:
    """Figures of the last observed year."""

    first: date
    """First week observed."""
    last: date
    """Last week observed."""
    old_share: float | None
    """Share of the last 52 weeks' sales from customers acquired before the first week."""
    early_change: float | None
    """Percent change of early repeat orders per customer, the latest year's cohorts against the year before."""
    acquired: tuple[float, float]
    """New customers in the last 52 weeks, and in the 52 before; zero where not all are observed."""

    def sentences(self) -> list[str]:
        weeks = min(SEASON, (self.last - self.first).days // 7 + 1)
        span = weeks_to(weeks, self.last)
        texts = (
            left_censored(self.old_share, span, self.first),
            cohort_quality(self.early_change, EARLY_WEEKS, _youngest(self.last)),
            acquisition_trend(*self.acquired, span),
        )
        return [text for text in texts if text]


def read_watch(
    con: duckdb.DuckDBPyConnection, firm: str, cells: pd.DataFrame, observed: pd.DataFrame
) -> Watch:
    """Read and sum up a firm's last two years.

    Args:
        cells: sales by time of acquisition, `censored` and week.
        observed: rows of `firm_week` in order of weeks.
    """
    first, last = (pd.Timestamp(observed["week"].iloc[k]) for k in (0, -1))
    return Watch(
        first=first.date(),
        last=last.date(),
        old_share=_old_share(cells, last),
        early_change=_early_change(con, firm, first.date(), last.date()),
        acquired=_acquired(observed),
    )


def _youngest(last: date) -> date:
    """The youngest cohort whose first EARLY_WEEKS weeks are observed."""
    return last - timedelta(weeks=EARLY_WEEKS - 1)


def _early_change(con: duckdb.DuckDBPyConnection, firm: str, first_week: date, last: date) -> float | None:
    """By cohorts whose first weeks are all observed."""
    newest = _youngest(last)
    year, two_years = (newest - timedelta(weeks=years * SEASON) for years in (1, 2))
    if first_week > two_years + timedelta(weeks=1):
        return None
    found = con.execute(
        """
        SELECT cohort > $year AS recent, sum(repeat_orders) AS orders,
            sum(cohort_size) FILTER (tenure = 0) AS customers
        FROM cohort_week
        WHERE firm = $firm AND NOT left_censored AND tenure < $weeks AND cohort <= $newest AND cohort > $two_years
        GROUP BY ALL""",
        {"firm": firm, "newest": newest, "year": year, "two_years": two_years, "weeks": EARLY_WEEKS},
    ).fetchall()
    rates = {recent: float(orders / n) for recent, orders, n in found if n >= ENOUGH_CUSTOMERS and orders > 0}
    return 100 * (rates[True] / rates[False] - 1) if len(rates) == 2 else None


def _old_share(cells: pd.DataFrame, last: pd.Timestamp) -> float | None:
    year = cells[(cells["week"] <= last) & (cells["week"] > last - pd.Timedelta(weeks=SEASON))]
    total = float(year["sales"].sum())
    return float(year.loc[year["censored"].astype(bool), "sales"].sum()) / total if total > 0 else None


def _acquired(observed: pd.DataFrame) -> tuple[float, float]:
    past = observed["acquired"].to_numpy(dtype=float)
    if len(past) < 2 * SEASON:
        return 0.0, 0.0
    return float(past[-SEASON:].sum()), float(past[-2 * SEASON : -SEASON].sum())


def left_censored(share: float | None, span: str, first: date) -> str:
    """What part of sales in `span` came from customers whose age is unknown; empty when none did.

    Args:
        share: from 0 to 1.
        span: the weeks, such as "the 52 weeks to 29 Feb 2020".
        first: first week observed; these customers were acquired before it.
    """
    if share is None or not math.isfinite(share) or share <= 0:
        return ""
    part = percent(100 * share, digits=0)
    text = f"of sales in {span} came from customers acquired before {day(first)}."
    if share >= HEAVY_CENSORED:
        return (
            f"Old customers: {part} {text} Their age is unknown, and the forecast leans on how they carry on."
        )
    return f"Old customers: only {part} {text}"


def cohort_quality(change: float | None, weeks: int, last: date) -> str:
    """Percent change in early repeat orders per customer of the latest year's cohorts; empty when unknown.

    Args:
        change: of repeat orders per customer in the first `weeks` weeks, in percent.
        last: week of the youngest cohort compared.
    """
    if change is None or not math.isfinite(change):
        return ""
    who = f"customers acquired in {weeks_to(SEASON, last)} reorder"
    span = f"in their first {weeks} weeks"
    if abs(change) < 5 * FLAT:
        return f"Cohort quality: {who} {span} about as often as those of the 52 weeks before."
    often = f"{percent(abs(change), digits=0)} {'more' if change > 0 else 'less'} often"
    return f"Cohort quality: {who} {often} {span} than those of the 52 weeks before."


def acquisition_trend(recent: float, before: float, span: str) -> str:
    """New customers in the 52 weeks `span` against the 52 before; empty when these are not known."""
    if not before > 0:
        return ""
    change = 100 * (recent / before - 1)
    text = f"{count(recent)} new customers in {span}"
    if abs(change) < 5 * FLAT:
        return f"Acquisition: {text}, about as many as in the 52 weeks before ({count(before)})."
    more = f"{percent(abs(change), digits=0)} {'more' if change > 0 else 'fewer'}"
    return f"Acquisition: {text}, {more} than in the 52 weeks before ({count(before)})."
