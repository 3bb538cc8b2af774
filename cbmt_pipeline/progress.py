"""Progress reports from the worker processes, shown as a bar, or as lines where there is no terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column

from cbmt_core.names import Unit

__all__ = ["News", "ProgressBar", "console", "listen", "tell"]

console = Console(highlight=False, soft_wrap=True, markup=False)
"""Without markup: a message may name a section such as [design]."""

PULSE = 20.0
"""Seconds between lines where there is no terminal."""
MEMORY = 1800.0
"""Window in seconds for estimating the time left: a firm's networks may take minutes."""


@dataclass(frozen=True)
class News:
    """A progress report: what a run is doing for a firm, and the share of that firm's work that is done."""

    firm: str
    """Its partition key."""
    doing: str = ""
    share: float = 0.0


_listener: Callable[[News], object] | None = None


def listen(listener: Callable[[News], object] | None) -> None:
    """Send this process's reports to `listener`; without one they are dropped."""
    global _listener
    _listener = listener


def tell(firm: str, doing: str, share: float) -> None:
    if _listener:
        _listener(News(firm, doing, share))


class ProgressBar:
    """Progress bar: items done, the present one, and the time left."""

    def __init__(
        self, title: str, total: int, on: Console = console, pulse: float = PULSE, *, keep: bool = True
    ) -> None:
        """
        Args:
            pulse: seconds between lines where there is no terminal.
            keep: whether the full bar stays when all is done.
        """
        self._console, self._title, self._pulse = on, title, pulse
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TextColumn("{task.fields[done]}/{task.total:.0f}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[now]}", table_column=Column(no_wrap=True, overflow="ellipsis")),
            console=on,
            speed_estimate_period=MEMORY,
            transient=not keep,
            disable=not keep and not on.is_terminal,
        )
        self._task = self._progress.add_task(title, total=total, now="", done=0)
        self._done = 0
        self._under_way: dict[str, News] = {}
        self._spoken = time.monotonic()

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.update(self._task, now="")
        self._progress.stop()

    def hear(self, news: News) -> None:
        """Show a report about a firm."""
        self._under_way[news.firm] = news
        self._show()

    def advance(self, *firms: str) -> None:
        """Count firms as done; without names, one item."""
        self._done += max(1, len(firms))
        for firm in firms:
            self._under_way.pop(firm, None)
        self._show()

    def _show(self) -> None:
        now = " · ".join(
            f"{Unit.from_key(n.firm).name} {n.doing}" for n in self._under_way.values() if n.doing
        )
        # Shares of firms move the bar and the time left; the count is of finished firms.
        done = self._done + sum(n.share >= 1 for n in self._under_way.values())
        part = sum(n.share for n in self._under_way.values())
        self._progress.update(self._task, completed=self._done + part, now=now, done=done)
        if not self._console.is_terminal and time.monotonic() - self._spoken >= self._pulse:
            self._spoken = time.monotonic()
            task = self._progress.tasks[0]
            left = "" if task.time_remaining is None else f", {_clock(task.time_remaining)} left"
            self._console.print(
                f"{self._title}: {done} of {task.total:.0f} done in {_clock(task.elapsed or 0)}{left}"
                + (f"; {now}" if now else "")
            )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"
