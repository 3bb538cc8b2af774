"""Training: AdamW over flat vectors of parameters, networks of one shape side by side, on one thread."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from cbmt_core.models.neural.batch import Batch
from cbmt_core.models.neural.config import NetworkConfig, TrainingConfig
from cbmt_core.models.neural.dropout import Dropout
from cbmt_core.models.neural.loss import Objective, Truth
from cbmt_core.models.neural.network import Dimensions, Network
from cbmt_core.models.neural.optimiser import AdamW
from cbmt_core.models.neural.parts import Mask, Parameters
from cbmt_core.models.sequence import OUTCOMES, History, Scaling, Sequences
from cbmt_core.models.sequence.windows import N_MONTHS
from cbmt_core.panel import FirmPanel

__all__ = ["Run", "TrainingSet", "minimise", "one_thread", "start_of", "train"]

SIDE_BY_SIDE = 4
"""Maximum number of networks in one computation: more do not fit into the processor's cache."""


@contextmanager
def one_thread() -> Iterator[None]:
    """One torch thread inside, the caller's number outside: firms run in parallel, operations do not."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Every cohort-week of a panel, with what came next."""

    batch: Batch
    truth: Truth
    new_id: int

    @classmethod
    def of(cls, panel: FirmPanel, scaling: Scaling, outcomes: tuple[str, ...]) -> TrainingSet:
        sequences = Sequences.of(History.of(panel), scaling)
        row, week = sequences.pairs(range(1, panel.n_weeks))
        samples = sequences.samples(row, week)
        columns = [OUTCOMES.index(name) for name in outcomes]
        truth = Truth(
            targets=torch.from_numpy(np.ascontiguousarray(samples.targets[:, columns].T)),
            known=torch.from_numpy(np.ascontiguousarray(samples.known[:, columns].T.astype(np.float32))),
            is_birth=torch.from_numpy(np.ascontiguousarray(samples.windows.is_birth)),
            sales=torch.from_numpy(np.nan_to_num(panel.Y[row, week]).astype(np.float32)),
        )
        return cls(Batch.of(samples.windows, outcomes), truth, sequences.new_id)

    def __len__(self) -> int:
        return len(self.batch)

    def dimensions(self) -> Dimensions:
        return Dimensions(
            numeric=self.batch.numeric.shape[0],
            week_covariates=self.batch.week_covariates.shape[-1],
            n_ids=self.new_id + 1,
        )


@dataclass(frozen=True, eq=False)
class Run:
    """One network to be trained."""

    data: TrainingSet
    sizes: NetworkConfig
    config: TrainingConfig
    seed: int

    def shape(self) -> tuple[object, ...]:
        """What runs that are computed side by side have in common."""
        sizes = replace(self.sizes, outcomes=(), dropout=0.0)
        return sizes, len(self.sizes.outcomes), self.config.batch, self.config.steps

    def draws(self, steps: int) -> tuple[Tensor, Tensor]:
        """[steps, batch] windows of the mini-batches, drawn uniformly, and the cohort ids they use."""
        rng, config, n = np.random.default_rng(self.seed), self.config, len(self.data)
        drawn, luck = rng.random((steps, 2, config.batch)).transpose(1, 0, 2)
        rows = np.minimum((drawn * n).astype(np.int64), n - 1)
        month, cohort = self.data.batch.month[0].numpy()[rows], self.data.batch.cohort[0].numpy()[rows]
        hidden = (luck < config.hidden_share) & (month != N_MONTHS - 1)
        return torch.from_numpy(rows), torch.from_numpy(np.where(hidden, self.data.new_id, cohort))


def train(
    runs: Sequence[Run], scaling: Scaling, stops: Sequence[int], losses: Sequence[list[float]] = ()
) -> Iterator[list[tuple[Network, Tensor]]]:
    """The networks and their parameters after each number of steps in `stops`; `losses` get each step's.

    The runs are computed side by side, so they must agree in their `shape`. Runs do not influence one another.
    """
    parts = np.array_split(np.arange(len(runs)), math.ceil(len(runs) / SIDE_BY_SIDE))
    groups = [
        _train([runs[k] for k in part], scaling, stops, [losses[k] for k in part] if losses else ())
        for part in parts
    ]
    for trained in zip(*groups, strict=True):
        yield [network for group in trained for network in group]


def _train(
    runs: Sequence[Run], scaling: Scaling, stops: Sequence[int], losses: Sequence[list[float]]
) -> Iterator[list[tuple[Network, Tensor]]]:
    networks = [Network(run.sizes, run.data.dimensions()) for run in runs]
    sets = list({id(run.data): run.data for run in runs}.values())
    batch = Batch.together([data.batch for data in sets])
    truth = Truth.together([data.truth for data in sets])
    begins = dict(zip(map(id, sets), np.cumsum([0, *map(len, sets)]), strict=False))
    drawn = [run.draws(max(stops)) for run in runs]
    rows = torch.stack([rows + begins[id(run.data)] for run, (rows, _) in zip(runs, drawn, strict=True)], 1)
    cohorts = torch.stack([cohorts for _, cohorts in drawn], 1)
    objective = Objective.of(
        [run.sizes.outcomes for run in runs], [run.config.weights for run in runs], scaling
    )

    def descend(p: Parameters, mask: Mask, step: int) -> tuple[Tensor, Tensor]:
        predicted, pull = networks[0].forward(p, batch.take(rows[step], cohorts[step]), mask)
        loss, gradient = objective(predicted.transpose(0, 1), truth.take(rows[step]))
        return loss, pull(gradient.transpose(0, 1))

    configs, seeds = [run.config for run in runs], [run.seed for run in runs]
    for flat in minimise(descend, networks, configs, seeds, stops, losses):
        yield list(zip(networks, flat, strict=True))


def start_of(network: Network, seed: int) -> Tensor:
    """The parameters a training of that seed starts from."""
    return network.initial(torch.Generator().manual_seed(seed))


def minimise(
    descend: Callable[[Parameters, Mask, int], tuple[Tensor, Tensor]],
    networks: Sequence[Network],
    configs: Sequence[TrainingConfig],
    seeds: Sequence[int],
    stops: Iterable[int],
    losses: Sequence[list[float]] = (),
) -> Iterator[Tensor]:
    """[G, P] parameters after each number of steps in `stops`, averaged over the latest ones. `descend` takes
    parameters, dropout and the step; it returns losses [G], which `losses` get, and gradients [G, P]."""
    first, config = networks[0], configs[0]
    generators = [torch.Generator().manual_seed(seed) for seed in seeds]
    flat = torch.stack([n.initial(g) for n, g in zip(networks, generators, strict=True)])
    largest = config.batch * first.config.lookback * first.config.width
    dropout = Dropout([n.config.dropout for n in networks], generators, largest)
    pairs = list(zip(networks, configs, strict=True))
    optimiser = AdamW(
        flat,
        rate=torch.stack([n.by_part(c.rate * c.backbone_share, c.rate) for n, c in pairs]),
        decay=torch.stack(
            [n.by_part(c.decay, c.decay, aov_head=c.aov_decay) * n.decayed() for n, c in pairs]
        ),
    )
    p, done = first.named(flat), 0
    mean = flat.clone()
    for stop in stops:
        with torch.inference_mode():
            for step in range(done, stop):
                loss, gradient = descend(p, dropout.mask, step)
                for kept, value in zip(losses, loss.tolist(), strict=bool(losses)):
                    kept.append(value)
                optimiser.step(gradient, _schedule(step, config), config.clip)
                mean.lerp_(flat, _share_of_mean(step, config))
        done = stop
        yield mean.clone()


def _share_of_mean(step: int, config: TrainingConfig) -> float:
    """Weight of the newest parameters in the average. The average is short at first, so that the random initial
    values drop out soon."""
    length = config.averaged * config.steps
    return 1.0 / max(1.0, min(length, (step + 10) / 9))


def _schedule(step: int, config: TrainingConfig) -> float:
    warm = max(1.0, config.warm_up * config.steps)
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warm) / max(1.0, config.steps - warm))))
