"""Staged search for settings: broad random, grid within the promising range, TPE refinement.

The stages follow section "Study Design" of the paper. A study may be stored, in a journal file or a
PostgreSQL database; a killed search then goes on where it was and ends as if it had never stopped.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    IntDistribution,
)
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

__all__ = ["Choice", "Found", "Report", "Space", "Stages", "search"]

Choice = Mapping[str, Any]
"""One setting, JSON-ready."""
Space = Mapping[str, BaseDistribution]
Report = Callable[[float], bool]
"""Takes the error so far; True when the trial is not worth going on with."""

PROMISING = 1 / 3
"""Share of the random trials whose range the grid covers."""
GRID_AXES = 2
"""Numbers that the grid varies: those whose rank agrees most with the error's."""


@dataclass(frozen=True)
class Stages:
    """Trials of each stage."""

    random: int
    grid: int = 0
    refined: int = 0

    @property
    def total(self) -> int:
        return self.random + self.grid + self.refined


@dataclass(frozen=True)
class Found:
    """The outcome of a search."""

    choice: Choice
    error: float
    notes: Mapping[str, Any]
    """What the objective noted about the chosen trial."""
    trials: int
    pruned: int
    default_error: float


def search(
    objective: Callable[[Choice, Report], tuple[float, Mapping[str, Any]]],
    space: Space,
    first: Sequence[Choice],
    stages: Stages,
    *,
    seed: int,
    storage: str | Path | None = None,
    study: str = "study",
    margin: float = 0.0,
) -> Found:
    """The setting with the least error. `first` are tried before all others; the very first of them is the
    default, which stays unless another is better by the share `margin`.

    `objective` returns an error and notes. Every trial's draws depend on the seed and on the trials
    finished before it, on nothing else; trials run one after the other.
    """
    opened = _open(storage, study)
    while (k := len(done := _finished(opened))) < stages.total:
        opened.sampler = _sampler(k, stages, seed)
        fixed = dict(first[k]) if k < len(first) else None
        if stages.random <= k < stages.random + stages.grid:
            fixed = _grid(done[: stages.random], space, stages.grid)[k - stages.random]
        if fixed is not None:
            opened.enqueue_trial(fixed)
        trial = opened.ask(dict(space))
        state, error, notes = _run(objective, trial, dict(trial.params))
        for name, value in notes.items():
            trial.set_user_attr(name, value)
        opened.tell(trial, error if state == TrialState.COMPLETE else None, state)
    return _choose(_finished(opened), margin)


def _run(
    objective: Callable[[Choice, Report], tuple[float, Mapping[str, Any]]],
    trial: optuna.Trial,
    choice: Choice,
) -> tuple[TrialState, float, Mapping[str, Any]]:
    steps = itertools.count()

    def report(error: float) -> bool:
        trial.report(error if math.isfinite(error) else 1e9, next(steps))
        return trial.number > 0 and trial.should_prune()

    try:
        error, notes = objective(choice, report)
    except optuna.TrialPruned:
        return TrialState.PRUNED, math.inf, {}
    return TrialState.COMPLETE, error if math.isfinite(error) else 1e9, notes


def _open(storage: str | Path | None, name: str) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    backend: Any = None
    if isinstance(storage, str) and "://" in storage:
        backend = storage
    elif storage is not None:
        path = Path(storage)
        path.parent.mkdir(parents=True, exist_ok=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            backend = JournalStorage(JournalFileBackend(str(path)))
    study = optuna.create_study(
        storage=backend,
        study_name=name,
        load_if_exists=True,
        pruner=optuna.pruners.MedianPruner(n_startup_trials=2),
    )
    for trial in study.get_trials(deepcopy=False, states=(TrialState.RUNNING, TrialState.WAITING)):
        # Left by a killed run: it is done again from the start.
        if trial.state == TrialState.WAITING:
            study.ask()
        study.tell(trial.number, state=TrialState.FAIL)
    return study


def _finished(study: optuna.Study) -> list[FrozenTrial]:
    return study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))


def _sampler(k: int, stages: Stages, seed: int) -> optuna.samplers.BaseSampler:
    mixed = (seed * 1_000_003 + k) % 2**32
    if k < stages.random + stages.grid:
        return optuna.samplers.RandomSampler(seed=mixed)
    return optuna.samplers.TPESampler(seed=mixed, n_startup_trials=0)


def _score(trial: FrozenTrial) -> float:
    if trial.state == TrialState.COMPLETE and trial.value is not None:
        return trial.value
    return min(trial.intermediate_values.values(), default=math.inf) + 1e6


def _grid(trials: Sequence[FrozenTrial], space: Space, points: int) -> list[dict[str, Any]]:
    """Settings between the best random trials: a grid over two numbers, the rest as in the best trial."""
    ranked = sorted(trials, key=_score)
    best = ranked[: max(2, math.ceil(PROMISING * len(ranked)))]
    numbers = [n for n, d in space.items() if not isinstance(d, CategoricalDistribution)]

    def agreement(name: str) -> float:
        order = [t.params[name] for t in ranked]
        middle = (len(order) - 1) / 2
        return abs(sum((i - middle) * sorted(order).index(x) for i, x in enumerate(order)))

    axes = sorted(numbers, key=agreement, reverse=True)[:GRID_AXES]
    per_axis = math.ceil(points ** (1 / len(axes))) if axes else 1
    values = [_between(space[n], [t.params[n] for t in best], per_axis) for n in axes]
    combined = [dict(zip(axes, point, strict=True)) for point in itertools.product(*values)]
    return [{**best[0].params, **point} for point in itertools.islice(itertools.cycle(combined), points)]


def _between(distribution: BaseDistribution, seen: Sequence[float], points: int) -> list[float]:
    low, high = min(seen), max(seen)
    logarithmic = getattr(distribution, "log", False)
    if logarithmic:
        low, high = math.log(low), math.log(high)
    inner = [low + (high - low) * (i + 0.5) / points for i in range(points)]
    if logarithmic:
        inner = [math.exp(x) for x in inner]
    return [round(x) for x in inner] if isinstance(distribution, IntDistribution) else inner


def _choose(trials: Sequence[FrozenTrial], margin: float) -> Found:
    default = trials[0]
    best = min(trials, key=_score)
    assert best.value is not None
    assert default.value is not None
    if best.value > (1 - margin) * default.value:
        best = default
    assert best.value is not None
    return Found(
        choice=best.params,
        error=best.value,
        notes=best.user_attrs,
        trials=len(trials),
        pruned=sum(t.state == TrialState.PRUNED for t in trials),
        default_error=default.value,
    )
