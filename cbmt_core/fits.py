"""ModelFit: one model fitted to one firm, with its files on disk, also when the fit failed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from cbmt_core import atomic
from cbmt_core.models import CannotFit, FittedForecaster, build, load
from cbmt_core.models.storage import stage
from cbmt_core.panel import FirmPanel

__all__ = ["UNEXPECTED", "ModelFit", "commit_markers", "fit_model", "guarded", "load_fit", "stage_fit"]

UNEXPECTED = "unexpected"
"""Start of the reason when a model failed with an unexpected exception (not CannotFit)."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ModelFit:
    """One model on one firm: the fitted model, or the reason why there is none."""

    firm: str
    model: str
    origin: date
    seed: int
    seconds: float
    fitted: FittedForecaster | None = None
    reason: str | None = None
    profile: str | None = None
    """Budget of the fit, for networks."""
    trials: Sequence[Mapping[str, Any]] = ()
    """The search behind it, as in `FitRecord.trials`."""


def guarded(action: Callable[[], T]) -> tuple[T | None, str | None, float]:
    """The result of `action` or the reason why it failed, and its processor seconds.

    An exception in one model is recorded, so that the other models still run.
    """
    started = time.process_time()
    result, reason = None, None
    try:
        result = action()
    except CannotFit as error:
        reason = error.reason
    except Exception as error:
        reason = f"{UNEXPECTED} {type(error).__name__}: {error}"
    return result, reason, time.process_time() - started


def fit_model(name: str, panel: FirmPanel, seed: int, **options: Any) -> ModelFit:
    """Fit one model on all weeks of `panel`; `options` are those of the model, as `build` takes them."""
    model = build(name, **options)  # Imports the model's module before the clock starts.
    fitted, reason, seconds = guarded(lambda: model.fit(panel, seed=seed))
    trials = fitted.record.trials if fitted else ()
    return ModelFit(
        panel.firm, name, panel.origin, seed, seconds, fitted, reason, options.get("profile"), trials
    )


def stage_fit(fit: ModelFit, folder: Path) -> dict[Path, Path]:
    """Write the fit's files under temporary names in `folder`: final path -> temporary path.

    Once they are renamed, `load_fit` reads the fit and `cbmt_core.models.load` its model. The caller must remove
    `commit_markers` first and rename the files in this order, in which `fit.json` is last.
    """
    folder.mkdir(parents=True, exist_ok=True)
    staged = stage(fit.fitted, folder) if fit.fitted else {}
    note = {
        "firm": fit.firm,
        "model": fit.model,
        "origin": fit.origin.isoformat(),
        "seed": fit.seed,
        "seconds": fit.seconds,
        "reason": fit.reason,
        "profile": fit.profile,
        "trials": list(fit.trials),
    }
    target = folder / "fit.json"
    staged[target] = atomic.temporary_name(target)
    staged[target].write_text(json.dumps(note, indent=1), encoding="utf-8")
    return staged


def commit_markers(folder: Path) -> tuple[Path, ...]:
    """The commit markers of a fit: without them its other files are ignored."""
    return folder / "fit.json", folder / "model.json"


def load_fit(folder: Path) -> ModelFit:
    """Read back what `stage_fit` wrote."""
    note = _note(folder)
    if note is None:
        raise FileNotFoundError(f"{folder} holds no fitted model")
    return ModelFit(
        firm=note["firm"],
        model=note["model"],
        origin=date.fromisoformat(note["origin"]),
        seed=note["seed"],
        seconds=note["seconds"],
        fitted=None if note["reason"] else load(folder),
        reason=note["reason"],
        profile=note["profile"],
        trials=note["trials"],
    )


def _note(folder: Path) -> dict[str, Any] | None:
    try:
        return json.loads((folder / "fit.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]
    except FileNotFoundError:
        return None
