"""One exception class for each kind of error. A message names the firm or file, the problem and what to do."""

from __future__ import annotations

from datetime import date
from pathlib import Path

__all__ = ["BadFirmData", "BadTable", "CbmtError", "ConfigError", "HistoryTooShort", "UnreadableSource"]


class CbmtError(Exception):
    """Base of every error raised on purpose by this library."""


class ConfigError(CbmtError):
    """The configuration has an impossible value or lacks a needed one."""


class UnreadableSource(CbmtError):
    """A source file cannot be read at all."""


class BadFirmData(CbmtError):
    """One firm's data cannot be used; other firms are not affected."""

    def __init__(self, firm: str, reason: str) -> None:
        super().__init__(f"firm {firm!r}: {reason}")
        self.firm = firm
        self.reason = reason


class BadTable(CbmtError):
    """A table that the user supplies besides the orders cannot be used."""

    def __init__(self, file: Path | str, reason: str) -> None:
        super().__init__(f"{file}: {reason}")


class HistoryTooShort(CbmtError):
    """The data span fewer complete weeks than a study needs."""

    def __init__(self, first_day: date, last_day: date, *, have: int, need: int) -> None:
        super().__init__(
            f"the data from {first_day} to {last_day} hold {have} whole weeks (Sunday to Saturday); "
            f"{need} are needed, so {need - have} are missing: add data, or set a shorter washout, "
            "validation or holdout in the [design] section"
        )
        self.missing = need - have

    def because(self, cause: str) -> HistoryTooShort:
        """The same error with its cause added."""
        if cause and not str(self).endswith(cause):
            self.args = (f"{self.args[0]}{cause}",)
        return self
