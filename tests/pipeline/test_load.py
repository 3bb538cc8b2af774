"""Four writers, a publisher and four analysts at once: no error, no torn read; how long queries took."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import TESTS
from helpers.in_process import leftovers
from helpers.small_project import make_all, new_project

from cbmt_core.names import Unit
from cbmt_pipeline.plan import the_plan
from cbmt_pipeline.publish import publish

FIRMS = ("A, B & Söhne", "it's 50% off/..", "three", "four")
SECONDS = int(os.environ.get("CBMT_LOAD_SECONDS", "180"))


def meet(tmp_path: Path, firms: tuple[str, ...], analysts: int, seconds: int) -> str:
    """A writer for each firm, a publisher and analysts, each a process, for some seconds; the counts."""
    project = new_project(tmp_path / "project", firms)
    for k, firm in enumerate(firms):
        (project.root / "orders" / f"{k}.csv").rename(project.root / "orders" / f"{Unit(firm).slug}.csv")
    project.intake.update(project.config, project.root)
    assert make_all(project) == {}
    publish(project, the_plan())
    roles = [
        *(("writer", firm) for firm in firms),
        ("publisher", ""),
        *[("analyst", str(len(firms)))] * analysts,
    ]
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    started = [
        (
            role,
            subprocess.Popen(
                [sys.executable, "-m", "helpers.load", role, str(project.root), str(seconds), what],
                cwd=TESTS, env=os.environ | {"PYTHONPATH": path},
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            ),
        )
        for role, what in roles
    ]  # fmt: skip
    printed: dict[str, list[dict[str, list[float]]]] = {"writer": [], "publisher": [], "analyst": []}
    for role, process in started:
        out, err = process.communicate()
        assert process.returncode == 0, f"{role}: {err[-2000:]}"
        printed[role].append(json.loads(out))
    latencies = sorted(1000 * second for one in printed["analyst"] for second in one["latencies"])
    torn = [name for one in printed["analyst"] for name in one["torn"]]
    assert not torn
    assert not leftovers(project.root)
    written = sum(one["written"] for one in printed["writer"])  # type: ignore[misc]
    return (
        f"load: {seconds} s, {written} versions of {len(firms)} firms written, "
        f"{printed['publisher'][0]['published']} publishes (longest {max(printed['publisher'][0]['seconds']):.1f} s), "
        f"{len(latencies)} queries: errors 0, torn reads {len(torn)}; latency median "
        f"{statistics.median(latencies):.0f} ms, p99 {latencies[int(0.99 * len(latencies))]:.0f} ms, "
        f"max {latencies[-1]:.0f} ms"
    )


@pytest.mark.slow
def test_two_writers_a_publisher_and_an_analyst_at_once(tmp_path: Path) -> None:
    print(meet(tmp_path, FIRMS[:2], 1, 6))


@pytest.mark.soak
def test_four_writers_a_publisher_and_four_analysts_for_minutes(tmp_path: Path) -> None:
    print(meet(tmp_path, FIRMS, 4, SECONDS))
