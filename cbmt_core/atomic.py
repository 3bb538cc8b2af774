"""Write files atomically: a reader sees the complete new file or the old one, also when the writer is killed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

__all__ = [
    "fsync",
    "lives",
    "only_one",
    "replacing",
    "sweep",
    "sweep_below",
    "temporary_folder",
    "temporary_name",
    "write_text",
]

ABANDONED = 24 * 3600
"""Age in seconds from which on a temporary file counts as abandoned, whoever wrote it."""
_WRITER = re.compile(r"\.([0-9a-f]{6})-(\d+)-[0-9a-f]+\.tmp")
"""Part of a temporary name: the machine and process that write it."""


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield a temporary path; on a clean exit it is fsynced and renamed to `target`.

    The temporary name does not end in the target's suffix, so no glob for data matches it.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(target)
    try:
        yield temporary
        fsync(temporary)
        os.replace(temporary, target)
        fsync(target.parent)
    finally:
        # A database has a log beside it.
        for path in target.parent.glob(f"{escape(temporary.name)}*"):
            path.unlink(missing_ok=True)
        sweep(target)


def temporary_name(target: Path) -> Path:
    """The name of a temporary file beside `target`. It holds the machine and process that write it."""
    return target.with_name(f".{target.name}.{_machine()}-{os.getpid()}-{uuid.uuid4().hex[:10]}.tmp")


@contextmanager
def temporary_folder(parent: Path, name: str) -> Iterator[Path]:
    """A temporary folder below `parent`, removed at the end. If this process is killed, `sweep_below` removes it."""
    folder = temporary_name(parent / name)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _machine() -> str:
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:6]


def lives(process: int) -> bool:
    """Whether a process of this machine is running."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def fsync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sweep(target: Path) -> None:
    """Remove temporary files that killed writers of `target` left behind."""
    for path in target.parent.glob(f".{escape(target.name)}.*.tmp*"):
        _remove_abandoned(path)


def sweep_below(folder: Path) -> list[Path]:
    """Remove temporary files that killed writers left anywhere below `folder`, and return their paths."""
    removed = []
    for place, folders, files in os.walk(folder):
        temporary = [n for n in [*folders, *files] if n.startswith(".") and ".tmp" in n]
        removed += [path for name in temporary if _remove_abandoned(path := Path(place, name))]
        folders[:] = [name for name in folders if not name.startswith(".")]
    return removed


def _remove_abandoned(path: Path) -> bool:
    """Remove a temporary file or folder whose writer is gone; return whether it was removed."""
    written_by = _WRITER.search(path.name)
    try:
        if written_by and written_by[1] == _machine():
            gone = not lives(int(written_by[2]))
        else:
            gone = time.time() - path.stat().st_mtime > ABANDONED
        if not gone:
            return False
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    except (FileNotFoundError, PermissionError):
        return False  # Another process has removed it already, or it belongs to another user.
    return True


@contextmanager
def only_one(lock: Path, *, or_shared: bool = False) -> Iterator[None]:
    """Hold a lock file while inside; wait until no other process holds it. The kernel releases it when the holder
    dies.

    Args:
        or_shared: take a shared lock: any number of processes may hold it, but none together with an exclusive
        holder.
    """
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_SH if or_shared else fcntl.LOCK_EX)
        yield


def write_text(target: Path, text: str) -> None:
    with replacing(target) as temporary:
        temporary.write_text(text, encoding="utf-8")
