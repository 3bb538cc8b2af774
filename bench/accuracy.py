"""Accuracy of every model on an economy of simulated firms at their full size.

    python bench/accuracy.py data/accuracy                  60 firms, all models; goes on where it was stopped
    python bench/accuracy.py data/accuracy --firms 4        the first four of them
    python bench/accuracy.py data/accuracy --only-tell      the tables alone

Firms and seed are fixed, and used for nothing but this comparison. Networks get their own search
(`--profile`), `cbmt_plus` the priors learned from the calibration weeks of these firms. With statsforecast and prophet
installed (see bench/topline.py) the topline models are shown too. About a minute of one core for each firm.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import warnings
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from time import process_time

import numpy as np
import pandas as pd
import topline
from panel_results.document import table
from threadpoolctl import threadpool_limits

from cbmt_core import atomic
from cbmt_core.compose import compose
from cbmt_core.metrics import FULL, score
from cbmt_core.models import MODELS, build
from cbmt_core.models.contract import CannotFit, FittedForecaster
from cbmt_core.models.plus import CbmtPlus, PathPriors, learn_priors, weekly_series
from cbmt_core.panel import FirmPanel
from cbmt_core.simulate import Economy, sample_cohorts

SEED = 606
FIRMS = 60
PLUS = "cbmt_plus"
REFERENCES = ("cbmt", PLUS)
OUTCOMES_SHOWN = ("acquisition", "ropc", "aov", "cohort_sales")
NETWORKS = ("neural", "direct")
PRIORS = "priors.parquet"
TOPLINE = tuple(topline.MODELS) if find_spec("statsforecast") and find_spec("prophet") else ()


def panel_of(k: int) -> FirmPanel:
    economy = Economy(firms=FIRMS, seed=SEED)
    return sample_cohorts(economy, economy.specs()[k]).panel()


def judge(panel: FirmPanel, fitted: FittedForecaster) -> dict[str, float]:
    seen = panel.until(panel.design.origin)
    composed = compose(seen, fitted.forecast(panel.n_weeks - seen.n_weeks))
    return {s.outcome: s.smape for s in score(panel, composed, seen.origin) if s.horizon == FULL}


def topline_errors(panel: FirmPanel, name: str) -> dict[str, object]:
    seen = panel.until(panel.design.origin)
    series = topline.Series(
        panel.firm, panel.weeks, panel.S, panel.n_weeks - seen.n_weeks, panel.design.country
    )
    found = topline.judge(series, name, limit=120)
    return {"total_sales": found["smape"], "reason": found["reason"], "seconds": found["seconds"]}


def do_firm(k: int, folder: Path, profile: str) -> int:
    """Every model but `cbmt_plus`, and the series that its priors are learned from."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    path = folder / f"firm{k:02d}.json"
    done: dict[str, dict[str, object]] = json.loads(path.read_text()) if path.exists() else {}
    panel = panel_of(k)
    seen = panel.until(panel.design.origin)
    with threadpool_limits(1):
        if not (folder / f"series{k:02d}.parquet").exists():
            with atomic.replacing(folder / f"series{k:02d}.parquet") as new:
                weekly_series(seen, seed=1).to_parquet(new)
        for name, entry in MODELS.items():
            if name in done or name == PLUS:
                continue
            started = process_time()
            try:
                options = {"profile": profile} if entry.family in NETWORKS else {}
                fitted = build(name, **options).fit(seen, seed=1)
                done[name] = {**judge(panel, fitted), "seconds": process_time() - started}
            except CannotFit as error:
                done[name] = {"reason": error.reason}
            atomic.write_text(path, json.dumps(done))
        for name in TOPLINE:
            if name not in done:
                done[name] = topline_errors(panel, name)
                atomic.write_text(path, json.dumps(done))
    return k


def learn(folder: Path) -> None:
    """The priors of `cbmt_plus`, from the calibration of all firms done so far."""
    series = pd.concat([pd.read_parquet(path) for path in sorted(folder.glob("series*.parquet"))])
    with threadpool_limits(1):
        priors = learn_priors(series, Economy(firms=FIRMS, seed=SEED).design.country, say_step)
    priors.frame().to_parquet(folder / PRIORS)


def say_step(step: int, steps: int) -> None:
    if step % 20 == 0:
        print(f"priors: step {step} of {steps}", file=sys.stderr, flush=True)


def do_plus(k: int, folder: Path) -> int:
    warnings.simplefilter("ignore")
    path = folder / f"firm{k:02d}.json"
    panel = panel_of(k)
    seen = panel.until(panel.design.origin)
    priors = PathPriors.from_frame(pd.read_parquet(folder / PRIORS), panel.design.country)
    with threadpool_limits(1):
        fitted = CbmtPlus(priors).fit(seen, seed=1)
        errors = judge(panel, fitted)
    atomic.write_text(path, json.dumps({**json.loads(path.read_text()), PLUS: errors}))
    return k


def tell(folder: Path) -> None:
    rows = [
        {"firm": path.stem, "model": model, **errors}
        for path in sorted(folder.glob("firm*.json"))
        for model, errors in json.loads(path.read_text()).items()
    ]
    wide = pd.DataFrame(rows).set_index(["firm", "model"]).unstack("model")  # noqa: PD010
    sales = wide["total_sales"].dropna(axis=1)
    lines = []
    for name in sales.mean().sort_values().index:
        drivers = [_figure(wide[outcome][name].mean()) for outcome in OUTCOMES_SHOWN]
        pairs = [_pair(sales[reference], sales[name]) for reference in REFERENCES if reference in sales]
        mean = f"{sales[name].mean():.2f} ({sales[name].median():.2f})"
        seconds = _figure(wide["seconds"][name].median())
        lines.append([f"`{name}`", mean, *drivers, *pairs, seconds])
    print(f"{len(sales)} firms of economy {SEED}, SMAPE of the holdout:\n")
    header = ["model", "total sales: mean (median)", *OUTCOMES_SHOWN]
    header += [f"`{name}` against it: mean, firms won" for name in REFERENCES if name in sales]
    print(table([*header, "median core-seconds"], lines))
    lost = wide["total_sales"].isna().sum()
    print("\nwithout a forecast:", {str(k): int(n) for k, n in lost.items() if n} or "none")


def _figure(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.2f}"


def _pair(reference: pd.Series, other: pd.Series) -> str:
    """By how much the reference's mean is above (+) or below (-) the other's, and the firms it wins from it."""
    if reference.name == other.name:
        return ""
    change = 100 * (reference.mean() / other.mean() - 1)
    return f"{change:+.1f} %, {100 * (reference < other).mean():.0f} %"


def follow(what: str, jobs: list[Future[int]]) -> None:
    for place, job in enumerate(as_completed(jobs), 1):
        print(f"{what}: {place} of {len(jobs)} (firm {job.result()})", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where results are kept")
    parser.add_argument("--firms", type=int, default=FIRMS, help="so many of the firms [%(default)s]")
    parser.add_argument("--profile", default="quick", help="how much work networks may be [%(default)s]")
    parser.add_argument("--workers", type=int, default=2, help="processes side by side [%(default)s]")
    parser.add_argument("--only-tell", action="store_true", help="run nothing")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    if not asked.only_tell:
        # A pseudo-random order, so that some of the firms are a fair sample.
        firms = np.random.default_rng(0).permutation(FIRMS)[: asked.firms]
        with ProcessPoolExecutor(asked.workers, get_context("spawn")) as pool:
            follow("models", [pool.submit(do_firm, int(k), asked.folder, asked.profile) for k in firms])
            learn(asked.folder)
            follow(PLUS, [pool.submit(do_plus, int(k), asked.folder) for k in firms])
    tell(asked.folder)


if __name__ == "__main__":
    main()
