"""What the tests of pages share: firms with difficult names, and where the browser is."""

from __future__ import annotations

import os
import shutil

import pytest

__all__ = ["CHROMIUM", "FIRMS", "QUIET", "needs_browser"]

FIRMS = ("A, B & <Söhne>", "100% off", "Plain~South")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
needs_browser = pytest.mark.skipif(
    CHROMIUM is None and not os.environ.get("CI"), reason="needs Chromium; `make browser` says how to get it"
)
