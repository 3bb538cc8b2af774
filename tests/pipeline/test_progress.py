"""What the command line says while it works: a bar on a terminal, lines without one."""

from __future__ import annotations

import io
import subprocess
import sys

from rich.console import Console

from cbmt_pipeline import progress
from cbmt_pipeline.progress import News, ProgressBar


def test_without_a_terminal_lines_tell_firms_done_what_goes_on_and_the_time_left() -> None:
    out = io.StringIO()
    with ProgressBar("networks (quick)", 4, Console(file=out, width=200), pulse=0.0) as bar:
        bar.hear(News("ACME", "cbmt: trial 1 of 2", 0.1))
        bar.hear(News("Bolt & Söhne", "lstm: training", 0.5))
        bar.advance("ACME")
    lines = out.getvalue().splitlines()
    assert lines[0].startswith("networks (quick): 0 of 4 done in 0:00:00")
    assert lines[0].endswith("; ACME cbmt: trial 1 of 2")
    assert lines[1].endswith(" left; ACME cbmt: trial 1 of 2 · Bolt & Söhne lstm: training")
    assert lines[2].startswith("networks (quick): 1 of 4 done")
    assert lines[2].endswith("; Bolt & Söhne lstm: training")


def test_without_a_terminal_nothing_is_said_more_often_than_now_and_then() -> None:
    out = io.StringIO()
    with ProgressBar("cohort tables", 3, Console(file=out, width=200), pulse=60.0) as bar:
        for _ in range(3):
            bar.advance()
        assert out.getvalue() == ""
    assert "3/3" in out.getvalue()


def test_on_a_terminal_the_bar_counts_whole_firms_and_names_what_goes_on() -> None:
    out = io.StringIO()
    console = Console(file=out, width=160, force_terminal=True, color_system=None)
    with ProgressBar("networks (quick)", 3, console) as bar:
        bar.advance("first")
        bar.hear(News("Bolt", "", 0.9))
        bar.hear(News("ACME", "cbmt: trial 2 of 2", 0.9))
        bar._progress.refresh()
    last = out.getvalue().splitlines()
    assert any("1/3" in line and "ACME cbmt: trial 2 of 2" in line for line in last)
    assert not any("2/3" in line for line in last), "two firms nearly done are none"


def test_firms_that_a_batch_has_done_count_before_the_batch_ends() -> None:
    out = io.StringIO()
    with ProgressBar("cohort tables", 3, Console(file=out, width=200), pulse=0.0) as bar:
        bar.hear(News("ACME", "", 1.0))
        bar.hear(News("Bolt", "", 1.0))
        bar.advance("ACME", "Bolt", "Cord")
    lines = out.getvalue().splitlines()
    assert [line.split(" done")[0] for line in lines[:3]] == [f"cohort tables: {k} of 3" for k in (1, 2, 3)]


def test_news_reach_the_listener_and_nobody_without_one() -> None:
    heard: list[News] = []
    progress.listen(heard.append)
    try:
        progress.tell("ACME", "cbmt: trial 1 of 2", 0.25)
    finally:
        progress.listen(None)
    progress.tell("ACME", "unheard", 0.5)
    assert heard == [News("ACME", "cbmt: trial 1 of 2", 0.25)]


def test_a_command_starts_without_the_libraries_of_models_and_charts() -> None:
    """They take two thirds of the time in which a command starts, and most commands need none of them."""
    script = """
import sys
import cbmt_pipeline.cli
assert not {"torch", "matplotlib", "great_expectations", "dagster"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
