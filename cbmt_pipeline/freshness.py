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
"""After so long a run that is overdue is a warning, after twice as long a failure."""
TICKS = 60
"""Runs of a schedule that are looked at for the longest time between two."""


def freshness_of(step: Step, stated: ScheduleConfig) -> dg.FreshnessPolicy:
    """What the job `weekly` makes must be as young as its schedule says, all else as young as the job `study`'s.

    Dagster judges an asset as a whole, by the newest partition; how fresh each firm is says the table `firm_state`.
    """
    weekly = not step.has_origins or "live" in step.purposes
    cron = (stated.weekly or CRON["weekly"]) if weekly else (stated.study or CRON["study"])
    longest = _longest_wait(cron, stated.timezone)
    return dg.FreshnessPolicy.time_window(fail_window=longest + 2 * GRACE, warn_window=longest + GRACE)


def _longest_wait(cron: str, timezone: str) -> timedelta:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    ticks = cron_string_iterator(start.timestamp(), cron, timezone)
    return max(later - earlier for earlier, later in pairwise(islice(ticks, TICKS)))
