"""The charts of the panel's page, each a function from numbers to SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from cbmt_core.arrays import Floats
from cbmt_core.report.charts import HALF
from cbmt_core.report.numbers import short, value
from cbmt_core.report.svg import Canvas, Series, ticks

__all__ = ["Dot", "Line", "Mark", "dots", "lines", "log_ticks", "scatter"]

NAMED = 12
"""Up to this many points are labelled, where there is room."""
LETTER, LINE = 6.4, 13.0
"""Width of a letter and height of a line of a name, roughly, in pixels."""


@dataclass(frozen=True, eq=False)
class Line:
    name: str
    colour: str
    values: Floats
    strong: bool = False


def lines(title: str, places: Sequence[str], series: Sequence[Line], width: int = 345) -> Markup:
    """Lines over a few named places."""
    canvas = Canvas(width, 190, title, f"{title} by {', '.join(places)}.", left=36, right=18)
    known = [v for line in series for v in line.values if math.isfinite(v)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    # The distance between lines matters, so the axis need not start at zero; its labels show the start.
    margin = 0.15 * (high - low) or 1.0
    x, y = canvas.x(0, max(1, len(places) - 1)), canvas.y(max(0.0, low - margin), high + margin)
    at_y = ticks(y.low, y.high, 4)
    digits = 0 if len(at_y) < 2 or at_y[1] - at_y[0] >= 1 else 1
    canvas.y_axis(y, lambda v: value(v, digits), at_y)
    _, _, _, bottom = canvas.inner
    for k, place in enumerate(places):
        canvas.text(x(k), bottom + 16, place, "middle")
    for line in sorted(series, key=lambda one: one.strong):
        at = [x(k) for k in range(len(places))]
        canvas.path(at, [y(v) for v in line.values], line.colour, 2.4 if line.strong else 1.6)
        for k, v in enumerate(line.values):
            if math.isfinite(v):
                canvas.add("circle", cx=at[k], cy=y(v), r=2.5, fill=line.colour)
    canvas.crosshair(
        x, list(places), [Series(s.name, s.colour, s.values) for s in series], y, digits=1, suffix="%"
    )
    return canvas.svg()


@dataclass(frozen=True)
class Dot:
    """A value on a row, with half the width of its interval where there is one."""

    name: str
    colour: str
    amount: float
    spread: float | None = None


def dots(
    title: str, rows: Sequence[tuple[str, Sequence[Dot]]], axis: str, width: int = HALF, left: int = 130
) -> Markup:
    """Rows of dots on one axis."""
    tall = 25
    canvas = Canvas(width, tall * len(rows) + 44, title, f"A row each for {', '.join(name for name, _ in rows)}.",
                    left=left, right=16, top=6, bottom=38)  # fmt: skip
    ends = [dot.amount + (dot.spread or 0.0) for _, many in rows for dot in many if math.isfinite(dot.amount)]
    x = canvas.x(0, 1.05 * max(ends, default=1.0) or 1.0)
    start, right, top, bottom = canvas.inner
    for tick in ticks(0, x.high, 5):
        canvas.line(x(tick), top, x(tick), bottom)
        canvas.text(x(tick), bottom + 15, value(tick, 0 if x.high > 4 else 1), "middle")
    canvas.text((start + right) / 2, bottom + 32, axis, "middle", "axis light")
    for r, (name, many) in enumerate(rows):
        y = top + (r + 0.5) * tall
        canvas.text(start - 8, y + 4, name, "end")
        for dot in many:
            if not math.isfinite(dot.amount):
                continue
            if dot.spread is not None and math.isfinite(dot.spread):
                canvas.line(x(max(0.0, dot.amount - dot.spread)), y, x(dot.amount + dot.spread), y, "interval",
                            stroke=dot.colour)  # fmt: skip
            canvas.add("circle", cx=x(dot.amount), cy=y, r=4.5, fill=dot.colour, class_="mark",
                       data_tip=f"{name}\n{dot.name}\t{value(dot.amount, 2)}")  # fmt: skip
    canvas.table = (
        ["row", "of", axis, "interval, either side"],
        [
            [name, dot.name, dot.amount, math.nan if dot.spread is None else dot.spread]
            for name, many in rows
            for dot in many
        ],
    )
    return canvas.svg()


@dataclass(frozen=True)
class Mark:
    """A firm in the scatter plot, and its row in the page's list."""

    x: float
    y: float
    name: str
    row: int
    colour: str


def scatter(
    title: str, marks: Sequence[Mark], x_name: str, y_name: str, y_tick: Callable[[float], str]
) -> Markup:
    """Points on two logarithmic axes."""
    canvas = Canvas(
        HALF, 340, title, f"{len(marks)} points: {x_name} across, {y_name} up.", bottom=38, left=58, top=20
    )
    x = canvas.x(*_decades([mark.x for mark in marks]), log=True)
    y = canvas.y(*_decades([mark.y for mark in marks]), log=True)
    left, right, top, bottom = canvas.inner
    canvas.y_axis(y, y_tick, log_ticks(y.low, y.high))
    for tick in log_ticks(x.low, x.high):
        canvas.line(x(tick), top, x(tick), bottom)
        canvas.text(x(tick), bottom + 15, short(tick, trim=True), "middle")
    canvas.text((left + right) / 2, bottom + 32, x_name, "middle", "axis light")
    canvas.text(left, top - 4, y_name, "start", "axis light")
    size = 5.0 if len(marks) <= 100 else 3.5
    taken = [(x(mark.x) - size, x(mark.x) + size, y(mark.y)) for mark in marks]
    for mark in marks:
        canvas.add(
            "circle",
            cx=x(mark.x),
            cy=y(mark.y),
            r=size,
            fill=mark.colour,
            class_="mark point",
            data_row=mark.row,
        )
    for mark in marks if len(marks) <= NAMED else ():
        at, level, wide = x(mark.x), y(mark.y), LETTER * len(mark.name)
        for start, anchor in ((at + 9, "start"), (at - 9 - wide, "end")):
            inside = left <= start and start + wide <= right
            if inside and not any(
                start < end and begin < start + wide and abs(level - other) < LINE
                for begin, end, other in taken
            ):
                canvas.text(at + (9 if anchor == "start" else -9), level + 4, mark.name, anchor)
                taken.append((start, start + wide, level))
                break
    canvas.table = (["firm", x_name, y_name], [[mark.name, mark.x, mark.y] for mark in marks])
    return canvas.svg()


def _decades(values: Sequence[float]) -> tuple[float, float]:
    """Limits a little beyond the values, for a logarithmic axis."""
    low, high = min(values, default=1.0), max(values, default=10.0)
    return low / 1.6, high * 1.6


def log_ticks(low: float, high: float) -> list[float]:
    steps = (1.0, 2.0, 5.0) if high / low < 300 else (1.0,)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    return [m * 10.0**k for k in range(first, last + 1) for m in steps if low <= m * 10.0**k <= high]
