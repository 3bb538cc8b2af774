"""Write requirements.lock: every pinned package with the SHA-256 of each of its files, for every platform.

    python deploy/lock.py [wheel ...] > requirements.lock

Versions come from constraints.txt, hashes from the package index that pip uses. Wheels given as arguments are builds
that this index does not have: PyTorch's CPU builds have an index of their own. They replace the index's builds for
Linux, which are larger by gigabytes of CUDA libraries and do not work without them.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote

from pip._internal.models.index import PyPI

OTHER_PYTHONS = re.compile(r"-(cp3\d|cp310|cp2\d|pp\d+)-(?!abi3)|-cp3\d+t-")
"""Wheels of Python versions that the project does not run on."""
CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"
HEAD = """\
# Every dependency with the hashes of its files. Made by deploy/lock.py from constraints.txt; do not edit.
#   pip install --require-hashes --no-deps -r requirements.lock && pip install --no-deps -e .
"""


def main(wheels: list[str]) -> None:
    index = os.environ.get("PIP_INDEX_URL", PyPI.simple_url).rstrip("/")
    pinned = [line.split("==") for line in CONSTRAINTS.read_text().split()]
    given = {normal(name): [Path(w) for w in wheels if of(w) == normal(name)] for name, _ in pinned}

    def known(pin: list[str]) -> set[str]:
        own = given[normal(pin[0])]
        return {digest_of(wheel) for wheel in own} | hashes(index, *pin, without="linux" if own else None)

    with ThreadPoolExecutor(8) as pool:
        found = [*pool.map(known, pinned)]
    print(HEAD, end="")
    for (name, version), digests in zip(pinned, found, strict=True):
        lines = " \\\n".join(f"    --hash=sha256:{one}" for one in sorted(digests))
        print(f"{name}=={version} \\\n{lines}")


def hashes(index: str, name: str, version: str, *, without: str | None = None) -> set[str]:
    """The hashes of all files of one version, less those with `without` in their names."""
    with urllib.request.urlopen(f"{index}/{normal(name)}/", timeout=120) as answer:
        page = answer.read().decode()
    links = re.findall(r"<a\b[^>]*href=\"([^\"]+)#sha256=([0-9a-f]{64})\"([^>]*)>", page)
    kept = [
        digest
        for address, digest, rest in links
        if version_of(filename := unquote(address.rsplit("/", 1)[1]), name) == version
        and not OTHER_PYTHONS.search(filename)
        and "data-yanked" not in rest
        and not (without and without in filename)
    ]
    if not kept:
        sys.exit(f"the index has no file of {name} {version}")
    return set(kept)


def version_of(filename: str, name: str) -> str:
    """The version in the name of a wheel or source archive."""
    stem = re.sub(r"\.(whl|tar\.gz|zip|tar\.bz2)$", "", filename)
    if filename.endswith(".whl"):
        return stem.split("-")[1]
    pattern = re.sub(r"[-_.]+", "[-_.]+", re.escape(normal(name)).replace(r"\-", "-"))
    return re.sub(rf"^{pattern}-", "", stem, flags=re.IGNORECASE)


def of(wheel: str) -> str:
    """The package that a wheel is of."""
    return normal(Path(wheel).name.split("-")[0])


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def digest_of(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


if __name__ == "__main__":
    main(sys.argv[1:])
