"""Every question of the SQL cookbook has the answer that the page shows, on the small demo project.

`python tests/pipeline/test_cookbook.py` makes the demo and writes the answers anew.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import pytest

from cbmt_pipeline.project import Project

PAGE = Path(__file__).parents[2] / "docs/sql.md"
QUESTION = re.compile(r"(\*\*[^\n]+?\*\*.*?```sql\n(.*?)```\n)(\n\|.*?\n(?=\n|$))?", re.DOTALL)
"""The question with its SQL; the SQL; the answer, a table."""
CLOSE = 0.01
"""Relative difference that numbers may have on another machine."""


def questions() -> list[tuple[str, str, list[list[str]]]]:
    """Question, SQL and the rows of the answer as shown, header first."""
    found = []
    for match in QUESTION.finditer(PAGE.read_text()):
        name = re.findall(r"\*\*(.+?)\*\*", match[1])[0]
        lines = [line for line in (match[3] or "").strip().splitlines() if not line.startswith("| ---")]
        cells = [[cell.strip() for cell in line.strip()[2:-2].split(" | ")] for line in lines]
        found.append((name, match[2].strip(), cells))
    return found


def answer(con: duckdb.DuckDBPyConnection, sql: str) -> list[list[str]]:
    rows = con.execute(sql)
    header = [column[0] for column in rows.description]
    return [header, *([_cell(value) for value in row] for row in rows.fetchall())]


def _cell(value: object) -> str:
    if isinstance(value, float) and value == int(value) and abs(value) >= 10:
        return str(int(value))
    return "" if value is None else str(value).replace("|", "\\|")


def same(shown: str, found: str) -> bool:
    """Whether two cells agree: numbers nearly, texts need not (they may quote numbers)."""
    try:
        one, other = float(shown), float(found)
    except ValueError:
        return bool(shown) == bool(found)
    return abs(one - other) <= max(CLOSE * max(abs(one), abs(other)), 0.11)


@pytest.mark.slow
@pytest.mark.xdist_group("demo")
def test_every_question_is_answered_as_the_page_shows(demo: Project) -> None:
    asked = questions()
    assert len(asked) >= 25
    assert len({name for name, *_ in asked}) == len(asked)
    stale = "run `python tests/pipeline/test_cookbook.py`"
    with duckdb.connect(str(demo.warehouse), read_only=True) as con:
        for name, sql, shown in asked:
            found = answer(con, sql)
            assert len(found) > 1, f"{name} has no answer"
            assert shown, f"{name} shows no answer: {stale}"
            assert shown[0] == found[0], f"{name}: {stale}"
            assert len(shown) == len(found), f"{name}: {stale}"
            for before, now in zip(shown[1:], found[1:], strict=True):
                assert all(same(*pair) for pair in zip(before, now, strict=True)), (
                    f"{name}: {before} is {now} now: {stale}"
                )


@pytest.mark.slow
@pytest.mark.xdist_group("demo")
def test_every_statement_of_the_page_runs_in_the_shell_too(demo: Project) -> None:
    """The shell that comes with the product is of an older DuckDB than the one that wrote the file."""
    blocks = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == len(questions()) + 1, (
        "each question has its SQL, and the page begins with one block"
    )
    shell = Path(sys.executable).with_name("duckdb")
    command = [shell, "-readonly", "-bail", "-csv", demo.warehouse]
    done = subprocess.run(command, input="\n".join(blocks), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) > 200


def test_a_wrong_number_on_the_page_would_be_noticed() -> None:
    assert same("100", "100.9")
    assert not same("100", "102")
    assert not same("3", "")
    assert same("cbmt_plus", "cohort_glm")


def write_answers(warehouse: Path) -> None:
    with duckdb.connect(str(warehouse), read_only=True) as con:

        def with_answer(match: re.Match[str]) -> str:
            header, *rows = answer(con, match[2])
            lines = [header, ["---"] * len(header), *rows]
            return match[1] + "\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)

        PAGE.write_text(QUESTION.sub(with_answer, PAGE.read_text()))


if __name__ == "__main__":
    from helpers.demo_project import make_demo

    with tempfile.TemporaryDirectory() as folder:
        write_answers(make_demo(Path(folder) / "project").warehouse)
