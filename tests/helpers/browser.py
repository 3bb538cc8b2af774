"""Chromium for tests of pages, and a real `cbmt ui` to open in it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from helpers.servers import free_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
needs_browser = pytest.mark.skipif(
    CHROMIUM is None and not os.environ.get("CI"), reason="needs Chromium; `make browser` says how to get it"
)
"""Tests that need a browser are skipped without one; in CI there must be one."""

START = 400
"""Tries, of a second or two, until the UI answers: a busy machine takes minutes."""


def launch(playwright: Playwright) -> Browser:
    assert CHROMIUM, "CI must have Chromium"
    return playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)


def wait_until_served(address: str) -> None:
    """Wait until a UI server answers."""
    for _ in range(START):
        try:
            urllib.request.urlopen(f"{address}/server_info", timeout=2)
            return
        except OSError:
            time.sleep(1)
    raise TimeoutError(f"nothing answers at {address}")


@contextmanager
def cbmt_ui(root: Path) -> Iterator[str]:
    """The address of the UI of a project, with its daemon, started as users start it."""
    port = free_port()
    environment = {k: v for k, v in os.environ.items() if k not in ("DAGSTER_HOME", "CBMT_PROJECT")}
    command = [sys.executable, "-m", "cbmt_pipeline.cli", "--project", str(root), "ui", "--port", str(port)]
    with (root / "ui.log").open("wb") as log:
        server = subprocess.Popen(
            command, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until_served(address)
        yield address
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(timeout=15)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
