"""Fitted models on disk: arrays as safetensors, everything else as JSON."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from cbmt_core import atomic
from cbmt_core.models.contract import FittedForecaster, State

__all__ = ["load", "save"]


def save(fitted: FittedForecaster, folder: Path | str) -> None:
    """Write a fitted model into `folder` (made if missing), in the place of one that was there.

    `model.json` comes last and goes first: with it the arrays beside it are whole and its own.
    """
    folder, state = Path(folder), fitted.state()
    (folder / "model.json").unlink(missing_ok=True)
    header = {"class": _class_name(fitted), "values": state.values}
    with atomic.replacing(folder / "arrays.safetensors") as target:
        save_file({k: np.ascontiguousarray(v) for k, v in state.arrays.items()}, target)
    atomic.write_text(folder / "model.json", json.dumps(header, indent=1))


def load(folder: Path | str) -> FittedForecaster:
    """Read back a fitted model that `save` wrote."""
    folder = Path(folder)
    header = json.loads((folder / "model.json").read_text())
    return _restore(header["class"], State(header["values"], load_file(folder / "arrays.safetensors")))


def _class_name(fitted: FittedForecaster) -> str:
    """What `_restore` finds the model's class by."""
    return f"{type(fitted).__module__}:{type(fitted).__qualname__}"


def _restore(name: str, state: State) -> FittedForecaster:
    """The fitted model of the class that `_class_name` named."""
    module, _, kind = name.partition(":")
    if not module.startswith("cbmt_core.models."):
        raise ValueError(f"{name} is not one of this library's models")
    return getattr(import_module(module), kind).from_state(state)  # type: ignore[no-any-return]
