"""What `cbmt run` says at the end: little, unless more is asked for."""

from __future__ import annotations

import re

import pytest

from cbmt_pipeline import cli_summary
from cbmt_pipeline.progress import Console, ProgressBar
from cbmt_pipeline.project import Project

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("demo")]


def said(demo: Project, monkeypatch: pytest.MonkeyPatch, *, changed: bool, verbose: bool) -> str:
    console = Console(record=True, width=200, file=None, quiet=False, markup=False)
    monkeypatch.setattr(cli_summary, "console", console)
    monkeypatch.setattr(cli_summary, "MOST_MODELS", 1)
    cli_summary.print_summary(demo, 12.0, changed, verbose)
    return console.export_text()


def test_missing_diagnostics_are_for_those_who_ask(demo: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet = said(demo, monkeypatch, changed=True, verbose=False)
    assert "3 firms have a live forecast" in quiet
    assert "no comovement" not in quiet
    assert "no routing" not in quiet
    assert "and 1 more models: `cbmt run -v`" in quiet
    assert "`cbmt run -v` says more" in quiet
    assert len(quiet.splitlines()) < 15
    loud = said(demo, monkeypatch, changed=True, verbose=True)
    for name in ("comovement", "difficulty", "routing", "external calibration"):
        assert f"no {name}: " in loud
    assert "seasonal_naive" in loud
    assert "cohort_glm" in loud
    assert "says more" not in loud
    assert re.search(r"^rows in main: accuracy [1-9][\d,]*, accuracy_summary", loud, re.MULTILINE)
    assert "rows in" not in quiet


def test_a_run_that_made_nothing_says_where_things_are(
    demo: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet = said(demo, monkeypatch, changed=False, verbose=False)
    assert "checked in 12 s\n" in quiet
    assert str(demo.warehouse) in quiet
    assert "holdout error" not in quiet
    assert "holdout error" in said(demo, monkeypatch, changed=False, verbose=True)


@pytest.mark.parametrize("keep", [True, False])
def test_bars_stay_only_when_asked_for(keep: bool) -> None:
    console = Console(record=True, width=100)
    with ProgressBar("firm data", 1, on=console, keep=keep) as bar:
        bar.advance("A")
    assert ("firm data" in console.export_text()) == keep
