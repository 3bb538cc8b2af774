"""Try the mutants: `python tests/mutation [--only TARGET ...] [--fresh]`; outcomes are kept in outcomes.csv.

What was tried before is not tried again unless the mutant, or a test that concerns it, has changed.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from chosen import CHOSEN, NAMED
from equivalent import EQUIVALENT
from mutants import Mutant, mutants_of
from targets import TARGETS, Target
from trial import CAUGHT, HUNG, ROOT, SURVIVED, Copy

OUTCOMES = Path(__file__).with_name("outcomes.csv")
SEED = 20260101
COLUMNS = ["name", "target", "place", "kind", "original", "mutated", "outcome", "seconds", "tests", "why"]
BAR = 0.95


@dataclass(frozen=True)
class Trial:
    """A mutant to be tried."""

    name: str
    target: str
    module: str
    line: int
    kind: str
    original: str
    text: str
    mutated: str
    """The module's whole source."""
    tests: tuple[str, ...]

    @property
    def tests_digest(self) -> str:
        """Changes when one of the test files does."""
        files = sorted({test.split("::")[0] for test in self.tests})
        held = b"".join((ROOT / file).read_bytes() for file in files)
        return hashlib.sha256(held + " ".join(self.tests).encode()).hexdigest()[:8]


def drawn(name: str, target: Target) -> Iterator[Trial]:
    """The target's share of the generated mutants, the same in every run while the modules are."""
    sources = {module: (ROOT / module).read_text(encoding="utf-8") for module in target.modules}
    everything: dict[str, Mutant] = {}
    for module, source in sources.items():
        for one in mutants_of(module, source):
            everything.setdefault(one.name, one)
    # By a digest with the seed: a change of one line leaves the other mutants in or out of the sample.
    ordered = sorted(everything, key=lambda key: hashlib.sha256(f"{SEED}{key}".encode()).hexdigest())
    for key in ordered[: target.drawn]:
        one = everything[key]
        mutated = one.applied_to(sources[one.module])
        original = one.original.rsplit(" @", 1)[0]
        yield Trial(
            key,
            name,
            one.module,
            one.line,
            one.kind,
            original,
            f"{one.text or '(nothing)'}",
            mutated,
            target.tests,
        )


def chosen() -> Iterator[Trial]:
    """The mutants written by hand."""
    for one in CHOSEN:
        source = (ROOT / one.module).read_text(encoding="utf-8")
        if one.original not in source:
            print(
                f"{one.name}: {one.module} has no {one.original!r} any more; change tests/mutation/chosen.py"
            )
            continue
        line = source.count("\n", 0, source.index(one.original)) + 1
        tests = one.tests or TARGETS[one.target].tests
        yield Trial(
            one.name,
            one.target,
            one.module,
            line,
            "by hand",
            one.original,
            one.mutated,
            one.applied_to(source),
            tests,
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=sorted({*TARGETS, *(one.target for one in CHOSEN)}))
    parser.add_argument("--fresh", action="store_true", help="try again what was tried")
    parser.add_argument("--named", action="store_true", help="try those that once survived; keep no record")
    parser.add_argument("--survivors", action="store_true", help="try only what survived, again")
    parser.add_argument("--report", action="store_true", help="try nothing; count what was tried")
    parser.add_argument("--outcomes", type=Path, default=OUTCOMES, help="where outcomes are kept")
    options = parser.parse_args()
    trials = [*chosen(), *(one for name, target in TARGETS.items() for one in drawn(name, target))]
    if options.named:
        trials = [one for one in trials if one.name in {named.name for named in NAMED}]
    known = {} if options.fresh or options.named else _known(options.outcomes)
    wanted = [
        one
        for one in trials
        if (not options.only or one.target in options.only) and _is_open(one, known, options.survivors)
    ]
    if wanted and not options.report:
        _preload()
        with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
            kept = set() if options.named else {one.name for one in trials}
            _try_all(wanted, Copy(Path(folder)), known, kept, options.outcomes)
    return _told(trials, known)


def _is_open(one: Trial, known: dict[str, dict[str, str]], survivors: bool) -> bool:
    row = known.get(one.name)
    if row is None or row["original"] != one.original or row["mutated"] != one.text:
        return not survivors
    # A test file only ever gains tests: what was caught stays caught until everything is tried afresh.
    return row["outcome"] == SURVIVED and (survivors or row["tests"] != one.tests_digest)


def _try_all(
    wanted: list[Trial], copy: Copy, known: dict[str, dict[str, str]], names: set[str], path: Path
) -> None:
    sound: set[tuple[str, ...]] = set()
    for number, one in enumerate(wanted, 1):
        # Without a record to keep (--named) the suite itself shows that the tests pass without a mutant.
        if names and one.tests not in sound:
            if copy.tried(one.tests) != SURVIVED:
                sys.exit(
                    f"{' '.join(one.tests)} fail without a mutant:\n{(copy.root / 'trial.log').read_text()[-3000:]}"
                )
            sound.add(one.tests)
        start = time.monotonic()
        outcome = copy.outcome(one.module, one.mutated, one.tests)
        known[one.name] = {
            "name": one.name,
            "target": one.target,
            "place": f"{one.module}:{one.line}",
            "kind": one.kind,
            "original": one.original,
            "mutated": one.text,
            "outcome": outcome,
            "seconds": f"{time.monotonic() - start:.1f}",
            "tests": one.tests_digest,
            "why": EQUIVALENT.get(one.name, ""),
        }
        print(
            f"{number}/{len(wanted)} {outcome:9}{one.module}:{one.line} {one.original!r} -> {one.text!r}",
            flush=True,
        )
        if names:
            _write(known, names, path)


def _preload() -> None:
    """Import what every trial needs and no mutant changes."""
    import dagster  # noqa: F401
    import scipy.stats  # noqa: F401


def _known(path: Path) -> dict[str, dict[str, str]]:
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as handle:
        return {row["name"]: row for row in csv.DictReader(handle)}


def _write(known: dict[str, dict[str, str]], names: set[str], path: Path) -> None:
    rows = [row for name, row in known.items() if name in names]
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(rows, key=lambda row: (row["kind"] != "by hand", row["place"], row["name"])))


def _told(trials: list[Trial], known: dict[str, dict[str, str]]) -> int:
    """Print the last line; the exit code says whether the bar is met."""
    tried = [known[one.name] for one in trials if one.name in known]
    lost = [row for row in tried if row["outcome"] == SURVIVED]
    equivalent = [row for row in lost if row["name"] in EQUIVALENT]
    for row in lost:
        print(f"survived {row['name']} {row['place']} {row['original']!r} -> {row['mutated']!r}")
        if row["name"] in EQUIVALENT:
            print(f"         changes nothing: {EQUIVALENT[row['name']]}")
    count = len(tried) - len(equivalent)
    caught = sum(row["outcome"] in (CAUGHT, HUNG) for row in tried)
    share = caught / count if count else 0.0
    print(
        f"{len(trials)} mutants, {len(tried)} tried, {caught} caught, {len(equivalent)} that change nothing, "
        f"{count - caught} survived: {share:.1%} caught"
    )
    return 0 if share >= BAR and len(tried) == len(trials) else 1


if __name__ == "__main__":
    sys.exit(main())
