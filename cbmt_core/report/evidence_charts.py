"""Charts of past forecasts against actual sales."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
from markupsafe import Markup

from cbmt_core.arrays import Floats
from cbmt_core.report.charts import HALF, mark_origin, week_labels
from cbmt_core.report.numbers import Money
from cbmt_core.report.svg import INK, ORANGE, Canvas, Series, shades

__all__ = ["Vintage", "vintages"]


@dataclass(frozen=True, eq=False)
class Vintage:
    """One earlier forecast; NaN in weeks it does not cover."""

    name: str
    values: Floats


def vintages(
    title: str,
    weeks: Sequence[date],
    actual: Floats,
    lines: Sequence[Vintage],
    origin: int | None,
    money: Money,
) -> Markup:
    """Weekly sales as they happened in black, and each earlier forecast as a thin line.

    Args:
        origin: place of a week to mark as the forecast's origin, if any.
    """
    canvas = Canvas(
        HALF, 285, title, f"Sales a week in black; {len(lines)} forecasts as thin coloured lines."
    )
    both = np.concatenate([actual, *(line.values for line in lines)])
    top = float(np.nanmax(both)) if np.isfinite(both).any() else 1.0
    x, y = canvas.x(0, len(weeks) - 1), canvas.y(0, 1.08 * top if top > 0 else 1)
    canvas.y_axis(y, money.axis)
    at = [x(t) for t in range(len(weeks))]
    # The lightest shade is hard to see as a thin line.
    colours = shades(len(lines) + 1)[:-1] if len(lines) > 1 else [ORANGE] * len(lines)
    canvas.path(at, [y(v) for v in actual], INK, 1.6)
    for line, colour in zip(lines, colours, strict=True):
        canvas.path(at, [y(v) for v in line.values], colour, 1.6 if len(lines) == 1 else 1.2)
    mark_origin(canvas, x, origin, len(weeks))
    canvas.x_years(x, weeks)
    series = [Series("actual", INK, actual)]
    series += [Series(line.name, c, line.values) for line, c in zip(lines, colours, strict=True)]
    canvas.crosshair(x, week_labels(weeks, None), series, y, money.prefix, keys=[str(week) for week in weeks])
    return canvas.svg()
