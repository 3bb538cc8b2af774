"""Pictures for notebooks, drawn with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cbmt_core.notebook.panel import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from cbmt_core.notebook.forecast import Forecast

__all__ = ["plot_weeks"]

LABELS = {
    "sales": "sales a week",
    "acquired": "new customers a week",
    "orders": "orders a week",
    "repeat_orders": "repeat orders a week",
    "ropc": "repeat orders per customer and week",
    "aov": "average order value",
}
OBSERVED, AHEAD = "#3b4252", "#c2410c"
PAST = 104
"""Weeks shown before a forecast."""


def plot_weeks(panel: Panel, forecast: Forecast | None, what: str, ax: Axes | None) -> Axes:
    """A weekly series as it was observed and, beside it, as it is forecast."""
    if what not in LABELS:
        raise ValueError(f"there is no {what!r} to draw; there are {', '.join(LABELS)}")
    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots(figsize=(8, 3.2), layout="constrained")
    observed = panel.to_frame()[what]
    title = panel.firm
    if forecast is not None:
        observed = observed.loc[np.datetime64(forecast.origin, "D") - 7 * PAST :]
        title = f"{panel.firm}, by {forecast.model}"
    ax.plot(observed.index, observed.to_numpy(), color=OBSERVED, linewidth=1, label="observed")
    if forecast is not None:
        ahead = forecast.to_frame().set_index("week")[what]
        last = forecast.panel.to_frame()[what].iloc[-1:]
        line = pd.concat([last, ahead]).astype(float)
        ax.plot(line.index, line.to_numpy(), color=AHEAD, linewidth=1.4, label="forecast")
        ax.axvline(last.index[0], color=OBSERVED, linewidth=0.6, linestyle=":")
        ax.legend(frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, borderpad=0.1)
    ax.set_title(title, loc="left", fontsize=10)
    ax.set_ylabel(LABELS[what], fontsize=8)
    ax.set_ylim(bottom=0)
    ax.margins(x=0)
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
