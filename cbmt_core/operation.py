"""Sections of `cbmt.toml` about unattended operation: schedules, notices of failures, the report's address."""

from __future__ import annotations

import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field, field_validator

__all__ = [
    "HistoryConfig",
    "NoticeConfig",
    "ReportConfig",
    "ScheduleConfig",
    "Section",
    "is_cron",
    "known_zone",
]


class Section(BaseModel):
    """A section of the file; unknown settings are an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def known_zone(value: str) -> str:
    """Check that a name is that of a time zone, and return it."""
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"{value!r} is not a time zone; use a name such as Europe/London or UTC") from error
    return value


class HistoryConfig(Section):
    """How long Dagster's history of runs is kept."""

    keep_days: int = Field(default=90, ge=0)
    """Days after which a run is removed, if a later one has made the same again; 0 keeps all runs."""


class ScheduleConfig(Section):
    """When the scheduled jobs run; a job without a time is off until it is switched on in the UI."""

    weekly: str | None = None
    """Cron time of the weekly refresh, such as "0 6 * * 1"."""
    study: str | None = None
    """Cron time of the repeated study."""
    timezone: str = "UTC"

    _zone = field_validator("timezone")(known_zone)

    @field_validator("weekly", "study")
    @classmethod
    def _a_cron_time(cls, value: str | None) -> str | None:
        if value is not None and not is_cron(value):
            raise ValueError(
                f"{value!r} is no cron time of five fields (minute hour day month weekday), such as '0 6 * * 1'"
            )
        return value


_CRON_FIELD = re.compile(r"(\*|\d+(-\d+)?)(/[1-9]\d*)?")
_CRON_LIMITS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))


def is_cron(text: str) -> bool:
    """Whether a text is a cron time of five numeric fields: lists, ranges and steps are allowed."""
    fields = text.split()

    def within(part: str, low: int, high: int) -> bool:
        return bool(_CRON_FIELD.fullmatch(part)) and all(
            low <= int(number) <= high for number in re.findall(r"\d+", part.split("/")[0])
        )

    return len(fields) == len(_CRON_LIMITS) and all(
        within(part, *limits)
        for field, limits in zip(fields, _CRON_LIMITS, strict=True)
        for part in field.split(",")
    )


class ReportConfig(Section):
    """The address at which people open the report."""

    address: str | None = None
    """URL under which a web server shows the folder data/report; links in the UI begin with it."""


class NoticeConfig(Section):
    """Where notices of failed runs are sent. `${NAME}` in either setting stands for an environment variable."""

    webhook: str | None = None
    """URL that gets a POST with {"text": summary, ...}, as Slack, Teams and Mattermost take it."""
    command: str | None = None
    """Shell command that gets the summary on its standard input."""
