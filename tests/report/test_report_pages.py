"""The report's pages in a real browser: what they show is what the tables hold, and they need nothing else."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import duckdb
import pandas as pd
import pytest
from published import MODELS, publish

from cbmt_core import duck
from cbmt_core.report import write_report
from cbmt_core.report.numbers import Money, points, value

FIRMS = ("A, B & <Söhne>", "100% off", "Plain~South")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
needs_browser = pytest.mark.skipif(
    CHROMIUM is None and not os.environ.get("CI"), reason="needs Chromium; `make browser` says how to get it"
)
NO_NUMBER = re.compile(r"\b(nan|None|inf|NaT|undefined)\b")


@pytest.fixture(scope="module")
def con() -> Iterator[duckdb.DuckDBPyConnection]:
    with duck.connect() as connection:
        publish(connection, FIRMS)
        yield connection


@pytest.fixture(scope="module")
def report(con, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    heard: list[Path] = []
    written = write_report(con, folder, heard.append)
    assert heard == written
    return folder


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    assert CHROMIUM, "CI must have Chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield browser
        browser.close()


@pytest.fixture
def page(browser):
    """A page that fails the test when anything is logged, thrown or fetched from elsewhere than a file."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
    page.on(
        "request", lambda request: request.url.startswith(("file:", "data:")) or trouble.append(request.url)
    )
    yield page
    page.close()
    assert trouble == []


def path_of(report: Path, con: duckdb.DuckDBPyConnection, firm: str) -> Path:
    [(slug,)] = con.execute("SELECT slug FROM firm WHERE firm = ?", [firm]).fetchall()
    return report / "firms" / f"{slug}.html"


def text_of(path: Path) -> str:
    """What a reader can see of a page, roughly: no markup, no scripts."""
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", path.read_text(), flags=re.DOTALL)
    return re.sub(r"<[^>]+>", " ", body)


def test_every_firm_has_a_page_and_every_link_leads_to_one(report, con):
    index = (report / "index.html").read_text()
    links = re.findall(r'href="(firms/[^"]+)"', index)
    assert len(links) == len(FIRMS)
    assert {report / unquote(link) for link in links} == {path_of(report, con, firm) for firm in FIRMS}
    assert all((report / unquote(link)).exists() for link in links)


def test_pages_are_whole_small_and_show_no_missing_number(report):
    for path in report.rglob("*.html"):
        text = path.read_text()
        assert path.stat().st_size < 400_000
        assert not re.search(r'(src|href)="(https?:|//)', text)
        assert not NO_NUMBER.search(text_of(path)), path.name
        assert "<Söhne>" not in text, "names are escaped"


@needs_browser
def test_a_firm_page_shows_the_numbers_of_its_tables(report, con, page, tmp_path):
    firm, money = FIRMS[0], Money("USD")
    page.goto(path_of(report, con, firm).as_uri())
    assert page.locator("h1").inner_text() == firm
    row = con.execute("SELECT * FROM bridge WHERE firm = ? AND model = 'cohort_glm'", [firm]).df().iloc[0]
    realised = con.execute("SELECT * FROM bridge WHERE firm = ? AND model = 'realised'", [firm]).df().iloc[0]
    names = ("sales_change", "order_volume", "spend_per_order", "net_replenishment")
    assert page.locator(".tile .amount").all_inner_texts() == [money.short(row[n], plus=True) for n in names]
    assert page.locator(".tile .more").all_inner_texts() == [
        f"{points(row[f'{n}_points'])}, realised {points(realised[f'{n}_points'])}" for n in names
    ]
    assert money.short(row["target_sales"]) in page.locator(".lead h2").inner_text()
    errors = con.execute(
        "SELECT smape FROM accuracy WHERE firm = ? AND horizon = 'full' AND outcome = 'total_sales' ORDER BY smape",
        [firm],
    ).fetchall()
    shown = page.locator("#errors tbody td:last-child").all_inner_texts()
    assert shown == [value(smape, 1) for (smape,) in errors]
    assert len(shown) == len(MODELS)
    assert "bad <amount>" in page.locator("table").last.inner_text()
    page.screenshot(path=tmp_path / "firm.png", full_page=True)
    assert (tmp_path / "firm.png").stat().st_size > 50_000


@needs_browser
def test_every_chart_is_drawn(report, con, page):
    page.goto(path_of(report, con, FIRMS[1]).as_uri())
    for chart in ("#layers", "#tenure", ".driver", "#triangle", ".bridge"):
        assert page.locator(f"{chart} svg").count() >= 1, chart
    assert page.locator(".driver svg").count() == 3
    assert page.locator(".bridge svg").count() == 2
    paths = page.locator("#layers path, .driver path, #tenure path").evaluate_all(
        "all => all.map(one => [one.getAttribute('d'), one.getTotalLength()])"
    )
    assert len(paths) > 20
    assert all(length > 5 or "h0" in drawn for drawn, length in paths)
    assert max(drawn.count("L") for drawn, _ in paths) > 100
    assert not any("nan" in drawn for drawn, _ in paths)
    assert page.locator("#triangle rect").count() > 50
    labelled = page.locator("svg.chart").evaluate_all(
        "all => all.map(one => one.getAttribute('aria-label').length)"
    )
    assert min(labelled) > 20
    outside = page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
    assert not outside, "the page is wider than a laptop"


@needs_browser
def test_hovering_tells_the_week_and_its_sales(report, con, page):
    firm = FIRMS[1]
    page.goto(path_of(report, con, firm).as_uri())
    tip = page.locator(".tip")
    assert not tip.is_visible()
    chart = page.locator("#layers svg")
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    chart.hover(position={"x": box["width"] * 0.3, "y": box["height"] / 2})
    assert tip.is_visible()
    week = pd.Timestamp(tip.locator("strong").inner_text().removeprefix("Week of ")).date()
    [(sales,)] = con.execute(
        "SELECT sales FROM firm_week WHERE firm = ? AND week = ?", [firm, week]
    ).fetchall()
    assert tip.locator(".sum b").inner_text() == Money("USD").short(float(sales))
    chart.focus()
    page.keyboard.press("ArrowRight")
    later = pd.Timestamp(tip.locator("strong").inner_text().removeprefix("Week of ")).date()
    assert (later - week).days == 7
    cell = page.locator("#triangle rect").first
    cell.scroll_into_view_if_needed()
    cell.hover()
    assert "Weeks observed" in tip.inner_text()


@needs_browser
def test_the_panel_page_shows_the_comparison(report, con, page):
    page.goto((report / "index.html").as_uri())
    rows = con.execute(
        "SELECT mean, median, average_rank FROM accuracy_summary WHERE metric = 'smape' AND outcome = 'total_sales' "
        "AND horizon = 'full' AND industry = '(all)' ORDER BY mean"
    ).fetchall()
    table = page.locator("#accuracy tbody tr").evaluate_all(
        "all => all.map(r => [...r.cells].map(c => c.innerText))"
    )
    assert [(r[1], r[2], r[4]) for r in table] == [tuple(value(v, 2) for v in row) for row in rows]
    assert "need at least 10 firms" in page.locator(".lead").inner_text()
    [(dots,)] = con.execute("SELECT count(*) FROM exhibit_industry").fetchall()
    for chart, number in {"#ranks": len(MODELS), "#industries": dots, "#scatter": len(FIRMS)}.items():
        assert page.locator(f"{chart} circle").count() == number, chart
    assert page.locator(".horizon svg").count() == 5
    point = page.locator("#scatter circle").first
    point.scroll_into_view_if_needed()
    point.hover()
    assert page.locator(".tip strong").inner_text() == sorted(FIRMS)[0]
    point.click()
    page.wait_for_selector("#layers")
    assert page.locator("h1").inner_text() == sorted(FIRMS)[0]
    page.locator(".crumb a").click()
    page.wait_for_selector("#accuracy")


@needs_browser
def test_pages_print(report, con, page):
    page.goto(path_of(report, con, FIRMS[0]).as_uri())
    page.set_viewport_size({"width": 696, "height": 1000})
    page.emulate_media(media="print")
    assert not page.locator(".crumb").is_visible()
    wide = page.evaluate(
        "[...document.querySelectorAll('table, svg')].map(e => e.getBoundingClientRect().right)"
    )
    assert max(wide) <= 697, "something runs off the paper"
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")


def test_a_forecast_whose_weeks_are_yet_to_come(tmp_path):
    with duck.connect() as con:
        design = publish(con, FIRMS[:1], currency="CHF")
        for table in ("cohort_week", "firm_week"):
            con.execute(f"DELETE FROM {table} WHERE week > ?", [design.origin])
        con.execute("DELETE FROM accuracy; DELETE FROM accuracy_summary; DELETE FROM bridge_mae")
        con.execute("DELETE FROM exhibit_horizon; DELETE FROM exhibit_industry")
        con.execute("DELETE FROM bridge WHERE model = 'realised'")
        pages = write_report(con, tmp_path)
    firm, diagnostics, panel = map(text_of, pages)
    assert "not yet known" in firm
    assert "no realised bridge" in firm
    assert "CHF\u00a0" in firm
    assert "Forecasts have not been compared yet" in panel
    assert not NO_NUMBER.search(firm + diagnostics + panel)


def test_a_firm_without_forecasts_or_bridge_still_has_a_page(tmp_path):
    with duck.connect() as con:
        publish(con, FIRMS[:2])
        one, other = FIRMS[:2]
        con.execute("DELETE FROM forecast_week WHERE firm = ?", [one])
        con.execute(
            "UPDATE model_fit SET succeeded = false, reason = 'history too short' WHERE firm = ?", [one]
        )
        con.execute("UPDATE bridge SET eligible = false, reason = 'no repeat orders' WHERE firm = ?", [other])
        paths = write_report(con, tmp_path)
        texts = {path: text_of(path) for path in paths}
        first, second = (texts[path_of(tmp_path, con, name)] for name in (one, other))
        assert "There is no forecast of this firm yet" in first
        assert "history too short" in first
        assert "cannot be told apart" in second
        assert "No repeat orders." in second
        panel = texts[tmp_path / "index.html"]
        assert "no forecast yet" in panel
        assert "history too short" in panel
        assert not NO_NUMBER.search(" ".join(texts.values()))
        # With no forecast at all there is no relation of the cohorts' forecasts.
        con.execute(
            "DELETE FROM forecast_week; DROP TABLE forecast_cohort_week; DELETE FROM firm WHERE firm = $1",
            [one],
        )
        assert len(write_report(con, tmp_path)) == 3
        assert not path_of(tmp_path, con, other).with_name(f"{one}.html").exists()
        assert len(list((tmp_path / "firms").iterdir())) == 1
