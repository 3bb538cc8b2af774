"""Errors of the machine (a full disk, a folder that must not be written) in a line that says what to do."""

from __future__ import annotations

import errno
import sqlite3

import duckdb

__all__ = ["plain"]

_ADVICE = {
    errno.ENOSPC: "the disk is full: make room and run the same command again, it goes on where it was",
    errno.EDQUOT: "the disk quota is used up: make room and run the same command again, it goes on where it was",
    errno.EROFS: "the folder is on a read-only file system: mount it for writing, or use --project with another folder",
    errno.EACCES: "this user may not read or write it: change its owner or mode (chown, chmod), or use another user",
    errno.EPERM: "this user may not read or write it: change its owner or mode (chown, chmod), or use another user",
    errno.EMFILE: "too many open files: raise the limit (ulimit -n 4096)",
    errno.EIO: "the disk cannot be read or written: check it",
}
_TEXTS = {
    "No space left on device": errno.ENOSPC,
    "database or disk is full": errno.ENOSPC,
    "Disk quota exceeded": errno.EDQUOT,
    "Read-only file system": errno.EROFS,
    "attempt to write a readonly database": errno.EACCES,
    "unable to open database file": errno.EACCES,
    "Permission denied": errno.EACCES,
    "Too many open files": errno.EMFILE,
}


def plain(error: BaseException | None) -> str:
    """The cause in one line, with what to do; empty where the error is none of these."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno in _ADVICE:
            where = f"{error.filename}: " if error.filename else ""
            return f"{where}{_ADVICE[error.errno]}"
        if (
            isinstance(error, (duckdb.Error, sqlite3.Error, OSError))
            or "OperationalError" in type(error).__name__
        ):
            line = str(error).strip().splitlines()[0] if str(error).strip() else ""
            for text, number in _TEXTS.items():
                if text in str(error):
                    return f"{line}: {_ADVICE[number]}"
        error = error.__cause__ or error.__context__
    return ""
