"""Orders a second: generating a firm's orders, and writing them as Parquet."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from cbmt_core.simulate import Economy, sample_cohorts, sample_orders, write_orders


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--firms", type=int, default=12)
    parser.add_argument("--scale", type=float, default=0.5)
    asked = parser.parse_args()
    economy = Economy(firms=asked.firms, scale=asked.scale)
    orders, cohorts_s, orders_s, write_s, size = 0, 0.0, 0.0, 0.0, 0
    specs = economy.specs()
    sample_orders(Economy(firms=asked.firms, scale=0.001), specs[0])  # imports and calendar, not measured
    with tempfile.TemporaryDirectory() as folder:
        for spec in specs:
            path = Path(folder) / f"{spec.slug}.parquet"
            clock = [time.perf_counter()]
            sample_cohorts(economy, spec)
            clock.append(time.perf_counter())
            frame = sample_orders(economy, spec)
            clock.append(time.perf_counter())
            write_orders(frame, path)
            clock.append(time.perf_counter())
            cohorts_s += clock[1] - clock[0]
            orders_s += clock[2] - clock[1]
            write_s += clock[3] - clock[2]
            orders += len(frame)
            size += path.stat().st_size
    print(
        f"{asked.firms} firms at scale {asked.scale}: {orders:,} orders, {size / orders:.1f} bytes an order"
    )
    print(f"{'step':<22}{'seconds':>9}{'orders/s':>14}")
    for step, seconds in (("sample orders", orders_s), ("write Parquet", write_s)):
        print(f"{step:<22}{seconds:>9.2f}{orders / seconds:>14,.0f}")
    print(f"{'sample cohorts':<22}{cohorts_s:>9.2f}{1000 * cohorts_s / asked.firms:>9.0f} ms a firm")


if __name__ == "__main__":
    main()
