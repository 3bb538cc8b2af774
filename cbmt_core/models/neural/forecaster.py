"""`cbmt`, `joint`, `single_task` and `lstm`: one protocol, four ways to share what is learned."""

from __future__ import annotations

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

__all__ = ["FAMILIES", "FittedNeural", "NeuralForecaster", "Part", "Trained"]

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
class Part:
    """What one network forecasts and how; it has a search of its own."""

    outcomes: tuple[str, ...]
    backbone: str = "transformer"
    aligned: bool = False
    """Whether revenue aligns the outcomes."""

    @property
    def driver(self) -> str | None:
        """The only outcome of the network, by its long name; None when there are several. A network that sees
        nothing but its driver is chosen by the error of that driver, others by that of all five outcomes."""
        return DRIVERS[self.outcomes[0]] if len(self.outcomes) == 1 else None

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
        if self.driver is None:
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

    def run(self, choice: Choice, profile: Profile, data: TrainingSet, seed: int) -> Run:
        """A network of these outcomes to be trained."""
        network = NetworkConfig(
            backbone=self.backbone,
            outcomes=self.outcomes,
            width=choice["width"],
            feed_forward=2 * choice["width"],
            encoder_layers=choice["layers"],
            head_width=choice["head_width"],
            dropout=choice["dropout"],
        )
        weights = {k: choice.get(f"weight_{k}", 1.0) for k in OUTCOMES}
        training = TrainingConfig(
            steps=profile.steps,
            batch=profile.batch,
            rate=choice["rate"],
            backbone_share=choice["backbone_share"],
            weights=LossWeights(**weights, C=choice.get("weight_C", 0.0)),
            emphasis=choice["emphasis"],
        )
        return Run(data, network, training, seed)


DRIVERS = {"A": "acquisition", "R": "ropc", "V": "aov"}

FAMILIES: dict[str, tuple[Part, ...]] = {
    "cbmt": (Part(OUTCOMES, aligned=True),),
    "joint": (Part(OUTCOMES),),
    "single_task": tuple(Part((driver,)) for driver in DRIVERS),
    "lstm": tuple(Part((driver,), backbone="lstm") for driver in DRIVERS),
}
"""How outcomes are spread over networks."""


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
            **self.record.values(),
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
            record=FitRecord.from_values(values),
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
    chosen: FitRecord | None = field(default=None, compare=False)
    """Settings found by an earlier search, to train with; without them a search is made."""

    def fit(self, panel: FirmPanel, *, seed: int) -> FittedNeural:
        with one_thread():
            return self.train(panel, self.chosen or self.choose(panel, seed), seed)

    def choose(self, panel: FirmPanel, seed: int) -> FitRecord:
        """The settings to train with: the searches', or the default of a firm too young for one.

        Each part of the family has a search of its own. With several, the settings stand under the names
        of their drivers, and the validation error is the mean of theirs.
        """
        if panel.n_weeks < MIN_WEEKS:
            raise CannotFit(
                self.family, panel.firm, f"it has {panel.n_weeks} weeks; at least {MIN_WEEKS} are needed"
            )
        parts, profile = FAMILIES[self.family], PROFILES[self.profile]
        steps = {"steps": profile.steps}
        if panel.n_weeks < MIN_SEARCH_WEEKS:
            return FitRecord(
                {**parts[0].default(), **steps},
                diagnosis=f"default setting: a search needs {MIN_SEARCH_WEEKS} weeks",
            )
        found = {part.driver or self.family: self._search(part, panel, seed) for part in parts}
        if self.family in found:
            only = found[self.family]
            return FitRecord({**only.choice, **steps}, validation_error=only.error, trials=only.history)
        return FitRecord(
            {**{name: dict(one.choice) for name, one in found.items()}, **steps},
            validation_error=float(np.mean([one.error for one in found.values()])),
            trials=tuple({"driver": name, **trial} for name, one in found.items() for trial in one.history),
        )

    def train(self, panel: FirmPanel, chosen: FitRecord, seed: int) -> FittedNeural:
        """Networks with the chosen settings, trained on the whole panel."""
        parts, profile = FAMILIES[self.family], PROFILES[self.profile]
        scaling, runs = Scaling.of(panel), []
        for part in parts:
            choice = chosen.parameters.get(part.driver or self.family, chosen.parameters)
            data = TrainingSet.of(panel, scaling, part.outcomes)
            seeds = range(seed, seed + max(1, profile.networks // len(parts)))
            runs += [part.run(choice, profile, data, each) for each in seeds]
        networks: list[tuple[Network, Tensor]] = []
        for _, alike in groupby(runs, Run.shape):
            (trained,) = train(list(alike), scaling, [profile.steps])
            networks += trained
        return FittedNeural(
            Trained(tuple(networks), scaling), History.of(panel).tail(LOOKBACK), scaling, chosen
        )

    def _search(self, part: Part, panel: FirmPanel, seed: int) -> Found:
        parts, profile = FAMILIES[self.family], PROFILES[self.profile]
        training = validation_split(panel)
        trial = replace(profile, steps=profile.trial_steps)
        scaling, history = Scaling.of(training), History.of(training)
        data = TrainingSet.of(training, scaling, part.outcomes)
        horizon = panel.n_weeks - training.n_weeks
        # The pruner wants two finished trials to compare with: two trials are measured at their end alone.
        shares = CHECKS if profile.stages.total > 2 else CHECKS[-1:]
        stops = [max(1, round(share * trial.steps)) for share in shares]

        def objective(choice: Choice, report: Report) -> tuple[float, dict[str, Any]]:
            """The walk-forward error over the validation window."""
            losses: list[float] = []
            checks, error = [], np.inf
            for networks in train([part.run(choice, trial, data, seed)], scaling, stops, [losses]):
                drivers = walk_forward(Trained(tuple(networks), scaling), history, scaling, horizon)
                error = walk_forward_error(panel, training, drivers, part.driver)
                checks.append((len(losses), error))
                if report(error):
                    raise optuna.TrialPruned
            return error, {"curve": curve(losses, checks)}

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
            depends=(panel.digest, profile, CHECKS, part),
            margin=MARGIN,
            progress=progress,
        )
