"""`cbmt`, `joint`, `single_task`, `lstm`: search, early stopping, the final training, and the walk forward."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Self

import numpy as np
import optuna
import torch
from torch import Tensor

from cbmt_core.arrays import Floats32
from cbmt_core.models.contract import CannotFit, FitRecord, ModelState, PrimitiveForecast
from cbmt_core.models.neural.batch import Batch
from cbmt_core.models.neural.curve import Curve, curve
from cbmt_core.models.neural.family import FAMILY_PARTS, Part
from cbmt_core.models.neural.network import Network
from cbmt_core.models.neural.profiles import PROFILES, Profile
from cbmt_core.models.neural.training import TrainingSet, one_thread, start_of, train
from cbmt_core.models.sequence import (
    LOOKBACK,
    OUTCOMES,
    History,
    Scaling,
    Windows,
    validation_split,
    walk_forward,
    walk_forward_error,
)
from cbmt_core.panel import FirmPanel
from cbmt_core.tuning import Choice, Found, Progress, Report, search

__all__ = ["FittedNeural", "NeuralForecaster", "Trained", "Validated", "train_part", "validate"]

MIN_WEEKS = LOOKBACK + 6
"""Minimum history: fewer weeks hardly contain a full window."""
MIN_SEARCH_WEEKS = 2 * LOOKBACK
"""A shorter panel leaves too few weeks on either side of the split, so the default setting is used."""
CEILING = 2.0
"""Largest scaled forecast: twice the range seen in calibration, so that recursive forecasts cannot diverge."""
CHECKS = 6
"""Number of evenly spaced evaluations on the validation weeks during a training."""
PATIENCE = 2
"""Evaluations without an improvement after which a training stops."""


@dataclass(frozen=True, eq=False)
class Trained:
    """Networks as a one-step model: each outcome is the mean of the networks that forecast it."""

    networks: tuple[tuple[Network, Tensor], ...]

    def predict(self, windows: Windows) -> Floats32:
        total = np.zeros((len(windows), len(OUTCOMES)), np.float32)
        voices = np.zeros(len(OUTCOMES), np.float32)
        with torch.inference_mode():
            for _, alike in groupby(self.networks, lambda pair: pair[0].values()):
                networks, flats = zip(*alike, strict=True)
                outcomes = networks[0].config.outcomes
                columns = [OUTCOMES.index(name) for name in outcomes]
                forecasts = networks[0](torch.stack(flats), Batch.of(windows, outcomes))
                total[:, columns] += forecasts.sum(0).numpy()
                voices[columns] += len(networks)
        return np.asarray(np.clip(total / np.maximum(voices, 1), -CEILING, CEILING), np.float32)


@dataclass(frozen=True, eq=False)
class Validated:
    """A training on the weeks before the validation window, with its smallest walk-forward error over that
    window."""

    error: float
    steps: int
    """Steps at which that error was reached: where early stopping takes the network."""
    curve: Curve


def validate(
    part: Part,
    choice: Choice,
    profile: Profile,
    panel: FirmPanel,
    seed: int,
    report: Report = lambda error: False,
) -> Validated:
    """Train with early stopping on the panel's validation weeks. The trial is pruned as soon as `report` returns
    True."""
    training = validation_split(panel)
    scaling, history = Scaling.of(training), History.of(training)
    data = TrainingSet.of(training, scaling, part.outcomes)
    losses: list[float] = []
    checks: list[tuple[int, float]] = []
    for networks in train([part.run(choice, profile, data, seed)], scaling, _stops(profile), [losses]):
        drivers = walk_forward(Trained(tuple(networks)), history, scaling, panel.n_weeks - training.n_weeks)
        error = walk_forward_error(panel, training, drivers, part.driver)
        checks.append((len(losses), error))
        if report(error):
            raise optuna.TrialPruned
        best = min(range(len(checks)), key=lambda k: checks[k][1])
        if len(checks) - 1 - best >= PATIENCE:
            break
    steps, error = min(checks, key=lambda check: check[1])
    return Validated(error, steps, curve(losses, checks))


def _stops(profile: Profile) -> list[int]:
    return sorted({max(1, round(k * profile.steps / CHECKS)) for k in range(1, CHECKS + 1)})


def train_part(
    part: Part, choice: Choice, profile: Profile, panel: FirmPanel, seed: int, steps: int, networks: int = 1
) -> list[tuple[Network, Tensor]]:
    """Networks with that setting, trained on the whole panel for so many steps of the schedule."""
    scaling = Scaling.of(panel)
    data = TrainingSet.of(panel, scaling, part.outcomes)
    runs = [part.run(choice, profile, data, each) for each in range(seed, seed + networks)]
    (trained,) = train(runs, scaling, [steps])
    return trained


@dataclass(frozen=True, eq=False)
class FittedNeural:
    """Trained networks and the history they walk forward from."""

    model: Trained
    history: History
    scaling: Scaling
    record: FitRecord

    def forecast(self, horizon: int) -> PrimitiveForecast:
        with one_thread():
            return walk_forward(self.model, self.history, self.scaling, horizon)

    def state(self) -> ModelState:
        history = self.history.state()
        networks = self.model.networks
        values: dict[str, Any] = {
            "history": history.values,
            "scaling": self.scaling.values(),
            "networks": [network.values() for network, _ in networks],
            **self.record.values(),
        }
        weights = {f"network{k}": flat.numpy() for k, (_, flat) in enumerate(networks)}
        return ModelState(values, {**history.arrays, **weights})

    @classmethod
    def from_state(cls, state: ModelState) -> Self:
        values = state.values
        scaling = Scaling(**values["scaling"])
        networks = tuple(
            (Network.from_values(v), torch.from_numpy(np.array(state.arrays[f"network{k}"])))
            for k, v in enumerate(values["networks"])
        )
        return cls(
            model=Trained(networks),
            history=History.from_state(ModelState(values["history"], state.arrays)),
            scaling=scaling,
            record=FitRecord.from_values(values),
        )


@dataclass(frozen=True)
class NeuralForecaster:
    """A search on the validation weeks for each network of a family, then the networks trained on everything."""

    family: str
    """A name in `FAMILY_PARTS`."""
    profile: str = "quick"
    """A name in `PROFILES`."""
    storage: str | Path | None = None
    """A journal file or database URL that keeps the search; without one it is kept in memory."""
    progress: Progress | None = field(default=None, compare=False)

    def fit(self, panel: FirmPanel, *, seed: int) -> FittedNeural:
        with one_thread():
            return self.train(panel, self.choose(panel, seed), seed)

    def choose(self, panel: FirmPanel, seed: int) -> FitRecord:
        """The settings to train with, and after how many steps to stop: the searches', or the default if the
        history is too short for one.

        Each part of the family has a search of its own. With several, settings are keyed by driver, and the
        validation error is their mean.
        """
        self._check(panel)
        parts, profile = FAMILY_PARTS[self.family], PROFILES[self.profile]
        if panel.n_weeks < MIN_SEARCH_WEEKS:
            return FitRecord(
                {**parts[0].default(), "steps": profile.steps},
                diagnosis=f"default setting: a search needs {MIN_SEARCH_WEEKS} weeks",
            )
        found = {part.driver or self.family: self._search(part, panel, seed) for part in parts}
        settings = {name: {**one.choice, "steps": one.notes["steps"]} for name, one in found.items()}
        if self.family in found:
            only = found[self.family]
            return FitRecord(settings[self.family], validation_error=only.error, trials=only.history)
        return FitRecord(
            settings,
            validation_error=float(np.mean([one.error for one in found.values()])),
            trials=tuple({"driver": name, **trial} for name, one in found.items() for trial in one.history),
        )

    def train(self, panel: FirmPanel, chosen: FitRecord, seed: int) -> FittedNeural:
        """Networks with the chosen settings, trained on the whole panel. The record states how far each backbone
        moved from its initial values, as a share of their norm."""
        self._check(panel)
        profile = PROFILES[self.profile]
        networks: list[tuple[Network, Tensor]] = []
        moved: dict[str, float] = {}
        for part in FAMILY_PARTS[self.family]:
            choice = chosen.parameters.get(part.driver or self.family, chosen.parameters)
            network, flat = train_part(part, choice, profile, panel, seed, choice["steps"])[0]
            networks.append((network, flat))
            moved[part.driver or self.family] = round(network.moved(flat, start_of(network, seed)), 4)
        record = replace(chosen, parameters={**chosen.parameters, "backbone_moved": moved})
        return FittedNeural(
            Trained(tuple(networks)), History.of(panel).tail(LOOKBACK), Scaling.of(panel), record
        )

    def _check(self, panel: FirmPanel) -> None:
        if panel.n_weeks < MIN_WEEKS:
            raise CannotFit(
                self.family, panel.firm, f"it has {panel.n_weeks} weeks; at least {MIN_WEEKS} are needed"
            )
        if not panel.orders[:, -LOOKBACK:].any():
            raise CannotFit(
                self.family,
                panel.firm,
                f"it has no orders in the last {LOOKBACK} weeks, which a forecast starts from",
            )

    def _search(self, part: Part, panel: FirmPanel, seed: int) -> Found:
        parts, profile = FAMILY_PARTS[self.family], PROFILES[self.profile]

        def objective(choice: Choice, report: Report) -> tuple[float, dict[str, Any]]:
            trial = validate(part, choice, profile, panel, seed, report)
            return trial.error, {"steps": trial.steps, "curve": trial.curve}

        def progress(done: int, total: int) -> None:
            if self.progress:
                self.progress(parts.index(part) * total + done, len(parts) * total)

        return search(
            objective,
            part.space(),
            [part.default()],
            profile.stages,
            seed=seed,
            storage=self.storage,
            study=f"{panel.firm}/{self.family}",
            depends=(panel.digest, profile, CHECKS, PATIENCE, part),
            progress=progress,
        )
