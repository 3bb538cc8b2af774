"""The weekly refresh: data tables, live forecasts and publishing for many firms, and where the time goes.

    python bench/weekly.py data/weekly                      100 firms, then 1,000; goes on where it was stopped
    python bench/weekly.py data/weekly --firms 100 300      other sizes

Each size is a project of small simulated firms (165 weeks after a year of washout) whose orders have been read.
`cbmt run --live-only --timings` is timed: every table and live forecast is made, which is what a new week does too,
and the prior is learned, which happens four times a year only. Growth is the ratio of the seconds of two sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import duckdb
from panel_results.document import table

from cbmt_core import atomic
from cbmt_core.duck import literal
from cbmt_core.simulate import Economy, write_economy
from cbmt_pipeline.sources import add_source

SEED = 4242
SCALE = 0.002
COLUMNS = ("firm", "customer", "order_time", "amount", "order_id", "industry")


def prepare(folder: Path, firms: int) -> None:
    """Orders of all firms in one file."""
    if (folder / "cbmt.toml").exists():
        return
    write_economy(Economy(firms=firms, scale=SCALE, seed=SEED), folder / "simulated")
    (folder / "orders").mkdir()
    orders = f"read_parquet({literal(str(folder / 'simulated' / 'orders' / '*.parquet'))})"
    with atomic.replacing(folder / "orders" / "all.parquet") as target:
        duckdb.sql(f"COPY (FROM {orders}) TO {literal(str(target))} (FORMAT parquet)")
    source = {"name": "economy", "path": "orders", "currency": "USD", "timezone": "America/New_York"}
    add_source(folder, source, {name: name for name in COLUMNS})


def run(folder: Path) -> dict[str, float]:
    """Seconds of each step of one refresh, of all, and of the processor."""
    before, started = os.times(), time.monotonic()
    command = [
        sys.executable,
        "-m",
        "cbmt_pipeline.cli",
        "--project",
        str(folder),
        "run",
        "--live-only",
        "--timings",
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    after = os.times()
    if done.returncode not in (0, 1):
        sys.exit(done.stdout)
    steps = {
        name: float(seconds) for name, seconds in re.findall(r"^seconds (\w+) ([\d.]+)$", done.stdout, re.M)
    }
    used = after.children_user - before.children_user + after.children_system - before.children_system
    return {**steps, "all": time.monotonic() - started, "processor": used}


def measure(folder: Path, firms: int) -> dict[str, float]:
    """The refresh of a project of so many firms; kept in its folder."""
    kept = folder / "weekly.json"
    if not kept.exists():
        folder.mkdir(parents=True, exist_ok=True)
        print(f"{firms} firms: orders", file=sys.stderr, flush=True)
        prepare(folder, firms)
        print(f"{firms} firms: refresh", file=sys.stderr, flush=True)
        atomic.write_text(kept, json.dumps(run(folder)))
    found: dict[str, float] = json.loads(kept.read_text())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the projects are kept")
    parser.add_argument("--firms", type=int, nargs="+", default=[100, 1000])
    asked = parser.parse_args()
    seconds = {firms: measure(asked.folder / f"firms{firms}", firms) for firms in asked.firms}
    names = sorted(
        {name for one in seconds.values() for name in one}, key=lambda n: (n in ("all", "processor"), n)
    )
    few, many = min(seconds), max(seconds)
    rows = []
    for name in names:
        cells = [f"{seconds[firms].get(name, 0.0):.1f}" for firms in asked.firms]
        growth = seconds[many].get(name, 0.0) / seconds[few][name] if seconds[few].get(name) else float("nan")
        rows.append([name, *cells, f"{growth:.1f}"])
    print(f"seconds of a weekly refresh on {os.cpu_count()} cores ({many / few:.0f} times the firms):\n")
    print(table(["step", *(f"{firms:,} firms" for firms in asked.firms), "growth"], rows))


if __name__ == "__main__":
    main()
