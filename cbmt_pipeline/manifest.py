"""Manifests: the outputs of a step with the digests of its inputs. A manifest is the commit marker, written last."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path

from cbmt_core import atomic
from cbmt_core.names import Unit

__all__ = ["Manifest", "Manifests", "commit", "digest_of", "sync"]

PANEL = "panel"
"""File name of a manifest that concerns all firms together."""


def digest_of(value: object) -> str:
    """A short digest of a JSON-ready value."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _file_digest(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()[:16]


@dataclass(frozen=True)
class Manifest:
    """A record of one step, carried out for one firm (or all) at one origin (or none)."""

    step: str
    version: str
    inputs: Mapping[str, str]
    """What it was made from: upstream step or setting -> digest."""
    items: Mapping[str, str] = field(default_factory=dict)
    """Models that are in the outputs -> what they were made with; steps that make one thing have none."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Path below the data folder -> digest of the content."""
    as_of: Mapping[str, str] = field(default_factory=dict)
    """Week -> digest of all that the outputs say of the weeks up to it; of the data tables only."""
    rejected: str = ""
    """Why the last result cannot be trusted: the files are the last good ones, and the step is not done."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Item -> error for which its outputs were left out."""
    warnings: Mapping[str, str] = field(default_factory=dict)
    """Item -> warning about its outputs."""

    @property
    def digest(self) -> str:
        """Digest of the outputs' content or, for steps that write no files, of their inputs."""
        made = self.files or [self.version, self.inputs]
        return digest_of([made, self.rejected] if self.rejected else made)

    def up_to(self, week: date) -> str:
        """Digest of the outputs up to the end of `week`; empty where there are none."""
        known = [day for day in self.as_of if day <= week.isoformat()]
        return self.as_of[max(known)] if known else ""

    def reaches(self, week: date) -> bool:
        """Whether the outputs extend through `week`."""
        return bool(self.as_of) and week.isoformat() <= max(self.as_of)

    def covers(self, week: date) -> bool:
        """Whether `week` is among the weeks of the outputs."""
        return self.reaches(week) and min(self.as_of) <= week.isoformat()


@dataclass(frozen=True)
class Manifests:
    """The folder `<root>/<step>/[origin=<week>/]firm=<slug>.json`."""

    root: Path

    def path(self, part: str, origin: date | None, unit: Unit | None) -> Path:
        folder = self.root / part
        if origin:
            folder /= f"origin={origin}"
        return folder / (f"firm={unit.slug}.json" if unit else f"{PANEL}.json")

    def read(self, part: str, origin: date | None = None, unit: Unit | None = None) -> Manifest | None:
        try:
            return Manifest(**json.loads(self.path(part, origin, unit).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return None

    def of_firms(self, part: str, origin: date | None = None) -> Iterator[tuple[Unit, Manifest]]:
        """Every firm's manifest, in the order of the slugs."""
        folder = self.path(part, origin, None).parent
        for path in sorted(folder.glob("firm=*.json")):
            unit = Unit.from_slug(path.name.removeprefix("firm=").removesuffix(".json"))
            manifest = self.read(part, origin, unit)
            if manifest:
                yield unit, manifest

    def write(self, part: str, origin: date | None, unit: Unit | None, manifest: Manifest) -> None:
        text = json.dumps(asdict(manifest), indent=0, sort_keys=True)
        atomic.write_text(self.path(part, origin, unit), text)

    def remove(self, part: str, origin: date | None, unit: Unit | None) -> None:
        self.path(part, origin, unit).unlink(missing_ok=True)

    def keep_only(self, units: set[str]) -> None:
        """Remove the manifests of all firms but these (slugs)."""
        for path in self.root.glob("**/firm=*.json"):
            if path.name.removeprefix("firm=").removesuffix(".json") not in units:
                path.unlink(missing_ok=True)


def sync(paths: Iterable[Path]) -> None:
    """Flush files to disk."""
    for path in paths:
        atomic.fsync(path)


def commit(
    data: Path,
    staged: Mapping[Path, Path],
    gone: Iterable[Path] = (),
    known: Mapping[Path, str] | None = None,
) -> dict[str, str]:
    """Rename files that were written under temporary names to their final paths.

    Args:
        data: the folder that the returned paths are relative to.
        staged: final path -> temporary path, whose content is on the disk (see `sync`).
        gone: files to remove before.
        known: digests of content, by final path, where not every byte of the file is content.

    Returns:
        Path -> digest, for the manifest. Callers remove the old manifest before and write the new one after: a
        process killed in between leaves a step without a manifest, which is made again.
    """
    digests = {}
    for target, temporary in staged.items():
        digest = (known or {}).get(target) or _file_digest(temporary)
        digests[str(target.relative_to(data))] = digest
    for path in gone:
        path.unlink(missing_ok=True)
    for target, temporary in staged.items():
        os.replace(temporary, target)
        atomic.sweep(target)
    for folder in {target.parent for target in staged}:
        atomic.fsync(folder)
    return digests
