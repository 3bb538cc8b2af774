"""Does `cbmt` learn, and which of its parts matter? The trained network beside controls, firm by firm.

    python bench/mechanism.py data/mechanism                40 firms; goes on where it was stopped
    python bench/mechanism.py data/mechanism --firms 8      the first eight of them
    python bench/mechanism.py data/mechanism --only-tell    the tables alone

Each firm's search (`quick`) gives `cbmt` its setting. Every control has that setting, its own early stopping and its
own final training:

    frozen       the backbone stays at its random start; only the heads are trained
    unaligned    no L_C
    severed      the backbone sees no driver's history, only the calendar and the cohort; each head sees its own
    three        the mean of three networks of different seeds

The setting was found for `cbmt`; no control has a search of its own, which favours `cbmt`.

Severing takes the place of shuffling: a walk forward has nothing to shuffle a forecast week with. Firms and seed are
used for nothing but this comparison. About 20 seconds of one core a firm, with `--families` a minute.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from panel_results.document import table
from torch import Tensor

from cbmt_core import atomic
from cbmt_core.compose import compose
from cbmt_core.metrics import FULL, score
from cbmt_core.models.contract import PrimitiveForecast
from cbmt_core.models.neural import NeuralForecaster, training
from cbmt_core.models.neural.family import FAMILY_PARTS
from cbmt_core.models.neural.forecaster import Trained, train_part, validate
from cbmt_core.models.neural.loss import Objective
from cbmt_core.models.neural.network import Network
from cbmt_core.models.neural.profiles import PROFILES
from cbmt_core.models.neural.training import TrainingSet, start_of
from cbmt_core.models.sequence import LOOKBACK, OUTCOMES, History, Scaling, walk_forward
from cbmt_core.panel import FirmPanel
from cbmt_core.simulate import Economy, sample_cohorts

SEED = 777
FIRMS = 40
PROFILE = "quick"
REFERENCE = "cbmt"
JUDGED = ("total_sales", "acquisition", "ropc", "aov", "cohort_sales")
WINDOWS = 1024
"""Windows that gradients are measured on."""


class Severed(Network):
    """A network whose backbone has no weights on the drivers' histories."""

    def initial(self, generator: torch.Generator) -> Tensor:
        flat = super().initial(generator)
        self.named(flat)["input.numeric"][..., : len(self.config.outcomes)] = 0.0
        return flat

    def by_part(self, backbone: float, heads: float, *, aov_head: float | None = None) -> Tensor:
        flat = super().by_part(backbone, heads, aov_head=aov_head)
        self.named(flat)["input.numeric"][..., : len(self.config.outcomes)] = 0.0
        return flat


@contextmanager
def severed() -> Iterator[None]:
    with patch.object(training, "Network", Severed):
        yield


def judge(panel: FirmPanel, seen: FirmPanel, drivers: PrimitiveForecast) -> dict[str, float]:
    told = score(panel, compose(seen, drivers), seen.origin)
    return {s.outcome: s.smape for s in told if s.horizon == FULL}


def control(panel: FirmPanel, choice: dict[str, Any], networks: int = 1) -> dict[str, Any]:
    """`cbmt` with that setting: early stopping, final training, errors of the holdout, how far the backbone moved."""
    (part,), profile = FAMILY_PARTS[REFERENCE], PROFILES[PROFILE]
    seen = panel.until(panel.design.origin)
    stopped = validate(part, choice, profile, seen, 1)
    trained = train_part(part, choice, profile, seen, 1, stopped.steps, networks)
    walk = walk_forward(
        Trained(tuple(trained)),
        History.of(seen).tail(LOOKBACK),
        Scaling.of(seen),
        panel.n_weeks - seen.n_weeks,
    )
    network, flat = trained[0]
    return {
        **judge(panel, seen, walk),
        "moved": network.moved(flat, start_of(network, 1)),
        "steps": stopped.steps,
        "validation": stopped.error,
    }


def gradients(seen: FirmPanel, choice: dict[str, Any], network: Network, flat: Tensor) -> dict[str, float]:
    """The length of each weighted loss's gradient in the backbone."""
    (part,), scaling = FAMILY_PARTS[REFERENCE], Scaling.of(seen)
    data = TrainingSet.of(seen, scaling, part.outcomes)
    run = part.run(choice, PROFILES[PROFILE], data, 1)
    rows = torch.randint(len(data), (1, WINDOWS), generator=torch.Generator().manual_seed(1))
    backbone = network.by_part(1.0, 0.0)
    lengths = {}
    for name in (*OUTCOMES, "C"):
        alone = {k: getattr(run.config.weights, k) if k == name else 0.0 for k in (*OUTCOMES, "C")}
        objective = Objective.of([part.outcomes], [type(run.config.weights)(**alone)], scaling)
        with torch.inference_mode():
            batch = data.batch.take(rows, data.batch.cohort[0][rows])
            predicted, pull = network.forward(network.named(flat), batch)
            _, gradient = objective(predicted.transpose(0, 1), data.truth.take(rows))
            lengths[name] = float((pull(gradient.transpose(0, 1))[0] * backbone).norm())
    return lengths


def do_firm(k: int, folder: Path, families: bool) -> None:
    path = folder / f"firm{k:02d}.json"
    done: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    economy = Economy(firms=FIRMS, seed=SEED)
    spec = economy.specs()[k]
    panel = sample_cohorts(economy, spec).panel()
    seen = panel.until(panel.design.origin)

    def keep(name: str, values: dict[str, Any]) -> None:
        done[name] = values
        atomic.write_text(path, json.dumps(done))

    if REFERENCE not in done:
        fitted = NeuralForecaster(REFERENCE, PROFILE).fit(seen, seed=1)
        choice = {name: v for name, v in fitted.record.parameters.items() if name != "backbone_moved"}
        ((network, flat),) = fitted.model.networks
        done["firm"] = {
            "comovement": spec.parameters.comovement,
            "choice": choice,
            "before": gradients(
                seen, choice, network, start_of(network, 1) + 0.5 * (flat - start_of(network, 1))
            ),
            "after": gradients(seen, choice, network, flat),
        }
        walk = fitted.forecast(panel.n_weeks - seen.n_weeks)
        moved = fitted.record.parameters["backbone_moved"][REFERENCE]
        keep(REFERENCE, {**judge(panel, seen, walk), "moved": moved, "steps": choice["steps"]})
    choice = done["firm"]["choice"]
    if "frozen" not in done:
        keep("frozen", control(panel, {**choice, "backbone_share": 0.0}))
    if "unaligned" not in done:
        keep("unaligned", control(panel, {**choice, "weight_C": 0.0}))
    if "severed" not in done:
        with severed():
            keep("severed", control(panel, choice))
    if "three" not in done:
        keep("three", control(panel, choice, networks=3))
    for family in [name for name in FAMILY_PARTS if families and name not in done]:
        fitted = NeuralForecaster(family, PROFILE).fit(seen, seed=1)
        moved = float(np.mean(list(fitted.record.parameters["backbone_moved"].values())))
        keep(family, {**judge(panel, seen, fitted.forecast(panel.n_weeks - seen.n_weeks)), "moved": moved})


def tell(folder: Path) -> None:
    firms = [json.loads(path.read_text()) for path in sorted(folder.glob("firm*.json"))]
    firms = [firm for firm in firms if "three" in firm]
    names = [name for name in firms[0] if name != "firm" and all(name in firm for firm in firms)]
    wide = {name: pd.DataFrame([firm[name] for firm in firms]) for name in names}
    print(f"{len(firms)} firms of economy {SEED}, `{PROFILE}`, SMAPE of the holdout (median in brackets):\n")
    lines = []
    for name, errors in wide.items():
        wins = [
            f"{100 * (wide[REFERENCE][o] < errors[o]).mean():.0f} %" for o in ("total_sales", "cohort_sales")
        ]
        lines.append(
            [
                f"`{name}`" if name in FAMILY_PARTS else name,
                f"{errors['total_sales'].mean():.2f} ({errors['total_sales'].median():.2f})",
                *(f"{errors[outcome].mean():.2f}" for outcome in JUDGED[1:]),
                *(wins if name != REFERENCE else ["", ""]),
                f"{100 * errors['moved'].mean():.0f} %",
            ]
        )
    header = ["network", "total sales", *JUDGED[1:], "`cbmt` wins: total", "cohort sales", "backbone moved"]
    print(table(header, lines))
    for when, words in (("before", "half-way"), ("after", "at the end")):
        lengths = pd.DataFrame([firm["firm"][when] for firm in firms])
        shares = lengths.div(lengths.sum(axis=1), axis=0).mean()
        print(f"\nshare of each loss in the backbone's gradient, {words}: ", end="")
        print(", ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items()))
    strength = np.array([firm["firm"]["comovement"] for firm in firms])
    print("\nby hidden co-movement strength, mean total sales and firms won by `cbmt`:\n")
    lines = []
    for inside in np.array_split(np.argsort(strength), 3):
        cells = [f"{strength[inside].min():.2f} to {strength[inside].max():.2f}", str(len(inside))]
        for name in names:
            won = (wide[REFERENCE]["total_sales"] < wide[name]["total_sales"])[inside].mean()
            cells.append(
                f"{wide[name]['total_sales'][inside].mean():.2f}"
                + ("" if name == REFERENCE else f", {100 * won:.0f} %")
            )
        lines.append(cells)
    print(table(["strength", "firms", *names], lines))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where results are kept")
    parser.add_argument("--firms", type=int, default=FIRMS, help="so many of the firms [%(default)s]")
    parser.add_argument("--families", action="store_true", help="the other families too")
    parser.add_argument("--only-tell", action="store_true", help="run nothing")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if not asked.only_tell:
        # An order of no meaning, so that a part of the firms is a fair sample.
        for place, k in enumerate(np.random.default_rng(0).permutation(FIRMS)[: asked.firms], 1):
            do_firm(int(k), asked.folder, asked.families)
            print(f"{place} of {asked.firms} (firm {k})", file=sys.stderr, flush=True)
    tell(asked.folder)


if __name__ == "__main__":
    main()
