"""Training windows a second on one core, against the same architecture in torch's own layers:
`python bench/training_speed.py`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time

import numpy as np
import torch
from torch import Tensor, nn
from torch.profiler import profile

from cbmt_core.models.neural.batch import Batch
from cbmt_core.models.neural.config import NetworkConfig
from cbmt_core.models.neural.network import Network, positions
from cbmt_core.models.neural.training import TrainingSet
from cbmt_core.models.sequence import LOOKBACK, OUTCOMES, Scaling
from cbmt_core.simulate import Economy, sample_cohorts

REPEATS = 15


class Reference(nn.Module):
    """The network of `cbmt` as one would write it first: embeddings, `nn.Transformer*Layer`, four heads."""

    def __init__(self, network: Network, dropout: float) -> None:
        super().__init__()
        c, shapes = network.config, network.shapes
        layer = {"dropout": dropout, "batch_first": True, "norm_first": True}
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

    def forward(self, b: Batch) -> Tensor:
        of_cohort = [self.entities["month"](b.month), self.entities["cohort"](b.cohort)]
        parts = [
            b.numeric,
            b.week_covariates[b.week],
            self.entities["week"](b.week_of_year[b.week]),
            *(e[:, None].expand(-1, LOOKBACK, -1) for e in of_cohort),
        ]
        memory = self.encoder(self.project(torch.cat(parts, -1)) + self.positions)
        shared = self.decoder(memory[:, -1:], memory)[:, 0]
        heads = zip(self.heads, b.history, strict=True)
        return torch.cat([head(torch.cat([shared, history], -1)) for head, history in heads], -1)


def median_seconds(steps: list[Callable[[], None]]) -> list[float]:
    """Median processor seconds of each step, taken in turn so that a busy machine disturbs all alike."""
    for step in steps * 3:
        step()
    seconds: list[list[float]] = [[] for _ in steps]
    for _ in range(REPEATS):
        for step, times in zip(steps, seconds, strict=True):
            start = process_time()
            step()
            times.append(process_time() - start)
    return [float(np.median(times)) for times in seconds]


def main() -> None:
    torch.set_num_threads(1)
    economy = Economy(firms=4, seed=5)
    panel = sample_cohorts(economy, economy.specs()[1]).panel()
    seen = panel.until(panel.design.origin)
    data = TrainingSet.of(seen, Scaling.of(seen), OUTCOMES)
    generator = torch.Generator().manual_seed(1)
    print(f"{seen.n_cohorts} cohorts, {seen.n_weeks} weeks, {len(data)} windows")
    for dropout in (0.0, 0.2):
        network = Network(NetworkConfig(dropout=dropout), data.dimensions())
        flat = network.initial(generator)
        reference = Reference(network, dropout)
        for size in (96, 256):

            def ours() -> None:
                rows = torch.randint(len(data), (size,), generator=generator)  # noqa: B023
                leaf = flat.detach().requires_grad_()  # noqa: B023
                forecast = network(network.named(leaf), data.batch.take(rows), generator)  # noqa: B023
                torch.autograd.grad(((forecast - data.targets[rows]) ** 2).mean(), leaf)

            def theirs() -> None:
                rows = torch.randint(len(data), (size,), generator=generator)  # noqa: B023
                forecast = reference(data.batch.take(rows))  # noqa: B023
                reference.zero_grad()  # noqa: B023
                ((forecast - data.targets[rows]) ** 2).mean().backward()

            mine, torchs = median_seconds([ours, theirs])
            print(
                f"dropout {dropout:.1f}, batch {size}: {size / mine:7,.0f} windows/s, torch's layers "
                f"{size / torchs:7,.0f}, ratio {torchs / mine:.2f}"
            )
    with profile() as profiler:
        for _ in range(10):
            ours()
    events = sorted(profiler.key_averages(), key=lambda e: -e.self_cpu_time_total)
    total = sum(e.self_cpu_time_total for e in events)
    print("\nwhere the time goes (batch 256, dropout 0.2)")
    for event in events[:14]:
        print(
            f"  {event.key[:44]:44s} {100 * event.self_cpu_time_total / total:5.1f} %  {event.count // 10:4d} a step"
        )


if __name__ == "__main__":
    sys.exit(main())
