"""First and last day of the data, single rows with impossible dates left out."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from itertools import pairwise

__all__ = ["SPAN_RULES", "span_of"]

SPAN_RULES = 2
"""Raise it when the same weeks have another span: what was found before is then found anew."""

THIN_WEEK = 0.05
"""Weeks at an end of the data with less than this share of the usual rows are strays."""
STRAY_GAP = 4
"""Thin weeks at an end are strays only if they are separated from the rest by more weeks than this."""
WIDE_GAP = 26
"""After a gap of this many weeks, a few rows are strays."""
FEW_ROWS = 3
FEW_SHARE = 0.01

Week = tuple[date, date, date, int, float]
"""Sunday, first and last day with a row, rows, and what the firms with a row in it have in their median weeks."""


def span_of(weeks: Sequence[Week]) -> tuple[date, date]:
    """First and last day of the weeks that belong to the data.

    A row dated years before or after all others must not stretch the project, but the slow first weeks of a young firm
    and a shop that is closed in winter belong to it.
    """
    counts = sorted(week[3] for week in weeks)
    total, median = sum(counts), counts[len(counts) // 2]
    runs = _runs(weeks)
    while len(runs) > 1:
        # Start at the end with the smaller run: an outlier at one end must not hide one at the other.
        ends = sorted((runs[0], runs[-1]), key=lambda run: sum(week[3] for week in run))
        for run in ends:
            other = runs[1] if run is runs[0] else runs[-2]
            gap = (other[0][0] - run[-1][0]).days if run is runs[0] else (run[0][0] - other[-1][0]).days
            rows = sum(week[3] for week in run)
            thin = rows < THIN_WEEK * median * len(run)
            far = gap > 7 * WIDE_GAP and rows <= max(FEW_ROWS, FEW_SHARE * total) and rows < total / 2
            if thin or far:
                runs.remove(run)
                break
        else:
            break
    first, last = runs[0], runs[-1]
    # Without a gap only the last week can be thin: it is one that has just begun, or mistyped dates ahead of it. Usual
    # is what the firms in it have: a small firm's weeks that come before all others' are data.
    while len(last) > 1 and last[-1][3] < THIN_WEEK * min(median, last[-1][4]):
        last = last[:-1]
    return first[0][1], last[-1][2]


def _runs(weeks: Sequence[Week]) -> list[list[Week]]:
    """The weeks, split where more than STRAY_GAP of them have no row."""
    runs = [[weeks[0]]]
    for before, week in pairwise(weeks):
        if (week[0] - before[0]).days > 7 * STRAY_GAP:
            runs.append([])
        runs[-1].append(week)
    return runs
