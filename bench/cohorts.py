"""Cohort tables from orders: DuckDB SQL against the same counted in pandas, and growth up to 100 M orders.

    python bench/cohorts.py --sizes 1 5 10 50 100

Both read the same Parquet file and use the threads they use by nature: DuckDB all cores, pandas one
(its Parquet reader all). Every measurement is a process of its own, so that peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from cbmt_core import duck
from cbmt_core.cohorts import make_cohort_week, make_firm_week
from cbmt_core.design import StudyDesign
from cbmt_core.duck import literal, parquet
from cbmt_core.names import Unit
from cbmt_core.timeline import week_sql

DESIGN = StudyDesign()
MILLION = 1_000_000
ORDERS_PER_CUSTOMER = 6


def write_orders(path: Path, orders: int) -> None:
    """Orders of one firm: text ids, skewed frequencies, customers arriving over the whole span.

    The file is as the lake holds it, sorted by the table's key.
    """
    customers = max(1, orders // ORDERS_PER_CUSTOMER)
    days = (DESIGN.observed_to - DESIGN.observed_from).days + 1
    with duck.connect(path.parent / "spill") as con:
        con.execute("SET preserve_insertion_order = false")
        con.execute(f"""
            COPY (
                WITH drawn AS (
                    SELECT i, CAST({customers} * pow((hash(i) % 1000003) / 1000003, 1.5) AS BIGINT) AS c,
                        (hash(i, 1) % 1000003) / 1000003 AS u, hash(i, 2) AS h FROM range({orders}) t(i)
                ), timed AS (
                    SELECT *, (hash(c, 3) % 1000) / 1250 AS start, {days} * 86400.0 AS span FROM drawn
                ), placed AS (
                    SELECT i, c, h, TIMESTAMP '{DESIGN.observed_from}'
                        + to_seconds(CAST(span * (start + (1 - start) * u * u) AS BIGINT)) AS ordered_at FROM timed
                )
                SELECT 'bench' AS firm, 'customer-' || lpad(CAST(c AS VARCHAR), 9, '0') AS customer,
                    'order-' || CAST(i AS VARCHAR) AS order_id, ordered_at,
                    {week_sql("CAST(ordered_at AS DATE)")} AS week,
                    CAST(5 + (h % 20000) / 100 AS DECIMAL(18,4)) AS amount, 1 AS rows
                FROM placed ORDER BY firm, customer, order_id
            ) TO {literal(str(path))} (FORMAT parquet, COMPRESSION zstd)""")


def with_duckdb(path: Path) -> tuple[float, float]:
    with duck.connect(path.parent / "spill") as con:
        make_cohort_week(con, Unit("bench"), parquet([path]), DESIGN)
        make_firm_week(con, Unit("bench"), "cohort_week", DESIGN)
        con.execute(
            "COPY cohort_week TO '/dev/null' (FORMAT parquet); COPY firm_week TO '/dev/null' (FORMAT parquet)"
        )
        total = con.execute("SELECT sum(sales), sum(orders * tenure) FROM cohort_week").fetchall()[0]
    return float(total[0]), float(total[1])


def with_pandas(path: Path, *, coded: bool = False) -> tuple[float, float]:
    """The same tables as a pandas user would write them: grouped sums, nothing row by row.

    With `coded`, customers are integer codes made in Arrow and order ids never leave it: the fastest we
    could make it, though no longer what one writes at first.
    """
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    study = DESIGN.study
    table = pq.read_table(path, columns=["customer", "order_id", "ordered_at", "week", "amount"])
    customers = table["customer"].combine_chunks()
    order_ids = table["order_id"].combine_chunks()
    frame = pd.DataFrame(
        {
            "customer": customers.dictionary_encode().indices.to_numpy() if coded else customers.to_pandas(),
            "ordered_at": table["ordered_at"].to_numpy(),
            "week": (table["week"].to_numpy().astype("datetime64[D]") - study.dates()[0]).astype("int64")
            // 7,
            "amount": table["amount"].cast(pa.float64()).to_numpy(),
        }
    )
    if not coded:
        frame["order_id"] = order_ids.to_pandas()
    del table, customers
    frame = frame[frame["week"] < len(study)]
    # A customer's initial order: the earliest; only rows at that time are distinguished by their id.
    earliest = frame.groupby("customer", sort=False)["ordered_at"].transform("min")
    first = frame[frame["ordered_at"].to_numpy() == earliest.to_numpy()]
    if coded:
        first = first.assign(order_id=order_ids.take(pa.array(first.index)).to_pandas().to_numpy())
    tied = first["customer"].duplicated(keep=False)
    first = pd.concat([first[~tied], first[tied].sort_values("order_id").drop_duplicates("customer")])
    first = first.set_index("customer")
    cohort = first["week"].clip(lower=-1).sort_index()
    members = pd.DataFrame({"cohort": cohort, "amount": first["amount"]})
    sizes = members.groupby("cohort")["amount"].agg(["size", "sum"])
    inside = frame[frame["week"] >= 0]
    if coded:
        inside = inside.assign(cohort=cohort.to_numpy()[inside["customer"].to_numpy()])
    else:
        inside = inside.assign(cohort=inside["customer"].map(cohort))
    sums = inside.groupby(["cohort", "week"])["amount"].agg(["size", "sum"])
    active = inside.drop_duplicates(["customer", "week"]).groupby(["cohort", "week"]).size()
    grid = [(c, w) for c in sizes.index for w in range(max(c, 0), len(study))]
    index = pd.MultiIndex.from_tuples(grid, names=["cohort", "week"])
    out = sums.reindex(index, fill_value=0).set_axis(["orders", "sales"], axis=1)
    out["active_customers"] = active.reindex(index, fill_value=0)
    born, week = index.get_level_values("cohort"), index.get_level_values("week")
    out["cohort_size"] = sizes["size"].reindex(born).to_numpy()
    is_birth = born == week
    out["tenure"] = week - born
    out["initial_orders"] = np.where(is_birth, out["cohort_size"], 0)
    out["initial_sales"] = np.where(is_birth, sizes["sum"].reindex(born).to_numpy(), 0)
    out["repeat_orders"] = out["orders"] - out["initial_orders"]
    out["repeat_sales"] = out["sales"] - out["initial_sales"]
    out["ropc"] = out["repeat_orders"] / out["cohort_size"]
    out["aov"] = out["sales"] / out["orders"].where(out["orders"] > 0)
    weeks = out.groupby("week").sum().reindex(range(len(study)), fill_value=0)
    weeks["ropc"] = weeks["repeat_orders"] / weeks["cohort_size"]
    weeks["aov"] = weeks["sales"] / weeks["orders"]
    out.reset_index().to_parquet("/dev/null")
    weeks.reset_index().to_parquet("/dev/null")
    return float(out["sales"].sum()), float((out["orders"] * out["tenure"]).sum())


ENGINES = {"duckdb": with_duckdb, "pandas": with_pandas, "coded pandas": partial(with_pandas, coded=True)}


def measure(engine: str, path: Path) -> dict[str, float]:
    """Seconds, peak memory and check sums of one run in a process of its own."""
    command = [sys.executable, __file__, "--one", engine, str(path)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{engine} ended with {done.returncode} on {path.stat().st_size:,} bytes of orders")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def one(engine: str, path: Path) -> None:
    if engine != "duckdb":
        import pandas  # noqa: F401
        import pyarrow.parquet  # noqa: F401
    started, worked = time.perf_counter(), time.process_time()
    sales, weighted = ENGINES[engine](path)
    seconds, cpu = time.perf_counter() - started, time.process_time() - worked
    # Not ru_maxrss, which a process inherits from the one that started it.
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    peak = int(status["VmHWM"].split()[0]) * 1024
    print(json.dumps({"seconds": seconds, "cpu": cpu, "peak": peak, "sales": sales, "weighted": weighted}))


def compare(path: Path, repeats: int) -> None:
    """Time of each pandas version / DuckDB's, of runs in turn, after all were seen to count the same."""
    ratios: dict[str, list[float]] = {name: [] for name in ENGINES if name != "duckdb"}
    for _ in range(repeats):
        sql = measure("duckdb", path)
        print(f"  {'DuckDB':12s} {_in_words(sql)}", flush=True)
        for name, so_far in ratios.items():
            frame = measure(name, path)
            assert abs(sql["sales"] - frame["sales"]) < 0.01, (sql, frame)
            assert sql["weighted"] == frame["weighted"], (sql, frame)
            so_far.append(frame["seconds"] / sql["seconds"])
            print(f"  {name:12s} {_in_words(frame)}   ratio {so_far[-1]:.1f}", flush=True)
    for name, found in ratios.items():
        print(f"  {name}: median ratio {statistics.median(found):.1f}", flush=True)


def _in_words(run: dict[str, float]) -> str:
    return f"{run['seconds']:6.2f} s (processor {run['cpu']:6.2f}) {run['peak'] / 2**30:5.2f} GiB"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=float, nargs="*", default=[1, 5, 10, 50], help="millions of orders")
    parser.add_argument(
        "--against", type=float, nargs="*", default=[1, 5], help="millions compared with pandas"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--one", nargs=2, metavar=("ENGINE", "FILE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options.one[0], Path(options.one[1]))
        return
    with tempfile.TemporaryDirectory() as folder:
        for size in options.against:
            path = Path(folder) / "orders.parquet"
            write_orders(path, int(size * MILLION))
            print(f"{size:g} M orders, both engines in turn:", flush=True)
            compare(path, options.repeats)
        if options.sizes:
            print(f"{'orders':>8} {'seconds':>8} {'M/s':>6} {'peak GiB':>9} {'file GiB':>9}")
        for size in options.sizes:
            path = Path(folder) / "orders.parquet"
            write_orders(path, int(size * MILLION))
            found = measure("duckdb", path)
            print(
                f"{size:6g} M {found['seconds']:8.2f} {size / found['seconds']:6.2f} "
                f"{found['peak'] / 2**30:9.2f} {path.stat().st_size / 2**30:9.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
