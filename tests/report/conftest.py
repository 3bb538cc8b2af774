"""A published file and its report, and a browser to look at it: shared by the tests of pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from helpers.browser import launch
from helpers.published import FIRMS, publish

from cbmt_core import duck
from cbmt_core.report.pages import write_report


@pytest.fixture(scope="session")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duck.connect() as connection:
        publish(connection, FIRMS)
        yield connection


@pytest.fixture(scope="session")
def report(con, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    heard: list[Path] = []
    written = write_report(con, folder, heard.append)
    assert heard == written
    return folder


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    """A page that fails the test when anything is logged, thrown or fetched from elsewhere than a file."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
    page.on(
        "request",
        lambda request: request.url.startswith(("file:", "data:", "blob:")) or trouble.append(request.url),
    )
    yield page
    page.close()
    assert trouble == []
