"""Holdout accuracy of networks and their rivals on simulated firms, one result a line, resumable.

`python bench/neural_accuracy.py results.jsonl [firms] [profile] [model ...]` runs what the file does not
hold yet, firm by firm in an order of no meaning, so that a part of it is a fair sample;
`python bench/neural_accuracy.py results.jsonl` prints what it holds.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd

from cbmt_core.compose import compose
from cbmt_core.metrics import FULL, score
from cbmt_core.models import MODELS, build
from cbmt_core.simulate import Economy, sample_cohorts

SEED = 20260626
PROFILED = frozenset({"neural", "direct", "plus"})


def run(path: Path, firms: int, profile: str, models: list[str]) -> None:
    economy = Economy(firms=firms, seed=SEED)
    done = {(r["firm"], r["model"]) for r in _read(path)}
    specs = economy.specs()
    for index in np.random.default_rng(SEED).permutation(firms):
        spec = specs[index]
        for name in models:
            if (spec.name, name) in done:
                continue
            panel = sample_cohorts(economy, spec).panel()
            seen = panel.until(panel.design.origin)
            entry, start = MODELS[name], process_time()
            model = build(name)
            if entry.family in PROFILED:
                model = type(model)(**{**entry.options, "profile": profile})
            fitted = model.fit(seen, seed=SEED)
            forecast = compose(seen, fitted.forecast(panel.design.holdout_weeks))
            row = {
                "firm": spec.name,
                "model": name,
                "profile": profile,
                "seconds": round(process_time() - start, 2),
                "bias": float(forecast.S.sum() / panel.S[seen.n_weeks :].sum() - 1),
                **{s.outcome: s.smape for s in score(panel, forecast, seen.origin) if s.horizon == FULL},
            }
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")


def _read(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def tell(path: Path) -> None:
    rows = pd.DataFrame(_read(path))
    rows["absolute_bias"] = rows["bias"].abs()
    print(rows.groupby("model")["total_sales"].agg(["count", "mean", "median", "std"]).round(2))
    print(rows.groupby("model").mean(numeric_only=True).round(2).to_string())
    total = rows.pivot_table(index="firm", columns="model", values="total_sales")
    for name in ("cbmt", "cbmt_plus"):
        for other in total.columns.drop(name) if name in total else ():
            pair = total[[name, other]].dropna()
            if len(pair):
                change = 100 * (pair[name].mean() / pair[other].mean() - 1)
                wins = float(np.mean(pair[name] < pair[other]))
                print(f"{name} against {other}: {len(pair)} firms, mean {change:+.1f} %, wins {wins:.0%}")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    if len(sys.argv) > 2:
        run(target, int(sys.argv[2]), sys.argv[3], sys.argv[4:])
    tell(target)
