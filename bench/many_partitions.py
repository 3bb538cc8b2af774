"""How long the UI's pages take with thousands of firms: a real browser on a real `cbmt ui`.

    python bench/many_partitions.py data/many_partitions                5,000 firms
    python bench/many_partitions.py data/many_partitions --firms 500

Makes a project of tiny firms and a Dagster history in which every asset of every firm but one in 97 is materialised:
one firm's events are reported to Dagster, the others' are copies of them. Then each page is opened three times in
Chromium; a page counts as loaded when what it is for can be read. Wall seconds, so on an idle machine; the server's
processor seconds are beside them.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from many_firms import do, prepare
from panel_results.document import table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from helpers.browser import CHROMIUM, QUIET, cbmt_ui

if TYPE_CHECKING:
    from playwright.sync_api import Page

MISSING = 97
"""One firm in so many has nothing."""
TIMES = 3
WAIT = 120_000


def fill(folder: Path, firms: int) -> str:
    """A project with a history; returns the name of one of its firms."""
    import dagster as dg

    from cbmt_pipeline.definitions import defs
    from cbmt_pipeline.instance import open_instance
    from cbmt_pipeline.partitions import FIRM_PARTITIONS
    from cbmt_pipeline.project import Project

    prepare(folder, firms)
    project = Project(folder)
    if not project.intake.ledger():
        do(folder, "read", None)
    keys = [unit.key for unit in project.intake.units()]
    graph = defs.resolve_asset_graph()
    with open_instance(project) as instance:
        if len(instance.get_materialized_partitions(dg.AssetKey("cohort_week"))) > 1:
            return keys[1]
        instance.add_dynamic_partitions(FIRM_PARTITIONS, keys)
        for asset in graph.materializable_asset_keys:
            by_firm = graph.get(asset).is_partitioned
            facts = {"rows": 40, "origin": "2019-10-06", "note": "a picture would be here " * 100}
            instance.report_runless_asset_event(
                dg.AssetMaterialization(asset, partition=keys[1] if by_firm else None, metadata=facts)
            )
    _copy_events(project.dagster_home / "history" / "runs" / "index.db", keys)
    return keys[1]


def _copy_events(database: Path, keys: list[str]) -> None:
    """The events of the second firm, again under every other one's name."""
    names = "run_id, dagster_event_type, timestamp, step_key, asset_key"
    with closing(sqlite3.connect(database)) as con, con:
        found = con.execute(
            f"SELECT id, event, {names} FROM event_logs WHERE partition = ?", (keys[1],)
        ).fetchall()
        for k, key in enumerate(keys):
            if k == 1 or k % MISSING == 0:
                continue
            for number, event, *others in found:
                copied = event.replace(json.dumps(keys[1]), json.dumps(key))
                made = con.execute(
                    f"INSERT INTO event_logs (event, partition, {names}) VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (copied, key, *others),
                )
                con.execute(
                    "INSERT INTO asset_event_tags (event_id, asset_key, key, value, event_timestamp) "
                    "SELECT ?, asset_key, key, value, event_timestamp FROM asset_event_tags WHERE event_id = ?",
                    (made.lastrowid, number),
                )


def pages(ui: str, firm: str) -> dict[str, Callable[[Page], None]]:
    """What is opened, until what it is for can be read."""
    from playwright.sync_api import expect

    def graph(page: Page) -> None:
        page.goto(f"{ui}/asset-groups")
        expect(page.get_by_text("publish").last).to_be_visible()

    def partitions(page: Page) -> None:
        page.goto(f"{ui}/assets/cohort_week?view=partitions")
        expect(page.get_by_text("Materialized (").first).to_be_visible()
        expect(page.get_by_text(firm, exact=True).first).to_be_visible()

    def one_partition(page: Page) -> None:
        page.goto(f"{ui}/assets/cohort_week?view=partitions&partition={firm.replace('&', '%26')}")
        expect(page.get_by_text("2019-10-06").first).to_be_visible()

    def overview(page: Page) -> None:
        page.goto(f"{ui}/assets/cohort_week")
        expect(page.get_by_text("Column name")).to_be_visible()

    def dialog(page: Page) -> None:
        page.get_by_role("button", name="Materialize").first.click()
        page.get_by_text("Select a partition or create one").click()
        expect(page.locator("label, a, li").filter(has_text=firm).last).to_be_visible()

    return {
        "graph of assets": graph,
        "an asset": overview,
        "an asset's backfill dialog": dialog,
        "an asset's partitions": partitions,
        "one partition": one_partition,
    }


@contextmanager
def browser() -> Iterator[Page]:
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=WAIT)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        page = chromium.new_page(viewport={"width": 1500, "height": 950})
        page.set_default_timeout(WAIT)
        yield page
        chromium.close()


def server_seconds() -> float:
    """Processor seconds so far of what this process has started, but for the browser."""
    spent = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            if "python" in process.name():
                spent += sum(process.cpu_times()[:2])
        except psutil.NoSuchProcess:
            continue
    return spent


def measure(folder: Path, firm: str) -> list[list[str]]:
    rows = []
    with cbmt_ui(folder) as ui, browser() as page:
        page.goto(f"{ui}/assets/intake")
        page.get_by_role("button", name="Materialize").first.wait_for()
        pages_open = pages(ui, firm)
        for name, look in pages_open.items():
            wall, spent = [], []
            for _ in range(TIMES):
                if name.endswith("dialog"):
                    pages_open["an asset"](page)
                    page.wait_for_timeout(3000)
                before, started = server_seconds(), time.monotonic()
                look(page)
                wall.append(time.monotonic() - started)
                spent.append(server_seconds() - before)
            cells = [wall[0], statistics.median(wall), statistics.median(spent)]
            rows.append([name, *(f"{value:.1f}" for value in cells)])
            print(*rows[-1], file=sys.stderr, flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the project is kept")
    parser.add_argument("--firms", type=int, default=5000)
    asked = parser.parse_args()
    os.environ.pop("DAGSTER_HOME", None)
    firm = fill(asked.folder, asked.firms)
    rows = measure(asked.folder, firm)
    print(table(["page", "first, s", "median, s", "server, core-s"], rows))


if __name__ == "__main__":
    main()
