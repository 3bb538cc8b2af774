"""Windows as plain columns, and the interface of tree learners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import optuna

from cbmt_core.arrays import Bools, Floats, Floats32
from cbmt_core.models.sequence import History, Scaling, Sequences, Windows, hide_cohorts
from cbmt_core.models.sequence.windows import FLAGS
from cbmt_core.panel import FirmPanel

__all__ = ["Choice", "Ensemble", "Learner", "TrainingSet", "features"]

Choice = Mapping[str, Any]
"""One setting of a learner's hyperparameters, JSON-ready."""

HIDDEN_SHARE = 0.1
"""Share of training windows that carry the id of new cohorts."""


def features(windows: Windows) -> Floats32:
    """[B, F] the window as plain columns: lags of the four outcomes and of the no-orders flag, the
    covariates of the target week, and the ids.

    The covariates of earlier weeks, and the flag of weeks before the panel, are functions of the target week's, so as
    columns they would add no new splits.
    """
    columns: list[npt.NDArray[Any]] = [
        windows.outcomes.reshape(len(windows), -1),
        windows.flags[:, :, FLAGS.index("no_orders")],
        windows.covariates[:, -1],
        windows.week_of_year[:, -1:],
        windows.month[:, None],
        windows.cohort[:, None],
    ]
    return np.concatenate(columns, axis=1, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Every cohort-week of a panel as a row."""

    X: Floats32
    targets: Floats32
    """[B, 4] scaled A, R, V, S."""
    known: Bools
    """[B, 4] False where a target carries no loss."""
    size: Floats
    """[B] customers of the row's cohort."""

    @classmethod
    def of(cls, panel: FirmPanel, scaling: Scaling, seed: int) -> TrainingSet:
        sequences = Sequences.of(History.of(panel), scaling)
        row, week = sequences.pairs(range(1, panel.n_weeks))
        samples = sequences.samples(row, week)
        rng = np.random.default_rng(seed)
        windows = hide_cohorts(samples.windows, sequences.new_id, HIDDEN_SHARE, rng)
        return cls(features(windows), samples.targets, samples.known, panel.size[row])

    def weight(self, power: float) -> Floats:
        """Row weights size^power, of mean one."""
        weight = np.maximum(self.size, 1.0) ** power
        return weight / weight.mean()  # type: ignore[no-any-return]


class Ensemble(Protocol):
    """A fitted tree ensemble."""

    def predict(self, X: Floats32) -> Floats32:
        """[B, 4] scaled forecasts."""
        ...

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Plain arrays from which the learner can restore the ensemble."""
        ...


class Learner(Protocol):
    """Interface of a tree learner."""

    @property
    def default(self) -> Choice:
        """A setting that works for any firm."""
        ...

    @property
    def stages(self) -> tuple[int, ...]:
        """Increasing ensemble sizes; a trial is scored, and may be pruned, at each."""
        ...

    def suggest(self, trial: optuna.Trial) -> Choice: ...

    def grow(
        self, data: TrainingSet, choice: Choice, stages: tuple[int, ...], seed: int
    ) -> Iterator[Ensemble]:
        """The same ensemble at each of the sizes `stages`."""
        ...

    def final_size(self, stage: int) -> int:
        """Size of the final ensemble when `stage` was the best one in the search."""
        ...

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> Ensemble: ...
