"""Training on one core: windows a second against the same architecture in torch's own layers, and where the
time goes: `python bench/training_speed.py`. With `--growth`: seconds and memory of a whole fit as firms grow. With
`--autograd`: `torch.func.vmap` and `torch.compile` beside the hand-written gradients; the latter needs a C++
compiler and finds what it compiled before in its cache."""

from __future__ import annotations

import argparse
import resource
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from multiprocessing import get_context
from time import process_time, time
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn

from cbmt_core.design import StudyDesign
from cbmt_core.models.neural import NeuralForecaster
from cbmt_core.models.neural import network as networks
from cbmt_core.models.neural.batch import Batch
from cbmt_core.models.neural.config import LossWeights, NetworkConfig, TrainingConfig
from cbmt_core.models.neural.loss import Objective
from cbmt_core.models.neural.network import Network, positions
from cbmt_core.models.neural.optimiser import AdamW
from cbmt_core.models.neural.training import Run, TrainingSet, train
from cbmt_core.models.sequence import LOOKBACK, OUTCOMES, Scaling
from cbmt_core.panel import FirmPanel
from cbmt_core.simulate import Economy, sample_cohorts

REPEATS = 25
STEPS = 4
"""Optimiser steps of one measurement."""
LAST = 10_000
"""More steps than any measurement takes."""


class Reference(nn.Module):
    """The network of `joint` as one would write it first: embeddings, `nn.Transformer*Layer`, four heads."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        c, shapes = network.config, network.shapes
        layer = {"dropout": c.dropout, "batch_first": True, "norm_first": True}
        self.entities = nn.ModuleDict(
            {name: nn.Embedding(*shapes[f"entity.{name}"]) for name in ("week", "month", "cohort")}
        )
        width = network.dimensions.numeric + network.dimensions.week_covariates
        width += sum(e.embedding_dim for e in self.entities.values())
        self.project = nn.Linear(width, c.width)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(c.width, c.heads, c.feed_forward, **layer),
            c.encoder_layers,
            norm=nn.LayerNorm(c.width),
            enable_nested_tensor=False,
        )
        self.decoder = nn.TransformerDecoderLayer(c.width, c.heads, c.feed_forward, **layer)
        self.heads = nn.ModuleList(
            nn.Sequential(
                nn.Linear(c.width + LOOKBACK, c.head_width),
                nn.ReLU(),
                nn.Linear(c.head_width, c.head_width),
                nn.ReLU(),
                nn.Linear(c.head_width, 1),
            )
            for _ in OUTCOMES
        )
        self.register_buffer("positions", positions(LOOKBACK, c.width))

    def forward(self, w: Windows) -> Tensor:
        of_cohort = [self.entities["month"](w.month), self.entities["cohort"](w.cohort)]
        parts = [
            w.numbers,
            self.entities["week"](w.week_of_year),
            *(e[:, None].expand(-1, LOOKBACK, -1) for e in of_cohort),
        ]
        memory = self.encoder(self.project(torch.cat(parts, -1)) + self.positions)
        shared = self.decoder(memory[:, -1:], memory)[:, 0]
        heads = zip(self.heads, w.numbers.unbind(-1), strict=False)
        return torch.cat([head(torch.cat([shared, own], -1)) for head, own in heads], -1)


@dataclass(frozen=True)
class Windows:
    """The same windows, as torch's layers want them."""

    numbers: Tensor
    """[n, 20, C] all numbers of a week, the outcomes first."""
    week_of_year: Tensor
    month: Tensor
    cohort: Tensor

    @classmethod
    def of(cls, batch: Batch) -> Windows:
        weeks = batch.first_week[0][:, None] + torch.arange(LOOKBACK)
        numbers = torch.cat([batch.numeric[:, 0].permute(1, 2, 0), batch.week_covariates[weeks]], -1)
        return cls(numbers, batch.week_of_year[weeks], batch.month[0], batch.cohort[0])

    def take(self, rows: Tensor) -> Windows:
        return Windows(self.numbers[rows], self.week_of_year[rows], self.month[rows], self.cohort[rows])


def reference_of(run: Run) -> Reference:
    with torch.random.fork_rng():
        torch.manual_seed(run.seed)
        return Reference(Network(run.sizes, run.data.dimensions()))


def adamw_of(named: Iterable[tuple[str, nn.Parameter]], config: TrainingConfig) -> torch.optim.Optimizer:
    """The backbone at its lower rate, the AOV head with its stronger decay."""
    backbone, aov, heads = list[nn.Parameter](), list[nn.Parameter](), list[nn.Parameter]()
    for name, parameter in named:
        part = aov if name.startswith("heads.2") else heads if name.startswith("heads") else backbone
        part.append(parameter)
    groups = [
        {"params": backbone, "lr": config.rate * config.backbone_share},
        {"params": aov, "weight_decay": config.aov_decay},
        {"params": heads},
    ]
    return torch.optim.AdamW(groups, lr=config.rate, betas=(0.9, 0.98), weight_decay=config.decay)


def reference_steps(run: Run, *, compiled: bool = False) -> Iterator[None]:
    """Each `next` trains `STEPS` steps in torch's own way."""
    data, config = run.data, run.config
    model = reference_of(run)
    optimiser = adamw_of(model.named_parameters(), config)
    forward = torch.compile(model) if compiled else model
    windows, truth = Windows.of(data.batch), data.truth
    targets, known = truth.targets.t().contiguous(), truth.known.t().contiguous()
    weights = torch.tensor(config.weights.of(OUTCOMES))
    rows, _ = run.draws(LAST)
    for step, drawn in enumerate(rows):
        error = (forward(windows.take(drawn)) - targets[drawn]) * known[drawn]
        optimiser.zero_grad()
        ((error * error).mean(0) @ weights).backward()
        nn.utils.clip_grad_norm_(model.parameters(), config.clip)
        optimiser.step()
        if step % STEPS == STEPS - 1:
            yield


def vmapped_steps(runs: Sequence[Run]) -> Iterator[None]:
    """The same of several networks side by side: `vmap` over their stacked parameters."""
    data, config = runs[0].data, runs[0].config
    models = [reference_of(run) for run in runs]
    stacked, buffers = torch.func.stack_module_state(models)
    optimiser = adamw_of(stacked.items(), config)
    windows, truth = Windows.of(data.batch), data.truth
    targets, known = truth.targets.t().contiguous(), truth.known.t().contiguous()
    weights = torch.tensor(config.weights.of(OUTCOMES))

    def loss(p: dict[str, Tensor], b: dict[str, Tensor], drawn: Tensor) -> Tensor:
        predicted = torch.func.functional_call(models[0], (p, b), (windows.take(drawn),))
        error = (predicted - targets[drawn]) * known[drawn]
        return (error * error).mean(0) @ weights

    gradients = torch.func.vmap(torch.func.grad(loss), randomness="different")
    drawn = torch.stack([run.draws(LAST)[0] for run in runs], 1)
    for step, rows in enumerate(drawn):
        found = gradients(stacked, buffers, rows)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in found.values()]).norm(dim=0)
        share = (config.clip / norms).clamp(max=1.0)
        for name, gradient in found.items():
            stacked[name].grad = gradient * share.view(-1, *[1] * (gradient.ndim - 1))
        optimiser.step()
        if step % STEPS == STEPS - 1:
            yield


def medians(steps: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median processor seconds of each, taken in turn so that a busy machine disturbs all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for repeat in range(REPEATS + 3):
        for name, step in steps.items():
            start = process_time()
            step()
            if repeat >= 3:
                seconds[name].append(process_time() - start)
    return {name: float(np.median(times)) for name, times in seconds.items()}


def panel_of(weeks: int = 118) -> FirmPanel:
    """A firm's calibration window of that many weeks."""
    standard = StudyDesign()
    last = standard.first_week + timedelta(weeks=standard.washout_weeks + weeks + 13)
    design = replace(standard, training_weeks=weeks - 20, holdout_weeks=13, observed_to=last)
    economy = Economy(firms=4, seed=5, design=design)
    panel = sample_cohorts(economy, economy.specs()[1]).panel()
    return panel.until(panel.design.origin)


def speed(data: TrainingSet, scaling: Scaling) -> None:
    print("windows a second, everything in a step included")
    print(f"{'dropout':>8} {'batch':>6} {'torch':>8} {'one':>8} {'ratio':>6} {'three':>8} {'ratio':>6}")
    for dropout in (0.0, 0.3):
        for size in (64, 256):
            config = TrainingConfig(steps=LAST, batch=size, weights=LossWeights(C=0.0))
            runs = [Run(data, NetworkConfig(dropout=dropout), config, k) for k in range(3)]
            taken = medians(
                {
                    "torch": reference_steps(runs[0]).__next__,
                    "one": train(runs[:1], scaling, range(STEPS, LAST, STEPS)).__next__,
                    "three": train(runs, scaling, range(STEPS, LAST, STEPS)).__next__,
                }
            )
            rate = {name: size * STEPS / seconds for name, seconds in taken.items()}
            rate["three"] *= 3
            one, three = (rate[name] / rate["torch"] for name in ("one", "three"))
            print(
                f"{dropout:8.1f} {size:6d} {rate['torch']:8,.0f} {rate['one']:8,.0f} {one:6.2f} "
                f"{rate['three']:8,.0f} {three:6.2f}"
            )


def autograd(data: TrainingSet, scaling: Scaling) -> None:
    """What could take the place of the hand-written way back: `vmap` over torch's layers, and `torch.compile`."""
    config = TrainingConfig(steps=LAST, batch=64, weights=LossWeights(C=0.0))
    runs = [Run(data, NetworkConfig(dropout=0.3), config, k) for k in range(3)]
    start = time()
    compiled = reference_steps(runs[0], compiled=True)
    next(compiled)
    print(f"torch.compile: {time() - start:.0f} s until the first {STEPS} steps are done")
    taken = medians(
        {
            "torch": reference_steps(runs[0]).__next__,
            "compiled": compiled.__next__,
            "vmap of three": vmapped_steps(runs).__next__,
            "by hand": train(runs[:1], scaling, range(STEPS, LAST, STEPS)).__next__,
            "by hand, three": train(runs, scaling, range(STEPS, LAST, STEPS)).__next__,
        }
    )
    print("windows a second at batch 64, dropout 0.3, and how many times torch's layers")
    for name, seconds in taken.items():
        rate = 64 * STEPS * (3 if "three" in name else 1) / seconds
        print(f"{name:>16} {rate:8,.0f} {rate * taken['torch'] / (64 * STEPS):6.2f}")


def where(data: TrainingSet, scaling: Scaling, backbone: str) -> None:
    """Median milliseconds of each part of a step of three networks side by side, there and back."""
    taken: dict[str, list[float]] = defaultdict(list)

    def timed(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timing(*args: Any) -> Any:
            start = process_time()
            result = call(*args)
            taken[name].append(process_time() - start)
            if not isinstance(result, tuple) or not callable(result[1]):
                return result
            return result[0], timed(f"{name}, back", result[1])

        return timing

    parts = ("tokens", "encoder_layer", "decoder", "lstm", "heads")
    patched = [(networks, name, name.replace("_", " ")) for name in parts]
    patched += [(Batch, "take", "windows"), (Objective, "__call__", "loss"), (AdamW, "step", "optimiser")]
    config = TrainingConfig(steps=LAST, batch=64)
    runs = [Run(data, NetworkConfig(dropout=0.3, backbone=backbone), config, k) for k in range(3)]
    with ExitStack() as stack:
        for place, name, called in patched:
            stack.enter_context(patch.object(place, name, timed(called, getattr(place, name))))
        steps = train(runs, scaling, range(1, LAST))
        for _ in range(10):
            next(steps)
        taken.clear()
        whole = []
        for _ in range(60):
            start = process_time()
            next(steps)
            whole.append(process_time() - start)
    total = float(np.median(whole))
    print(f"\nwhere the time goes: {backbone}, three networks, batch 64, {1e3 * total:.1f} ms a step")
    left = total
    for name, times in taken.items():
        calls = len(times) / 60
        left -= calls * float(np.median(times))
        print(
            f"  {name:22s} {calls:3.0f} x {1e3 * np.median(times):6.2f} ms {calls * np.median(times) / total:6.1%}"
        )
    print(f"  {'the rest':22s} {'':12s}  {left / total:6.1%}")


def fit(weeks: int) -> tuple[int, float, float, float]:
    """Cohort-weeks, seconds of fit and forecast, and the most memory, in MiB, of `joint` under `quick`."""
    panel = panel_of(weeks)
    start = process_time()
    fitted = NeuralForecaster("joint", "quick").fit(panel, seed=1)
    trained = process_time()
    fitted.forecast(47)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return int(panel.born.sum()), trained - start, process_time() - trained, peak


def growth() -> None:
    print(
        f"{'weeks':>6} {'cohort-weeks':>13} {'growth':>7} {'fit s':>7} {'forecast s':>11} {'growth':>7} {'MiB':>6}"
    )
    before: tuple[int, float] | None = None
    for weeks in (60, 118, 236):
        # A process of its own: the peak is that of one fit.
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            cells, trained, walked, peak = pool.submit(fit, weeks).result()
        seconds = trained + walked
        cost, size = (seconds / before[1], cells / before[0]) if before else (1.0, 1.0)
        print(f"{weeks:6d} {cells:13,d} {size:7.2f} {trained:7.1f} {walked:11.1f} {cost:7.2f} {peak:6.0f}")
        before = cells, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--growth", action="store_true", help="cost and memory of a fit as the firm grows")
    parser.add_argument(
        "--autograd", action="store_true", help="vmap and torch.compile beside the hand-written way"
    )
    asked = parser.parse_args()
    if asked.growth:
        growth()
        return
    torch.set_num_threads(1)
    panel = panel_of()
    scaling = Scaling.of(panel)
    data = TrainingSet.of(panel, scaling, OUTCOMES)
    print(f"{panel.n_cohorts} cohorts, {panel.n_weeks} weeks, {len(data)} windows")
    if asked.autograd:
        autograd(data, scaling)
        return
    speed(data, scaling)
    for backbone in ("transformer", "lstm"):
        where(data, scaling, backbone)


if __name__ == "__main__":
    sys.exit(main())
