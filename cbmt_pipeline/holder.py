"""Locks on a project: one `cbmt run` and one `cbmt ui` at a time, and one process at a time for each task.

Locks are the kernel's and die with their holders, also when those are killed. The file of a lock says who has it.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path

from cbmt_core import atomic
from cbmt_core.errors import CbmtError
from cbmt_pipeline.project import Project

__all__ = ["UI_PROCESS", "end_left_by_ui", "hold", "holder", "holding", "holding_task", "left_by_ui"]

UI_PROCESS = "CBMT_UI_PROCESS"
"""Environment of what `cbmt ui` starts: its process. The servers and runs go on when that alone is killed."""


def _path(project: Project, command: str) -> Path:
    return project.data / f".{command}.lock"


def hold(project: Project, command: str) -> int:
    """Lock the project for a command until this process ends, and return the lock's file descriptor.

    Raises if another process holds it. What killed processes left behind is removed.
    """
    path = _path(project, command)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise CbmtError(
            f"another `cbmt {command}` works on {project.root}: {holder(project, command)}; wait for it, or stop it"
        ) from None
    killed = bool(os.pread(descriptor, 1, 0))
    _sign(descriptor)
    if killed:
        atomic.sweep_below(project.data)
    # Temporary files of killed processes: of this command, or of runs that the UI had started.
    for lock in project.task_locks.glob("*"):
        _remove_if_free(lock)
    return descriptor


@contextmanager
def holding(project: Project, command: str) -> Iterator[None]:
    """Lock the project for a command while inside."""
    descriptor = hold(project, command)
    try:
        yield
    finally:
        os.ftruncate(descriptor, 0)
        _let_go(descriptor)


@contextmanager
def holding_task(project: Project, key: str, on_wait: Callable[[str], None]) -> Iterator[bool]:
    """Lock one task while inside; yields whether another process held it before.

    Args:
        key: name of the task, usable as a file name.
        on_wait: called with the holder of the task, if it is another process.
    """
    path = project.task_locks / key
    path.parent.mkdir(parents=True, exist_ok=True)
    waited = False
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if not waited:
                on_wait(f"waiting for {_who(descriptor)}, which makes the same")
            waited = True
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _is_at(descriptor, path):
            break
        os.close(descriptor)  # Its holder has finished and removed the file.
    try:
        _sign(descriptor)
        yield waited
    finally:
        path.unlink(missing_ok=True)
        _let_go(descriptor)


def _let_go(descriptor: int) -> None:
    """Release a lock, also where a process that was forked meanwhile still has the file open."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _sign(descriptor: int) -> None:
    """Write the holder into a lock's file."""
    me = {
        "host": socket.gethostname(),
        "process": os.getpid(),
        "since": datetime.now().astimezone().isoformat(timespec="seconds"),
    }
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(me).encode(), 0)


def _who(descriptor: int) -> str:
    try:
        who = json.loads(os.pread(descriptor, 4096, 0))
    except json.JSONDecodeError:
        return "a process that has just begun"
    return f"process {who['process']} on {who['host']}, since {who['since']}"


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is the one that has this path now."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _remove_if_free(lock: Path) -> None:
    """Remove the file of a lock that nobody holds."""
    try:
        descriptor = os.open(lock, os.O_RDWR)
    except FileNotFoundError:
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pass
    else:
        lock.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def holder(project: Project, command: str) -> str:
    """Who holds the project for a command: host, process, since when; empty where nobody does."""
    path = _path(project, command)
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return ""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _who(descriptor)
    finally:
        os.close(descriptor)
    return ""


def left_by_ui(project: Project) -> list[int]:
    """Processes of this project that a killed `cbmt ui` left behind; none where /proc is missing (macOS)."""
    if holder(project, "ui"):
        return []
    marks = [f"{UI_PROCESS}=".encode(), f"CBMT_PROJECT={project.root}".encode()]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # Gone meanwhile, or another user's.
            environment = (folder / "environ").read_bytes().split(b"\0")
            if marks[1] in environment and any(entry.startswith(marks[0]) for entry in environment):
                found.append(int(folder.name))
    return found


def end_left_by_ui(project: Project, patience: float = 10) -> int:
    """End what a killed `cbmt ui` left behind, as it was ended itself; the number of processes."""
    left = left_by_ui(project)
    for sent in (signal.SIGTERM, signal.SIGKILL):
        for process in left_by_ui(project):
            with suppress(ProcessLookupError):
                os.kill(process, sent)
        end = time.monotonic() + patience
        while left_by_ui(project) and time.monotonic() < end:
            time.sleep(0.2)
    return len(left)
