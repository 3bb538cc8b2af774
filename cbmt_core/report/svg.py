"""Canvas of a chart: scales, ticks, axes and marks as SVG text, and the box shown on hovering."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from html import escape
from typing import Any

import numpy as np
from markupsafe import Markup

from cbmt_core.arrays import Floats

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "INK",
    "ORANGE",
    "PALETTE",
    "Canvas",
    "Scale",
    "Series",
    "shades",
    "ticks",
]


INK, GREY, FAINT = "#1f2933", "#8a96a3", "#e4e7eb"
BLUE, ORANGE, GREEN = "#0072b2", "#d55e00", "#009e73"
PALETTE = (BLUE, ORANGE, GREEN, "#cc79a7", "#56b4e9", "#e69f00", "#000000")
"""Okabe and Ito's colours, distinguishable with any colour vision."""
_RAMP = np.array([(18, 53, 91), (31, 112, 140), (94, 172, 152), (236, 214, 140)], dtype=float)
"""From dark to light, with lightness rising throughout."""


def shades(number: int) -> list[str]:
    """Colours from dark (old) to light (young)."""
    at = np.linspace(0, len(_RAMP) - 1, max(number, 2))[:number]
    rgb = np.stack([np.interp(at, np.arange(len(_RAMP)), _RAMP[:, k]) for k in range(3)], axis=1)
    return ["#" + "".join(f"{round(c):02x}" for c in colour) for colour in rgb]


def ticks(low: float, high: float, number: int = 5) -> list[float]:
    """Round values between `low` and `high`, about `number` of them."""
    if not high > low:
        return [low]
    raw = (high - low) / max(number, 1)
    magnitude = 10.0 ** math.floor(math.log10(raw))
    step = next((m * magnitude for m in (1, 2, 5, 10) if m * magnitude >= 0.75 * raw), 10 * magnitude)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


@dataclass(frozen=True)
class Scale:
    """Values to pixels, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        return self.start + (at - low) / (high - low) * (self.end - self.start)


@dataclass(frozen=True)
class Series:
    """A row of the box shown on hovering: one value a place on the horizontal axis, NaN where there is none."""

    name: str
    colour: str
    values: Floats
    dot: bool = True


@dataclass
class Canvas:
    """Marks are added in drawing order; `svg` closes the picture."""

    width: int
    height: int
    title: str
    description: str
    left: int = 52
    right: int = 12
    top: int = 10
    bottom: int = 24
    parts: list[str] = field(default_factory=list)
    hover: dict[str, Any] | None = None
    table: tuple[list[str], list[list[str | float]]] | None = None
    """The numbers shown, as a header and rows, for download as CSV; those on hovering unless stated."""

    @property
    def inner(self) -> tuple[float, float, float, float]:
        """left, right, top, bottom of the plot in pixels"""
        return self.left, self.width - self.right, self.top, self.height - self.bottom

    def x(self, low: float, high: float, *, log: bool = False) -> Scale:
        return Scale(low, high if high > low else low + 1, self.left, self.width - self.right, log)

    def y(self, low: float, high: float, *, log: bool = False) -> Scale:
        return Scale(low, high if high > low else low + 1, self.height - self.bottom, self.top, log)

    def add(self, tag: str, **attributes: object) -> None:
        """An element; underscores in names stand for hyphens, and None leaves an attribute out."""
        text = attributes.pop("text", None)
        written = "".join(
            f' {name.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
            for name, value in attributes.items()
            if value is not None
        )
        self.parts.append(
            f"<{tag}{written}/>" if text is None else f"<{tag}{written}>{escape(str(text))}</{tag}>"
        )

    def text(
        self, x: float, y: float, text: str, anchor: str = "start", class_: str = "axis", **more: object
    ) -> None:
        self.add(
            "text",
            text=text,
            x=x,
            y=y,
            text_anchor=None if anchor == "start" else anchor,
            class_=class_,
            **more,
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, class_: str = "grid", **more: object) -> None:
        self.add("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_, **more)

    def path(
        self, xs: Sequence[float], ys: Sequence[float], colour: str, width: float = 1.5, **more: object
    ) -> None:
        """A line through the points; it breaks where y is not finite, and a point alone is a dot."""
        runs: list[list[str]] = [[]]
        for x, y in zip(xs, ys, strict=True):
            if math.isfinite(y):
                runs[-1].append(f"{_number(x)},{_number(y)}")
            elif runs[-1]:
                runs.append([])
        drawn = "".join("M" + ("L".join(run) if len(run) > 1 else f"{run[0]}h0") for run in runs if run)
        if drawn:
            self.add("path", d=drawn, fill="none", stroke=colour, stroke_width=width, stroke_linejoin="round",
                     stroke_linecap="round", **more)  # fmt: skip

    def area(
        self, xs: Sequence[float], low: Sequence[float], high: Sequence[float], colour: str, **more: object
    ) -> None:
        there = [f"{_number(x)},{_number(y)}" for x, y in zip(xs, high, strict=True)]
        back = [f"{_number(x)},{_number(y)}" for x, y in zip(xs, low, strict=True)][::-1]
        self.add("path", d="M" + "L".join(there + back) + "Z", fill=colour, **more)

    def y_axis(self, scale: Scale, label: Callable[[float], str], at: Sequence[float] | None = None) -> None:
        left, right, _, _ = self.inner
        for tick in ticks(scale.low, scale.high) if at is None else at:
            y = scale(tick)
            self.line(left, y, right, y)
            self.text(left - 6, y + 3.5, label(tick), "end")

    def x_years(self, scale: Scale, weeks: Sequence[date]) -> None:
        """Ticks where years begin; quarters too when the plot is wide and the years few."""
        _, _, _, bottom = self.inner
        months = (1, 4, 7, 10) if (self.width / max(1, len(weeks)) > 3.2) else (1,)
        seen: set[tuple[int, int]] = set()
        for k, week in enumerate(weeks):
            at = (week.year, week.month)
            # The first Sunday of the month; a week that began in the last days before does not count.
            if week.month in months and week.day <= 7 and at not in seen:
                seen.add(at)
                x = scale(k)
                self.line(x, bottom, x, bottom + (5 if week.month == 1 else 3), "tick")
                label = str(week.year) if week.month == 1 else f"{week:%b}"
                self.text(x, bottom + 17, label, "middle", "axis" if week.month == 1 else "axis light")
        left, right, _, _ = self.inner
        self.line(left, bottom, right, bottom, "tick")

    def crosshair(
        self, scale: Scale, labels: Sequence[str], series: Sequence[Series], y: Scale, prefix: str = "",
        digits: int | None = None, suffix: str = "", total: str | None = None, keys: Sequence[str] | None = None,
    ) -> None:  # fmt: skip
        """Show the values of all series at the pointer. Without digits, short numbers.

        `keys` name the places in a file of the numbers, where the labels are not for machines.
        """
        rounded = 2 if digits is None else digits + 1
        self.hover = {
            "x": [round(scale(k), 1) for k in range(len(labels))],
            "labels": list(labels),
            **({"keys": list(keys)} if keys is not None else {}),
            "box": [self.top, self.height - self.bottom],
            "y": [y.low, y.high, y.start, y.end],
            "format": {"prefix": prefix, "digits": digits, "suffix": suffix},
            "total": total,
            "series": [
                {
                    "name": s.name,
                    "colour": s.colour,
                    "dot": s.dot,
                    "values": [_json(v, rounded) for v in s.values],
                }
                for s in series
            ],
        }

    def svg(self) -> Markup:
        focus = ' tabindex="0"' if self.hover else ""
        label = escape(f"{self.title}. {self.description}")
        data = (
            f'<script type="application/json">{_script(json.dumps(self.hover, separators=(",", ":")))}</script>'
            if self.hover
            else ""
        )
        if self.table is not None:
            header, rows = self.table
            numbers = [[_cell(value) for value in row] for row in rows]
            held = _script(json.dumps({"header": header, "rows": numbers}, separators=(",", ":")))
            data += f'<script type="application/json" class="numbers">{held}</script>'
        named = f'data-title="{escape(self.title)}" role="img"{focus} aria-label="{label}"'
        return Markup(
            f'<svg class="chart" viewBox="0 0 {self.width} {self.height}" {named}>'
            f"<desc>{escape(self.description)}</desc>{''.join(self.parts)}</svg>{data}"
        )


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _attribute(value: object) -> str:
    return _number(float(value)) if isinstance(value, float) else escape(str(value))


def _json(value: float, digits: int) -> float | None:
    return round(float(value), digits) if math.isfinite(value) else None


def _cell(value: str | float) -> str | float | None:
    return value if isinstance(value, str) else _json(value, 4)


def _script(text: str) -> str:
    """JSON that cannot end the script element it stands in."""
    return text.replace("<", "\\u003c")
