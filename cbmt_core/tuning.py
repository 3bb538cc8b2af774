"""Staged search for settings: broad random, grid within the promising range, TPE refinement.

The stages follow section "Study Design" of the paper. A study may be stored in a journal file or a PostgreSQL
database; a killed search then resumes and ends as if it had never stopped.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    IntDistribution,
)
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from cbmt_core.errors import ConfigError

__all__ = ["Choice", "Found", "Progress", "Report", "Space", "Stages", "check_storage", "forget", "search"]

Choice = Mapping[str, Any]
"""One setting, JSON-ready."""
Space = Mapping[str, BaseDistribution]
Report = Callable[[float], bool]
"""Takes the error so far; returns True if the trial should be pruned."""
Progress = Callable[[int, int], None]
"""Takes the number of finished trials and of all trials of the search."""

PROMISING = 1 / 3
"""Share of the random trials, the best of them, whose range the grid covers."""
GRID_AXES = 2
"""Number of settings that the grid varies: those with the strongest rank correlation with the error."""


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
    history: tuple[Mapping[str, Any], ...] = field(default=(), compare=False)
    """Every trial in order, JSON-ready: stage, choice, error, whether pruned, whether chosen, seconds, notes."""


def search(
    objective: Callable[[Choice, Report], tuple[float, Mapping[str, Any]]],
    space: Space,
    first: Sequence[Choice],
    stages: Stages,
    *,
    seed: int,
    storage: str | Path | None = None,
    study: str = "study",
    depends: object = None,
    margin: float = 0.0,
    progress: Progress | None = None,
) -> Found:
    """Search for the setting with the least error. `first` are tried before all others; the first of them is the
    default, which is kept unless another is better by the share `margin`.

    `objective` returns an error and notes. Trials run one after the other, and their draws depend only on the seed
    and on the trials before. A stored study is identified by its name, the search's settings and `depends`,
    everything else that the errors depend on: when any of these changes, a new study begins.

    Args:
        objective: returns the error of a setting and notes on it; it may report stages and be pruned.
        space: distribution of each setting.
        first: settings to try first; the first one is the default.
        stages: number of trials of each stage.
        seed: seed of the draws.
        storage: journal file or database address; None: not stored.
        study: name of the stored study.
        depends: everything else that the errors depend on; its `repr` identifies the study.
        margin: share by which a setting must beat the default.
        progress: called with the trials done and the trials to do.
    """
    settings = repr((sorted(space.items()), list(first), stages, seed, depends))
    opened = _open(storage, f"{study}/{hashlib.sha256(settings.encode()).hexdigest()[:16]}")
    while (k := len(done := _finished(opened))) < stages.total:
        if progress:
            progress(k, stages.total)
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
    if progress:
        progress(stages.total, stages.total)
    return _choose(_finished(opened), margin, stages)


def forget(storage: str | Path, study: str) -> None:
    """Remove every stored study of that name, with any `depends`."""
    if not _is_address(storage) and not Path(storage).exists():
        return
    backend = _backend(storage)
    for name in optuna.get_all_study_names(backend):
        if name.rpartition("/")[0] == study:
            optuna.delete_study(study_name=name, storage=backend)


def check_storage(storage: str | Path) -> None:
    """Raise ConfigError if studies cannot be stored there."""
    try:
        optuna.get_all_study_names(_backend(storage))
    except Exception as error:  # Any error of the driver (or its absence) or of the server.
        said = without_password(str(error).partition("\n")[0], storage)
        # Not "from error": the driver's message, with the address in it, would be in every traceback.
        raise ConfigError(
            f"searches cannot be kept in {without_password(str(storage), storage)}: {said}. "
            "Does it answer, and is the driver there (for PostgreSQL: pip install 'cbmt-pipeline[postgres]')?"
        ) from None


def without_password(text: str, storage: str | Path) -> str:
    """`text` with the password of a database address removed, in any of its notations."""
    if not _is_address(storage):
        return text
    given = {word for pattern in _PASSWORD for word in pattern.findall(str(storage))}
    for word in sorted({form for one in given for form in (one, unquote(one))}, key=len, reverse=True):
        text = text.replace(word, "***")
    return text


_PASSWORD = (
    re.compile(r"(?<=://)[^:/?#@\s]*:(\S+)(?=@)"),
    re.compile(r"[?&](?:password|passwd|pwd|sslpassword|token)=([^&#\s]+)"),
)
"""Where a password stands in an address: user:password@host, or a parameter."""


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
    study = optuna.create_study(
        storage=None if storage is None else _backend(storage),
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


def _is_address(storage: str | Path) -> bool:
    return isinstance(storage, str) and "://" in storage


def _backend(storage: str | Path) -> Any:
    if _is_address(storage):
        return storage
    path = Path(storage)
    path.parent.mkdir(parents=True, exist_ok=True)
    _mend(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return JournalStorage(JournalFileBackend(str(path)))


def _mend(journal: Path) -> None:
    """Repair a journal after a killed writer: remove an unfinished last line and a stale lock."""
    Path(f"{journal}.lock").unlink(missing_ok=True)
    if journal.exists():
        with journal.open("rb+") as file:
            file.truncate(file.read().rfind(b"\n") + 1)


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
    """A grid of settings over two numbers between the best random trials; the rest is as in the best trial."""
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


def _choose(trials: Sequence[FrozenTrial], margin: float, stages: Stages) -> Found:
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
        history=tuple(_history_row(k, trial, stages, trial is best) for k, trial in enumerate(trials)),
    )


def _history_row(k: int, trial: FrozenTrial, stages: Stages, chosen: bool) -> dict[str, Any]:
    pruned = trial.state == TrialState.PRUNED
    error = min(trial.intermediate_values.values(), default=None) if pruned else trial.value
    return {
        "stage": "random" if k < stages.random else "grid" if k < stages.random + stages.grid else "refined",
        "choice": dict(trial.params),
        "error": error,
        "pruned": pruned,
        "chosen": chosen,
        "seconds": trial.duration.total_seconds() if trial.duration else None,
        "notes": dict(trial.user_attrs),
    }
