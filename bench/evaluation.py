"""Evaluation of many firms and models: seconds, processor seconds and peak memory.

    python bench/evaluation.py --firms 60 240 --models 21
    python bench/evaluation.py --firms 966

Forecasts of the study's size (119 known cohorts and 47 later ones over 47 weeks, 6,721 rows a firm and
model) are written as lake files into a temporary folder; values are random, so they do not compress.
Each measurement is a process of its own. Processor time is printed besides wall time, for busy machines.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cbmt_core import duck
from cbmt_core.bridge import BridgeWindows, bridge_errors, bridge_table
from cbmt_core.design import StudyDesign
from cbmt_core.duck import parquet_below
from cbmt_core.evaluation import Relations, accuracy, compare, failures, whole_firms

DESIGN = StudyDesign()
TABLES = ("firm", "firm_week", "cohort_week", "model_fit", "forecast_week", "forecast_cohort_week")


def write_firm(root: Path, index: int, models: list[str]) -> None:
    rng = np.random.default_rng(index)
    name = f"Firm {index:05d}"
    study, first = DESIGN.study.dates(), DESIGN.study.first
    birth = np.arange(-1, len(study))
    week = np.arange(len(study))
    cohort, column = np.nonzero(week >= birth[:, None])
    size = rng.integers(200, 2000, len(birth)).astype(float)
    size[0] *= 50
    initial = np.where(birth[cohort] == column, size[cohort], 0)
    repeat = rng.poisson(0.03 * size[cohort]).astype(float)
    value = rng.gamma(20, 2.5, len(cohort))
    first_sales, repeat_sales = (initial * value).round(2), (repeat * value).round(2)
    money = pa.decimal128(18, 4)

    def cents(amount: np.ndarray) -> pa.Array:
        return pa.array(amount.round(2)).cast(money, safe=False)

    def dates(days: np.ndarray) -> pa.Array:
        return pa.array((np.datetime64(first, "D") + 7 * days).astype("datetime64[D]"))

    def text(word: str, rows: int) -> pa.Array:
        return pa.array([word]).take(pa.array(np.zeros(rows, np.int32)))

    def write(table: str, columns: dict[str, object]) -> None:
        path = root / table / f"firm=f{index:05d}" / "part.parquet"
        path.parent.mkdir(parents=True)
        rows = len(next(v for k, v in columns.items() if k != "firm"))
        pq.write_table(pa.table({"firm": text(name, rows), **columns}), path, compression="zstd")

    orders = initial + repeat
    write(
        "cohort_week",
        {
            "cohort": dates(birth[cohort]),
            "week": dates(column),
            "left_censored": birth[cohort] < 0,
            "cohort_size": size[cohort].astype(np.int64),
            "initial_orders": initial.astype(np.int64),
            "repeat_orders": repeat.astype(np.int64),
            "sales": cents(first_sales + repeat_sales),
            "initial_sales": cents(first_sales),
            "repeat_sales": cents(repeat_sales),
            "ropc": repeat / size[cohort],
            "aov": pa.array(value, mask=orders == 0),
        },
    )
    sales = np.bincount(column, first_sales + repeat_sales)
    write("firm_week", {"week": dates(week), "acquired": size[1:].astype(np.int64), "sales": cents(sales)})
    write(
        "firm",
        {"segment": pa.nulls(1, pa.string()), "industry": [f"Industry {index % 25}"], "currency": ["USD"]},
    )
    seen = len(DESIGN.calibration)
    ahead, target = np.nonzero((week >= birth[:, None])[:, seen:])
    target += seen
    parts, weeks = [], []
    origin = dates(np.array([seen - 1]))
    for model in models:
        guess = size[ahead] * np.where(birth[ahead] < seen, 1, rng.gamma(9, 1 / 9))
        ropc, aov = rng.gamma(2, 0.015, len(ahead)), rng.gamma(20, 2.5, len(ahead))
        revenue = guess * ((birth[ahead] == target) + ropc) * aov
        parts.append((model, guess, ropc, aov, revenue))
        weeks.append((model, np.bincount(target - seen, revenue)))
    rows, names = len(ahead), pa.array(models)
    write(
        "forecast_cohort_week",
        {
            "model": names.take(pa.array(np.repeat(np.arange(len(models)), rows))),
            "origin": origin.take(pa.array(np.zeros(rows * len(models), np.int32))),
            "cohort": dates(np.tile(birth[ahead], len(models))),
            "week": dates(np.tile(target, len(models))),
            **{
                column: np.concatenate([part[k] for part in parts])
                for k, column in enumerate(("cohort_size", "ropc", "aov", "sales"), start=1)
            },
        },
    )
    holdout = len(DESIGN.holdout)
    write(
        "forecast_week",
        {
            "model": names.take(pa.array(np.repeat(np.arange(len(models)), holdout))),
            "origin": origin.take(pa.array(np.zeros(holdout * len(models), np.int32))),
            "week": dates(np.tile(week[seen:], len(models))),
            "acquired": rng.gamma(9, 120, holdout * len(models)),
            "sales": np.concatenate([total for _, total in weeks]),
        },
    )
    write(
        "model_fit",
        {
            "model": names,
            "origin": origin.take(pa.array(np.zeros(len(models), np.int32))),
            "succeeded": [True] * len(models),
            "reason": pa.nulls(len(models), pa.string()),
        },
    )


def one(root: Path, threads: int) -> None:
    relations = Relations(**{name: parquet_below(root / name, "firm=*/*.parquet") for name in TABLES})
    timings: dict[str, tuple[float, float]] = {}
    with duck.connect(root / "spill", memory="3GB", threads=threads) as con:

        def timed(step, action):
            wall, cpu = time.perf_counter(), time.process_time()
            result = action()
            timings[step] = (time.perf_counter() - wall, time.process_time() - cpu)
            return result

        firms = whole_firms(con, relations)
        errors = timed("accuracy", lambda: accuracy(con, relations))
        timed("failures", lambda: failures(con, relations, errors, DESIGN.origin))
        timed("compare", lambda: compare(errors, firms))
        bridge = timed("bridge", lambda: bridge_table(con, relations, BridgeWindows.of(DESIGN)))
        timed("bridge errors", lambda: bridge_errors(bridge, firms))
        assert bridge["eligible"].all(), bridge["reason"].value_counts()
        assert errors.notna().all(axis=None)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"timings": timings, "peak": peak, "rows": len(errors)}))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--firms", type=int, nargs="+", default=[60, 240])
    parser.add_argument("--models", type=int, default=21)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options.one, options.threads)
        return
    models = ["cbmt", *(f"model_{k:02d}" for k in range(1, options.models))]
    for firms in options.firms:
        with tempfile.TemporaryDirectory() as folder:
            for index in range(firms):
                write_firm(Path(folder), index, models)
            size = sum(path.stat().st_size for path in Path(folder).rglob("*.parquet")) / 2**30
            print(f"{firms} firms, {options.models} models, {size:.2f} GiB of Parquet", flush=True)
            command = [sys.executable, __file__, "--one", folder, "--threads", str(options.threads)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            result = json.loads(done.stdout.splitlines()[-1])
            for step, (wall, cpu) in result["timings"].items():
                print(f"  {step:14s} {wall:7.2f} s   {cpu:7.2f} processor s")
            wall, cpu = (sum(t[k] for t in result["timings"].values()) for k in (0, 1))
            print(
                f"  {'in all':14s} {wall:7.2f} s   {cpu:7.2f} processor s   peak {result['peak']:.2f} GiB",
                flush=True,
            )


if __name__ == "__main__":
    main()
