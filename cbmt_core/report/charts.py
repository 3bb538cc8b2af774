"""The charts of a firm's page, each a function from numbers to SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
from markupsafe import Markup

from cbmt_core.arrays import Floats
from cbmt_core.report.numbers import Money, count, day, points, short, value
from cbmt_core.report.svg import BLUE, GREY, INK, ORANGE, Canvas, Series, shades, ticks
from cbmt_core.report.words import Bridge

__all__ = [
    "CENSORED",
    "HALF",
    "WIDE",
    "Layer",
    "decimals",
    "heat_map",
    "layers",
    "mark_origin",
    "tenure_curves",
    "time_lines",
    "waterfall",
    "waterfall_range",
    "week_labels",
]

CENSORED = "#b3bcc6"
"""Colour of customers acquired before the first week."""
WIDE, HALF = 1040, 510


@dataclass(frozen=True, eq=False)
class Layer:
    """Sales of one group of cohorts: as observed up to the origin, as forecast after it."""

    name: str
    values: Floats
    censored: bool = False


def layer_colours(stack: Sequence[Layer]) -> list[str]:
    young = iter(shades(sum(not layer.censored for layer in stack)))
    return [CENSORED if layer.censored else next(young) for layer in stack]


def layers(
    weeks: Sequence[date],
    stack: Sequence[Layer],
    actual: Floats,
    forecast: Floats,
    origin: int | None,
    money: Money,
) -> Markup:
    """Weekly sales stacked by quarter of acquisition; weeks after number `origin` are a forecast.

    `actual` is what was sold; it is drawn where it can be compared with the forecast. `forecast` is the
    forecast of all sales; it is drawn where no layers are forecast.
    """
    canvas = Canvas(
        WIDE, 330, "Weekly sales by quarter of acquisition",
        "Stacked areas, oldest customers at the bottom; after the forecast origin the areas are a forecast.",
    )  # fmt: skip
    values = np.array([layer.values for layer in stack]) if stack else np.zeros((1, len(weeks)))
    top = max(float(np.nan_to_num(part).max()) for part in (values.sum(axis=0), actual, forecast))
    x, y = canvas.x(0, len(weeks) - 1), canvas.y(0, 1.06 * top if top > 0 else 1)
    canvas.y_axis(y, money.axis)
    colours = layer_colours(stack)
    edges = np.vstack([np.zeros(len(weeks)), np.cumsum(values, axis=0)])
    last = len(weeks) - 1 if origin is None else origin
    layered = bool(values[:, last + 1 :].any())
    for k, colour in enumerate(colours):
        after = range(last, len(weeks)) if layered else range(0)
        for piece, opacity in ((range(last + 1), None), (after, "0.6")):
            sold = [t for t in piece if values[k, max(0, t - 1) : t + 2].any()]
            used = range(sold[0], sold[-1] + 1) if sold else ()
            if len(used) > 1:
                canvas.area(
                    [x(t) for t in used], [y(edges[k, t]) for t in used], [y(edges[k + 1, t]) for t in used],
                    colour, opacity=opacity,
                )  # fmt: skip
    shown = actual.copy()
    # Nothing to compare if no week after the origin is observed.
    overtaken = bool(np.isfinite(actual[last + 1 :]).any())
    shown[: last if overtaken else len(weeks)] = np.nan
    at = [x(t) for t in range(len(weeks))]
    if not layered:
        canvas.path(at, [y(v) for v in forecast], ORANGE, 2)
    canvas.path(at, [y(v) for v in shown], INK, 1.4)
    mark_origin(canvas, x, origin, len(weeks))
    canvas.x_years(x, weeks)
    series = [Series(layer.name, c, np.where(layer.values > 0, layer.values, np.nan), dot=False)
              for layer, c in zip(stack, colours, strict=True)]  # fmt: skip
    if not layered:
        series.append(Series("forecast", ORANGE, forecast))
    if overtaken:
        series.append(Series("realised", INK, shown))
    canvas.crosshair(x, week_labels(weeks, origin), series, y, money.prefix, total="sum of the layers",
                     keys=[str(week) for week in weeks])  # fmt: skip
    return canvas.svg()


def mark_origin(canvas: Canvas, x: Callable[[float], float], origin: int | None, number: int) -> None:
    if origin is None or origin >= number - 1:
        return
    _, _, top, bottom = canvas.inner
    at = x(origin)
    canvas.line(at, top - 4, at, bottom, "origin")
    canvas.text(at + 5, top + 5, "forecast →", class_="note")


def week_labels(weeks: Sequence[date], origin: int | None) -> list[str]:
    return [
        f"Week of {day(week)}" + (", forecast" if origin is not None and k > origin else "")
        for k, week in enumerate(weeks)
    ]


def time_lines(
    title: str, weeks: Sequence[date], observed: Floats, forecast: Floats, origin: int | None,
    label: Callable[[float], str], prefix: str = "", digits: int | None = None,
) -> Markup:  # fmt: skip
    """One driver: observed weeks with their running mean, and the forecast."""
    canvas = Canvas(
        345, 190, title, "Observed weeks in grey, their 13-week mean in black, forecast in orange.", left=46
    )
    both = np.concatenate([observed, forecast])
    top = float(np.nanmax(both)) if np.isfinite(both).any() else 1.0
    x, y = canvas.x(0, len(weeks) - 1), canvas.y(0, 1.1 * top if top > 0 else 1)
    canvas.y_axis(y, label, ticks(0, 1.1 * top, 4))
    at = [x(t) for t in range(len(weeks))]
    smooth = _running_mean(observed, 13)
    canvas.path(at, [y(v) for v in observed], CENSORED, 1)
    canvas.path(at, [y(v) for v in smooth], INK, 1.8)
    canvas.path(at, [y(v) for v in forecast], ORANGE, 2)
    mark_origin(canvas, x, origin, len(weeks))
    canvas.x_years(x, weeks)
    series = [Series("observed", GREY, observed), Series("forecast", ORANGE, forecast)]
    canvas.crosshair(
        x, week_labels(weeks, None), series, y, prefix, digits, keys=[str(week) for week in weeks]
    )
    return canvas.svg()


def _running_mean(values: Floats, span: int) -> Floats:
    """Centred mean over `span` weeks, shorter at the ends; NaN where nothing is known."""
    known = np.isfinite(values)
    kernel = np.ones(span)
    total = np.convolve(np.where(known, values, 0.0), kernel, "same")
    weight = np.convolve(known.astype(float), kernel, "same")
    mean = np.divide(total, weight, out=np.full(len(values), np.nan), where=weight > 0)
    return np.where(known, mean, np.nan)


def tenure_curves(names: Sequence[str], curves: Floats, step: int) -> Markup:
    """Repeat orders per customer and week by tenure: a line a quarter of acquisition, dark old, light young.

    `curves` is [quarter, bin of `step` weeks], NaN where not yet observed.
    """
    canvas = Canvas(WIDE, 330, "Repeat orders per customer by tenure",
                    "One line for each quarter of acquisition, dark for early and light for late ones.",
                    bottom=38)  # fmt: skip
    bins = curves.shape[1]
    top = float(np.nanmax(curves)) if np.isfinite(curves).any() else 1.0
    x, y = canvas.x(0, bins - 1), canvas.y(0, 1.06 * top if top > 0 else 1)
    digits = decimals(top)
    canvas.y_axis(y, lambda v: value(v, digits))
    left, right, _, bottom = canvas.inner
    colours = shades(len(names))
    for k, colour in enumerate(colours):
        canvas.path([x(b) for b in range(bins)], [y(v) for v in curves[k]], colour, 1.8)
    canvas.line(left, bottom, right, bottom, "tick")
    for tick in ticks(0, bins * step, 6):
        # Bins are drawn at their middle, so the last tick may lie outside the axis.
        if 0 < tick <= (bins - 0.5) * step:
            canvas.text(x(tick / step - 0.5), bottom + 15, count(tick), "middle")
    canvas.text((left + right) / 2, bottom + 32, "weeks since first order", "middle", "axis light")
    labels = [f"Weeks {b * step + 1} to {(b + 1) * step} after the first order" for b in range(bins)]
    series = [Series(f"acquired {n}", c, v) for n, c, v in zip(names, colours, curves, strict=True)][::-1]
    canvas.crosshair(x, labels, series, y, digits=digits + 1, keys=[str(b * step + 1) for b in range(bins)])
    return canvas.svg()


def decimals(top: float) -> int:
    """Number of decimals that distinguish the ticks of an axis from zero to `top`."""
    at = ticks(0, top)
    return max(0, -math.floor(math.log10(at[1] - at[0]) + 1e-9)) if len(at) > 1 else 1


SOURCES = {
    "order_volume": "Repeat\norders",
    "spend_per_order": "Spend\nper order",
    "net_replenishment": "Net replen-\nishment",
    "sales_change": "Change\nin sales",
}
DEFINITIONS = {
    "order_volume": "Customers there at the start: more or fewer repeat orders",
    "spend_per_order": "Customers there at the start: more or less spent on each",
    "net_replenishment": "All sales to customers acquired since, less last year's first orders, which happen only once",
    "sales_change": "The sum of the three",
}
Whiskers = Mapping[str, tuple[float, float]]


def waterfall(
    title: str, bridge: Bridge, low: float, high: float, money: Money, start: str, whiskers: Whiskers | None = None
) -> Markup:  # fmt: skip
    """From the baseline's sales to the target's in three steps, on an axis that several bridges share.

    The zero line stands for the baseline's sales, so that bars are as long as the steps and no axis is cut.

    Args:
        low: lower end of the axis, in currency above or below the baseline.
        high: upper end.
        start: name of the zero line.
        whiskers: source -> low and high of its range.
    """
    canvas = Canvas(HALF, 300, title, _bridge_text(bridge, money), left=54, right=8, top=34, bottom=44)
    y = canvas.y(low, high)
    left, right, _, bottom = canvas.inner
    canvas.y_axis(y, lambda v: short(v, plus=True, prefix=money.prefix, trim=True))
    slot = (right - left) / 4
    wide = slot * 0.56
    canvas.text(left, 12, f"0 = {start}, {money.short(bridge.baseline_sales)}", class_="axis light")
    canvas.line(left, y(0.0), right, y(0.0), "tick")
    level, rows = 0.0, []
    steps = {name: getattr(bridge, name) for name in SOURCES if name != "sales_change"}
    for k, (source, name) in enumerate(SOURCES.items()):
        centre = left + (k + 0.5) * slot
        amount = steps.get(source, bridge.change)
        begin = level if source in steps else 0.0
        level = begin + amount
        ends = (whiskers or {}).get(source)
        amount_text, more = money.short(amount, plus=True), points(bridge.points(amount))
        colour = BLUE if amount >= 0 else ORANGE
        high_y, low_y = y(max(begin, level)), y(min(begin, level))
        plain = name.replace("- ", "").replace("-\n", "").replace("\n", " ")
        span = (
            f"\n80% range\t{money.short(ends[0], plus=True)} to {money.short(ends[1], plus=True)}"
            if ends
            else ""
        )
        canvas.add("rect", x=centre - wide / 2, y=high_y, width=wide, height=max(1.0, low_y - high_y), fill=colour,
                   opacity=None if source in steps else "0.75", class_="mark",
                   data_tip=f"{plain}\n{amount_text}\t{more}{span}\n{DEFINITIONS[source]}")  # fmt: skip
        top = high_y
        if ends:
            at = centre + wide / 2 - 7
            edges = [y(begin + end) for end in ends]
            canvas.line(at, edges[0], at, edges[1], "whisker")
            for edge in edges:
                canvas.line(at - 4, edge, at + 4, edge, "whisker")
            top = min(top, *edges)
        if k < 3:
            canvas.line(centre + wide / 2, y(level), centre + slot - wide / 2, y(level), "link")
        canvas.text(centre, top - 19, amount_text, "middle", "label")
        canvas.text(centre, top - 4, more, "middle", "label light")
        for row, part in enumerate(name.split("\n")):
            canvas.text(centre, bottom + 15 + 15 * row, part, "middle")
        rows.append([plain, amount, bridge.points(amount), *(ends or (math.nan, math.nan))])
    canvas.table = (["source", "amount", "points", "low (10 %)", "high (90 %)"], rows)
    return canvas.svg()


def waterfall_range(bridges: Sequence[Bridge], whiskers: Whiskers | None = None) -> tuple[float, float]:
    """An axis that holds these bridges, and the first one's whiskers; 0 is each baseline's sales."""
    levels = [0.0]
    for k, bridge in enumerate(bridges):
        steps = [bridge.order_volume, bridge.spend_per_order, bridge.net_replenishment]
        ends = np.cumsum(steps)
        levels += [*ends, bridge.change]
        if k == 0 and whiskers:
            begins = {"sales_change": 0.0, **dict(zip(SOURCES, [0.0, *ends[:2]], strict=False))}
            levels += [begins[name] + end for name, two in whiskers.items() for end in two]
    low, high = float(min(levels)), float(max(levels))
    spread = high - low or 1.0
    return low - 0.04 * spread, high + 0.2 * spread


def _bridge_text(bridge: Bridge, money: Money) -> str:
    return (
        f"Baseline {money.short(bridge.baseline_sales)}, repeat orders {money.short(bridge.order_volume, plus=True)}, "
        f"spend per order {money.short(bridge.spend_per_order, plus=True)}, net replenishment "
        f"{money.short(bridge.net_replenishment, plus=True)}, target {money.short(bridge.target_sales)}."
    )


def heat_map(
    title: str, rows: Sequence[str], columns: Sequence[str], values: Floats, tips: Sequence[Sequence[str]],
    label: Callable[[float], str], part: Sequence[int] = (),
) -> Markup:  # fmt: skip
    """Numbers on a shaded grid; NaN cells stay empty.

    Args:
        part: columns whose period is only partly observed; they are pale with a dotted edge.
    """
    tall = 21
    canvas = Canvas(WIDE, tall * len(rows) + 30, title, "Rows are quarters of acquisition, columns calendar quarters.",
                    left=88, right=2, top=26, bottom=2)  # fmt: skip
    left, right, top, _ = canvas.inner
    wide = (right - left) / max(1, len(columns))
    peak = float(np.nanmax(values)) if np.isfinite(values).any() else 1.0
    ramp = shades(101)[::-1]
    for c, name in enumerate(columns):
        canvas.text(left + (c + 0.5) * wide, top - 9, f"{name}*" if c in part else name, "middle")
    for r, name in enumerate(rows):
        canvas.text(left - 8, top + (r + 0.5) * tall + 4, name, "end")
        for c in range(len(columns)):
            amount = float(values[r, c])
            if not math.isfinite(amount):
                continue
            # The square root keeps the shades of small cohorts distinguishable next to the large first ones.
            share = math.sqrt(max(0.0, amount) / peak) if peak > 0 else 0.0
            canvas.add("rect", x=left + c * wide, y=float(top + r * tall), width=wide - 1.5, height=tall - 1.5,
                       fill=ramp[round(100 * share)], class_="mark part" if c in part else "mark",
                       data_tip=tips[r][c])  # fmt: skip
            canvas.text(left + (c + 0.5) * wide - 1, top + (r + 0.5) * tall + 3, label(amount), "middle",
                        "cell light" if share > 0.5 and c not in part else "cell")  # fmt: skip
    canvas.table = (
        ["acquired in", *(f"{name} (part)" if c in part else name for c, name in enumerate(columns))],
        [[name, *(float(v) for v in values[r])] for r, name in enumerate(rows)],
    )
    return canvas.svg()
