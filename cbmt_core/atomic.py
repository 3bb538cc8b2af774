"""Files that appear whole or not at all, whatever happens to the writer."""

from __future__ import annotations

import fcntl
import os
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

__all__ = ["fsync", "only_one", "replacing", "sweep", "temporary_name", "write_text"]

ABANDONED = 24 * 3600
"""Seconds after which a temporary file belongs to no living writer."""


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Yield a temporary path; on a clean exit it is fsynced and takes the place of `target`.

    The temporary name does not end in the target's suffix, so that no glob takes it for data.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_name(target)
    try:
        yield temporary
        fsync(temporary)
        os.replace(temporary, target)
        fsync(target.parent)
    finally:
        temporary.unlink(missing_ok=True)
        sweep(target)


def temporary_name(target: Path) -> Path:
    """A name beside `target` for its content until it is complete."""
    return target.with_name(f".{target.name}.{uuid.uuid4().hex}.tmp")


def fsync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sweep(target: Path) -> None:
    """Remove what killed writers of `target` left behind."""
    for path in target.parent.glob(f".{escape(target.name)}.*.tmp*"):
        with suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > ABANDONED:
                path.unlink()


@contextmanager
def only_one(lock: Path) -> Iterator[None]:
    """Wait until no other process is inside. The lock dies with its holder."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def write_text(target: Path, text: str) -> None:
    with replacing(target) as temporary:
        temporary.write_text(text, encoding="utf-8")
