"""One firm, however small or large: seconds of each step and the memory of the largest process.

    python bench/one_firm.py data/one-firm --orders 30 10000000

Orders of three years by a fifth as many customers are drawn with DuckDB and written to one CSV file, which
`cbmt run --live-only` reads, turns into tables, forecasts and publishes.
"""

from __future__ import annotations

import argparse
import resource
from pathlib import Path

import duckdb
from weekly import run

from cbmt_core.duck import literal
from cbmt_pipeline.sources import add_source

SEED = 0.4242
COLUMNS = ("firm", "customer", "order_time", "amount")


def prepare(folder: Path, orders: int) -> int:
    """Write the orders and the project; the size of the file."""
    (folder / "orders").mkdir(parents=True, exist_ok=True)
    file = folder / "orders" / "all.csv"
    with duckdb.connect() as con:
        con.execute(f"SELECT setseed({SEED})")
        con.execute(f"""
            COPY (
                SELECT 'One' AS firm, 'c' || CAST(floor({max(1, orders // 5)} * random()) AS BIGINT) AS customer,
                    strftime(TIMESTAMP '2021-01-03' + to_seconds(CAST(94348800 * random() AS BIGINT)),
                        '%Y-%m-%d %H:%M:%S') AS order_time,
                    CAST(5 + 40 * random() AS DECIMAL(9, 2)) AS amount
                FROM range({orders})
            ) TO {literal(str(file))} (HEADER)""")
    if not (folder / "cbmt.toml").exists():
        source = {"name": "one", "path": "orders", "currency": "USD", "timezone": "America/New_York"}
        add_source(folder, source, {name: name for name in COLUMNS})
    return file.stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--orders", type=int, nargs="+", default=[30, 10_000_000])
    options = parser.parse_args()
    for orders in sorted(options.orders):  # The memory is that of the largest so far.
        size = prepare(options.folder / str(orders), orders)
        seconds = run(options.folder / str(orders))
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024**2
        steps = ", ".join(f"{name} {value:.1f}" for name, value in seconds.items())
        print(
            f"{orders:,} orders, {size / 1e6:.1f} MB: seconds: {steps}; at most {memory:.2f} GiB in one process"
        )


if __name__ == "__main__":
    main()
