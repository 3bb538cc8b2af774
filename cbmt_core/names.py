"""Firm and segment names as partition slugs: safe in paths, keys and URLs, and reversible."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, unquote

__all__ = ["MAX_SLUG", "SEPARATOR", "Unit"]

SEPARATOR = "~"
MAX_SLUG = 200
"""Longest slug: with its `firm=` prefix it stays a legal file name everywhere."""


def _encode(name: str) -> str:
    # quote() leaves letters, digits and _ . - ~ alone; the last three stand for something in a slug.
    text = quote(name, safe="").replace("_", "%5F").replace(".", "%2E").replace("~", "%7E")
    return text.replace("%20", "_")


def _decode(slug: str) -> str:
    return unquote(slug.replace("_", "%20"), errors="strict")


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
        """Partition key and folder name. A letter's case is kept; spaces show as underscores."""
        parts = [self.firm] if self.segment is None else [self.firm, self.segment]
        return SEPARATOR.join(_encode(part) for part in parts)

    @classmethod
    def from_slug(cls, slug: str) -> Unit:
        firm, *segment = (_decode(part) for part in slug.split(SEPARATOR))
        return cls(firm, *segment)
