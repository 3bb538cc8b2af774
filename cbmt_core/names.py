"""Names of firms and segments as folder names (slugs) and partition keys; both can be decoded to the name."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote_plus, unquote, unquote_plus

from cbmt_core.errors import BadFirmData, CbmtError

__all__ = ["MAX_SLUG", "SEPARATOR", "Unit", "UnknownFirm", "nearest", "slug_sql"]

SEPARATOR = "~"
MAX_SLUG = 200
"""Longest slug: with its `firm=` prefix it stays a legal file name everywhere."""


# "~" separates a segment from its firm; "..." is not allowed in slugs, which earlier versions used as partition
# keys.
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


# Dagster does not allow "..." (a range of keys) and control characters in partition keys. Spaces at the ends and
# invisible characters are escaped too, because people read and type keys.
_UNREADABLE = re.compile(rf"\.\.\.|%(?=[0-9A-F]{{2}})|{SEPARATOR}|^\s|\s$")
_ESCAPED = re.compile("(?:%[0-9A-F]{2})+")


def _as_key(name: str) -> str:
    text = _UNREADABLE.sub(lambda found: _escaped(found[0]), name)
    return text if text.isprintable() else "".join(c if c.isprintable() else _escaped(c) for c in text)


def _escaped(text: str) -> str:
    """Every byte of a text as %XX."""
    return "".join(f"%{byte:02X}" for byte in text.encode())


def _of_key(key: str) -> str:
    return _ESCAPED.sub(lambda found: unquote(found[0], errors="strict"), key)


@dataclass(frozen=True, order=True)
class Unit:
    """Unit of forecasting: a firm, or one segment of a firm."""

    firm: str
    segment: str | None = None

    @property
    def name(self) -> str:
        """The unit's name in the `firm` column of every table."""
        return self.firm if self.segment is None else f"{self.firm}{SEPARATOR}{self.segment}"

    @property
    def slug(self) -> str:
        """Folder and file name: the percent-encoded name."""
        parts = [self.firm] if self.segment is None else [self.firm, self.segment]
        return SEPARATOR.join(_encode(part) for part in parts)

    @classmethod
    def from_slug(cls, slug: str) -> Unit:
        """The unit with this slug."""
        parts = [unquote_plus(part) for part in slug.split(SEPARATOR)]
        if len(parts) > 2 or cls(*parts).slug != slug:
            raise BadFirmData(slug, "this is not the slug of a firm or of a segment")
        return cls(*parts)

    @property
    def key(self) -> str:
        """Partition key: the name, with characters that Dagster does not allow in keys written as %XX."""
        parts = [self.firm] if self.segment is None else [self.firm, self.segment]
        return SEPARATOR.join(_as_key(part) for part in parts)

    @classmethod
    def from_key(cls, key: str) -> Unit:
        """The unit with this partition key."""
        try:
            parts = [_of_key(part) for part in key.split(SEPARATOR)]
        except UnicodeDecodeError:
            parts = []
        if len(parts) not in (1, 2) or cls(*parts).key != key:
            raise BadFirmData(key, "this is not the partition key of a firm or of a segment")
        return cls(*parts)


class UnknownFirm(CbmtError):
    """No firm has this name; the message suggests the most similar names."""

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
            # A part of the name matches as well as a typing error.
            ratio = max(ratio, 0.8)
        if ratio >= 0.6:
            alike[other] = ratio
    return sorted(alike, key=lambda other: (-alike[other], other))[:most]
