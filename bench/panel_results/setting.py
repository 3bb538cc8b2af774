"""Where and with what a panel was run: the machine, the packages, the commit. No names, no paths."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["commit", "machine", "versions"]

PACKAGES = (
    "torch", "numpy", "pandas", "pyarrow", "duckdb", "dagster", "optuna", "scikit-learn", "xgboost", "scipy",
    "statsmodels", "lifetimes", "shap", "great-expectations", "holidays",
)  # fmt: skip


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GiB of memory, {_processor()}, {platform.system()}"


def commit() -> str:
    """The commit of the checkout, and whether the product's code differs from it."""
    root = Path(__file__).parent

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments], cwd=root, capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        changed = git("status", "--porcelain", "--", ":/cbmt_core", ":/cbmt_pipeline")
        return git("rev-parse", "--short=12", "HEAD") + (" with changes not committed" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()} ({platform.machine()})"
