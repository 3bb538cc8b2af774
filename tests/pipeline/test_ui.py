"""The Dagster UI in a real browser: what a data engineer sees after a run with one corrupt firm."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import dagster as dg
import pytest
from helpers.browser import launch, needs_browser, wait_until_served
from helpers.projects import FIRMS, RunProject
from helpers.servers import free_port

from cbmt_pipeline.project import Project

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("twenty_firms")]


@pytest.fixture(scope="module")
def ui(twenty_firms: RunProject) -> Iterator[str]:
    """The address of a UI server on the project, started as its users start it, without the daemon."""
    port = free_port()
    environment = os.environ | {
        "DAGSTER_HOME": str(twenty_firms.root / "data/dagster"),
        "CBMT_PROJECT": str(twenty_firms.root),
    }
    workspace = Path(__file__).parents[2] / "dagster_workspace.yaml"
    command = [str(Path(sys.executable).parent / "dagster-webserver"), "-w", str(workspace)]
    server = subprocess.Popen([*command, "-h", "127.0.0.1", "-p", str(port)], env=environment)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until_served(address)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=30)


@needs_browser
def test_exactly_the_corrupt_firm_is_red_in_the_ui(ui: str, twenty_firms: RunProject, tmp_path: Path) -> None:
    from playwright.sync_api import expect, sync_playwright

    with sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page(viewport={"width": 1500, "height": 950})
        page.set_default_timeout(600_000)
        expect.set_options(timeout=600_000)
        page.goto(f"{ui}/assets/transactions?view=partitions")
        expect(page.get_by_text("Failed (1)")).to_be_visible()
        expect(page.get_by_text(f"Materialized ({FIRMS - 1})")).to_be_visible()
        # With only the failed ones shown, the corrupt firm is the one left.
        page.get_by_text(f"Materialized ({FIRMS - 1})").click()
        expect(page.get_by_text(twenty_firms.bad.key, exact=True).first).to_be_visible()

        good = next(unit for unit in Project(twenty_firms.root).intake.units() if unit != twenty_firms.bad)
        page.goto(f"{ui}/assets/cohort_week?view=partitions&partition={quote(good.key)}")
        page.get_by_text("[Show Markdown]").first.click()
        picture = page.locator("img[alt='cohort layers']")
        expect(picture).to_be_visible()
        assert picture.evaluate("image => image.naturalWidth") > 300
        page.screenshot(path=tmp_path / "cohort_layers.png")

        # Runs of `cbmt run` are on the timeline, with their target, and can be executed again.
        page.goto(f"{ui}/overview/activity/timeline")
        expect(page.get_by_text("cbmt_pipeline.definitions").first).to_be_visible()
        expect(page.get_by_text("Jobless asset materializations").first).to_be_visible()
        page.goto(f"{ui}/runs")
        page.get_by_text("report", exact=True).first.wait_for()
        with dg.DagsterInstance.from_config(str(twenty_firms.root / "data/dagster")) as instance:
            (newest,) = instance.get_runs(limit=1)
        page.goto(f"{ui}/runs/{newest.run_id}")
        expect(page.get_by_role("button", name="Re-execute").first).to_be_enabled()
        browser.close()
