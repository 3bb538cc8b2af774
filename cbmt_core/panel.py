"""FirmPanel: one firm's drivers as dense arrays, the single input of every model."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from datetime import date
from typing import Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from cbmt_core.arrays import Bools, Floats, Ints
from cbmt_core.calendar import Calendar, calendar_of
from cbmt_core.errors import BadFirmData
from cbmt_core.timeline import Timeline

__all__ = ["LEFT_CENSORED", "CustomerHistory", "FirmPanel"]


LEFT_CENSORED = -1
"""Birth index of the left-censored cohort, which was acquired before the first week."""


@dataclass(frozen=True, eq=False)
class CustomerHistory:
    """Order weeks of single customers, packed: customer m ordered in `week[start[m]:start[m + 1]]`.

    `week` counts from the panel's first week, ascending within a customer, one entry an order,
    the initial order included. Members of the left-censored cohort without an order are left out.
    """

    cohort: npt.NDArray[np.int32]
    """Index of each customer's cohort in the panel."""
    start: Ints
    week: npt.NDArray[np.int16]

    def until(self, weeks: int, cohorts: int) -> CustomerHistory:
        """Orders in the first `weeks` weeks by customers of the first `cohorts` cohorts."""
        customer = np.repeat(np.arange(len(self.cohort)), np.diff(self.start))
        kept = self.week < weeks
        counts = np.bincount(customer[kept], minlength=len(self.cohort))
        stays = (self.cohort < cohorts) & (counts > 0)
        kept &= stays[customer]
        start = np.concatenate([[0], np.cumsum(counts[stays])])
        return CustomerHistory(self.cohort[stays].copy(), start, self.week[kept].copy())

    def later(self, weeks: int) -> CustomerHistory:
        """The same orders, counted from a week that is `weeks` weeks later; none may lie before it."""
        return CustomerHistory(self.cohort.copy(), self.start.copy(), self.week - np.int16(weeks))


@dataclass(frozen=True, eq=False)
class FirmPanel:
    """Drivers of one firm over consecutive weeks (rows: cohorts, columns: weeks).

    Cohorts are ordered by birth; the left-censored one, if any, comes first. A week without a new
    customer has no cohort. R, V and Y are NaN before a cohort's birth; V is NaN also where the
    cohort placed no order, because the value of an order that was not placed is unknown.
    """

    firm: str
    design: Timeline
    weeks: npt.NDArray[np.datetime64]
    A: Floats
    """[T] customers acquired."""
    S: Floats
    """[T] sales."""
    size: Floats
    """[N] customers of the cohort."""
    birth: Ints
    """[N] index of the birth week, or LEFT_CENSORED."""
    R: Floats
    """[N, T] repeat orders per customer of the cohort."""
    V: Floats
    """[N, T] average order value."""
    Y: Floats
    """[N, T] sales of the cohort."""
    customers: CustomerHistory | None = None

    def __post_init__(self) -> None:
        """Check shapes and values: an unexpected NaN would spread into every sum."""
        weeks, cohorts = np.ones(self.n_weeks, bool), np.ones(len(self.birth), bool)
        for name, known in {"A": weeks, "S": weeks, "size": cohorts, "R": self.born, "Y": self.born}.items():
            values = getattr(self, name)
            if values.shape != known.shape:
                raise BadFirmData(self.firm, f"{name} has the shape {values.shape}, not {known.shape}")
            if not np.isfinite(values[known]).all():
                place = tuple(int(k) for k in np.argwhere(known & ~np.isfinite(values))[0])
                raise BadFirmData(
                    self.firm, f"{name}[{', '.join(map(str, place))}] of its panel is {values[place]}"
                )

    @property
    def n_weeks(self) -> int:
        return len(self.weeks)

    @property
    def n_cohorts(self) -> int:
        return len(self.size)

    @property
    def first_week(self) -> date:
        return self.weeks[0].astype(object)  # type: ignore[no-any-return]

    @property
    def origin(self) -> date:
        """The last week the panel holds."""
        return self.weeks[-1].astype(object)  # type: ignore[no-any-return]

    @property
    def born(self) -> Bools:
        """[N, T] True from a cohort's birth week on."""
        return np.arange(self.n_weeks) >= self.birth[:, None]

    @property
    def is_birth(self) -> Bools:
        """[N, T] True in a cohort's birth week only."""
        return np.equal(np.arange(self.n_weeks), self.birth[:, None])

    @property
    def orders(self) -> Floats:
        """[N, T] orders of the cohort, initial ones included; 0 before birth."""
        return np.where(self.born, self.size[:, None] * (self.is_birth + np.nan_to_num(self.R)), 0.0)

    @property
    def tenure(self) -> Ints:
        """[N, T] weeks since birth; for the left-censored cohort, since the first week plus one."""
        return np.arange(self.n_weeks) - self.birth[:, None]

    @property
    def digest(self) -> str:
        """Digest of the panel's numbers."""
        design = self.design
        dates = (self.first_week, self.origin, design.washout_weeks, design.validation_weeks, design.country)
        seen = hashlib.sha256(f"{self.firm}{dates}".encode())
        for values in (self.A, self.S, self.size, self.birth, self.R, self.V, self.Y):
            seen.update(np.ascontiguousarray(values).tobytes())
        return seen.hexdigest()[:16]

    def calendar(self, horizon: int = 0) -> Calendar:
        """Calendar of the panel's weeks and of `horizon` weeks after its origin."""
        return calendar_of(self.first_week, self.n_weeks + horizon, self.design.country)

    def until(self, origin: date) -> Self:
        """A panel that holds nothing after the week `origin`: copies, no views."""
        kept = int(np.searchsorted(self.weeks, np.datetime64(origin, "D"), side="right"))
        if kept == 0:
            raise ValueError(f"origin {origin} lies before the first week {self.first_week}")
        cohorts = int(np.searchsorted(self.birth, kept))
        return replace(
            self,
            weeks=self.weeks[:kept].copy(),
            A=self.A[:kept].copy(),
            S=self.S[:kept].copy(),
            size=self.size[:cohorts].copy(),
            birth=self.birth[:cohorts].copy(),
            R=self.R[:cohorts, :kept].copy(),
            V=self.V[:cohorts, :kept].copy(),
            Y=self.Y[:cohorts, :kept].copy(),
            customers=self.customers.until(kept, cohorts) if self.customers else None,
        )

    def since_first_order(self) -> FirmPanel:
        """The panel without the weeks before the firm's first order: copies, no views.

        The panel itself where there are no such weeks, or where a left-censored cohort shows that the firm is older
        than the panel. The cohorts are the same, because none was born earlier.
        """
        if not len(self.birth) or self.birth[0] == LEFT_CENSORED:
            return self
        active = np.flatnonzero((self.A > 0) | (self.S != 0))
        first = int(min([self.birth[0], *active[:1]]))
        if first == 0:
            return self
        return replace(
            self,
            weeks=self.weeks[first:].copy(),
            A=self.A[first:].copy(),
            S=self.S[first:].copy(),
            size=self.size.copy(),
            birth=self.birth - first,
            R=self.R[:, first:].copy(),
            V=self.V[:, first:].copy(),
            Y=self.Y[:, first:].copy(),
            customers=self.customers.later(first) if self.customers else None,
        )

    @classmethod
    def from_cohort_week(
        cls,
        firm: str,
        cohort_week: pd.DataFrame,
        design: Timeline,
        customers: CustomerHistory | None = None,
    ) -> Self:
        """Build the panel from a firm's `cohort_week` rows.

        Args:
            firm: name of the firm.
            cohort_week: cohort, week, left_censored, cohort_size, ropc, aov and sales of every cohort and week.
            design: weeks of the panel; the rows must cover them.
            customers: order weeks of single customers, for models that need them.
        """
        if cohort_week.empty:
            raise BadFirmData(
                firm, "has no cohort in the weeks after the washout; check its dates and its quarantine"
            )
        weeks = design.panel.dates()
        frame = cohort_week.sort_values(["cohort", "week"])
        held = frame["week"].to_numpy("datetime64[D]")
        if held.min() < weeks[0] or held.max() != weeks[-1]:
            raise BadFirmData(
                firm,
                f"its weeks are {held.min()} to {held.max()}, the project's are {weeks[0]} to {weeks[-1]}: "
                "make its tables again",
            )
        column = (held - weeks[0]).astype(int) // 7
        cohort, row = np.unique(frame["cohort"].to_numpy("datetime64[D]"), return_inverse=True)
        first_row = np.unique(row, return_index=True)[1]
        size = frame["cohort_size"].to_numpy(float)[first_row]
        censored = frame["left_censored"].to_numpy(bool)[first_row]
        birth = np.where(censored, LEFT_CENSORED, (cohort - weeks[0]).astype(int) // 7)
        dense = {}
        for name in ("ropc", "aov", "sales"):
            values = np.full((len(cohort), len(weeks)), np.nan)
            values[row, column] = frame[name].to_numpy(float, na_value=np.nan)
            dense[name] = values
        acquired = np.zeros(len(weeks))
        acquired[birth[~censored]] = size[~censored]
        return cls(
            firm=firm,
            design=design,
            weeks=weeks,
            A=acquired,
            S=np.nansum(dense["sales"], axis=0),
            size=size,
            birth=birth,
            R=dense["ropc"],
            V=dense["aov"],
            Y=dense["sales"],
            customers=customers,
        )
