"""StudyDesign: the paper's study, a timeline with its windows for training, validation and holdout."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from datetime import date

from cbmt_core.errors import HistoryTooShort
from cbmt_core.timeline import (
    MIN_HOLDOUT_WEEKS,
    MIN_TRAINING_WEEKS,
    SEASON,
    VALIDATION_WEEKS,
    WEEK,
    Origin,
    Timeline,
    Window,
    whole_weeks,
)

__all__ = ["MAX_HOLDOUT_WEEKS", "StudyDesign"]

MAX_HOLDOUT_WEEKS = 47


@dataclass(frozen=True)
class StudyDesign(Timeline):
    """A timeline with the windows of the study. The defaults are the paper's (section "Study Design").

    The timeline may extend beyond the study: the study's windows do not move when new weeks arrive.
    """

    training_weeks: int = 98
    holdout_weeks: int = MAX_HOLDOUT_WEEKS

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.training_weeks < 1 or self.holdout_weeks < 0:
            raise ValueError(f"a study needs training weeks, and none of its counts may be negative: {self}")
        if self.holdout_weeks > SEASON:
            raise ValueError(
                f"the holdout must not be longer than {SEASON} weeks, or it would overlap its baseline"
            )
        if (self.delivered_to or self.observed_to) < self.study.last_day:
            raise ValueError(f"observed_to must not lie before {self.study.last_day}: {self}")

    @classmethod
    def for_span(
        cls,
        first_day: date,
        last_day: date,
        *,
        washout_weeks: int | None = None,
        validation_weeks: int = VALIDATION_WEEKS,
        holdout_weeks: int | None = None,
        country: str = "US",
    ) -> StudyDesign:
        """The study of data observed on every day from `first_day` to `last_day`, over all of its weeks.

        Args:
            washout_weeks: weeks before the study; chosen by `choose_washout` unless stated.
            validation_weeks: last weeks of the calibration, used to choose settings.
            holdout_weeks: weeks to forecast, at most 52; by default as in `over`.
            country: ISO code of the holiday calendar.
        """
        have = whole_weeks(first_day, last_day)[1]
        need = MIN_TRAINING_WEEKS + validation_weeks + (washout_weeks or 0)
        need += MIN_HOLDOUT_WEEKS if holdout_weeks is None else holdout_weeks
        if have < need:
            raise HistoryTooShort(first_day, last_day, have=have, need=need)
        timeline = Timeline.for_span(
            first_day,
            last_day,
            washout_weeks=washout_weeks,
            validation_weeks=validation_weeks,
            holdout_weeks=holdout_weeks,
            country=country,
        )
        return cls.over(timeline, washout_weeks=washout_weeks, holdout_weeks=holdout_weeks)

    @classmethod
    def over(
        cls, timeline: Timeline, *, washout_weeks: int | None = None, holdout_weeks: int | None = None
    ) -> StudyDesign:
        """The study whose holdout ends with the timeline. Unless stated, the holdout is as many weeks as a year of
        training and the validation window leave, at most 47; training takes the rest.

        Raises HistoryTooShort, which says how many weeks are missing, where that leaves fewer than 13.

        Args:
            washout_weeks: the washout, if it was stated; otherwise it may be shortened to make room for a study.
            holdout_weeks: the holdout, if it was stated.
        """
        weeks = len(timeline.panel)
        calibration = MIN_TRAINING_WEEKS + timeline.validation_weeks
        need = calibration + (MIN_HOLDOUT_WEEKS if holdout_weeks is None else holdout_weeks)
        if weeks < need:
            have = timeline.washout_weeks + weeks
            if washout_weeks is not None or have >= need:
                need += timeline.washout_weeks
            raise HistoryTooShort(timeline.observed_from, timeline.observed_to, have=have, need=need)
        if holdout_weeks is None:
            holdout_weeks = min(MAX_HOLDOUT_WEEKS, weeks - calibration)
        return cls.at(timeline, timeline.panel.last - holdout_weeks * WEEK, holdout_weeks)

    @classmethod
    def at(cls, timeline: Timeline, origin: date, holdout_weeks: int) -> StudyDesign:
        """The study with this origin and holdout on a timeline that may extend beyond it."""
        calibration = (origin - timeline.panel.first).days // 7 + 1
        base = {field.name: asdict(timeline)[field.name] for field in fields(Timeline)}
        return cls(
            **base, training_weeks=calibration - timeline.validation_weeks, holdout_weeks=holdout_weeks
        )

    @property
    def training(self) -> Window:
        return Window(self.panel.first, self.training_weeks)

    @property
    def validation(self) -> Window:
        return Window(self.training.first + self.training_weeks * WEEK, self.validation_weeks)

    @property
    def calibration(self) -> Window:
        return Window(self.training.first, self.training_weeks + self.validation_weeks)

    @property
    def holdout(self) -> Window:
        return Window(self.calibration.first + len(self.calibration) * WEEK, self.holdout_weeks)

    @property
    def study(self) -> Window:
        """Calibration and holdout."""
        return Window(self.calibration.first, len(self.calibration) + self.holdout_weeks)

    @property
    def bridge_target(self) -> Window:
        return self.holdout

    @property
    def bridge_baseline(self) -> Window:
        """The weeks one season (52 weeks) before the target; its last week is the cohort cutoff."""
        return self.holdout.shifted(-SEASON)

    @property
    def origin(self) -> date:
        """Last observed week when the holdout is forecast."""
        return self.calibration.last

    @property
    def forecast_origin(self) -> Origin:
        return Origin(self.origin, self.holdout_weeks, "study")
