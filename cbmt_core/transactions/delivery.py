"""Deliveries: the day through which each firm's orders are known, and the last week of the project.

A week without orders counts as zero if the firm's data cover the week, and as missing if they do not. A firm is
covered through

- its last row, and the days after it for as long as the firm is usually silent;
- the end of a later file of the same source that covers the firm too, because it names more than half of the firms
  that were in one file with the firm's last row.

The project's last week is the latest that the stated share of firms has delivered. Everything here follows from the
files in the ledger: the order in which they arrived makes no difference.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

import duckdb

from cbmt_core import atomic, duck
from cbmt_core.errors import CbmtError
from cbmt_core.names import Unit
from cbmt_core.timeline import WEEK, Timeline, week_of, week_sql
from cbmt_core.transactions.span import SPAN_RULES

if TYPE_CHECKING:
    from cbmt_core.config import DeliveryConfig, ProjectConfig
    from cbmt_core.transactions.intake import Intake

__all__ = ["Deliveries", "Delivery", "deliveries", "firm_timeline", "project_timeline"]

RULES = "2"
"""Version of the rules below; raise it to have stored deliveries computed again."""
USUAL_WEEKS = 26
"""Weeks up to a firm's last row from which its share of silent weeks is estimated."""
LEAST_CHANCE = 0.01
"""A silence less likely than this, given the firm's usual silences, counts as a missing delivery."""
TAIL = timedelta(weeks=8)
"""Days at the end of a file whose rows show which firms the file covers."""
SATURDAY = timedelta(days=6)


@dataclass(frozen=True)
class Delivery:
    """One firm's delivery: its first and last row, and the day through which its orders are known."""

    firm: str
    first: date
    last: date
    through: date

    @property
    def week(self) -> date:
        """The last week that is known completely."""
        return week_of(self.through + timedelta(days=1)) - WEEK


@dataclass(frozen=True)
class Deliveries:
    """The deliveries of all firms, and the project's last week.

    Args:
        last_week: the latest week that enough firms have delivered.
        late: firms that have not delivered it, by name.
        stopped: firms that have not delivered for so long that they are no longer waited for, by name.
        share: share of the firms that are waited for that have delivered the week after `last_week`.
    """

    firms: Mapping[str, Delivery]
    last_week: date
    late: tuple[str, ...]
    stopped: tuple[str, ...]
    share: float

    @property
    def ahead(self) -> int:
        """Firms that have delivered the week after the last one."""
        return sum(one.week > self.last_week for one in self.firms.values())

    def week_of(self, firm: str) -> date:
        """The last week of a firm's tables."""
        return min(self.firms[firm].week, self.last_week)

    def lines(self, settings: DeliveryConfig, most: int = 10) -> list[str]:
        """Lines for users: late firms, stopped firms, and the week that is waited for."""

        def named(names: tuple[str, ...]) -> str:
            shown = ", ".join(f"{name} (through {self.firms[name].through})" for name in names[:most])
            return shown + (f" and {len(names) - most:,} more" if len(names) > most else "")

        found = []
        if self.late:
            found.append(
                f"late with the week of {self.last_week}, keeping their last forecast: {named(self.late)}"
            )
        if self.stopped:
            found.append(
                f"no delivery for more than {settings.stopped_after_weeks} weeks, no longer waited for: "
                f"{named(self.stopped)}"
            )
        if self.ahead:
            waited = tuple(
                name
                for name, one in self.firms.items()
                if one.week <= self.last_week and name not in (*self.late, *self.stopped)
            )
            found.append(
                f"the week of {self.last_week + WEEK} was delivered by {self.share:.0%} of the firms; forecasts move "
                f"on at {settings.share:.0%} ([delivery] share in cbmt.toml); without it: {named(waited)}"
            )
        return found


def deliveries(intake: Intake, settings: DeliveryConfig) -> Deliveries:
    """The deliveries of all firms in the ledger."""
    intake.span()  # Raises an error if nothing was ingested.
    return _policy(intake, intake.version, settings)


def project_timeline(intake: Intake, project: ProjectConfig) -> Timeline:
    """The weeks of the project: from the span of the data, what firms have delivered, and the dates that are stated."""
    first, last = intake.span()
    week = deliveries(intake, project.delivery).last_week
    return project.timeline(first, last, week + SATURDAY)


def firm_timeline(intake: Intake, project: ProjectConfig, unit: Unit) -> Timeline:
    """The weeks of one firm: the project's, as far as the firm has delivered them."""
    whole = project_timeline(intake, project)
    found = deliveries(intake, project.delivery).firms.get(unit.firm)
    if found is None:
        return whole
    assert whole.delivered_to is not None
    # The firm's own last row, not the project's, so that other firms' deliveries do not change this firm's tables.
    return replace(
        whole,
        observed_to=min(whole.observed_to, max(found.last, whole.observed_from)),
        delivered_to=min(whole.delivered_to, found.week + SATURDAY),
    )


@lru_cache(maxsize=8)
def _policy(intake: Intake, version: str, settings: DeliveryConfig) -> Deliveries:
    firms = _stored(intake, version)
    days = sorted((one.through for one in firms.values()), reverse=True)
    half = days[(len(days) - 1) // 2]
    cut = half - settings.stopped_after_weeks * WEEK
    stopped = {name for name, one in firms.items() if one.through < cut}
    waited = [one for name, one in firms.items() if name not in stopped]

    def share(week: date) -> float:
        begun = [one for one in waited if one.first <= week + SATURDAY]
        return sum(one.week >= week for one in begun) / len(begun) if begun else 0.0

    weeks = sorted({one.week for one in waited}, reverse=True)
    last = next((week for week in weeks if share(week) >= settings.share), weeks[-1])
    late = sorted(name for name, one in firms.items() if name not in stopped and one.week < last)
    return Deliveries(firms, last, tuple(late), tuple(sorted(stopped)), share(last + WEEK))


@lru_cache(maxsize=4)
def _stored(intake: Intake, version: str) -> dict[str, Delivery]:
    """Every firm's delivery, cached in a file beside the ledger: it depends on all files, and every run needs it."""
    path = intake.folder / "delivery.json"
    mark = f"{RULES}.{SPAN_RULES}/{version}"
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        kept = {}
    if kept.get("mark") != mark:
        found = _computed(intake)
        rows = [[one.firm, *map(str, (one.first, one.last, one.through))] for one in found]
        kept = {"mark": mark, "firms": rows}
        atomic.write_text(path, json.dumps(kept, ensure_ascii=False))
    return {firm: Delivery(firm, *map(date.fromisoformat, days)) for firm, *days in kept["firms"]}


def _computed(intake: Intake) -> list[Delivery]:
    first, last = intake.span()
    source = {entry.stem: entry.source for entry in intake.ledger()}
    with duck.connect() as con:
        con.execute("CREATE TEMP TABLE source (stem VARCHAR, source VARCHAR)")
        con.executemany("INSERT INTO source VALUES (?, ?)", [*source.items()])
        con.execute(f"""
            CREATE TEMP TABLE seen AS
            SELECT DISTINCT split_part(parse_filename(filename), '.', 1) AS stem, slug, firm, day
            FROM {intake.index()} WHERE day BETWEEN DATE '{first}' AND DATE '{last}'""")
        found = dict(_by_their_own_rows(con, last))
        behind = {slug: one for slug, one in found.items() if one.through < last}
        if behind:
            for slug, through in _by_shared_files(con, behind):
                found[slug] = replace(found[slug], through=max(found[slug].through, min(through, last)))
    if not found:
        raise CbmtError("no row that was ingested has a readable time; see the quarantine for why")
    return sorted(found.values(), key=lambda one: one.firm)


def _by_their_own_rows(con: duckdb.DuckDBPyConnection, last_day: date) -> list[tuple[str, Delivery]]:
    rows = con.execute(f"""
        WITH firms AS (
            SELECT slug, any_value(firm) AS firm, min(day) AS first, max(day) AS last FROM seen GROUP BY slug
        ), usual AS (
            SELECT slug, count(DISTINCT day) AS days,
                count(DISTINCT {week_sql("day")}) AS weeks
            FROM seen JOIN firms USING (slug)
            WHERE day > {week_sql("last")} - {7 * (USUAL_WEEKS - 1)} - 1 GROUP BY slug
        )
        SELECT slug, firm, first, last, days, weeks FROM firms JOIN usual USING (slug)""").fetchall()
    return [
        (slug, Delivery(firm, first, last, min(last_day, _end_of_silence(first, last, days, weeks))))
        for slug, firm, first, last, days, weeks in rows
    ]


def _end_of_silence(first: date, last: date, days: int, weeks: int) -> date:
    """The day through which a firm's last row covers it.

    Args:
        days: days with a row in the 26 weeks up to the one of the last row.
        weeks: weeks with a row among them.
    """
    start = max(week_of(first), week_of(last) - (USUAL_WEEKS - 1) * WEEK)
    known_days = (last - max(first, start)).days + 1
    known_weeks = (week_of(last) - start).days // 7 + 1
    to_saturday = (week_of(last) + SATURDAY - last).days
    if to_saturday > _usual_silence(1 - days / known_days):
        return last
    return week_of(last) + SATURDAY + _usual_silence(1 - weeks / known_weeks) * WEEK


def _usual_silence(silent: float) -> int:
    """Number of consecutive days (or weeks) without a row that is still usual, given the share of silent ones."""
    if silent <= 0:
        return 0
    return 10_000 if silent >= 1 else math.floor(math.log(LEAST_CHANCE) / math.log(silent))


def _by_shared_files(
    con: duckdb.DuckDBPyConnection, behind: Mapping[str, Delivery]
) -> list[tuple[str, date]]:
    """For firms whose own rows do not reach the end: the last day of a later file that covers them."""
    con.execute("CREATE TEMP TABLE behind (slug VARCHAR, last DATE, through DATE)")
    con.executemany(
        "INSERT INTO behind VALUES (?, ?, ?)", [(slug, one.last, one.through) for slug, one in behind.items()]
    )
    # A file ends with the last week that names at least half as many firms as its weeks usually do.
    con.execute(f"""
        CREATE TEMP TABLE tail AS
        WITH ends AS (SELECT stem, max(day) AS last FROM seen GROUP BY stem)
        SELECT stem, slug, day FROM seen JOIN ends USING (stem) WHERE day > last - {TAIL.days};
        CREATE TEMP TABLE file AS
        WITH weeks AS (
            SELECT stem, {week_sql("day")} AS week, count(DISTINCT slug) AS firms,
                max(day) AS last FROM tail GROUP BY ALL
        )
        SELECT stem, source, max(last) AS last
        FROM weeks JOIN (SELECT stem, median(firms) AS usual FROM weeks GROUP BY stem) USING (stem)
            JOIN source USING (stem) JOIN (SELECT stem FROM seen GROUP BY stem HAVING count(DISTINCT slug) > 1)
            USING (stem)
        WHERE firms >= usual / 2 GROUP BY ALL;
        CREATE TEMP TABLE carried AS SELECT DISTINCT stem, slug FROM tail SEMI JOIN file USING (stem);
        CREATE TEMP TABLE home AS
        SELECT slug, arg_max(stem, (file.last, stem)) AS stem
        FROM behind JOIN seen USING (slug) JOIN file USING (stem) WHERE seen.day = behind.last GROUP BY slug""")
    return con.execute("""
        WITH pairs AS (
            SELECT home.stem AS home, file.stem AS other, any_value(file.last) AS last
            FROM home JOIN file AS own ON own.stem = home.stem JOIN file ON file.source = own.source
            WHERE file.last > (SELECT min(through) FROM behind) GROUP BY ALL
        ), common AS (
            SELECT home, other, any_value(last) AS last, count(*) AS firms, list(DISTINCT c.slug) AS slugs
            FROM pairs JOIN carried AS h ON h.stem = home JOIN carried AS c ON c.stem = other AND c.slug = h.slug
            GROUP BY home, other
        ), size AS (SELECT stem, count(*) AS firms FROM carried GROUP BY stem)
        SELECT behind.slug, max(common.last)
        FROM behind JOIN home USING (slug) JOIN common ON common.home = home.stem
            JOIN size ON size.stem = home.stem
            LEFT JOIN carried AS own ON own.stem = home.stem AND own.slug = behind.slug
        WHERE common.last > behind.through
            -- The firm itself is no witness of its own silence.
            AND common.firms - CAST(list_contains(slugs, behind.slug) AS INTEGER)
                > (size.firms - CAST(own.slug IS NOT NULL AS INTEGER)) / 2
        GROUP BY behind.slug""").fetchall()
