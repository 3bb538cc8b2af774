"""Who works on a project: one `cbmt run` and one `cbmt ui` at a time, each of which says since when."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from cbmt_core.errors import CbmtError
from cbmt_pipeline.project import Project

__all__ = ["hold", "holder", "holding"]


def _path(project: Project, command: str) -> Path:
    return project.data / f".{command}.lock"


def hold(project: Project, command: str) -> int:
    """Take the project for a command until this process ends; the file descriptor that holds it.

    The lock is the kernel's and dies with its holder, also when that is killed. Raises where another one has it.
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
    me = {
        "host": socket.gethostname(),
        "process": os.getpid(),
        "since": datetime.now().astimezone().isoformat(timespec="seconds"),
    }
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(me).encode(), 0)
    return descriptor


@contextmanager
def holding(project: Project, command: str) -> Iterator[None]:
    """Hold the project for a command while inside."""
    descriptor = hold(project, command)
    try:
        yield
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
        try:
            who = json.loads(os.pread(descriptor, 4096, 0))
        except json.JSONDecodeError:
            return "a process that has just begun"
        return f"process {who['process']} on {who['host']}, since {who['since']}"
    finally:
        os.close(descriptor)
    return ""
