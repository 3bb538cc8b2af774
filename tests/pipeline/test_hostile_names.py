"""Names that are paths, SQL, HTML or Markdown, from the source file to the published file and the UI."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

import dagster as dg
import duckdb
import pytest
from click.testing import CliRunner
from helpers.small_project import make_all, orders_csv

from cbmt_core.quality import Verdict
from cbmt_pipeline import cli
from cbmt_pipeline.checks import evaluation
from cbmt_pipeline.metadata import picture
from cbmt_pipeline.plan import the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.publish import publish

COMPOSED, DECOMPOSED = (unicodedata.normalize(form, "Café") for form in ("NFC", "NFD"))
FIRMS = (
    "../../x",
    "'; DROP TABLE firm;--",
    '"><img src=x onerror="alert(1)">',
    "\u202eשלום 🛒",
    COMPOSED,
    DECOMPOSED,
)
CONFIG = """
[[sources]]
name = "'; DROP TABLE x;--"
path = "orders"
currency = "GBP"
timezone = "Europe/London"
[sources.columns]
firm = 'fi"rm'
customer = "cust'omer; DROP TABLE judged;--"
order_time = "order_time"
amount = "amo]unt"
[quality]
min_customers = 1
"""


def test_every_name_is_kept_and_every_file_stays_in_the_project(tmp_path: Path) -> None:
    root = tmp_path / "up" / "project"
    (root / "orders").mkdir(parents=True)
    (root / "cbmt.toml").write_text(CONFIG)
    firms = ("../../x", "'; DROP TABLE firm;--", COMPOSED, DECOMPOSED)
    for k, firm in enumerate(firms):
        text = orders_csv(firm, 30)
        head = '"fi""rm","cust\'omer; DROP TABLE judged;--",order_time,amo]unt'
        (root / "orders" / f"{k} '[x]*.csv").write_text(
            text.replace("firm,customer,order_time,amount", head, 1)
        )
    project = Project(root)
    project.check_schema()
    assert project.intake.update(project.config, root).failed == {}
    assert make_all(project) == {}
    publish(project, the_plan())
    with duckdb.connect(str(project.warehouse), read_only=True) as con:
        found = con.execute("SELECT firm, customers FROM firm ORDER BY firm").fetchall()
        assert con.execute("SELECT DISTINCT source FROM quarantine").fetchall() in (
            [],
            [("'; DROP TABLE x;--",)],
        )
    # Composed and decomposed letters are one firm.
    assert found == [(firm, 30) for firm in sorted(set(firms) - {DECOMPOSED})]
    assert [path.name for path in tmp_path.iterdir()] == ["up"]
    assert [path.name for path in (tmp_path / "up").iterdir()] == ["project"]
    assert {path.name for path in root.iterdir()} == {"cbmt.toml", "data", "orders"}
    lake = root / "data" / "lake"
    assert all(path.resolve().is_relative_to(lake.resolve()) for path in lake.rglob("*"))


@pytest.mark.parametrize(
    "name", [*FIRMS, "![x](javascript:alert(1))", "[y](https://evil.example)\n\n# Title", "`a` *b*"]
)
def test_markdown_of_the_ui_shows_a_name_as_text(name: str) -> None:
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"linkify": False})
    shown = evaluation(Verdict("firm", 1, (f"firm {name} is bad",), (f"{name}: odd",)), "slug").metadata[
        "findings"
    ]
    assert isinstance(shown, dg.MarkdownMetadataValue)
    html = reader.render(shown.value)
    assert set(re.findall(r"<(\w+)", html)) <= {"ul", "li"}
    alt = reader.render(picture(b"png", name).value)
    assert re.findall(r"<(\w+)", alt) == ["p", "img"]
    assert 'src="data:image/png;base64,' in alt


@pytest.mark.parametrize(
    ("arguments", "address", "warned"),
    [
        ([], "127.0.0.1", False),
        (["--host", "localhost"], "localhost", False),
        (["--host", "::1"], "::1", False),
        (["--host", "0.0.0.0"], "0.0.0.0", True),
        (["--host", "192.168.1.9"], "192.168.1.9", True),
    ],
)
def test_the_ui_listens_to_this_machine_and_warns_when_told_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], address: str, warned: bool
) -> None:
    (tmp_path / "cbmt.toml").write_text(CONFIG)
    started: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda _, command: started.append(command))
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "data" / "dagster"))
    monkeypatch.setenv("CBMT_PROJECT", str(tmp_path))
    (tmp_path / "data" / "dagster").mkdir(parents=True)
    with cli.console.capture() as captured:
        done = CliRunner().invoke(cli.main, ["--project", str(tmp_path), "ui", "--port", "3917", *arguments])
    assert done.exception is None, done.output
    [command] = started
    assert command[command.index("-h") + 1] == address
    printed = " ".join((captured.get() + done.output).split())
    assert ("asks for no password" in printed) == warned
    assert f"{address}:3917" in printed
