"""The charts of the diagnostics' page: rates and estimates with their intervals, and points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from cbmt_core.report.charts import HALF, WIDE
from cbmt_core.report.numbers import short, value
from cbmt_core.report.panel_charts import log_ticks
from cbmt_core.report.svg import BLUE, GREY, Canvas, Scale, ticks

__all__ = ["WIDE", "EstimateRow", "RateBar", "bars", "dependence", "estimates", "win_grid"]


@dataclass(frozen=True)
class RateBar:
    """A share between 0 and 1 with the ends of its interval, where there is one."""

    name: str
    share: float
    low: float | None
    high: float | None
    about: str
    colour: str = BLUE


INTERVAL = ["share", "low", "high"]


def _end(value: float | None) -> float:
    return math.nan if value is None else value


def _ends(bar: RateBar) -> list[float]:
    return [bar.share, _end(bar.low), _end(bar.high)]


def bars(title: str, rows: Sequence[RateBar], axis: str) -> Markup:
    """Upright bars of shares."""
    canvas = Canvas(
        HALF, 290, title, f"A bar each for {', '.join(bar.name for bar in rows)}.", left=44, bottom=46
    )
    y = canvas.y(0, 1)
    left, right, _, bottom = canvas.inner
    canvas.y_axis(y, lambda v: f"{100 * v:.0f}%", ticks(0, 1, 5))
    canvas.text((left + right) / 2, bottom + 38, axis, "middle", "axis light")
    step = (right - left) / max(1, len(rows))
    for k, bar in enumerate(rows):
        middle = left + (k + 0.5) * step
        canvas.text(middle, bottom + 17, bar.name, "middle")
        _column(canvas, y, bar, middle, 0.5 * step)
        # Inside the bar, below its interval; above the bar if it is too low.
        inside = y(0) - y(bar.low if bar.low is not None else bar.share) > 26
        at = y(0) - 9 if inside else y(bar.high if bar.high is not None else bar.share) - 6
        canvas.text(middle, at, f"{100 * bar.share:.0f}%", "middle", "cell light" if inside else "label")
    canvas.table = (["bar", *INTERVAL], [[bar.name, *_ends(bar)] for bar in rows])
    return canvas.svg()


def _column(canvas: Canvas, y: Scale, bar: RateBar, middle: float, width: float) -> None:
    if not math.isfinite(bar.share):
        return
    tip = f"{bar.about}\nshare\t{100 * bar.share:.1f}%"
    if bar.low is not None and bar.high is not None:
        tip += f"\n95% interval\t{100 * bar.low:.0f}% to {100 * bar.high:.0f}%"
    canvas.add(
        "rect", x=middle - width / 2, y=y(bar.share), width=width, height=max(0.5, y(0) - y(bar.share)),
        fill=bar.colour, class_="mark", data_tip=tip,
    )  # fmt: skip
    if bar.low is not None and bar.high is not None:
        canvas.line(middle, y(bar.low), middle, y(bar.high), "interval", stroke="#1f2933")
        for end in (bar.low, bar.high):
            canvas.line(middle - 4, y(end), middle + 4, y(end), "interval", stroke="#1f2933")


@dataclass(frozen=True)
class EstimateRow:
    """A value on a row with the ends of its interval; strong ones are blue."""

    name: str
    amount: float
    low: float | None
    high: float | None
    strong: bool = True
    about: str = ""


def estimates(
    title: str, rows: Sequence[EstimateRow], axis: str, *, width: int = HALF, left: int = 170, tall: int = 22
) -> Markup:
    """Rows of values with intervals around a line at zero."""
    canvas = Canvas(width, tall * len(rows) + 46, title, f"A row each for {', '.join(row.name for row in rows)}.",
                    left=left, right=14, top=6, bottom=40)  # fmt: skip
    ends = [
        end
        for row in rows
        for end in (row.amount, row.low, row.high)
        if end is not None and math.isfinite(end)
    ]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    margin = 0.05 * (high - low) or 1.0
    x = canvas.x(low - margin if low < 0 else 0.0, high + margin)
    start, right, top, bottom = canvas.inner
    marks = ticks(x.low, x.high, 5)
    digits = 0 if len(marks) < 2 else max(0, -math.floor(math.log10(marks[1] - marks[0]) + 1e-9))
    for tick in marks:
        canvas.line(x(tick), top, x(tick), bottom)
        canvas.text(x(tick), bottom + 15, value(tick, digits), "middle")
    canvas.line(x(0), top, x(0), bottom, "tick")
    canvas.text((start + right) / 2, bottom + 33, axis, "middle", "axis light")
    for r, row in enumerate(rows):
        y = top + (r + 0.5) * tall
        canvas.text(start - 8, y + 4, row.name, "end")
        if not math.isfinite(row.amount):
            continue
        colour = BLUE if row.strong else GREY
        tip = f"{row.name}\nestimate\t{value(row.amount, 3)}"
        if row.low is not None and row.high is not None:
            canvas.line(x(row.low), y, x(row.high), y, "interval", stroke=colour)
            tip += f"\n95% interval\t{value(row.low, 3)} to {value(row.high, 3)}"
        canvas.add("circle", cx=x(row.amount), cy=y, r=4.5, fill=colour, class_="mark",
                   data_tip=tip + (f"\n{row.about}" if row.about else ""))  # fmt: skip
    canvas.table = (
        ["row", "estimate", *INTERVAL[1:]],
        [[row.name, row.amount, _end(row.low), _end(row.high)] for row in rows],
    )
    return canvas.svg()


def dependence(
    title: str, points: Sequence[tuple[str, float, float]], x_name: str, y_name: str, *, log: bool
) -> Markup:
    """A point a firm: the value of a feature across, what it adds to the predicted error up."""
    canvas = Canvas(HALF, 300, title, f"{len(points)} firms: {x_name} across, {y_name} up.",
                    left=46, bottom=40, top=22)  # fmt: skip
    xs, ys = [p[1] for p in points], [p[2] for p in points]
    shift = 0.06 * ((max(xs) - min(xs)) or 1.0)
    limits = (min(xs) / 1.3, max(xs) * 1.3) if log else (min(xs) - shift, max(xs) + shift)
    margin = 0.08 * ((max(ys) - min(ys)) or 1.0)
    x, y = canvas.x(*limits, log=log), canvas.y(min(0.0, *ys) - margin, max(0.0, *ys) + margin)
    left, right, top, bottom = canvas.inner
    marks = ticks(y.low, y.high, 5)
    digits = 0 if len(marks) < 2 or marks[1] - marks[0] >= 1 else 1
    canvas.y_axis(y, lambda v: f"{'+' if v > 0 else ''}{value(v, digits)}", marks)
    canvas.line(left, y(0), right, y(0), "tick")
    for tick in log_ticks(x.low, x.high) if log else ticks(x.low, x.high, 5):
        canvas.line(x(tick), bottom, x(tick), bottom + 4, "tick")
        canvas.text(x(tick), bottom + 16, short(tick, trim=True), "middle")
    canvas.text((left + right) / 2, bottom + 34, x_name, "middle", "axis light")
    canvas.text(left, top - 8, y_name, "start", "axis light")
    size = 4.0 if len(points) <= 200 else 2.6
    for name, at, shap in points:
        tip = f"{name}\n{x_name}\t{short(at)}\nadds\t{value(shap, 1)} points"
        canvas.add(
            "circle",
            cx=x(at),
            cy=y(shap),
            r=size,
            fill=BLUE,
            fill_opacity="0.55",
            class_="mark",
            data_tip=tip,
        )
    canvas.table = (["firm", x_name, y_name], [[name, at, up] for name, at, up in points])
    return canvas.svg()


def win_grid(
    title: str,
    cells: Mapping[tuple[str, str], tuple[int, Sequence[RateBar]]],
    levels: Sequence[str],
) -> Markup:
    """Nine little bar charts: scale rises to the right, volatility upwards."""
    tall, wide, gap, head = 118, 306, 16, 26
    canvas = Canvas(
        WIDE, 3 * (tall + gap) + head, title, "Win rates by scale and volatility.", left=0, right=0
    )
    side = WIDE - 3 * (wide + gap)
    for r, volatility in enumerate(reversed(levels)):
        top = head + r * (tall + gap)
        canvas.text(side - 10, top + tall / 2, volatility.capitalize(), "end", "label")
        canvas.text(side - 10, top + tall / 2 + 15, "volatility", "end", "axis light")
        for c, scale in enumerate(levels):
            left = side + c * (wide + gap)
            count, rows = cells.get((scale, volatility), (0, ()))
            y = Scale(0, 1, top + tall - 4, top + 16)
            for tick in (0.0, 0.5, 1.0):
                canvas.line(left, y(tick), left + wide, y(tick))
            canvas.text(
                left + 2, top + 10, f"{count} firms" if count != 1 else "1 firm", "start", "axis light"
            )
            step = wide / max(1, len(rows))
            for k, bar in enumerate(rows):
                middle = left + (k + 0.5) * step
                _column(canvas, y, bar, middle, 0.46 * step)
                if count and math.isfinite(bar.share):
                    canvas.text(
                        middle + 0.27 * step, y(bar.share) + 3, f"{100 * bar.share:.0f}%", "start", "cell"
                    )
    for c, scale in enumerate(levels):
        middle = side + c * (wide + gap) + wide / 2
        canvas.text(middle, head - 10, scale.capitalize() + " scale", "middle", "label")
    canvas.table = (
        ["scale", "volatility", "firms", "model", *INTERVAL],
        [
            [scale, volatility, count, bar.about.split("\n")[0], *_ends(bar)]
            for (scale, volatility), (count, rows) in cells.items()
            for bar in rows
        ],
    )
    return canvas.svg()
