"""Errors of the machine (a full disk, a folder without write permission) as one line that says what to do."""

from __future__ import annotations

import errno
import shutil
import sqlite3
from pathlib import Path

import duckdb

__all__ = ["is_full", "plain", "plain_text", "stops_all"]

FULL = 1_000_000
"""Bytes free below which a disk is full."""

_ADVICE = {
    errno.ENOSPC: "the disk is full: make room and run the same command again, it resumes where it stopped",
    errno.EDQUOT: "the disk quota is used up: make room and run the same command again, it resumes where it stopped",
    errno.EROFS: "the folder is on a read-only file system: mount it for writing, or use --project with another folder",
    errno.EACCES: "this user may not read or write it: change its owner or mode (chown, chmod), or use another user",
    errno.EPERM: "this user may not read or write it: change its owner or mode (chown, chmod), or use another user",
    errno.EAGAIN: "another process has the file open for writing: close it, or open it with duckdb -readonly",
    errno.EMFILE: "too many open files: raise the limit (ulimit -n 4096)",
    errno.EIO: "the disk cannot be read or written: see whether it is full (df -h), otherwise check it",
}
_TEXTS = {
    "No space left on device": errno.ENOSPC,
    "database or disk is full": errno.ENOSPC,
    "Disk quota exceeded": errno.EDQUOT,
    "Read-only file system": errno.EROFS,
    "attempt to write a readonly database": errno.EACCES,
    "unable to open database file": errno.EACCES,
    "Permission denied": errno.EACCES,
    "Could not set lock on file": errno.EAGAIN,
    "Too many open files": errno.EMFILE,
    "disk I/O error": errno.EIO,  # SQLite reports this also for a full disk.
}


def plain(error: BaseException | None, *folders: Path) -> str:
    """The cause in one line, with what to do; empty for other errors.

    Args:
        folders: where the error may have occurred; their disks are checked for space.
    """
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno in _ADVICE:
            where = f"{error.filename}: " if error.filename else ""
            return f"{where}{_ADVICE[error.errno]}"
        known = (duckdb.Error, sqlite3.Error, OSError)
        if (isinstance(error, known) or "OperationalError" in type(error).__name__) and (
            text := plain_text(str(error), *folders)
        ):
            return text
        error = error.__cause__ or error.__context__
    return ""


def plain_text(text: str, *folders: Path) -> str:
    """The line of a message that names such a cause, with what to do; empty where there is none."""
    for line in text.strip().splitlines():
        for words, number in _TEXTS.items():
            if words in line:
                if number == errno.EIO and (full := next(filter(is_full, folders), None)):
                    return f"{full}: {_ADVICE[errno.ENOSPC]}"
                return line.strip() if _ADVICE[number] in line else f"{line.strip()}: {_ADVICE[number]}"
    return ""


def stops_all(text: str) -> bool:
    """Whether a message of `plain_text` names a cause that affects every firm and step."""
    return any(_ADVICE[number] in text for number in (errno.ENOSPC, errno.EDQUOT, errno.EROFS))


def is_full(folder: Path) -> bool:
    """Whether nothing more can be written to the folder's disk."""
    return folder.exists() and shutil.disk_usage(folder).free < FULL
