"""Does `cbmt` learn, and which of its parts matter? The trained network beside controls, firm by firm.

    python bench/mechanism.py data/mechanism                40 firms; goes on where it was stopped
    python bench/mechanism.py data/mechanism --firms 8      the first eight of them
    python bench/mechanism.py data/mechanism --controls frozen unaligned        no others, in this order
    python bench/mechanism.py data/mechanism --weeks 60     with 60 weeks of calibration instead of 118
    python bench/mechanism.py data/mechanism --only-tell    the tables alone

Each firm's search (`quick`) gives `cbmt` its setting. Every control has that setting, its own early stopping and its
own final training:

    frozen       the backbone stays at its random start; only the heads are trained
    unaligned    no L_C
    severed      the backbone sees no driver's history, only the calendar and the cohort; each head sees its own
    three        the mean of three networks of different seeds

The setting was found for `cbmt`; no control has a search of its own, which favours `cbmt`.

One control is run on all firms before the next begins. Severing replaces shuffling, because the forecast weeks of a
walk forward cannot be shuffled. Firms and seed are used for nothing but this comparison.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
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
from cbmt_core.design import StudyDesign
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
from cbmt_core.simulate.parameters import FirmParameters

SEED = 777
FIRMS = 40
PROFILE = "quick"
REFERENCE = "cbmt"
CONTROLS = ("frozen", "unaligned", "severed", "three")
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
    scores = score(panel, compose(seen, drivers), seen.origin)
    return {s.outcome: s.smape for s in scores if s.horizon == FULL}


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


def panel_of(k: int, weeks: int) -> tuple[FirmPanel, FirmParameters]:
    """A firm with so many weeks of calibration, and what the simulator made it of."""
    design = StudyDesign()
    design = replace(design, training_weeks=weeks - design.validation_weeks)
    economy = Economy(firms=FIRMS, seed=SEED, design=design)
    spec = economy.specs()[k]
    return sample_cohorts(economy, spec).panel(), spec.parameters


def do_firm(k: int, path: Path, name: str, weeks: int) -> None:
    """One network of one firm, kept beside those that are there; `cbmt` comes first, it searches for the setting."""
    done: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    if name in done:
        return
    panel, parameters = panel_of(k, weeks)
    seen = panel.until(panel.design.origin)
    if name in FAMILY_PARTS:
        fitted = NeuralForecaster(name, PROFILE).fit(seen, seed=1)
        walk = fitted.forecast(panel.n_weeks - seen.n_weeks)
        moved = fitted.record.parameters["backbone_moved"]
        done[name] = {
            **judge(panel, seen, walk),
            "moved": float(np.mean(list(moved.values()))),
            "by_network": moved,
        }
    if name == REFERENCE:
        choice = {key: v for key, v in fitted.record.parameters.items() if key != "backbone_moved"}
        ((network, flat),) = fitted.model.networks
        start = start_of(network, 1)
        done["firm"] = {
            "comovement": parameters.comovement,
            "noise": parameters.noise[0],
            "choice": choice,
            "before": gradients(seen, choice, network, start + 0.5 * (flat - start)),
            "after": gradients(seen, choice, network, flat),
        }
        done[name]["steps"] = choice["steps"]
    if name in CONTROLS:
        done[name] = controlled(panel, done["firm"]["choice"], name)
    atomic.write_text(path, json.dumps(done))


def controlled(panel: FirmPanel, choice: dict[str, Any], name: str) -> dict[str, Any]:
    if name == "severed":
        with severed():
            return control(panel, choice)
    changed = {"frozen": {"backbone_share": 0.0}, "unaligned": {"weight_C": 0.0}}.get(name, {})
    return control(panel, {**choice, **changed}, networks=3 if name == "three" else 1)


def tell(folder: Path) -> None:
    firms = [json.loads(path.read_text()) for path in sorted(folder.glob("firm*.json"))]
    others = [
        name for name in (*CONTROLS, *FAMILY_PARTS) if name != REFERENCE and any(name in f for f in firms)
    ]
    print(
        f"economy {SEED}, `{PROFILE}`, SMAPE of the holdout. Total sales: mean (median). Drivers, cohort sales and how"
    )
    print("far the backbone moved: the other's (those of `cbmt` on the same firms).\n")
    header = ["network", "firms", "total sales", "`cbmt`", *JUDGED[1:], "`cbmt` wins: total", "cohort sales"]
    print(
        table(
            [*header, "backbone moved"], [compare(name, [f for f in firms if name in f]) for name in others]
        )
    )
    for when, words in (("before", "half-way"), ("after", "at the end")):
        lengths = pd.DataFrame([firm["firm"][when] for firm in firms])
        shares = lengths.div(lengths.sum(axis=1), axis=0).mean()
        print(f"\nshare of each loss in the backbone's gradient, {words}: ", end="")
        print(", ".join(f"{name} {100 * share:.0f} %" for name, share in shares.items()))
    for what, words in (
        ("comovement", "hidden co-movement strength"),
        ("noise", "spread of weekly noise in acquisition"),
    ):
        firms.sort(key=lambda firm: firm["firm"][what])
        print(f"\nby {words}, mean total sales of `cbmt` and of the other, firms won by `cbmt`:\n")
        print(
            table(
                ["from, to", "firms", *others],
                [third(part, what, others) for part in np.array_split(firms, 3)],
            )
        )


def compare(name: str, firms: Sequence[dict[str, Any]]) -> list[str]:
    own, other = (pd.DataFrame([firm[each] for firm in firms]) for each in (REFERENCE, name))
    wins = [f"{100 * (own[o] < other[o]).mean():.0f} %" for o in ("total_sales", "cohort_sales")]
    return [
        f"`{name}`" if name in FAMILY_PARTS else name,
        str(len(firms)),
        *(f"{e['total_sales'].mean():.2f} ({e['total_sales'].median():.2f})" for e in (other, own)),
        *(f"{other[o].mean():.2f} ({own[o].mean():.2f})" for o in JUDGED[1:]),
        *wins,
        f"{100 * other['moved'].mean():.0f} % ({100 * own['moved'].mean():.0f} %)",
    ]


def third(firms: Sequence[dict[str, Any]], what: str, others: Sequence[str]) -> list[str]:
    values = [firm["firm"][what] for firm in firms]
    cells = [f"{min(values):.3f} to {max(values):.3f}", str(len(firms))]
    for name in others:
        pairs = np.array([[f[each]["total_sales"] for each in (REFERENCE, name)] for f in firms if name in f])
        if len(pairs):
            won = 100 * (pairs[:, 0] < pairs[:, 1]).mean()
            cells.append(f"{pairs[:, 0].mean():.2f}, {pairs[:, 1].mean():.2f}, {won:.0f} % of {len(pairs)}")
        else:
            cells.append("")
    return cells


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where results are kept, a folder for each number of weeks")
    parser.add_argument("--firms", type=int, default=FIRMS, help="so many of the firms [%(default)s]")
    parser.add_argument(
        "--controls", nargs="*", choices=CONTROLS, default=CONTROLS, help="in this order [all]"
    )
    parser.add_argument("--families", action="store_true", help="then the other families too")
    parser.add_argument("--weeks", type=int, default=118, help="weeks of calibration [%(default)s]")
    parser.add_argument("--only-tell", action="store_true", help="run nothing")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    # A pseudo-random order, so that some of the firms are a fair sample.
    firms = np.random.default_rng(0).permutation(FIRMS)[: asked.firms]
    others = [name for name in FAMILY_PARTS if asked.families and name != REFERENCE]
    # Each control runs firm by firm, so that an interrupted run can be compared too.
    for name in [] if asked.only_tell else [*asked.controls, *others]:
        for place, k in enumerate(firms, 1):
            for each in (REFERENCE, name):
                do_firm(int(k), asked.folder / f"firm{k:02d}.json", each, asked.weeks)
            print(f"{name}: {place} of {asked.firms} (firm {k})", file=sys.stderr, flush=True)
    tell(asked.folder)


if __name__ == "__main__":
    main()
