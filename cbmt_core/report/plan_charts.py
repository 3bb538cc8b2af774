"""Charts for planners: the fan, the tornado, scenarios side by side, and where sales come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
from markupsafe import Markup

from cbmt_core.arrays import Floats
from cbmt_core.report.charts import HALF, WIDE, decimals, mark_origin, week_labels
from cbmt_core.report.numbers import Money, percent
from cbmt_core.report.svg import BLUE, GREEN, INK, ORANGE, Canvas, Series, shades, ticks

__all__ = ["DriverBar", "FanLevel", "fan", "sources_by_quarter", "spans", "tornado", "value_curves"]

NEW, OLD = "#7fb8da", "#12355b"
"""Colours of customers yet to be acquired, and of those acquired already."""


@dataclass(frozen=True, eq=False)
class FanLevel:
    """A range by week: `percent` of outcomes lie between low and high; NaN where there is none."""

    percent: int
    low: Floats
    high: Floats


def fan(
    weeks: Sequence[date], actual: Floats, forecast: Floats, levels: Sequence[FanLevel], plan: Floats,
    origin: int, money: Money,
) -> Markup:  # fmt: skip
    """The last year's weekly sales, the forecast with its ranges, and the plan."""
    canvas = Canvas(
        WIDE, 330, "Weekly sales: the last year, and the next with its range",
        "Sales as they happened in black, the forecast in orange with shaded ranges, the plan in green.",
    )  # fmt: skip
    parts = [actual, forecast, plan, *(level.high for level in levels)]
    known = np.concatenate(parts)
    top = float(np.nanmax(known)) if np.isfinite(known).any() else 1.0
    x, y = canvas.x(0, len(weeks) - 1), canvas.y(0, 1.06 * top if top > 0 else 1)
    canvas.y_axis(y, money.axis)
    for k, level in enumerate(sorted(levels, key=lambda one: -one.percent)):
        held = [int(t) for t in np.flatnonzero(np.isfinite(level.low))]
        if len(held) > 1:
            canvas.area(
                [x(t) for t in held], [y(level.low[t]) for t in held], [y(level.high[t]) for t in held],
                ORANGE, opacity=str((0.14, 0.2, 0.3)[min(k, 2)]),
            )  # fmt: skip
    at = [x(t) for t in range(len(weeks))]
    canvas.path(at, [y(v) for v in plan], GREEN, 2, stroke_dasharray="6 4")
    canvas.path(at, [y(v) for v in actual], INK, 1.6)
    canvas.path(at, [y(v) for v in forecast], ORANGE, 2)
    mark_origin(canvas, x, origin, len(weeks))
    canvas.x_years(x, weeks)
    series = [Series("actual", INK, actual), Series("forecast", ORANGE, forecast)]
    for level in sorted(levels, key=lambda one: one.percent):
        series.append(Series(f"{level.percent}% low", "#f0b48a", level.low, dot=False))
        series.append(Series(f"{level.percent}% high", "#f0b48a", level.high, dot=False))
    if np.isfinite(plan).any():
        series.append(Series("plan", GREEN, plan))
    canvas.crosshair(x, week_labels(weeks, origin), series, y, money.prefix, keys=[str(w) for w in weeks])
    return canvas.svg()


def sources_by_quarter(
    names: Sequence[str], keys: Sequence[str], existing: Floats, new: Floats, origin: int, money: Money
) -> Markup:
    """Sales of each 13 weeks from customers acquired by the origin, and from those not yet acquired.

    Args:
        origin: number of quarters that are observed; later ones are a forecast.
    """
    canvas = Canvas(
        HALF, 285, "Sales from customers already acquired and from those not yet acquired",
        "Stacked bars by 13 weeks; after the origin they are a forecast.", bottom=40,
    )  # fmt: skip
    both = existing + new
    y = canvas.y(0, 1.1 * float(both.max()) if len(both) and both.max() > 0 else 1)
    canvas.y_axis(y, money.axis)
    left, right, _, bottom = canvas.inner
    slot = (right - left) / max(1, len(names))
    for k, name in enumerate(names):
        start = left + k * slot + 0.14 * slot
        for low, amount, colour, who in (
            (0.0, existing[k], OLD, "Acquired already"),
            (existing[k], new[k], NEW, "Not yet acquired"),
        ):
            if amount <= 0:
                continue
            share = percent(100 * amount / both[k], digits=0)
            canvas.add(
                "rect", x=start, y=y(low + amount), width=0.72 * slot, height=max(0.5, y(low) - y(low + amount)),
                fill=colour, opacity=None if k < origin else "0.85", class_="mark",
                data_tip=f"13 weeks from {name}\n{who}\t{money.short(amount)}, {share}",
            )  # fmt: skip
        if len(names) <= 6 or k % 2 == 0:
            canvas.text(start + 0.36 * slot, bottom + 15, name, "middle")
    canvas.line(left, bottom, right, bottom, "tick")
    if 0 < origin < len(names):
        at = left + origin * slot
        canvas.line(at, canvas.top - 4, at, bottom, "origin")
        canvas.text(at + 4, canvas.top + 5, "forecast →", class_="note")
    canvas.table = (
        ["13 weeks from", "acquired already", "not yet acquired"],
        [[key, float(a), float(b)] for key, a, b in zip(keys, existing, new, strict=True)],
    )
    return canvas.svg()


@dataclass(frozen=True)
class DriverBar:
    """One row of a chart of differences: what it is, and low, middle and high in currency."""

    name: str
    down: float
    up: float
    label: str = ""


def tornado(title: str, bars: Sequence[DriverBar], money: Money, step: str) -> Markup:
    """Each driver's effect on sales, lower to the left and higher to the right, the largest first."""
    tall = 34
    canvas = Canvas(HALF, tall * len(bars) + 46, title, f"Change in sales when each driver moves by {step}.",
                    left=160, right=6, top=8, bottom=30)  # fmt: skip
    reach = max((abs(v) for bar in bars for v in (bar.down, bar.up)), default=1.0) or 1.0
    x = canvas.x(-1.55 * reach, 1.55 * reach)
    _, _, top, bottom = canvas.inner
    for k, bar in enumerate(bars):
        at = top + k * tall + 6
        for row, part in enumerate(bar.name.split("\n")):
            canvas.text(2, at + (14 if "\n" not in bar.name else 7) + 15 * row, part)
        for value, sign, colour in ((bar.down, "−", ORANGE), (bar.up, "+", BLUE)):
            ends = sorted((x(0.0), x(value)))
            canvas.add("rect", x=ends[0], y=float(at), width=max(1.0, ends[1] - ends[0]), height=20.0, fill=colour,
                       class_="mark", data_tip=f"{bar.name.replace(chr(10), ' ')} {sign}{step}\n"
                       f"Sales\t{money.short(value, plus=True)}")  # fmt: skip
            outside = x(value) + (5 if value >= 0 else -5)
            canvas.text(outside, at + 14, money.short(value, plus=True), "start" if value >= 0 else "end")
    canvas.line(x(0.0), top, x(0.0), bottom, "tick")
    canvas.text(x(0.0), bottom + 18, "change in sales of the next 52 weeks", "middle", "axis light")
    canvas.table = (
        ["driver", f"sales at -{step}", f"sales at +{step}"],
        [[bar.name.replace("\n", " "), bar.down, bar.up] for bar in bars],
    )
    return canvas.svg()


def spans(
    title: str, rows: Sequence[tuple[str, float, float, float]], plan: float | None, money: Money
) -> Markup:
    """Scenarios side by side: the forecast as a dot, its range as a bar, and the plan as a line.

    Args:
        rows: name, low, middle and high of each.
    """
    tall = 40
    canvas = Canvas(HALF, tall * len(rows) + 52, title, "Sales of the next 52 weeks under each scenario.",
                    left=14, right=14, top=14, bottom=30)  # fmt: skip
    ends = [v for _, low, middle, high in rows for v in (low, middle, high)] + ([plan] if plan else [])
    low_end, high_end = min(ends), max(ends)
    pad = 0.08 * (high_end - low_end or high_end or 1.0)
    x = canvas.x(max(0.0, low_end - pad), high_end + pad)
    left, _, top, bottom = canvas.inner
    for tick in ticks(x.low, x.high, 5):
        canvas.line(x(tick), top, x(tick), bottom)
        canvas.text(x(tick), bottom + 16, money.axis(tick), "middle")
    for k, (name, low, middle, high) in enumerate(rows):
        at, span = top + k * tall, f"{money.short(low)} – {money.short(high)}"
        canvas.text(left, at + 10, name, class_="label")
        canvas.add("rect", x=x(low), y=at + 17.0, width=max(1.0, x(high) - x(low)), height=12.0,
                   fill="#52606d" if k == 0 else BLUE, opacity="0.35", class_="mark",
                   data_tip=f"{name}\nForecast\t{money.short(middle)}\n80% range\t{span}")  # fmt: skip
        canvas.add("circle", cx=x(middle), cy=at + 23.0, r=5, fill="#52606d" if k == 0 else BLUE)
    if plan:
        canvas.line(x(plan), top - 4, x(plan), bottom, "goal")
        canvas.text(x(plan) + 4, top, "plan", class_="note")
    canvas.table = (
        ["scenario", "low (10 %)", "forecast", "high (90 %)"],
        [[name, low, middle, high] for name, low, middle, high in rows],
    )
    return canvas.svg()


def value_curves(names: Sequence[str], curves: Floats, step: int, money: Money) -> Markup:
    """Cumulative sales per customer by weeks since the first order: a line a quarter of acquisition."""
    canvas = Canvas(
        WIDE, 300, "Cumulative sales per customer by weeks since the first order",
        "One line for each quarter of acquisition, dark for early and light for late ones.", bottom=38,
    )  # fmt: skip
    bins = curves.shape[1]
    top = float(np.nanmax(curves)) if np.isfinite(curves).any() else 1.0
    x, y = canvas.x(0, max(1, bins - 1)), canvas.y(0, 1.06 * top if top > 0 else 1)
    canvas.y_axis(y, money.axis)
    left, right, _, bottom = canvas.inner
    colours = shades(len(names))
    for k, colour in enumerate(colours):
        canvas.path([x(b) for b in range(bins)], [y(v) for v in curves[k]], colour, 1.8)
    canvas.line(left, bottom, right, bottom, "tick")
    for tick in ticks(0, (bins - 1) * step, 6):
        canvas.text(x(tick / step), bottom + 15, f"{tick:.0f}", "middle")
    canvas.text((left + right) / 2, bottom + 32, "weeks since first order", "middle", "axis light")
    labels = [f"After {b * step} weeks" if b else "First order" for b in range(bins)]
    series = [Series(f"acquired {n}", c, v) for n, c, v in zip(names, colours, curves, strict=True)][::-1]
    canvas.crosshair(
        x, labels, series, y, money.prefix, decimals(top) + 1, keys=[str(b * step) for b in range(bins)]
    )
    return canvas.svg()
