"""How old an asset may be before the UI calls it stale: the time between two runs of its schedule, and some days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

import dagster as dg
from dagster._utils.schedules import cron_string_iterator

from cbmt_core.config import ScheduleConfig
from cbmt_pipeline.plan import Step
from cbmt_pipeline.schedules import CRON

__all__ = ["freshness_of"]

GRACE = timedelta(days=1)
"""An overdue run is a warning after this time, and a failure after twice as long."""
TICKS = 60
"""Number of a schedule's next runs among which the longest interval is taken."""


def freshness_of(step: Step, stated: ScheduleConfig) -> dg.FreshnessPolicy:
    """What the job `weekly` makes must be as young as its schedule says, all else as young as the job `study`'s.

    Dagster judges an asset by its newest partition; the table `firm_state` has the state of each firm.
    """
    weekly = not step.has_origins or "live" in step.purposes
    cron = (stated.weekly or CRON["weekly"]) if weekly else (stated.study or CRON["study"])
    longest = _longest_wait(cron, stated.timezone)
    return dg.FreshnessPolicy.time_window(fail_window=longest + 2 * GRACE, warn_window=longest + GRACE)


def _longest_wait(cron: str, timezone: str) -> timedelta:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    ticks = cron_string_iterator(start.timestamp(), cron, timezone)
    return max(later - earlier for earlier, later in pairwise(islice(ticks, TICKS)))
