"""Orders a second: generating firms' orders, and writing them as Parquet."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from cbmt_core.simulate import Economy, sample_cohorts, sample_orders, write_orders

Result = TypeVar("Result")


class Stopwatch:
    """Wall and processor seconds: on a busy machine only the second says what the code costs."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    def run(self, work: Callable[[], Result]) -> Result:
        wall, cpu = time.perf_counter(), time.process_time()
        result = work()
        self.wall += time.perf_counter() - wall
        self.cpu += time.process_time() - cpu
        return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--firms", type=int, default=12)
    parser.add_argument("--scale", type=float, default=0.25)
    asked = parser.parse_args()
    economy = Economy(firms=asked.firms, scale=asked.scale)
    specs = economy.specs()
    sample_orders(Economy(firms=asked.firms, scale=0.001), specs[0])  # imports and calendar, not measured
    steps = {name: Stopwatch() for name in ("sample cohorts", "sample orders", "write Parquet")}
    orders = size = 0
    with tempfile.TemporaryDirectory() as folder:
        for spec in specs:
            path = Path(folder) / f"{spec.slug}.parquet"
            steps["sample cohorts"].run(lambda spec=spec: sample_cohorts(economy, spec))
            frame = steps["sample orders"].run(lambda spec=spec: sample_orders(economy, spec))
            steps["write Parquet"].run(lambda frame=frame, path=path: write_orders(frame, path))
            orders += len(frame)
            size += path.stat().st_size
    print(
        f"{asked.firms} firms at scale {asked.scale}: {orders:,} orders, {size / orders:.1f} bytes an order"
    )
    print(f"{'step':<16}{'wall s':>8}{'cpu s':>8}{'orders / wall s':>17}{'orders / cpu s':>17}")
    for name, watch in steps.items():
        rates = f"{orders / watch.wall:>17,.0f}{orders / watch.cpu:>17,.0f}"
        print(f"{name:<16}{watch.wall:>8.2f}{watch.cpu:>8.2f}{rates}")


if __name__ == "__main__":
    main()
