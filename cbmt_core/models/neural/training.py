"""Training: AdamW over one flat vector of parameters, seeded, on one thread."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cbmt_core.models.neural.batch import Batch
from cbmt_core.models.neural.config import NetworkConfig, TrainingConfig
from cbmt_core.models.neural.loss import Objective
from cbmt_core.models.neural.network import Dimensions, Network, Parameters
from cbmt_core.models.sequence import OUTCOMES, History, Scaling, Sequences
from cbmt_core.models.sequence.windows import N_MONTHS
from cbmt_core.panel import FirmPanel

__all__ = ["TrainingSet", "minimise", "one_thread", "train"]


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
    targets: Tensor
    """[n, K] scaled."""
    known: Tensor
    """[n, K] 1, or 0 where the target carries no loss."""
    is_birth: Tensor
    sales: Tensor
    """[n] of the cohort in the target week, original units."""
    size: Tensor
    """[n] customers of the cohort."""
    new_id: int

    @classmethod
    def of(cls, panel: FirmPanel, scaling: Scaling, outcomes: tuple[str, ...]) -> TrainingSet:
        sequences = Sequences.of(History.of(panel), scaling)
        row, week = sequences.pairs(range(1, panel.n_weeks))
        samples = sequences.samples(row, week)
        columns = [OUTCOMES.index(name) for name in outcomes]
        return cls(
            batch=Batch.of(samples.windows, outcomes),
            targets=torch.from_numpy(np.ascontiguousarray(samples.targets[:, columns])),
            known=torch.from_numpy(samples.known[:, columns].astype(np.float32)),
            is_birth=torch.from_numpy(np.ascontiguousarray(samples.windows.is_birth)),
            sales=torch.from_numpy(np.nan_to_num(panel.Y[row, week]).astype(np.float32)),
            size=torch.from_numpy(panel.size[row].astype(np.float32)),
            new_id=sequences.new_id,
        )

    def __len__(self) -> int:
        return len(self.batch)

    def dimensions(self) -> Dimensions:
        return Dimensions(
            numeric=self.batch.numeric.shape[-1],
            week_covariates=self.batch.week_covariates.shape[-1],
            n_ids=self.new_id + 1,
        )


def train(
    data: TrainingSet,
    scaling: Scaling,
    sizes: NetworkConfig,
    config: TrainingConfig,
    seed: int,
    stops: Iterable[int],
    losses: list[float] | None = None,
) -> Iterator[tuple[Network, Tensor]]:
    """The network and its parameters after each number of steps in `stops`; `losses` gets each step's."""
    network = Network(sizes, data.dimensions())
    objective = Objective.of(sizes.outcomes, config.weights, scaling, observed_size=config.observed_size)
    rng = np.random.default_rng(seed)
    chance = np.cumsum(np.maximum(data.size.numpy().astype(float), 1.0) ** config.emphasis)
    may_hide = data.batch.month != N_MONTHS - 1

    def loss(p: Parameters, generator: torch.Generator) -> Tensor:
        drawn = np.searchsorted(chance, rng.random(config.batch) * chance[-1], side="right")
        rows = torch.from_numpy(np.minimum(drawn, len(data) - 1))
        hidden = torch.from_numpy(rng.random(config.batch) < config.hidden_share) & may_hide[rows]
        ids = torch.where(hidden, data.new_id, data.batch.cohort[rows])
        predicted = network(p, data.batch.take(rows, ids), generator)
        return objective(
            predicted,
            data.targets[rows],
            data.known[rows],
            data.is_birth[rows],
            data.size[rows],
            data.sales[rows],
        )

    for flat in minimise(loss, network, config, seed, stops, losses):
        yield network, flat


def minimise(
    loss: Callable[[Parameters, torch.Generator], Tensor],
    network: Network,
    config: TrainingConfig,
    seed: int,
    stops: Iterable[int],
    losses: list[float] | None = None,
) -> Iterator[Tensor]:
    """The parameters after each number of steps in `stops`; `loss` draws its own mini-batches, and `losses`
    gets its value at each step."""
    generator = torch.Generator().manual_seed(seed)
    flat = network.initial(generator)
    optimiser = AdamW(
        flat,
        rate=network.by_part(config.backbone_share, 1.0),
        decay=network.by_part(config.decay, config.decay, config.aov_decay) * network.decayed(),
    )
    done = 0
    for stop in stops:
        for step in range(done, stop):
            leaf = flat.detach().requires_grad_()
            value = loss(network.named(leaf), generator)
            (gradient,) = torch.autograd.grad(value, leaf)
            if losses is not None:
                losses.append(float(value.detach()))
            optimiser.step(gradient, config.rate * _schedule(step, config), config.clip)
        done = stop
        yield flat.clone()


def _schedule(step: int, config: TrainingConfig) -> float:
    warm = max(1.0, config.warm_up * config.steps)
    if step < warm:
        return (step + 1) / warm
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warm) / max(1.0, config.steps - warm))))


class AdamW:
    """Decoupled weight decay (Loshchilov & Hutter 2019, Algorithm 2), a rate and a decay for each parameter."""

    def __init__(
        self, flat: Tensor, rate: Tensor, decay: Tensor, betas: tuple[float, float] = (0.9, 0.98)
    ) -> None:
        self.flat, self.rate, self.decay, self.betas = flat, rate, decay, betas
        self.mean, self.square, self.t = torch.zeros_like(flat), torch.zeros_like(flat), 0

    def step(self, gradient: Tensor, rate: float, clip: float) -> None:
        norm = float(gradient.norm())
        if not math.isfinite(norm):
            return  # one step lost, rather than all parameters
        if norm > clip:
            gradient.mul_(clip / norm)
        self.t += 1
        b1, b2 = self.betas
        self.mean.lerp_(gradient, 1 - b1)
        self.square.mul_(b2).addcmul_(gradient, gradient, value=1 - b2)
        scale = (self.square / (1 - b2**self.t)).sqrt_().add_(1e-8)
        self.flat.mul_(1 - rate * self.rate * self.decay)
        self.flat.addcmul_(self.rate, self.mean / scale, value=-rate / (1 - b1**self.t))
