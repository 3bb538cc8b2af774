"""Firm and segment names as partition slugs: safe in paths, keys and URLs, and reversible."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote_plus, unquote_plus

from cbmt_core.errors import BadFirmData, CbmtError

__all__ = ["MAX_SLUG", "SEPARATOR", "Unit", "UnknownFirm", "nearest", "slug_sql"]

SEPARATOR = "~"
MAX_SLUG = 200
"""Longest slug: with its `firm=` prefix it stays a legal file name everywhere."""


# "~" sets a segment apart, and an orchestrator may read "..." in a partition key as a range.
_RESERVED = {SEPARATOR: "%7E", "...": "%2E%2E%2E"}


def _encode(name: str) -> str:
    text = quote_plus(name, safe="")
    for plain, encoded in _RESERVED.items():
        text = text.replace(plain, encoded)
    return text


def slug_sql(column: str) -> str:
    """SQL that gives the slug of a firm's name, the same as `Unit(name).slug`."""
    text = f"replace(url_encode({column}), '%20', '+')"
    for plain, encoded in _RESERVED.items():
        text = f"replace({text}, '{plain}', '{encoded}')"
    return text


@dataclass(frozen=True, order=True)
class Unit:
    """What is forecast as one: a firm, or one segment of it."""

    firm: str
    segment: str | None = None

    @property
    def name(self) -> str:
        """How the unit is called in the `firm` column of every table."""
        return self.firm if self.segment is None else f"{self.firm}{SEPARATOR}{self.segment}"

    @property
    def slug(self) -> str:
        """Partition key and folder name: the name as a URL would carry it."""
        parts = [self.firm] if self.segment is None else [self.firm, self.segment]
        return SEPARATOR.join(_encode(part) for part in parts)

    @classmethod
    def from_slug(cls, slug: str) -> Unit:
        """The unit with this slug."""
        parts = [unquote_plus(part) for part in slug.split(SEPARATOR)]
        if len(parts) > 2 or cls(*parts).slug != slug:
            raise BadFirmData(slug, "this is not the slug of a firm or of a segment")
        return cls(*parts)


class UnknownFirm(CbmtError):
    """No firm has this name; the message names those that come nearest to it."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        names = sorted(set(known))
        near = nearest(name, names)
        if near:
            hint = f"did you mean {' or '.join(near)}?"
        elif names:
            some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
            hint = f"there {'is' if len(names) == 1 else 'are'} {some}"
        else:
            hint = "there are none yet"
        super().__init__(f"no firm is called {name!r}; {hint}")
        self.nearest = near


def nearest(name: str, known: Iterable[str], most: int = 3) -> list[str]:
    """Up to `most` of the `known` names that look like `name`, the most alike first.

    >>> nearest("fenosk", ["Fennosk", "Keldevar Clothing"])
    ['Fennosk']
    >>> nearest("keldevar", ["Fennosk", "Keldevar Clothing"])
    ['Keldevar Clothing']
    """
    wanted = name.casefold().strip()
    alike = {}
    for other in known:
        folded = other.casefold()
        ratio = difflib.SequenceMatcher(None, wanted, folded).ratio()
        if wanted and wanted in folded:
            # Part of a name is as good as a slip of the pen.
            ratio = max(ratio, 0.8)
        if ratio >= 0.6:
            alike[other] = ratio
    return sorted(alike, key=lambda other: (-alike[other], other))[:most]
