"""Names that are code in HTML, SVG, JSON, SQL or Markdown: pages show them as text, and no script of theirs runs."""

from __future__ import annotations

import json
import re
import unicodedata
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from helpers.browser import needs_browser
from helpers.published import publish

from cbmt_core import duck
from cbmt_core.report.pages import write_report
from cbmt_core.report.svg import Canvas

HOSTILE = (
    "<script>window.hit=1</script>",
    '"><img src=x onerror="window.hit=2">',
    "</script><script>window.hit=3</script>",
    "'; DROP TABLE firm;--",
    "</title></svg><svg onload=window.hit=4>",
    "![x](javascript:window.hit=5) [y](//evil.example) `z`",
    "\u202eשלום‏ abc 🛒",
    unicodedata.normalize("NFC", "Café {{7*7}} ${7*7}"),
)


def drawn(title: str) -> str:
    canvas = Canvas(600, 300, title=title, description=title)
    canvas.text(1, 1, title)
    canvas.hover = {"labels": [title]}
    canvas.table = ([title], [[title]])
    return str(canvas.svg())


class Parts(HTMLParser):
    """Tags, attributes and the content of scripts, as a browser's tokeniser sees them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script" and self.cdata_elem == "script":
            self.scripts.append(data)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_chart_of_a_hostile_name_has_the_parts_of_one_of_a_plain_name(name: str) -> None:
    hostile, plain = Parts(), Parts()
    hostile.feed(drawn(name))
    plain.feed(drawn("Plain"))
    assert [tag for tag, _ in hostile.tags] == [tag for tag, _ in plain.tags]
    assert [set(held) for _, held in hostile.tags] == [set(held) for _, held in plain.tags]
    assert json.loads(hostile.scripts[0]) == {"labels": [name]}
    assert json.loads(hostile.scripts[1]) == {"header": [name], "rows": [[name]]}


@needs_browser
def test_no_script_of_a_name_runs_and_every_name_is_shown(tmp_path: Path, page) -> None:
    firms = HOSTILE[:3] + HOSTILE[5:7]
    with duck.connect() as con:
        publish(con, firms, models=("cohort_glm", "seasonal_naive"), backtests=1, scale=0.01)
        for column in ("industry", "currency"):
            con.execute(f"UPDATE firm SET {column} = ? WHERE firm <> ?", [HOSTILE[1], firms[0]])
        con.execute("UPDATE model_fit SET reason = ?", [HOSTILE[2]])
        con.execute("UPDATE quarantine SET detail = ?, reason = ?", [HOSTILE[0], HOSTILE[4]])
        written = write_report(con, tmp_path)
        slugs = dict(con.execute("SELECT firm, slug FROM firm").fetchall())
    pages = [path for path in written if path.suffix == ".html"]
    assert all(path.resolve().is_relative_to(tmp_path.resolve()) for path in written)
    for firm in firms:
        path = tmp_path / "firms" / f"{slugs[firm]}.html"
        page.goto(path.as_uri())
        assert page.evaluate("window.hit") is None
        assert firm in page.title() or firm in page.inner_text("body")
        for box in page.query_selector_all("svg.chart[tabindex]")[:3]:
            box.scroll_into_view_if_needed()
            box.hover()
        assert page.evaluate("window.hit") is None
    for path in [one for one in pages if one.parent == tmp_path]:
        page.goto(path.as_uri())
        assert page.evaluate("window.hit") is None
        assert page.evaluate("document.querySelectorAll('img[onerror], svg[onload]').length") == 0
    index = unescape((tmp_path / "index.html").read_text())
    assert all(firm in index for firm in firms)


def test_templates_escape_what_they_are_given() -> None:
    """`|safe` stands only where the text was made by code that escapes, and no template turns escaping off."""
    folder = Path(__file__).parents[2] / "cbmt_core/report/templates"
    for template in folder.glob("*.html"):
        text = template.read_text()
        assert "autoescape false" not in text
        assert re.findall(r"\{\{[^}]*\|\s*safe[^}]*\}\}", text) == [], template.name
