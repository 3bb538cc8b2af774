"""Drawings of the model itself: two diagrams of its architecture, and the study's windows and cohorts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from matplotlib.axes import Axes
from matplotlib.dates import ConciseDateFormatter, YearLocator, date2num
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Polygon

from cbmt_core.report.figures import png

__all__ = ["architecture", "cohort_triangle", "overview"]

DPI = 80
BOX, SHARED, LOSS = "#e8eef5", "#cfe0f3", "#f7e3d0"
INK = "#22303c"
HEADS = {"A": "acquisition", "R": "ROPC", "V": "AOV", "S": "sales (aux.)"}


def _canvas(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.set_axis_off()
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 100)
    return figure, axes


def _box(
    axes: Axes,
    at: tuple[float, float],
    size: tuple[float, float],
    text: str,
    colour: str = BOX,
    font: float = 8,
) -> None:
    """A box around its middle `at`."""
    (x, y), (w, h) = at, size
    patch = FancyBboxPatch(
        (x - w / 2, y - h / 2), w, h, boxstyle="round,pad=0.3", facecolor=colour, edgecolor=INK, linewidth=0.8
    )
    axes.add_patch(patch)
    axes.text(x, y, text, ha="center", va="center", fontsize=font, color=INK)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], style: str = "-") -> None:
    axes.annotate(
        "", xy=end, xytext=start, arrowprops={"arrowstyle": "->", "color": INK, "lw": 0.9, "linestyle": style}
    )


def overview(lookback: int) -> bytes:
    """From the window of a cohort to the revenue that its forecasts imply."""
    figure, axes = _canvas(7.4, 3.2)
    window = f"{lookback} weeks of one cohort:\nA, R, V, S and\nknown covariates"
    _box(axes, (12, 50), (21, 34), window)
    _box(axes, (38, 50), (20, 34), "shared\nTransformer\nbackbone", SHARED)
    heights = (86, 62, 38, 14)
    for (letter, name), y in zip(HEADS.items(), heights, strict=True):
        _box(axes, (64, y), (17, 13), f"head {letter}\n{name}", font=7.5)
        _arrow(axes, (48.6, 50), (55, y))
    _box(axes, (88, 70), (19, 22), "implied revenue\nÂ (1[birth] + R̂) V̂")
    _box(axes, (88, 32), (19, 18), "alignment loss\n(training only)", LOSS)
    _box(axes, (88, 10), (19, 12), "next input window", font=7.5)
    _arrow(axes, (23.2, 50), (27.4, 50))
    for y in heights[:3]:
        _arrow(axes, (73, y), (78, 70))
    _arrow(axes, (88, 58.4), (88, 41.6), "--")
    _arrow(axes, (73, 14), (78, 10))
    return png(figure, DPI)


def architecture(
    *, lookback: int, width: int, heads: int, feed_forward: int, encoder: int, decoder: int, head_width: int
) -> bytes:
    """The layers of the network with their sizes, from the input up."""
    figure, axes = _canvas(7.4, 6.2)
    _box(
        axes,
        (50, 5),
        (92, 7),
        "window: A, R, V, S, flags and covariates of each week; min-max scaled, zero before birth",
    )
    _box(axes, (24, 17), (40, 7), "numbers")
    _box(axes, (74, 17), (44, 7), "entity embeddings: week of year, month, cohort")
    _box(axes, (50, 29), (92, 7), f"projection to {lookback} × {width}, plus sinusoidal positions", SHARED)
    encoding = f"encoder × {encoder}: attention with {heads} heads, feed-forward {feed_forward},\n"
    _box(axes, (50, 42), (92, 10), f"{encoding}layer norms and residuals", SHARED)
    decoding = f"decoder × {decoder}: the last week attends to all encoded weeks\n"
    _box(axes, (50, 57), (92, 10), f"{decoding}→ shared representation h of {width} numbers", SHARED)
    places = (14, 38, 62, 86)
    for (letter, name), x in zip(HEADS.items(), places, strict=True):
        _box(axes, (x, 75), (21, 12), f"head {letter}: 3 layers\nof {head_width}, ReLU", font=7.5)
        _box(axes, (x, 92), (21, 8), f"L_{letter}: {name}", LOSS, font=7.5)
        _arrow(axes, (x, 62.4), (x, 68.6))
        _arrow(axes, (x, 81.4), (x, 87.6))
        axes.text(x, 84.4, f"  + own {lookback} weeks", fontsize=6.5, color=INK, ha="left")
    for low, high in ((8.8, 13.2), (20.8, 25.2), (32.8, 36.6), (47.4, 51.6)):
        _arrow(axes, (50, low), (50, high))
    axes.text(
        50,
        99,
        "L_C: revenue implied by A, R and V against observed cohort sales",
        ha="center",
        fontsize=8,
        color=INK,
    )
    return png(figure, DPI)


def cohort_triangle(windows: Sequence[tuple[str, date, date]]) -> bytes:
    """Cohorts by week of acquisition (down) and calendar week (across), in their three kinds.

    Args:
        windows: name, first and last week of `calibration` and `holdout`.
    """
    spans = {name: (float(date2num(first)), float(date2num(last)) + 7.0) for name, first, last in windows}  # type: ignore[no-untyped-call]
    (start, origin), (_, end) = spans["calibration"], spans["holdout"]
    figure = Figure(figsize=(6.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    band = 0.08 * (end - start)
    kinds = (
        (
            "left-censored cohort",
            "#9aa5b1",
            [(start, start), (end, start), (end, start - band), (start, start - band)],
        ),
        ("main cohorts", "#5b8db8", [(start, start), (end, start), (end, origin), (origin, origin)]),
        ("cold cohorts", "#e0a458", [(origin, origin), (end, origin), (end, end)]),
    )
    for name, colour, corners in kinds:
        axes.add_patch(Polygon(corners, facecolor=colour, edgecolor="white", label=name))
    axes.axvline(origin, color=INK, linewidth=1.2, linestyle="--")
    axes.text((start + origin) / 2, start - 1.6 * band, "calibration", ha="center", fontsize=8, color=INK)
    axes.text((origin + end) / 2, start - 1.6 * band, "holdout", ha="center", fontsize=8, color=INK)
    axes.set_xlim(start, end)
    axes.set_ylim(end, start - 2.2 * band)
    for axis in (axes.xaxis, axes.yaxis):
        locator = YearLocator()  # type: ignore[no-untyped-call]
        axis.set_major_locator(locator)
        axis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.set_xlabel("calendar week", fontsize=8)
    axes.set_ylabel("week of acquisition", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower left", fontsize=8, frameon=False)
    return png(figure, DPI)
