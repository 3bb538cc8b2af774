"""The big panel: simulate firms, run the whole pipeline on them, and write docs/results.md from what it published.

    python bench/big_panel.py data/big                    everything; hours on two cores
    python bench/big_panel.py data/big                    the same again goes on where it was stopped
    python bench/big_panel.py data/big --only-write       the document alone, from what the project holds

The panel is 120 firms at a tenth of their customers, seed 2026, `quick` networks, two workers. If
bench/topline.py has run on the project, its models stand among the paired comparisons.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

from panel_results.document import results
from panel_results.evidence import Evidence
from panel_results.setting import commit, machine, versions

from cbmt_core.simulate import Economy, truth_of

RECORD = "big_panel.json"
"""File in the project's folder: how and for how long it was run."""
RESULTS = Path(__file__).parents[1] / "docs" / "results.md"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Exit code 1 when a firm failed: the others are done, and the document is written all the same.",
    )  # fmt: skip
    parser.add_argument("project", type=Path, help="folder of the project; made if it is not there")
    parser.add_argument("--firms", type=int, default=120, help="firms of the economy [%(default)s]")
    parser.add_argument("--scale", type=float, default=0.1, help="share of customers kept [%(default)s]")
    parser.add_argument("--seed", type=int, default=2026, help="seed of the economy [%(default)s]")
    parser.add_argument("--profile", default="quick", help="how much work networks may be [%(default)s]")
    parser.add_argument("--workers", type=int, default=2, help="processes side by side [%(default)s]")
    parser.add_argument("--only-write", action="store_true", help="run nothing, write from what is published")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the document [docs/results.md]")
    parser.add_argument("--commit", help="commit it was run at, if by hand [as recorded, or the checkout's]")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    economy = Economy(firms=options.firms, scale=options.scale, seed=options.seed)
    code = 0
    if not options.only_write:
        simulate(options.project, economy)
        code = run(options)
    if not (options.project / "data" / "cbmt.duckdb").exists():
        sys.exit(f"{options.project}/data/cbmt.duckdb is not there: the run has not come to publish it")
    check(options.project, economy)
    document = results(Evidence(options.project), setting(options), command(options))
    options.out.write_text(document, encoding="utf-8")
    print(f"wrote {options.out}")
    return code


def cbmt(project: Path, *words: str) -> int:
    return subprocess.run(
        [sys.executable, "-m", "cbmt_pipeline.cli", "--project", str(project), *words]
    ).returncode


def simulate(project: Path, economy: Economy) -> None:
    """Write the economy unless its last firm is there; firms are written in order, each file whole."""
    project.mkdir(parents=True, exist_ok=True)
    if truth_file(project, economy, -1).exists():
        check(project, economy)
        return
    size = ["--firms", str(economy.firms), "--scale", str(economy.scale), "--seed", str(economy.seed)]
    if cbmt(project, "simulate", *size):
        sys.exit("the economy could not be simulated")


def truth_file(project: Path, economy: Economy, index: int) -> Path:
    return project / "data" / "raw" / "economy" / "truth" / f"{economy.specs()[index].slug}.json"


def check(project: Path, economy: Economy) -> None:
    """Stop if the project holds another economy than the one asked for: its results would be reported as this one's."""
    path = truth_file(project, economy, -1)
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    expected = json.loads(truth_of(economy, economy.specs()[-1]).to_json())
    files = len(list(path.parent.glob("*.json")))
    if stored.get("acquisition") != expected["acquisition"] or files != economy.firms:
        sys.exit(
            f"{project} holds another economy than {economy.firms} firms at scale {economy.scale:g} with seed "
            f"{economy.seed}: take another folder, or give its --firms, --scale and --seed"
        )


def run(options: argparse.Namespace) -> int:
    """Run the pipeline; what it was run with is kept, and the hours of several goes are added up."""
    path = options.project / RECORD
    before = json.loads(path.read_text()) if path.exists() else {}
    started = time.monotonic()
    code = cbmt(options.project, "run", "--profile", options.profile, "--workers", str(options.workers))
    record = {
        "commits": list(dict.fromkeys([*before.get("commits", []), commit()])),
        "hours": before.get("hours", 0.0) + (time.monotonic() - started) / 3600,
        "date": str(date.today()),
        "machine": machine(),
        "versions": versions(),
    }
    path.write_text(json.dumps(record, indent=1))
    return code


def setting(options: argparse.Namespace) -> dict[str, str]:
    path = options.project / RECORD
    record = json.loads(path.read_text()) if path.exists() else {}
    packages = record.get("versions", versions())
    hours = {"wall time": f"{record['hours']:.1f} hours"} if record else {}
    when = "" if record else " (of the writing: the pipeline was run by hand)"
    return {
        "economy": f"{options.firms} firms, scale {options.scale:g}, seed {options.seed}",
        "pipeline": f"`cbmt run --profile {options.profile} --workers {options.workers}`",
        "date": record.get("date", str(date.today())) + when,
        "commit": options.commit or ", ".join(record.get("commits", [commit()])) + when,
        "machine": record.get("machine", machine()),
        **hours,
        "versions" + when: ", ".join(f"{name} {number}" for name, number in packages.items()),
    }


def command(options: argparse.Namespace) -> str:
    return (
        f"python bench/big_panel.py FOLDER --firms {options.firms} --scale {options.scale:g} --seed {options.seed} "
        f"--profile {options.profile} --workers {options.workers}"
    )


if __name__ == "__main__":
    sys.exit(main())
