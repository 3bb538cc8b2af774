"""What a person does in the UI: read files, backfill two firms, look at a picture, switch a schedule on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pytest
from helpers.browser import cbmt_ui, launch, needs_browser
from helpers.small_project import new_project

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = [pytest.mark.slow, needs_browser]

FIRMS = ("Fennosk", 'Keldevar, "Foods" & Söhne 5 % + *', "Mirregard Grill Co.")
WAIT = 600_000


def test_a_person_backfills_two_firms_and_switches_a_schedule_on(tmp_path: Path) -> None:
    from playwright.sync_api import expect, sync_playwright

    project = new_project(tmp_path / "shop", FIRMS)
    # The pictures of docs/img are made with CBMT_SCREENSHOTS=docs/img.
    shots = Path(os.environ.get("CBMT_SCREENSHOTS", tmp_path))
    expect.set_options(timeout=WAIT)
    with cbmt_ui(project.root) as ui, sync_playwright() as playwright:
        chromium = launch(playwright)
        page = chromium.new_page(viewport={"width": 1500, "height": 950})
        page.set_default_timeout(WAIT)

        page.goto(f"{ui}/assets/intake")
        page.get_by_role("button", name="Materialize").first.click()
        page.get_by_text("View", exact=True).last.click()
        expect(page.get_by_text("Success", exact=True).first).to_be_visible()

        page.goto(f"{ui}/assets/transactions")
        page.get_by_role("button", name="Materialize").first.click()
        page.get_by_text("Select a partition or create one").click()
        for firm in ("Fennosk", "Keldevar"):
            page.locator("label, a, li").filter(has_text=firm).last.click()
        page.keyboard.press("Escape")
        expect(page.get_by_text("2 partitions")).to_be_visible()
        page.get_by_role("button", name="Launch backfill").click()
        page.get_by_text("View", exact=True).last.click()
        expect(page.get_by_text("100% completed")).to_be_visible()
        page.screenshot(path=shots / "backfill.png")

        page.goto(f"{ui}/assets/cohort_week?view=partitions")
        expect(page.get_by_text("Materialized (2)")).to_be_visible()
        expect(page.get_by_text("Missing (1)")).to_be_visible()
        # A partition is named like its firm, whatever that is called.
        expect(page.get_by_text(FIRMS[1], exact=True).first).to_be_visible()
        page.goto(f"{ui}/assets/cohort_week?view=partitions&partition=Fennosk")
        expect(page.get_by_text("[Show Markdown]").first).to_be_visible()
        page.screenshot(path=shots / "partition.png")
        page.get_by_text("[Show Markdown]").first.click()
        picture = page.locator("img[alt='cohort layers']")
        expect(picture).to_be_visible()
        assert picture.evaluate("image => image.naturalWidth") > 300
        page.wait_for_timeout(1000)
        page.screenshot(path=shots / "picture.png")
        page.goto(f"{ui}/assets/cohort_week")
        expect(page.get_by_text("Column name")).to_be_visible()
        page.wait_for_timeout(1000)
        page.screenshot(path=shots / "asset.png")

        page.goto(f"{ui}/automation")
        name = page.get_by_text("weekly_schedule", exact=True).last
        expect(name).to_be_visible()
        with dg.DagsterInstance.from_config(str(project.dagster_home)) as instance:
            on: set[str] = set()
            for _ in range(20):
                # The rows move while the page is filled, so that a click may miss.
                page.wait_for_timeout(1000)
                if switch := _rightmost_switch_beside(page, name):
                    switch.click()
                page.wait_for_timeout(3000)
                states = instance.all_instigator_state()
                on = {state.instigator_name for state in states if state.is_running}
                if "weekly_schedule" in on:
                    break
            assert "weekly_schedule" in on
        page.screenshot(path=shots / "automation.png")

        page.goto(f"{ui}/asset-groups")
        expect(page.get_by_text("publish").last).to_be_visible()
        page.wait_for_timeout(2000)
        page.screenshot(path=shots / "graph.png")
        page.set_viewport_size({"width": 1900, "height": 1700})
        page.mouse.click(900, 1400, button="right")
        page.get_by_role("menuitem", name="Expand all groups").click()
        for asset in ("intake", "live_forecasts", "bridge", "warehouse"):
            expect(page.get_by_text(asset, exact=True).last).to_be_visible()
        page.mouse.dblclick(580, 130)  # Fits the whole graph into the page.
        page.wait_for_timeout(2000)
        page.screenshot(path=shots / "graph-expanded.png")
        chromium.close()


def _rightmost_switch_beside(page: Page, name: Locator) -> Locator | None:
    """The switch in the row of a table that shows this name."""
    place = name.bounding_box()
    switches = page.locator("label:has(input[type=checkbox])").all()
    boxes = [(switch, switch.bounding_box()) for switch in switches]
    in_row = [
        (box["x"], switch) for switch, box in boxes if box and place and abs(box["y"] - place["y"]) < 25
    ]
    return max(in_row, key=lambda found: found[0])[1] if in_row else None
