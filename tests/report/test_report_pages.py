"""The report's pages in a real browser: what they show is what the tables hold, and they need nothing else."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import duckdb
import pandas as pd
from helpers.browser import needs_browser
from helpers.published import BACKTESTS, FIRMS, LIVE_MODELS, MODELS, publish

from cbmt_core import duck
from cbmt_core.exhibits import EXHIBITS
from cbmt_core.report.numbers import Money, percent, points, value
from cbmt_core.report.pages import write_report
from cbmt_core.report.story import label

NO_NUMBER = re.compile(r"\b(nan|None|inf|NaT|undefined)\b")


def path_of(report: Path, con: duckdb.DuckDBPyConnection, firm: str) -> Path:
    [(slug,)] = con.execute("SELECT slug FROM firm WHERE firm = ?", [firm]).fetchall()
    page = report / "firms" / f"{slug}.html"
    return page if page.exists() else report / "index.html"  # The report of a single firm is one page.


def bridges_of(con: duckdb.DuckDBPyConnection, firm: str) -> tuple[pd.Series, pd.Series]:
    """The live bridge of the model to plan with, and the realised one of the year before."""
    rows = con.execute(
        "SELECT b.* FROM bridge AS b JOIN forecast_choice AS c USING (firm, purpose) WHERE firm = ? "
        "AND purpose = 'live' AND b.model IN (c.model, 'realised') ORDER BY b.model = 'realised'",
        [firm],
    ).df()
    assert len(rows) == 2
    return rows.iloc[0], rows.iloc[1]


def part_of(path: Path, start: str, end: str) -> str:
    """What a reader sees between two marks of a page."""
    return " ".join(seen(path.read_text().split(start, 1)[1].split(end, 1)[0]).split())


def lead_of(path: Path) -> str:
    return part_of(path, '<section class="lead">', "</section>")


def text_of(path: Path) -> str:
    return seen(path.read_text())


def seen(markup: str) -> str:
    """What a reader can see, roughly: no markup, no scripts."""
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", markup, flags=re.DOTALL)
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
    row, before = bridges_of(con, firm)
    names = ("sales_change", "order_volume", "spend_per_order", "net_replenishment")
    assert page.locator(".lead .tile .amount").all_inner_texts() == [
        money.short(row[n], plus=True) for n in names
    ]
    shares = page.locator(".lead .tile .amount + .more").all_inner_texts()
    assert shares == [points(row[f"{n}_points"]) for n in names]
    assert page.locator(".lead .tile .before").all_inner_texts() == [
        f"year before: {money.short(before[n], plus=True)}, {points(before[f'{n}_points'])}" for n in names
    ]
    assert money.short(row["target_sales"]) in page.locator(".lead h2").inner_text()
    [(why,)] = con.execute(
        "SELECT why FROM forecast_choice WHERE firm = ? AND purpose = 'live'", [firm]
    ).fetchall()
    assert why in page.locator("#model").inner_text().lower()
    assert page.locator("#quarters tbody tr").count() == 5
    assert page.locator("#made tbody tr").count() == BACKTESTS
    assert page.locator("#track tbody tr").count() == len(LIVE_MODELS)
    errors = con.execute(
        "SELECT smape FROM accuracy WHERE firm = ? AND horizon = 'full' AND outcome = 'total_sales' ORDER BY smape",
        [firm],
    ).fetchall()
    shown = page.locator("#errors tbody td:last-child").all_text_contents()
    assert shown == [value(smape, 1) for (smape,) in errors]
    assert len(shown) == len(MODELS)
    assert page.locator("#study").count() == 1
    assert "bad <amount>" in page.locator("table").last.inner_text()
    page.screenshot(path=tmp_path / "firm.png", full_page=True)
    assert (tmp_path / "firm.png").stat().st_size > 50_000


@needs_browser
def test_every_chart_is_drawn(report, con, page):
    page.goto(path_of(report, con, FIRMS[1]).as_uri())
    for chart in ("#layers", "#tenure", ".driver", "#triangle", ".bridge", "#vintages", "#study"):
        assert page.locator(f"{chart} svg").count() >= 1, chart
    assert page.locator(".driver svg").count() == 3
    assert page.locator("#bridges .bridge svg").count() == 2
    assert page.locator("#earlier .bridge svg").count() == 2
    # Actual sales, and a line for each backtest.
    assert page.locator("#vintages path").count() == 1 + BACKTESTS
    assert page.locator("#study path").count() == 2
    paths = page.locator(
        "#layers path, .driver path, #tenure path, #vintages path, #study path"
    ).evaluate_all("all => all.map(one => [one.getAttribute('d'), one.getTotalLength()])")
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
    chart = page.locator("#layers svg.chart")
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
    assert "need at least 10 firms" in page.locator("#study").inner_text()
    assert "made with data up to 6 Apr 2019" in page.locator("#study").inner_text()
    [(dots,)] = con.execute("SELECT count(*) FROM exhibit.industry").fetchall()
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
def test_pages_fit_a_phone(report, con, page):
    page.set_viewport_size({"width": 390, "height": 800})
    for path in (path_of(report, con, FIRMS[0]), report / "index.html"):
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    # No column of the list is squeezed to a word a line.
    assert max(page.locator("#firms tbody tr").evaluate_all("all => all.map(r => r.offsetHeight)")) < 150


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


def test_the_headline_is_that_of_the_live_bridge(report, con):
    for firm in FIRMS:
        row, before = bridges_of(con, firm)
        lead = lead_of(path_of(report, con, firm))
        change = row["sales_change_points"]
        assert abs(change) > 0.5, "the test needs a change to speak of"
        verb = "rise" if change > 0 else "fall"
        assert f"Sales are forecast to {verb} {abs(change):.1f}% over the next 52 weeks" in lead
        assert "The 52 weeks to 27 Feb 2021 against the 52 weeks to 29 Feb 2020." in lead
        assert "made with data up to 29 Feb 2020" in lead
        for name in ("order_volume", "spend_per_order", "net_replenishment"):
            assert lead.count(points(before[f"{name}_points"])) >= 2, "in its tile and in words"
    rows = [bridges_of(con, firm)[0] for firm in FIRMS]
    total = 100 * (sum(r["target_sales"] for r in rows) / sum(r["baseline_sales"] for r in rows) - 1)
    panel = lead_of(report / "index.html")
    assert f"Sales are forecast to {'rise' if total > 0 else 'fall'} {abs(total):.1f}% over the next" in panel


def test_a_study_is_never_described_as_the_year_ahead(report, con):
    made, target = "6 Apr 2019", "7 Apr 2019 to 29 Feb 2020"
    for firm in FIRMS:
        path = path_of(report, con, firm)
        before, evidence = path.read_text().split('id="earlier"')
        assert made not in seen(before)
        text = " ".join(seen(evidence).split())
        assert f"Made with data up to {made}, for weeks that have passed since ({target})" in text
        assert "are forecast to" not in text
    before, evidence = (report / "index.html").read_text().split('id="evidence"')
    assert made not in seen(before)
    assert f"made with data up to {made}, for weeks that have passed since ({target})" in seen(evidence)


def test_what_to_watch_is_dated_by_the_last_week(report, con):
    [(last,)] = con.execute("SELECT max(week) FROM firm_week").fetchall()
    assert last.isoformat() == "2020-02-23"
    for firm in FIRMS:
        watch = part_of(path_of(report, con, firm), '<ul id="watch">', "</ul>")
        assert "new customers in the 52 weeks to 29 Feb 2020" in watch
        assert "in the 52 weeks to 27 Feb 2021" in watch
        assert "Apr 2019" not in watch


def test_the_list_of_firms_tells_change_reason_and_model(report, con):
    rows = re.findall(r"<tr><td><a href=.*?</tr>", (report / "index.html").read_text(), flags=re.DOTALL)
    for firm, row in zip(sorted(FIRMS), rows, strict=True):
        ahead, _ = bridges_of(con, firm)
        money = Money("USD")
        cells = [re.sub(r"<[^>]+>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)]
        assert cells[2:4] == [money.short(ahead["baseline_sales"]), money.short(ahead["target_sales"])]
        assert cells[4] == percent(ahead["sales_change_points"], plus=True)
        assert "against the year before" in cells[6]
        assert cells[-1] == label(ahead["model"])


def published(
    tmp_path: Path, change: str = "", firms: tuple[str, ...] = FIRMS[:2], **options
) -> dict[str, Path]:
    """Pages by firm, and "index", of a published file with one `change` made to it."""
    with duck.connect() as con:
        publish(con, firms, **options)
        con.execute(change or "SELECT 1")
        write_report(con, tmp_path)
        pages = {firm: path_of(tmp_path, con, firm) for firm in firms} | {"index": tmp_path / "index.html"}
    assert not NO_NUMBER.search(" ".join(map(text_of, pages.values())))
    return pages


NO_STUDY = (
    "DELETE FROM study; DELETE FROM study_window; DELETE FROM accuracy; DELETE FROM accuracy_summary; "
    "DELETE FROM diagnostic.accuracy_failure; DELETE FROM diagnostic.bridge_mae; DELETE FROM diagnostic.bridge_method; "
    + "".join(f"DELETE FROM {name} WHERE purpose = 'study'; " for name in
              ("forecast_week", "forecast_cohort_week", "model_fit", "bridge", "forecast_choice"))
    + "".join(f"DELETE FROM {exhibit.table.relation}; " for exhibit in EXHIBITS.values())
)  # fmt: skip


def test_a_project_too_young_for_a_study(tmp_path):
    pages = published(tmp_path, NO_STUDY)
    for firm in FIRMS[:2]:
        assert "over the next 52 weeks" in lead_of(pages[firm])
        assert 'id="track"' in pages[firm].read_text()
        assert 'id="study"' not in pages[firm].read_text()
    index = pages["index"]
    assert "There is no study" in text_of(index)
    assert "over the next 52 weeks" in lead_of(index)
    assert 'id="accuracy"' not in index.read_text()


def test_only_a_study(tmp_path):
    pages = published(tmp_path, live=False, backtests=0)
    for page in pages.values():
        assert "There is no forecast of the year ahead yet" in lead_of(page)
        assert "has been made" in lead_of(page)
        assert "are forecast to" not in text_of(page)
        assert "There are no backtests yet" in text_of(page)
    page = pages[FIRMS[0]]
    assert 'id="errors"' in page.read_text()
    assert 'id="quarters"' not in page.read_text()
    assert "no forecast yet" in text_of(pages["index"])
    assert 'id="accuracy"' in pages["index"].read_text()


def test_one_firm_without_backtests_or_a_year_before(tmp_path):
    change = "DELETE FROM bridge WHERE model = 'realised' AND purpose = 'live'"
    pages = published(tmp_path, change, FIRMS[:1], backtests=0, currency="CHF")
    page = pages[FIRMS[0]]
    lead = lead_of(page)
    assert "over the next 52 weeks" in lead
    assert "CHF\u00a0" in text_of(page)
    assert "year before:" not in lead
    assert "no bridge of the year before" in text_of(page)
    assert "There are no backtests yet" in text_of(page)
    # What is known of its errors is the study's.
    assert "In the test on past weeks, Cohort GLM was off by" in lead
    assert page == pages["index"]
    assert "diagnostics.html" not in page.read_text()
    assert "All firms" not in text_of(page)


def test_a_young_firm_says_what_its_forecast_leans_on(tmp_path):
    young = (
        "DELETE FROM firm_week WHERE week < DATE '2019-08-04'; DELETE FROM cohort_week WHERE week < DATE '2019-08-04'; "
        "UPDATE bridge SET eligible = false, reason = '30 of the 52 weeks of the baseline are there'; "
        "DELETE FROM bridge WHERE model = 'realised'; "
        "UPDATE model_fit SET diagnosis = 'leans on what other firms taught: 30 weeks of its own'"
    )
    pages = published(tmp_path, NO_STUDY + young, FIRMS[:1], backtests=0)
    lead = lead_of(pages[FIRMS[0]])
    assert re.match(r"Sales of \$\S+ are forecast over the next 52 weeks", lead)
    assert "30 of the 52 weeks of the baseline are there" in lead
    assert "About this fit: Leans on what other firms taught: 30 weeks of its own." in lead
    assert "How far Cohort GLM is off on this firm is not yet known" in lead


def test_a_young_firm_is_not_in_the_total(tmp_path):
    before = f"WHERE week < DATE '2019-08-04' AND firm = '{FIRMS[1]}'"
    young = f"DELETE FROM firm_week {before}; DELETE FROM cohort_week {before}"
    index = published(tmp_path, young)["index"]
    assert "1 firm with fewer than 52 observed weeks is not in the total" in lead_of(index)
    assert "USD 1 $" in part_of(index, '<table id="totals">', "</table>")


def test_past_live_forecasts_are_part_of_the_record(tmp_path):
    """Vintages of every week: the table counts all of them, chart and list show a few."""
    vintages = (
        "INSERT INTO forecast_week SELECT * EXCLUDE k REPLACE (origin - 7 * CAST(k AS INTEGER) AS origin, "
        "week - 7 * CAST(k AS INTEGER) AS week) FROM forecast_week, range(1, 31) AS weeks(k) WHERE purpose = 'live'"
    )
    pages = published(tmp_path, vintages, FIRMS[:1])
    chart = pages[FIRMS[0]].read_text().split('id="vintages"')[1].split("</figure>")[0]
    assert "In 30 live forecasts of this firm, Cohort GLM was off by" in lead_of(pages[FIRMS[0]])
    track, made = (part_of(pages[FIRMS[0]], f'<table id="{name}">', "</table>") for name in ("track", "made"))
    assert track.count(" live ") == len(LIVE_MODELS)
    # Thirty weeks hold three vintages a quarter apart.
    assert made.count(" live ") == 3
    assert chart.count('"forecast made ') == 3 + BACKTESTS
    assert "52 weeks to 29 Feb 2020" in lead_of(pages[FIRMS[0]]), "the newest vintage is the one told"


def test_too_few_weeks_for_any_forecast(tmp_path):
    few = "DELETE FROM firm_week WHERE week < DATE '2019-10-06'; DELETE FROM cohort_week WHERE week < DATE '2019-10-06'"
    pages = published(tmp_path, NO_STUDY + few, FIRMS[:1], live=False, backtests=0)
    for page in pages.values():
        assert "needs 26 whole weeks, and the data have 21: 5 more weeks to come" in lead_of(page)


def test_an_older_forecast_says_so_and_is_not_in_the_total(tmp_path):
    old = "2019-12-29"
    late = "".join(
        f"DELETE FROM {table} WHERE firm = '{FIRMS[1]}' AND purpose = 'live'; "
        f"UPDATE {table} SET purpose = 'live' WHERE firm = '{FIRMS[1]}' AND origin = DATE '{old}'; "
        for table in ("forecast_week", "forecast_cohort_week", "model_fit", "bridge", "forecast_choice")
    )
    pages = published(tmp_path, late)
    lead = lead_of(pages[FIRMS[1]])
    assert "in the 52 weeks to 2 Jan 2021" in lead
    assert "over the next" not in lead
    assert "Forecasts of other firms have data up to 29 Feb 2020" in lead
    assert "realised sales after the origin" in text_of(pages[FIRMS[1]])
    index = pages["index"]
    assert f"The newest forecast of {FIRMS[1]} (data up to 4 Jan 2020) is older" in lead_of(index)
    assert "(older: data up to 4 Jan 2020)" in text_of(index)
    totals = part_of(index, '<table id="totals">', "</table>")
    assert "USD 1 $" in totals


def test_currencies_are_not_added(tmp_path):
    pages = published(tmp_path, f"UPDATE firm SET currency = 'EUR' WHERE firm = '{FIRMS[1]}'")
    lead = lead_of(pages["index"])
    assert re.match(
        r"Sales are forecast to (rise|fall) \S+% in EUR and (rise|fall) \S+% in USD over the next", lead
    )
    totals = part_of(pages["index"], '<table id="totals">', "</table>")
    assert "EUR 1 €" in totals
    assert "USD 1 $" in totals


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
        assert "There is no forecast of the year ahead yet" in first
        assert "Cohort GLM: history too short" in first
        assert "cannot be told apart: no repeat orders." in second
        assert "over the next 52 weeks" in second
        panel = texts[tmp_path / "index.html"]
        assert "no forecast yet" in panel
        assert "There is no forecast of A, B" in panel
        assert "history too short" in panel
        assert not NO_NUMBER.search(" ".join(texts.values()))
        # With no forecast at all there is no relation of the cohorts' forecasts.
        con.execute(
            "DELETE FROM forecast_week; DROP TABLE forecast_cohort_week; DELETE FROM firm WHERE firm = $1",
            [one],
        )
        assert write_report(con, tmp_path) == [tmp_path / "index.html"]
        assert not list((tmp_path / "firms").iterdir()), "pages of firms that are gone are deleted"
        assert not (tmp_path / "diagnostics.html").exists()


def test_value_beyond_the_horizon_says_why_it_is_not_estimated(tmp_path):
    missing = "UPDATE customer_base_value SET value = NULL WHERE part = 'tail';"
    short = "UPDATE customer_base_value SET horizon_weeks = 26, margin = 0.4;"
    page = text_of(published(tmp_path / "young", missing, FIRMS[:1])[FIRMS[0]])
    assert "Not estimated: two whole years have not been observed" in page
    page = text_of(published(tmp_path / "short", missing + short, FIRMS[:1])[FIRMS[0]])
    assert "Not estimated: a horizon of 26 weeks is less than a year" in page
    assert "The margin, 40% of sales, of the next 26 weeks" in page


def test_errors_further_ahead_show_the_model_that_the_study_finds_best(tmp_path):
    best = (
        "(SELECT model FROM accuracy_summary WHERE metric = 'smape' AND outcome = 'total_sales' AND horizon = 'full' "
        "AND industry = '(all)' ORDER BY mean, model LIMIT 1)"
    )
    index = published(tmp_path, f"DELETE FROM exhibit.horizon WHERE model = {best}")["index"]
    headline = part_of(index, '<section id="study">', "</section>")
    legend = part_of(index, "<h3>Errors further ahead</h3>", "<figure")
    [name] = re.findall(r"\. ([^.]+) forecast sales best", headline)
    assert name in legend
