"""Fitted models on disk: arrays as safetensors, everything else as JSON."""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from cbmt_core import atomic
from cbmt_core.models.contract import FittedForecaster, ModelState

__all__ = ["load", "save", "stage"]


def save(fitted: FittedForecaster, folder: Path | str) -> None:
    """Write a fitted model into `folder` (made if missing), replacing an earlier one.

    `model.json` is the commit marker: it is deleted first and written last.
    """
    folder = Path(folder)
    (folder / "model.json").unlink(missing_ok=True)
    for target, temporary in stage(fitted, folder).items():
        atomic.fsync(temporary)
        os.replace(temporary, target)
    atomic.fsync(folder)


def stage(fitted: FittedForecaster, folder: Path) -> dict[Path, Path]:
    """Write a fitted model's files under temporary names in `folder`: final path -> temporary path."""
    folder.mkdir(parents=True, exist_ok=True)
    state = fitted.state()
    staged = {
        path: atomic.temporary_name(path) for path in (folder / "arrays.safetensors", folder / "model.json")
    }
    arrays, model = staged.values()
    save_file({k: np.ascontiguousarray(v) for k, v in state.arrays.items()}, arrays)
    header = {"class": _class_name(fitted), "values": state.values}
    model.write_text(json.dumps(header, indent=1), encoding="utf-8")
    return staged


def load(folder: Path | str) -> FittedForecaster:
    """Read back a fitted model that `save` wrote."""
    folder = Path(folder)
    header = json.loads((folder / "model.json").read_text())
    return _restore(header["class"], ModelState(header["values"], load_file(folder / "arrays.safetensors")))


def _class_name(fitted: FittedForecaster) -> str:
    """The model's class as a text for `_restore`."""
    return f"{type(fitted).__module__}:{type(fitted).__qualname__}"


def _restore(name: str, state: ModelState) -> FittedForecaster:
    """The fitted model from its class name (see `_class_name`) and state."""
    module, _, kind = name.partition(":")
    if not module.startswith("cbmt_core.models."):
        raise ValueError(f"{name} is not one of this library's models")
    return getattr(import_module(module), kind).from_state(state)  # type: ignore[no-any-return]
