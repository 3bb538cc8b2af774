"""`cbmt` in processes that meet an accident at a commit point, and file systems of a limited size."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from helpers import TESTS

__all__ = ["cbmt_with_accident", "commit_points", "in_child", "limited", "on_replace", "spread"]

HOOKS = Path(__file__).parent / "hooks"


def cbmt_with_accident(
    root: Path,
    *arguments: str,
    number: int = 0,
    kind: str = "kill",
    folder: Path | None = None,
    counter: Path,
) -> subprocess.CompletedProcess[str]:
    """The command line in a session of its own, where the accident happens before the so many-th commit; 0 for none."""
    environment = {k: v for k, v in os.environ.items() if k not in ("DAGSTER_HOME", "CBMT_PROJECT")}
    # The code that is tested is this checkout's, also where another one is installed.
    environment["PYTHONPATH"] = os.pathsep.join([str(HOOKS), str(TESTS.parent)])
    counter.unlink(missing_ok=True)
    environment["CBMT_ACCIDENT"] = f"{number}|{kind}|{folder}|{counter}|{root / 'data'}"
    command = [sys.executable, "-m", "cbmt_pipeline.cli", "--project", str(root), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=900, start_new_session=True
    )


def spread(points: int, tried: int) -> list[int]:
    """Numbers of commit points, the first and the last among them."""
    return sorted({1 + round(k * (points - 1) / max(1, tried - 1)) for k in range(tried)})


def commit_points(counter: Path) -> int:
    """Files that the last run put in their places."""
    return counter.stat().st_size if counter.exists() else 0


@contextmanager
def limited(folder: Path, megabytes: int) -> Iterator[Path]:
    """A file system of a limited size at `folder`; the test is skipped where it cannot be mounted."""
    folder.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a size-limited file system can be mounted by root only")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def in_child(action: Callable[[], object]) -> None:
    """Do `action` in a process of its own, which then is gone: what it left has no living writer."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            action()
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def on_replace(action: Callable[[], None]) -> None:
    """Call `action` before each file is put in its place."""
    true = os.replace

    def replace(*args: object) -> None:
        action()
        true(*args)  # type: ignore[arg-type]

    os.replace = replace  # type: ignore[assignment]
