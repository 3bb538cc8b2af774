"""Pictures of one firm, drawn without a display and returned as PNG bytes."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.dates import ConciseDateFormatter, YearLocator
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

__all__ = ["cohort_layers", "png"]

Colour = str | tuple[float, float, float, float]
CENSORED_COLOUR: Colour = "#9aa5b1"


def png(figure: Figure, dpi: int) -> bytes:
    buffer = io.BytesIO()
    FigureCanvasAgg(figure)
    figure.savefig(buffer, format="png", dpi=dpi)
    return buffer.getvalue()


def _shades(count: int) -> list[tuple[float, float, float, float]]:
    """Colours from dark (old) to light (young)."""
    return [colormaps["viridis"](x) for x in np.linspace(0.05, 0.95, max(count, 1))][:count]


def cohort_layers(cohort_week: pd.DataFrame, title: str, currency: str, *, dpi: int = 80) -> bytes:
    """Weekly sales stacked by the quarter in which customers were acquired.

    `cohort_week` needs cohort, week, left_censored and sales.
    """
    frame = cohort_week.assign(sales=cohort_week["sales"].astype(float))
    quarter = pd.to_datetime(frame["cohort"]).dt.to_period("Q").astype(str)
    frame["layer"] = np.where(frame["left_censored"], "before", quarter)
    layers = frame.pivot_table(index="week", columns="layer", values="sales", aggfunc="sum", fill_value=0.0)
    censored = [name for name in layers.columns if name == "before"]
    quarters = sorted(name for name in layers.columns if name != "before")
    layers = layers[censored + quarters]
    shades = _shades(len(quarters))
    colours = [CENSORED_COLOUR] * len(censored) + shades

    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    axes = figure.add_subplot()
    axes.stackplot(pd.to_datetime(layers.index), layers.to_numpy().T, colors=colours, linewidth=0)
    axes.set_title(title, loc="left", fontsize=10)
    axes.set_ylabel(f"sales per week, {currency}", fontsize=8)
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    locator = YearLocator()  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    axes.tick_params(labelsize=8)
    axes.margins(x=0)
    axes.set_ylim(0, 1.2 * float(layers.sum(axis=1).max()))
    axes.spines[["top", "right"]].set_visible(False)
    shown: dict[str, Colour] = dict.fromkeys(censored, CENSORED_COLOUR)
    shown |= {name: shades[k] for k, name in enumerate(quarters) if k in (0, len(quarters) - 1)}
    names = {"before": "already there"}
    handles = [axes.fill_between([], [], color=colour) for colour in shown.values()]
    labels = [names.get(name, f"acquired {name}") for name in shown]
    axes.legend(handles, labels, fontsize=7, loc="upper left", ncols=3, frameon=False)
    return png(figure, dpi)
