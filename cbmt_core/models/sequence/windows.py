"""Look-back windows of cohort-weeks, gathered from dense arrays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np

from cbmt_core.arrays import Bools, Floats32, Ints
from cbmt_core.calendar import calendar_of
from cbmt_core.models.sequence.history import History
from cbmt_core.models.sequence.scaling import OUTCOMES, Scaling
from cbmt_core.panel import LEFT_CENSORED

__all__ = [
    "COHORT_COVARIATES",
    "FLAGS",
    "LOOKBACK",
    "N_MONTHS",
    "N_WEEKS_OF_YEAR",
    "WEEK_COVARIATES",
    "Samples",
    "Sequences",
    "Windows",
    "hide_cohorts",
]


LOOKBACK = 20
"""Weeks of a window: p + 1 with p = 19 (Web App. "Prediction samples and look-back windows")."""

FLAGS = ("no_orders", "before_panel")
COHORT_COVARIATES = ("tenure", "tenure_squared", "born", "birth")
WEEK_COVARIATES = ("trend", "trend_squared")
"""Covariates of a week; one column for each holiday follows."""

N_WEEKS_OF_YEAR = 52
N_MONTHS = 13
"""Twelve acquisition months and one for the left-censored cohort, whose month is unknown."""


@dataclass(frozen=True, eq=False)
class Windows:
    """A batch of B samples (cohort, target week): the 20 weeks before the target week, scaled.

    Numbers and ids are separate: trees take ids as columns, networks embed them.
    """

    outcomes: Floats32
    """[B, 20, 4] A, R, V, S; zero before the panel and, for R and V, before birth."""
    flags: Floats32
    """[B, 20, 2] `FLAGS`."""
    covariates: Floats32
    """[B, 21, C] known ahead, hence with the target week as the last: `COHORT_COVARIATES`,
    `WEEK_COVARIATES`, holidays."""
    week_of_year: Ints
    """[B, 21] 0..51, with the target week as the last."""
    month: Ints
    """[B] acquisition month, 0..12."""
    cohort: Ints
    """[B] cohort id; the largest, `Sequences.n_ids - 1`, is shared by cohorts without one of their own."""
    row: Ints
    """[B] the cohort's row, whatever its id."""
    week: Ints
    """[B] the target week, counted from the panel's first."""

    def __len__(self) -> int:
        return len(self.row)

    @property
    def is_birth(self) -> Floats32:
        """[B] 1 where the target week is the cohort's birth week."""
        return self.covariates[:, -1, COHORT_COVARIATES.index("birth")]


@dataclass(frozen=True, eq=False)
class Samples:
    """Windows with their targets."""

    windows: Windows
    targets: Floats32
    """[B, 4] scaled; V of a week without orders is the last known value."""
    known: Bools
    """[B, 4] False where the target carries no loss: V of a week without orders."""

    def __len__(self) -> int:
        return len(self.windows)


def hide_cohorts(windows: Windows, new_id: int, share: float, rng: np.random.Generator) -> Windows:
    """The same windows, a random share of them with the shared id of new cohorts, so that this id is trained at every
    tenure and season. The left-censored cohort keeps its id.

    Args:
        windows: windows with the cohorts' own ids.
        new_id: the shared id of new cohorts.
        share: share of the windows to change, 0 to 1.
        rng: random generator.
    """
    hidden = (rng.random(len(windows)) < share) & (windows.month != N_MONTHS - 1)
    return replace(windows, cohort=np.where(hidden, new_id, windows.cohort))


@dataclass(frozen=True, eq=False)
class Sequences:
    """A firm's inputs as dense arrays over M cohorts and W weeks, future weeks included.

    Rows: the history's N cohorts, then one cohort born in each future week. Column c is week
    `c + start`. Future outcomes are zero until `write` fills them, week by week.
    """

    start: int
    origin: int
    """Number of weeks observed: the first week that is not."""
    n_ids: int
    birth: Ints
    """[M]"""
    month: Ints
    """[M]"""
    cohort: Ints
    """[M] ids"""
    by_week: Floats32
    """[W, 3] A, S, before_panel"""
    by_cohort: Floats32
    """[M, W, 3] R, V, no_orders"""
    week_covariates: Floats32
    """[W, C1]"""
    cohort_covariates: Floats32
    """[M, W, C2]"""
    week_of_year: Ints
    """[W]"""

    @classmethod
    def of(
        cls, history: History, scaling: Scaling, *, horizon: int = 0, known_cohorts: int | None = None
    ) -> Sequences:
        """The inputs of a history and of `horizon` weeks after it.

        The first `known_cohorts` cohorts (all of the history by default) have an id of their own.
        """
        N, T, K = history.n_cohorts, history.n_weeks, history.kept
        known = N if known_cohorts is None else known_cohorts
        start = T - K - LOOKBACK
        weeks = np.arange(start, T + horizon)
        observed = slice(LOOKBACK, LOOKBACK + K)

        by_week = np.zeros((len(weeks), 3), np.float32)
        by_week[observed, 0] = scaling.scale("A", history.A)
        by_week[observed, 1] = scaling.scale("S", history.S)
        by_week[:, 2] = weeks < 0
        birth = np.concatenate([history.birth, np.arange(T, T + horizon)])
        born = weeks >= birth[:, None]
        by_cohort = np.zeros((N + horizon, len(weeks), 3), np.float32)
        past = born[:N, observed]
        by_cohort[:N, observed, 0] = np.where(past, scaling.scale("R", history.R), 0.0)
        by_cohort[:N, observed, 1] = np.nan_to_num(np.where(past, scaling.scale("V", history.V), 0.0))
        by_cohort[:N, observed, 2] = history.no_orders

        # When the left-censored cohort was acquired is not known: its own month, its own id, and a tenure counted
        # from the start of the washout distinguish it from young cohorts.
        since = np.where(birth == LEFT_CENSORED, -1 - history.washout, birth)[:, None]
        tenure = np.where(born, (weeks - since) / scaling.oldest, 0.0)
        is_birth = (weeks == birth[:, None]) & (birth != LEFT_CENSORED)[:, None]
        calendar = calendar_of(
            history.first_week + timedelta(weeks=start), len(weeks), country=history.country
        )
        trend = weeks / max(1, scaling.weeks - 1)
        # a tail may not reach back to the births: their months come from the whole calendar
        months = calendar_of(history.first_week, T + horizon, country=history.country).month
        month = np.where(birth == LEFT_CENSORED, N_MONTHS - 1, months[np.maximum(birth, 0)])
        return cls(
            start=start,
            origin=T,
            n_ids=known + 1,
            birth=birth,
            month=month,
            cohort=np.minimum(np.arange(N + horizon), known),
            by_week=by_week,
            by_cohort=by_cohort,
            week_covariates=np.column_stack([trend, trend**2, calendar.holiday]).astype(np.float32),
            cohort_covariates=np.stack([tenure, tenure**2, born, is_birth], axis=-1).astype(np.float32),
            week_of_year=calendar.week_of_year,
        )

    @property
    def new_id(self) -> int:
        """The id shared by cohorts without one of their own."""
        return self.n_ids - 1

    def pairs(self, weeks: Iterable[int]) -> tuple[Ints, Ints]:
        """(row, target week) of every cohort in those of `weeks` in which it is born or older.

        The birth week is a target too: its window shows the weeks of inactivity before the first purchase.
        """
        target = np.fromiter(weeks, np.int64)
        row, k = np.nonzero(target >= self.birth[:, None])
        return row, target[k]

    def windows(self, row: Ints, week: Ints) -> Windows:
        """The windows of the samples (row[b], week[b])."""
        column = (week - self.start)[:, None] + np.arange(-LOOKBACK, 1)
        back, at = column[:, :-1], row[:, None]
        by_week, by_cohort = self.by_week[back], self.by_cohort[at, back]
        return Windows(
            outcomes=np.stack(
                [by_week[..., 0], by_cohort[..., 0], by_cohort[..., 1], by_week[..., 1]], axis=-1
            ),
            flags=np.stack([by_cohort[..., 2], by_week[..., 2]], axis=-1),
            covariates=np.concatenate(
                [self.cohort_covariates[at, column], self.week_covariates[column]], axis=-1
            ),
            week_of_year=self.week_of_year[column],
            month=self.month[row],
            cohort=self.cohort[row],
            row=row,
            week=week,
        )

    def samples(self, row: Ints, week: Ints) -> Samples:
        """Windows and targets of the samples; every week must be observed."""
        if len(week) and week.max() >= self.origin:
            raise ValueError("a target week lies after the origin")
        column = week - self.start
        by_week, by_cohort = self.by_week[column], self.by_cohort[row, column]
        targets = np.column_stack([by_week[:, 0], by_cohort[:, :2], by_week[:, 1]])
        known = np.ones(targets.shape, bool)
        known[:, OUTCOMES.index("V")] = by_cohort[:, 2] == 0
        return Samples(self.windows(row, week), targets, known)

    def write(self, week: int, A: float, S: float, R: Floats32, V: Floats32) -> None:
        """Append one week's scaled outcomes; R and V are those of the first len(R) cohorts."""
        column = week - self.start
        self.by_week[column, :2] = A, S
        self.by_cohort[: len(R), column, 0] = R
        self.by_cohort[: len(V), column, 1] = V
