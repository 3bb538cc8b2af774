"""Pictures of how one firm's networks were tuned and trained, as PNG bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cbmt_core.report.figures import png

__all__ = ["learning_curves", "tuning_history"]

Trials = Sequence[Mapping[str, Any]]
"""Trials of a search, as in `FitRecord.trials`."""

COLUMNS = 3
TRAINING, VALIDATION = "#33658a", "#d1495b"
STAGE_COLOURS = {"random": "#33658a", "grid": "#e3a018", "refined": "#2a9d6f"}


def learning_curves(searches: Mapping[str, Trials], title: str, *, dpi: int = 80) -> bytes | None:
    """Loss of the trial that each search chose, step by step, above the error of its forecasts of the validation
    window; None when none has a curve."""
    curves = {
        name: trial["notes"]["curve"]
        for name, trials in searches.items()
        for trial in trials
        if trial["chosen"] and "curve" in trial["notes"]
    }
    if not curves:
        return None
    figure, axes = _grid(len(curves), 2)
    for (above, below), (name, curve) in zip(axes, curves.items(), strict=True):
        above.plot(*zip(*curve["training"], strict=True), color=TRAINING, linewidth=1.2)
        above.set_ylim(0, 1.05 * max(loss for _, loss in curve["training"]) or 1)
        above.set_title(name, fontsize=9)
        above.set_ylabel("training loss", fontsize=7)
        above.sharex(below)
        above.tick_params(labelbottom=False)
        below.plot(*zip(*curve["validation"], strict=True), color=VALIDATION, marker="o", markersize=4)
        below.set_ylim(0, 1.15 * max(error for _, error in curve["validation"]) or 1)
        below.set_xlabel("optimiser steps", fontsize=7)
        below.set_ylabel("validation SMAPE", fontsize=7)
    return _finished(figure, title, dpi)


def tuning_history(searches: Mapping[str, Trials], title: str, *, dpi: int = 80) -> bytes | None:
    """Error of every trial by stage, hollow where it was pruned, and the least so far; None without trials."""
    searches = {name: trials for name, trials in searches.items() if trials}
    if not searches:
        return None
    figure, axes = _grid(len(searches), 1)
    for (place,), (name, trials) in zip(axes, searches.items(), strict=True):
        numbers = np.arange(1, len(trials) + 1)
        errors = np.array([np.nan if t["error"] is None else t["error"] for t in trials])
        finished = np.array([np.inf if t["pruned"] else e for t, e in zip(trials, errors, strict=True)])
        for stage, colour in STAGE_COLOURS.items():
            for pruned, face in ((False, colour), (True, "none")):
                rows = [k for k, t in enumerate(trials) if t["stage"] == stage and t["pruned"] == pruned]
                place.scatter(numbers[rows], errors[rows], s=18, edgecolors=colour, facecolors=face)
        best = np.minimum.accumulate(finished)
        place.step(
            numbers, np.where(np.isfinite(best), best, np.nan), where="post", color="#888", linewidth=1
        )
        chosen = [k for k, t in enumerate(trials) if t["chosen"]]
        place.scatter(numbers[chosen], errors[chosen], s=90, edgecolors=VALIDATION, facecolors="none")
        place.set_ylim(0, 1.15 * float(np.nanmax(errors, initial=0.0)) or 1)
        place.set_title(name, fontsize=9)
        place.set_xlim(0.5, len(trials) + 0.5)
        place.set_xlabel("trial", fontsize=7)
        place.set_ylabel("validation SMAPE", fontsize=7)
        place.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    return _finished(figure, title, dpi)


def _grid(searches: int, rows: int) -> tuple[Figure, list[tuple[Axes, ...]]]:
    """`rows` axes above each other for each search, three in a line: the width of the UI's dialog."""
    columns, lines = min(searches, COLUMNS), math.ceil(searches / COLUMNS)
    figure = Figure(figsize=(2.3 * columns, 0.4 + (0.6 + 1.3 * rows) * lines), layout="constrained")
    axes = figure.subplots(rows * lines, columns, squeeze=False)
    for place in axes[-rows:, searches - columns * (lines - 1) :].flat:
        place.set_axis_off()
    return figure, [
        tuple(axes[k // columns * rows + row, k % columns] for row in range(rows)) for k in range(searches)
    ]


def _finished(figure: Figure, title: str, dpi: int) -> bytes:
    for place in figure.axes:
        place.tick_params(labelsize=7)
        place.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, fontsize=10, x=0.01, ha="left")
    return png(figure, dpi)
