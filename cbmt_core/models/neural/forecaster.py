"""`cbmt`, `joint`, `single_task` and `lstm`: one protocol, four ways to share what is learned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import optuna
import torch
from optuna.distributions import CategoricalDistribution, FloatDistribution
from torch import Tensor

from cbmt_core.models.contract import CannotFit, FitRecord, PrimitiveForecast, State
from cbmt_core.models.neural.baseline import Baseline
from cbmt_core.models.neural.batch import Batch
from cbmt_core.models.neural.config import LossWeights, NetworkConfig, TrainingConfig
from cbmt_core.models.neural.curve import curve
from cbmt_core.models.neural.network import Network
from cbmt_core.models.neural.profiles import PROFILES, Profile
from cbmt_core.models.neural.training import Run, TrainingSet, one_thread, train
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

__all__ = ["FAMILIES", "Family", "FittedNeural", "NeuralForecaster", "Trained"]

MIN_WEEKS = LOOKBACK + 6
"""Fewer weeks hold hardly a full window, and a network would extrapolate its own noise."""
MIN_SEARCH_WEEKS = 2 * LOOKBACK
"""A shorter panel leaves too little on both sides of the split: the default setting is taken."""
CEILING = 2.0
"""Largest scaled forecast: twice the range seen in calibration, so that no recursion runs away."""
CHECKS = (0.5, 1.0)
"""Shares of the steps after which a trial is measured. A hopeless one stops early, but a network is always
taken from the end of its schedule: on ten simulated firms picking the best check, by walk-forward error or by
one-step loss, was no better than letting the rate run out (differences within the noise of the seed)."""
MARGIN = 0.05
"""By how much a setting must beat the default: twenty weeks are few, and the least of several errors is
partly luck."""


@dataclass(frozen=True)
class Family:
    """How outcomes are spread over networks, and whether revenue aligns them."""

    groups: tuple[tuple[str, ...], ...]
    backbone: str = "transformer"
    aligned: bool = False

    def space(self) -> dict[str, Any]:
        low_or_high = CategoricalDistribution([0.3, 1.0])
        space: dict[str, Any] = {
            "rate": FloatDistribution(5e-5, 1e-3, log=True),
            "backbone_share": FloatDistribution(0.1, 1.0, log=True),
            "layers": CategoricalDistribution([1, 2]),
            "width": CategoricalDistribution([16, 32]),
            "head_width": CategoricalDistribution([16, 32]),
            "dropout": CategoricalDistribution([0.2, 0.3]),
            "emphasis": CategoricalDistribution([0.5, 1.0]),
        }
        if any(len(group) > 1 for group in self.groups):
            space |= {f"weight_{k}": low_or_high for k in "ARVS"}
        if self.aligned:
            space["weight_C"] = CategoricalDistribution([0.1, 0.3, 1.0])
        return space

    def default(self) -> dict[str, Any]:
        values: dict[str, Any] = {
            "rate": 1.5e-4,
            "backbone_share": 0.5,
            "layers": 2,
            "width": 32,
            "head_width": 32,
            "dropout": 0.3,
            "emphasis": 1.0,
            **{f"weight_{k}": 1.0 for k in "ARV"},
            "weight_S": 0.3,
            "weight_C": 0.3,
        }
        return {name: values[name] for name in self.space()}


_EACH = (("A",), ("R",), ("V",))

FAMILIES: dict[str, Family] = {
    "cbmt": Family((OUTCOMES,), aligned=True),
    "joint": Family((OUTCOMES,)),
    "single_task": Family(_EACH),
    "lstm": Family(_EACH, backbone="lstm"),
}


def _configs(family: Family, choice: Choice, profile: Profile) -> tuple[NetworkConfig, TrainingConfig]:
    weights = {k: choice.get(f"weight_{k}", 1.0) for k in OUTCOMES}
    network = NetworkConfig(
        backbone=family.backbone,
        width=choice["width"],
        feed_forward=2 * choice["width"],
        encoder_layers=choice["layers"],
        head_width=choice["head_width"],
        dropout=choice["dropout"],
    )
    training = TrainingConfig(
        steps=profile.steps,
        batch=profile.batch,
        rate=choice["rate"],
        backbone_share=choice["backbone_share"],
        weights=LossWeights(**weights, C=choice.get("weight_C", 0.0)),
        emphasis=choice["emphasis"],
    )
    return network, training


@dataclass(frozen=True, eq=False)
class Trained:
    """Networks as a one-step model: each outcome is the mean of the networks that forecast it."""

    networks: tuple[tuple[Network, Tensor], ...]
    scaling: Scaling

    def predict(self, windows: Windows) -> npt.NDArray[np.float32]:
        total = np.zeros((len(windows), len(OUTCOMES)), np.float32)
        voices = np.zeros(len(OUTCOMES), np.float32)
        with torch.inference_mode():
            for _, alike in groupby(self.networks, lambda pair: pair[0].values()):
                networks, flats = zip(*alike, strict=True)
                outcomes = networks[0].config.outcomes
                columns = [OUTCOMES.index(name) for name in outcomes]
                baseline = Baseline.of(windows, outcomes, self.scaling)
                forecasts = networks[0](torch.stack(flats), Batch.of(windows, outcomes, baseline))
                total[:, columns] += baseline.scaled(forecasts.transpose(1, 2).numpy()).sum(0).T
                voices[columns] += len(networks)
        return np.asarray(np.minimum(total / np.maximum(voices, 1), CEILING), np.float32)


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

    def state(self) -> State:
        history = self.history.state()
        networks = self.model.networks
        values: dict[str, Any] = {
            "history": history.values,
            "scaling": self.scaling.values(),
            "networks": [network.values() for network, _ in networks],
            "parameters": dict(self.record.parameters),
            "diagnosis": self.record.diagnosis,
            "validation_error": self.record.validation_error,
        }
        weights = {f"network{k}": flat.numpy() for k, (_, flat) in enumerate(networks)}
        return State(values, {**history.arrays, **weights})

    @classmethod
    def from_state(cls, state: State) -> Self:
        values = state.values
        scaling = Scaling(**values["scaling"])
        networks = tuple(
            (Network.from_values(v), torch.from_numpy(np.array(state.arrays[f"network{k}"])))
            for k, v in enumerate(values["networks"])
        )
        return cls(
            model=Trained(networks, scaling),
            history=History.from_state(State(values["history"], state.arrays)),
            scaling=scaling,
            record=FitRecord(
                parameters=values["parameters"],
                diagnosis=values["diagnosis"],
                validation_error=values["validation_error"],
            ),
        )


@dataclass(frozen=True)
class NeuralForecaster:
    """A search on the validation window by walk-forward error, then networks trained on everything."""

    family: str
    """A name in `FAMILIES`."""
    profile: str = "quick"
    """A name in `PROFILES`."""
    storage: str | Path | None = None
    """A journal file or database URL that keeps the search; without one it is kept in memory."""
    progress: Progress | None = field(default=None, compare=False)

    def fit(self, panel: FirmPanel, *, seed: int) -> FittedNeural:
        with one_thread():
            return self.train(panel, self.choose(panel, seed), seed)

    def choose(self, panel: FirmPanel, seed: int) -> FitRecord:
        """The setting to train with: the search's, or the default of a firm too young for one."""
        if panel.n_weeks < MIN_WEEKS:
            raise CannotFit(
                self.family, panel.firm, f"it has {panel.n_weeks} weeks; at least {MIN_WEEKS} are needed"
            )
        family, profile = FAMILIES[self.family], PROFILES[self.profile]
        if panel.n_weeks < MIN_SEARCH_WEEKS:
            return FitRecord(
                {**family.default(), "steps": profile.steps},
                diagnosis=f"default setting: a search needs {MIN_SEARCH_WEEKS} weeks",
            )
        found = self._search(family, profile, panel, seed)
        return FitRecord(
            {**found.choice, "steps": profile.steps}, validation_error=found.error, trials=found.history
        )

    def train(self, panel: FirmPanel, chosen: FitRecord, seed: int) -> FittedNeural:
        """Networks with the chosen setting, trained on the whole panel."""
        family, profile = FAMILIES[self.family], PROFILES[self.profile]
        scaling = Scaling.of(panel)
        seeds = range(seed, seed + max(1, profile.networks // len(family.groups)))
        data = _data(panel, scaling, family)
        (networks,) = _train(family, chosen.parameters, profile, data, scaling, seeds, CHECKS[-1:])
        return FittedNeural(Trained(networks, scaling), History.of(panel).tail(LOOKBACK), scaling, chosen)

    def _search(self, family: Family, profile: Profile, panel: FirmPanel, seed: int) -> Found:
        training = validation_split(panel)
        trial = replace(profile, steps=profile.trial_steps)
        scaling, history = Scaling.of(training), History.of(training)
        data = _data(training, scaling, family)
        horizon = panel.n_weeks - training.n_weeks
        # The pruner wants two finished trials to compare with: two trials are measured at their end alone.
        shares = CHECKS if profile.stages.total > 2 else CHECKS[-1:]

        def objective(choice: Choice, report: Report) -> tuple[float, dict[str, Any]]:
            """The walk-forward error over the validation window."""
            losses: list[list[float]] = [[] for _ in data]
            checks, error = [], np.inf
            for networks in _train(family, choice, trial, data, scaling, [seed], shares, losses):
                drivers = walk_forward(Trained(networks, scaling), history, scaling, horizon)
                error = walk_forward_error(panel, training, drivers)
                checks.append((len(losses[0]), error))
                if report(error):
                    raise optuna.TrialPruned
            return error, {"curve": curve(losses, checks)}

        return search(
            objective,
            family.space(),
            [family.default()],
            profile.stages,
            seed=seed,
            storage=self.storage,
            study=f"{panel.firm}/{self.family}",
            depends=(panel.digest, profile, CHECKS),
            margin=MARGIN,
            progress=self.progress,
        )


def _data(panel: FirmPanel, scaling: Scaling, family: Family) -> dict[tuple[str, ...], TrainingSet]:
    return {group: TrainingSet.of(panel, scaling, group) for group in family.groups}


def _train(
    family: Family,
    choice: Choice,
    profile: Profile,
    data: Mapping[tuple[str, ...], TrainingSet],
    scaling: Scaling,
    seeds: Sequence[int],
    shares: Sequence[float],
    losses: Sequence[list[float]] = (),
) -> Iterator[tuple[tuple[Network, Tensor], ...]]:
    """The networks of all groups and seeds after each share of the steps, trained side by side."""
    sizes, config = _configs(family, choice, profile)
    stops = [max(1, round(share * config.steps)) for share in shares]
    runs = [
        Run(part, replace(sizes, outcomes=group), config, seed)
        for group, part in data.items()
        for seed in seeds
    ]
    for networks in train(runs, scaling, stops, losses):
        yield tuple(networks)
