"""Projects on disk and the command line in processes of its own, for the pipeline tests."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

from cbmt_core.names import Unit

FIRMS = 20
FLOORS = ("--model", "seasonal_naive", "--model", "cohort_glm")
"""The models that take milliseconds."""


def cbmt(root: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """The command line in a process of its own, with only this project in its environment."""
    environment = {k: v for k, v in os.environ.items() if k not in ("DAGSTER_HOME", "CBMT_PROJECT")}
    command = [sys.executable, "-m", "cbmt_pipeline.cli", "--project", str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=1800)
    if check:
        assert done.returncode == 0, done.stdout + done.stderr
    return done


def corrupt_amounts(file: Path) -> None:
    """Make every second amount unreadable."""
    with file.open(newline="") as handle:
        rows = list(csv.reader(handle))
    column = rows[0].index("amount")
    for row in rows[1::2]:
        row[column] = "oops"
    with file.open("w", newline="") as handle:
        csv.writer(handle).writerows(rows)


class RunProject:
    """A project folder, the firm that is corrupt in it, and what `cbmt run` said."""

    def __init__(self, root: Path, bad: Unit, run: subprocess.CompletedProcess[str]) -> None:
        self.root = root
        self.bad = bad
        self.run = run
