"""The charts of a firm's page, each a function from numbers to SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from cbmt_core.report.numbers import Money, count, day, points, value
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

Floats = npt.NDArray[np.float64]
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
    # Nothing to compare where no week after the origin is observed.
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
    canvas.crosshair(x, week_labels(weeks, origin), series, y, money.prefix, total="sum of the layers")
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
    told: Callable[[float], str], prefix: str = "", digits: int | None = None,
) -> Markup:  # fmt: skip
    """One driver: observed weeks with their running mean, and the forecast."""
    canvas = Canvas(
        345, 190, title, "Observed weeks in grey, their 13-week mean in black, forecast in orange.", left=46
    )
    both = np.concatenate([observed, forecast])
    top = float(np.nanmax(both)) if np.isfinite(both).any() else 1.0
    x, y = canvas.x(0, len(weeks) - 1), canvas.y(0, 1.1 * top if top > 0 else 1)
    canvas.y_axis(y, told, ticks(0, 1.1 * top, 4))
    at = [x(t) for t in range(len(weeks))]
    smooth = _running_mean(observed, 13)
    canvas.path(at, [y(v) for v in observed], CENSORED, 1)
    canvas.path(at, [y(v) for v in smooth], INK, 1.8)
    canvas.path(at, [y(v) for v in forecast], ORANGE, 2)
    mark_origin(canvas, x, origin, len(weeks))
    canvas.x_years(x, weeks)
    series = [Series("observed", GREY, observed), Series("forecast", ORANGE, forecast)]
    canvas.crosshair(x, week_labels(weeks, None), series, y, prefix, digits)
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
        # Bins are drawn at their middle, so the last tick may lie beyond the axis.
        if 0 < tick <= (bins - 0.5) * step:
            canvas.text(x(tick / step - 0.5), bottom + 15, count(tick), "middle")
    canvas.text((left + right) / 2, bottom + 32, "weeks since first order", "middle", "axis light")
    labels = [f"Weeks {b * step + 1} to {(b + 1) * step} after the first order" for b in range(bins)]
    series = [Series(f"acquired {n}", c, v) for n, c, v in zip(names, colours, curves, strict=True)][::-1]
    canvas.crosshair(x, labels, series, y, digits=digits + 1)
    return canvas.svg()


def decimals(top: float) -> int:
    """Decimals that tell apart the ticks of an axis from zero to `top`."""
    at = ticks(0, top)
    return max(0, -math.floor(math.log10(at[1] - at[0]) + 1e-9)) if len(at) > 1 else 1


SOURCES = ("Repeat\norders", "Spend\nper order", "Net replen-\nishment")


def waterfall(
    title: str, bridge: Bridge, low: float, high: float, money: Money, ends: tuple[str, str]
) -> Markup:
    """From the baseline's sales to the target's in three steps, on an axis that several bridges share.

    Args:
        low: lower end of the axis, in currency.
        high: upper end.
        ends: names of the baseline and of the target.
    """
    canvas = Canvas(HALF, 285, title, _bridge_text(bridge, money), left=14, right=14, top=20, bottom=44)
    y = canvas.y(low, high)
    left, right, _, bottom = canvas.inner
    slot = (right - left) / 5
    wide = slot * 0.62
    names = (ends[0], *SOURCES, ends[1])
    steps = (bridge.order_volume, bridge.spend_per_order, bridge.net_replenishment)
    canvas.line(left, bottom, right, bottom, "tick")
    level = bridge.baseline_sales
    for k, name in enumerate(names):
        centre = left + (k + 0.5) * slot
        if 1 <= k <= 3:
            start, level = level, level + steps[k - 1]
            told, more = money.short(steps[k - 1], plus=True), points(bridge.points(steps[k - 1]))
            colour = BLUE if steps[k - 1] >= 0 else ORANGE
        else:
            start, level = low, bridge.baseline_sales if k == 0 else bridge.target_sales
            told = money.short(level)
            more = "" if k == 0 else points(bridge.points(bridge.change))
            colour = "#52606d"
        high_y, low_y = y(max(start, level)), y(min(start, level))
        tip = f"{name.replace(chr(10), ' ').replace('- ', '')}\n{told}\t{more}"
        canvas.add("rect", x=centre - wide / 2, y=high_y, width=wide, height=max(1.0, low_y - high_y), fill=colour,
                   class_="mark", data_tip=tip)  # fmt: skip
        if k < 4:
            canvas.line(centre + wide / 2, y(level), centre + slot - wide / 2, y(level), "link")
        canvas.text(centre, high_y - (16 if more else 5), told, "middle", "label")
        if more:
            canvas.text(centre, high_y - 4, more, "middle", "label light")
        for row, part in enumerate(name.split("\n")):
            canvas.text(centre, bottom + 15 + 13 * row, part, "middle")
    return canvas.svg()


def waterfall_range(bridges: Sequence[Bridge]) -> tuple[float, float]:
    """An axis that holds these bridges. It leaves out what all of them have, when their steps are small."""
    levels = []
    for bridge in bridges:
        steps = np.cumsum(
            [bridge.baseline_sales, bridge.order_volume, bridge.spend_per_order, bridge.net_replenishment]
        )
        levels += [*steps, bridge.target_sales]
    low, high = float(min(levels)), float(max(levels))
    spread = high - low
    start = 0.0 if low < 0.4 * high else max(0.0, low - 0.6 * spread)
    return min(start, low), high + 0.16 * (high - min(start, low) or 1.0)


def _bridge_text(bridge: Bridge, money: Money) -> str:
    return (
        f"Baseline {money.short(bridge.baseline_sales)}, repeat orders {money.short(bridge.order_volume, plus=True)}, "
        f"spend per order {money.short(bridge.spend_per_order, plus=True)}, net replenishment "
        f"{money.short(bridge.net_replenishment, plus=True)}, target {money.short(bridge.target_sales)}."
    )


def heat_map(
    title: str, rows: Sequence[str], columns: Sequence[str], values: Floats, tips: Sequence[Sequence[str]],
    told: Callable[[float], str],
) -> Markup:  # fmt: skip
    """Numbers on a shaded grid; NaN cells stay empty."""
    tall = 21
    canvas = Canvas(WIDE, tall * len(rows) + 30, title, "Rows are quarters of acquisition, columns calendar quarters.",
                    left=88, right=2, top=26, bottom=2)  # fmt: skip
    left, right, top, _ = canvas.inner
    wide = (right - left) / max(1, len(columns))
    peak = float(np.nanmax(values)) if np.isfinite(values).any() else 1.0
    ramp = shades(101)[::-1]
    for c, name in enumerate(columns):
        canvas.text(left + (c + 0.5) * wide, top - 9, name, "middle")
    for r, name in enumerate(rows):
        canvas.text(left - 8, top + (r + 0.5) * tall + 4, name, "end")
        for c in range(len(columns)):
            amount = float(values[r, c])
            if not math.isfinite(amount):
                continue
            # The square root keeps the shades of small cohorts apart beside the large first ones.
            share = math.sqrt(max(0.0, amount) / peak) if peak > 0 else 0.0
            canvas.add("rect", x=left + c * wide, y=float(top + r * tall), width=wide - 1.5, height=tall - 1.5,
                       fill=ramp[round(100 * share)], class_="mark", data_tip=tips[r][c])  # fmt: skip
            canvas.text(left + (c + 0.5) * wide - 1, top + (r + 0.5) * tall + 3, told(amount), "middle",
                        "cell light" if share > 0.5 else "cell")  # fmt: skip
    return canvas.svg()
