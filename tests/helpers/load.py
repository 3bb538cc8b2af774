"""Processes for the load test: writers of firms, a publisher, and analysts whose queries hold invariants.

python -m helpers.load <writer|publisher|analyst> <project> <seconds> <firm or number>

Each does its work at least once, however slow the machine.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import duckdb

from cbmt_core.names import Unit
from cbmt_pipeline.plan import Task, the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.publish import publish
from cbmt_pipeline.transaction import carry_out
from helpers.small_project import WEEKS, orders_csv

INVARIANTS = {
    "every firm is there": "SELECT count(*) <> {firms} FROM firm",
    "tables of a firm are of one moment": """
        SELECT count(*) > 0 FROM firm
        JOIN (SELECT firm, sum(sales) AS weekly FROM firm_week GROUP BY firm) USING (firm)
        JOIN (SELECT firm, sum(sales) AS cohorts FROM cohort_week GROUP BY firm) USING (firm)
        WHERE sales <> weekly OR sales <> cohorts""",
    "orders of a firm are of one file": """
        SELECT count(*) > 0 FROM (SELECT firm, count(*) AS n, count(DISTINCT amount) AS amounts FROM transactions
        GROUP BY firm) WHERE n <> {orders} OR amounts > 2""",
}
"""Name -> query that is true where the invariant does not hold. A firm's orders have one amount at a time, but for one
of 1.00."""


def write(root: Path, until: float, firm: str) -> dict[str, object]:
    """Deliver the firm's orders with another amount, and make its tables, again and again."""
    plan, done = the_plan(), 0
    while not done or time.time() < until:
        done += 1
        waiting = root / f"{Unit(firm).slug}.waiting"
        waiting.write_text(orders_csv(firm, amount=f"{10 + done}.00"))
        os.replace(waiting, root / "orders" / f"{Unit(firm).slug}.csv")
        project = Project(root)
        failed = project.intake.update(project.config, root).failed
        assert not failed, failed
        carry_out(project, plan, Task(plan["firm_data"], None, Unit(firm)))
    return {"written": done}


def publish_often(root: Path, until: float) -> dict[str, object]:
    done, seconds = 0, []
    while not done or time.time() < until:
        began = time.time()
        publish(Project(root), the_plan())
        done += 1
        seconds.append(time.time() - began)
        time.sleep(max(0.0, 3 - seconds[-1]))
    return {"published": done, "seconds": seconds}


def ask(root: Path, until: float, firms: int) -> dict[str, object]:
    latencies, torn = [], []
    while not latencies or time.time() < until:
        for name, query in INVARIANTS.items():
            began = time.perf_counter()
            with duckdb.connect(str(root / "data/cbmt.duckdb"), read_only=True) as con:
                [(broken,)] = con.execute(query.format(firms=firms, orders=2 * WEEKS)).fetchall()
            latencies.append(time.perf_counter() - began)
            if broken:
                torn.append(name)
    return {"latencies": latencies, "torn": torn}


if __name__ == "__main__":
    role, folder, seconds, what = sys.argv[1:]
    last = time.time() + float(seconds)  # Modules are imported by now.
    roles = {
        "writer": lambda: write(Path(folder), last, what),
        "publisher": lambda: publish_often(Path(folder), last),
        "analyst": lambda: ask(Path(folder), last, int(what)),
    }
    print(json.dumps(roles[role]()), flush=True)
    os._exit(0)
