"""Tests that would notice: the mutants that once survived are caught, and every mutant on the list was tried."""

from __future__ import annotations

import ast
import csv
import subprocess
import sys
from pathlib import Path

import pytest
from chosen import CHOSEN, NAMED
from equivalent import EQUIVALENT
from mutants import mutants_of
from targets import TARGETS
from trial import ROOT

HERE = Path(__file__).parent


def test_the_mutants_that_once_survived_are_caught() -> None:
    done = subprocess.run(
        [sys.executable, str(HERE), "--named"], capture_output=True, text=True, timeout=1200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith(
        f"{len(NAMED)} mutants, {len(NAMED)} tried, {len(NAMED)} caught"
    )


def test_every_generated_mutant_is_a_program_and_none_is_the_original() -> None:
    for target in TARGETS.values():
        for module in target.modules:
            source = (ROOT / module).read_text()
            for mutant in mutants_of(module, source):
                ast.parse(mutant.applied_to(source))
                assert mutant.applied_to(source) != source


def test_the_list_of_outcomes_names_mutants_that_there_are() -> None:
    with (HERE / "outcomes.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert {row["outcome"] for row in rows} <= {"caught", "hung", "survived"}
    assert {row["name"] for row in rows if row["kind"] == "by hand"} <= {one.name for one in CHOSEN}
    survivors = {row["name"] for row in rows if row["outcome"] == "survived"}
    assert set(EQUIVALENT) <= survivors


@pytest.mark.soak
def test_the_mutants_are_caught() -> None:
    """At least 95 % of those that change anything; hours on two cores when all are tried afresh."""
    assert subprocess.run([sys.executable, str(HERE), "--fresh"]).returncode == 0
