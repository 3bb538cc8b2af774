"""A picture of what firms have in common, as PNG bytes."""

from __future__ import annotations

from datetime import date

import numpy as np
from matplotlib.dates import DateFormatter, MonthLocator
from matplotlib.figure import Figure

from cbmt_core.models.plus import PathPriors
from cbmt_core.models.plus.likelihood import COMPONENTS
from cbmt_core.models.plus.regressors import regressors
from cbmt_core.models.plus.series import GROUPS
from cbmt_core.report.figures import png

__all__ = ["priors_picture"]

COLOURS = {"acquisition": "#33658a", "repeat": "#2a9d6f", "aov": "#e3a018", "sales": "#444444"}
WORDS = {
    "trend": "trend, a year",
    "calendar": "calendar",
    "walk": "steps, a year",
    "brief": "brief",
}


def priors_picture(priors: PathPriors, first_week: date, title: str, *, dpi: int = 80) -> bytes:
    """The average firm's year from `first_week`, and how far firms move in other ways."""
    figure = Figure(figsize=(7, 5), layout="constrained")
    year, spread = figure.subplots(2, 1)
    weeks = np.datetime64(first_week, "D") + 7 * np.arange(52)
    named = [
        (series, prior, k) for group, prior in priors.groups.items() for k, series in enumerate(GROUPS[group])
    ]
    for series, prior, k in named:
        path = regressors(first_week, 52, prior.country) @ prior.mean[1:, k]
        year.plot(
            weeks, 100 * np.expm1(path - path.mean()), color=COLOURS[series], label=series, linewidth=1.4
        )
    year.axhline(0, color="#bbbbbb", linewidth=0.8)
    year.xaxis.set_major_locator(MonthLocator(interval=2))  # type: ignore[no-untyped-call]
    year.xaxis.set_major_formatter(DateFormatter("%b"))  # type: ignore[no-untyped-call]
    year.set_title("the average firm's year, % above its mean", fontsize=9, loc="left")
    year.legend(fontsize=7, frameon=False)
    height = 0.8 / len(named)
    to_a_year = np.where(np.array(COMPONENTS) == "walk", np.sqrt(52), 1.0)
    for place, (series, prior, k) in enumerate(named):
        sd = prior.sd[: len(COMPONENTS), k] * to_a_year
        spread.barh(np.arange(len(COMPONENTS)) + place * height, 100 * sd, height, color=COLOURS[series])
    spread.set_yticks(np.arange(len(COMPONENTS)) + 0.4 - height / 2, [WORDS[name] for name in COMPONENTS])
    spread.invert_yaxis()
    spread.set_title("spread between and within firms, %", fontsize=9, loc="left")
    for axes in (year, spread):
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    return png(figure, dpi)
