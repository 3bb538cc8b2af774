"""A firm's weekly sales as a picture, drawn in a few milliseconds: one is drawn whenever a firm's tables are made."""

from __future__ import annotations

import io
from collections.abc import Sequence
from datetime import date
from functools import cache
from itertools import pairwise

import numpy as np
from matplotlib import colormaps
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

__all__ = ["BEFORE", "cohort_layers"]

BEFORE = "before"
"""Layer of the customers acquired before the first week."""
CENSORED_COLOUR = (154, 165, 177)
INK, GREY = (40, 40, 40), (150, 150, 150)
SIZE = (576, 256)
LEFT, TOP, RIGHT, BOTTOM = 52, 44, 10, 24
"""Pixels around the plot."""
SHARP = 2
"""Drawn larger by this factor and reduced at the end, for smooth edges."""

Colour = tuple[int, int, int]


def cohort_layers(
    weeks: Sequence[date], layers: dict[str, NDArray[np.float64]], title: str, currency: str
) -> bytes:
    """Weekly sales stacked by the quarter in which customers were acquired, as a PNG.

    Args:
        layers: quarter (such as 2024Q1), or BEFORE -> sales in each week.
    """
    names = sorted(layers, key=lambda name: (name != BEFORE, name))
    colours = _colours(names)
    image = Image.new("RGB", (SIZE[0] * SHARP, SIZE[1] * SHARP), "white")
    draw = ImageDraw.Draw(image)
    width, height = SIZE[0] - LEFT - RIGHT, SIZE[1] - TOP - BOTTOM
    tops = np.cumsum([layers[name] for name in names], axis=0)
    most = float(tops[-1].max()) or 1.0
    x = (LEFT + width * np.linspace(0, 1, len(weeks))) * SHARP
    # The highest first: each of the others is drawn over it, from zero up.
    for name, top in reversed(list(zip(names, tops, strict=True))):
        y = (TOP + height * (1 - top / most)) * SHARP
        ground = (TOP + height) * SHARP
        outline = [(x[0], ground), *zip(x.tolist(), y.tolist(), strict=True), (x[-1], ground)]
        draw.polygon(outline, fill=colours[name])
    _axes(draw, weeks, most, width, height)
    draw.text((LEFT * SHARP, 4 * SHARP), title, fill=INK, font=_font(12))
    _legend(draw, names, colours, f"sales per week, {currency}")
    small = image.reduce(SHARP).quantize(64, method=Image.Quantize.FASTOCTREE)
    buffer = io.BytesIO()
    small.save(buffer, format="png")
    return buffer.getvalue()


def _colours(names: Sequence[str]) -> dict[str, Colour]:
    """From dark (old) to light (young)."""
    quarters = [name for name in names if name != BEFORE]
    shades = (np.array(colormaps["viridis"](np.linspace(0.05, 0.95, max(1, len(quarters))))) * 255).astype(
        int
    )
    found: dict[str, Colour] = {BEFORE: CENSORED_COLOUR}
    return found | {
        name: (int(r), int(g), int(b)) for name, (r, g, b, _) in zip(quarters, shades, strict=False)
    }


def _axes(draw: ImageDraw.ImageDraw, weeks: Sequence[date], most: float, width: int, height: int) -> None:
    ground = (TOP + height) * SHARP
    draw.line(
        [(LEFT * SHARP, TOP * SHARP), (LEFT * SHARP, ground), ((LEFT + width) * SHARP, ground)], GREY, SHARP
    )
    step = 10.0 ** np.floor(np.log10(most))
    step = next(step * part for part in (0.2, 0.5, 1.0, 2.0) if most / (step * part) <= 5)
    for level in np.arange(0, most * 1.0001, step):
        y = (TOP + height * (1 - level / most)) * SHARP
        draw.line([((LEFT - 4) * SHARP, y), (LEFT * SHARP, y)], GREY, SHARP)
        draw.text(((LEFT - 7) * SHARP, y), _short(float(level)), fill=INK, font=_font(10), anchor="rm")
    for place, (before, week) in enumerate(pairwise(weeks), start=1):
        if week.year > before.year:
            at = (LEFT + width * place / (len(weeks) - 1)) * SHARP
            draw.line([(at, ground), (at, ground + 4 * SHARP)], GREY, SHARP)
            draw.text((at, ground + 6 * SHARP), str(week.year), fill=INK, font=_font(10), anchor="ma")


def _legend(draw: ImageDraw.ImageDraw, names: Sequence[str], colours: dict[str, Colour], unit: str) -> None:
    """The oldest and the youngest layers; those between go from one colour to the other."""
    quarters = [name for name in names if name != BEFORE]
    shown = [*(name for name in names if name == BEFORE), *dict.fromkeys(quarters[:1] + quarters[-1:])]
    at, y = float(LEFT * SHARP), 24 * SHARP
    draw.text((at, y), unit, fill=INK, font=_font(10))
    at += draw.textlength(unit, _font(10)) + 16 * SHARP
    for name in shown:
        draw.rectangle([at, y + 2 * SHARP, at + 9 * SHARP, y + 10 * SHARP], fill=colours[name])
        words = "already there" if name == BEFORE else f"acquired {name}"
        draw.text((at + 13 * SHARP, y), words, fill=INK, font=_font(10))
        at += 13 * SHARP + draw.textlength(words, _font(10)) + 14 * SHARP


def _short(value: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    from matplotlib import get_data_path

    return ImageFont.truetype(f"{get_data_path()}/fonts/ttf/DejaVuSans.ttf", size * SHARP)
