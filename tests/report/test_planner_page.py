"""What planners see: ranges, scenarios, targets and value on the page are those of the tables and of the library."""

from __future__ import annotations

import csv
import time
from unittest.mock import Mock
from urllib.parse import unquote

import duckdb
import numpy as np
import pandas as pd
import pytest
from helpers.browser import needs_browser
from helpers.planned import lognormal_draws
from helpers.published import DRAWS, FIRMS, SCENARIOS

from cbmt_core.bands import revenue_from_rows
from cbmt_core.report import plan_words
from cbmt_core.report.numbers import Money, percent
from cbmt_core.report.panel_outlook import total_ranges
from cbmt_core.report.plan_words import Signal
from cbmt_core.report.planning import held_weeks
from cbmt_core.scenarios import Scenario, baseline_of, outcome_of
from cbmt_core.scenarios.outcome import interval
from cbmt_core.scenarios.tables import past_year

FIRM, MONEY = FIRMS[0], Money("USD")


def rows(con, table, where="true", order="1"):
    return con.execute(
        f"SELECT t.* FROM {table} AS t JOIN forecast_choice AS c USING (firm, model, origin) "
        f"WHERE c.purpose = 'live' AND firm = ? AND {where} ORDER BY {order}",
        [FIRM],
    ).df()


def address(report, con):
    [(slug,)] = con.execute("SELECT slug FROM firm WHERE firm = ?", [FIRM]).fetchall()
    return (report / "firms" / f"{slug}.html").as_uri()


@needs_browser
def test_page_tables_and_library_have_the_same_numbers(report, con, page):
    """Python: draws and scenarios made again from the forecast's rows, without the tables."""
    page.goto(address(report, con))
    [(model, origin)] = con.execute(
        "SELECT model, origin FROM forecast_choice WHERE firm = ? AND purpose = 'live'", [FIRM]
    ).fetchall()
    cells = con.execute(
        "FROM forecast_cohort_week WHERE firm = ? AND model = ? AND origin = ? AND purpose = 'live'",
        [FIRM, model, origin],
    ).df()
    baseline = baseline_of(lognormal_draws(revenue_from_rows(cells, origin), DRAWS))
    low, high = interval(baseline.outcome.totals)
    # The range of the year: library, scenario table, band table, page.
    (stored,) = rows(con, "scenario", "scenario = 'baseline'").to_dict("records")
    (band,) = rows(con, "forecast_band", "outcome = 'sales' AND period = 'year' AND level = 80").to_dict(
        "records"
    )
    assert (
        (stored["sales_low"], stored["sales_high"])
        == (float(low), float(high))
        == (band["low"], band["high"])
    )
    said = page.locator("#range").inner_text()
    assert f"between {MONEY.short(float(low))} and {MONEY.short(float(high))}" in said
    # A scenario: library, table, page.
    outcome = outcome_of(baseline, SCENARIOS[0])
    (shown_text,) = rows(con, "scenario", f"scenario = '{SCENARIOS[0].name}'").to_dict("records")
    assert shown_text["sales"] == outcome.total
    assert shown_text["difference"] == outcome.total - baseline.outcome.total
    line = page.locator("#scenario-table tbody tr").nth(1).inner_text()
    assert SCENARIOS[0].name in line
    assert MONEY.short(shown_text["sales"]) in line
    assert MONEY.short(shown_text["difference"], plus=True) in line
    # Its bridge, and the baseline's, which is that of the table `bridge`.
    sources = outcome.bridge(past_year(con, "cohort_week", FIRM, origin))
    kept = rows(con, "scenario_bridge", f"scenario = '{SCENARIOS[0].name}'").set_index("source")["amount"]
    assert {name: amount for name, (amount, _) in sources.items()} == pytest.approx(kept.to_dict())
    bridge = rows(con, "bridge", "t.purpose = 'live'").iloc[0]
    plain = rows(con, "scenario_bridge", "scenario = 'baseline'").set_index("source")["amount"]
    for name in plain.index:
        assert plain[name] == pytest.approx(bridge[name], abs=1e-6 * bridge["baseline_sales"])
    # Value: table and page.
    value = rows(con, "customer_base_value").set_index("part")["value"]
    amounts = page.locator("#value .tile .amount").all_inner_texts()
    assert amounts[:3] == [MONEY.short(value[part]) for part in ("existing", "to_come", "total")]
    forecast = con.execute("SELECT sum(sales) FROM forecast WHERE firm = ?", [FIRM]).fetchall()[0][0]
    assert rows(con, "customer_base_value").set_index("part").loc["total", "sales"] == pytest.approx(forecast)
    assert rows(con, "cohort_value")["forecast_sales"].sum() == pytest.approx(forecast)
    # The plan and what it takes.
    target = rows(con, "target").set_index("driver")
    assert plan_words.chance(target["probability"].iloc[0]) in said
    needed = page.locator("#targets tr").all_inner_texts()
    assert percent(target.loc["aov", "change"], plus=True) in next(t for t in needed if "Order value" in t)


@needs_browser
def test_every_chart_can_be_taken_away_as_a_file(report, con, page, tmp_path):
    page.goto(address(report, con))
    charts = page.locator("svg.chart").count()
    assert page.locator("figure .take").count() >= charts
    with page.expect_download() as waiting:
        page.locator("#fan .take").click()
    assert waiting.value.suggested_filename.endswith(".csv")
    waiting.value.save_as(tmp_path / "fan.csv")
    with (tmp_path / "fan.csv").open(encoding="utf-8-sig", newline="") as file:
        held = {row["at"]: row for row in csv.DictReader(file)}
    weekly = rows(con, "forecast_band", "outcome = 'sales' AND period = 'week' AND level = 80", "week")
    for week, low, high in weekly[["week", "low", "high"]].itertuples(index=False):
        own = held[str(week.date())]
        assert [float(own["80% low"]), float(own["80% high"])] == pytest.approx([low, high], abs=0.006)
    plan = rows(con, "plan_week", order="week")
    assert float(held[str(plan["week"][0].date())]["plan"]) == pytest.approx(plan["sales"][0], abs=0.006)
    with page.expect_download() as waiting:
        page.locator("#tornado .take").click()
    waiting.value.save_as(tmp_path / "tornado.csv")
    moved = rows(con, "scenario", "kind = 'tornado'").set_index("scenario")["difference"]
    with (tmp_path / "tornado.csv").open(encoding="utf-8-sig", newline="") as file:
        numbers = {row["driver"]: float(row["sales at +10%"]) for row in csv.DictReader(file)}
    assert numbers["Order value"] == pytest.approx(moved["aov +10%"], abs=1e-3)


@needs_browser
def test_the_list_of_firms_is_sorted_and_searched(report, con, page):
    page.goto((report / "index.html").as_uri())
    heads = page.locator("#firms th").all_inner_texts()
    assert {"80% range", "Plan reached", "Off by"} <= set(heads)
    change = heads.index("Change")
    page.locator("#firms th", has_text="Change").first.click()
    numbers = [float(v) for v in page.locator(f"#firms tbody td:nth-child({change + 1})").evaluate_all(
        "cells => cells.map(cell => cell.dataset.value)")]  # fmt: skip
    assert numbers == sorted(numbers, reverse=True)
    page.locator("#firms th", has_text="Change").first.click()
    names = page.locator("#firms tbody td:first-child").all_inner_texts()
    expected = con.execute(
        "SELECT firm FROM bridge JOIN forecast_choice AS c USING (firm, model, origin) WHERE c.purpose = 'live' "
        "AND bridge.purpose = 'live' ORDER BY sales_change_points"
    ).fetchall()
    assert names == [name for (name,) in expected]


@needs_browser
def test_a_thousand_firms_stay_quick(report, page, tmp_path):
    """The page of three firms with their rows repeated: sorting and searching take well under a second."""
    text = (report / "index.html").read_text()
    first = text.index("<tr><td><a href=")
    last = text.index("</tbody>", first)
    block = text[first:last]
    many = tmp_path / "many.html"
    search = '<input type="search" data-filter="#firms">'
    many.write_text(text[:first] + block * 334 + text[last:].replace("</section>", search + "</section>", 1))
    page.goto(many.as_uri())
    assert page.locator("#firms tbody tr").count() == 1002
    started = time.monotonic()
    page.locator("#firms th", has_text="Change").first.click()
    page.locator("input[data-filter]").first.fill("100%")
    shown = page.locator("#firms tbody tr:visible").count()
    assert time.monotonic() - started < 5, "on a machine that does other work too"
    assert shown == 334


@needs_browser
def test_a_phone_sees_the_forecast_and_that_tables_go_on(report, con, page):
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(address(report, con))
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert page.locator("#fan figure").evaluate("one => one.scrollLeft") > 100, "the fan starts at its end"
    label = page.locator("#fan .pinned text").first.bounding_box()
    assert 0 <= label["x"] < 60, "the vertical axis stays in sight"
    axis, chart = (page.locator(f"#fan {one}").first.bounding_box() for one in (".pinned svg", "svg.chart"))
    assert (axis["y"], axis["height"]) == pytest.approx((chart["y"], chart["height"]), abs=1)
    taken = page.locator("#fan .take").first.bounding_box()
    assert 0 <= taken["x"] < 60, "and so does the link to the numbers"
    wide = page.locator(".scroll:has(#scenario-table)")
    assert "more" in wide.get_attribute("class")
    wide.evaluate("one => { one.scrollLeft = one.scrollWidth; one.dispatchEvent(new Event('scroll')); }")
    assert "more" not in wide.get_attribute("class")


@needs_browser
def test_on_paper_nothing_is_cut_or_folded_away(report, con, page, tmp_path):
    """The first sheet has the headline, no chart crosses the edge of the sheet, and months are shown."""
    page.goto(address(report, con))
    file = tmp_path / "page.pdf"
    page.pdf(path=file, format="A4", print_background=True)
    assert file.read_bytes().startswith(b"%PDF")
    page.set_viewport_size({"width": 700, "height": 990})
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("#months tbody tr").first.is_visible()
    edges = page.evaluate(
        "[...document.querySelectorAll('svg.chart')].map(one => one.getBoundingClientRect().right)"
    )
    assert edges
    assert max(edges) <= 700
    assert page.evaluate("getComputedStyle(document.querySelector('.lead')).breakInside") == "auto"
    assert page.evaluate("getComputedStyle(document.querySelector('#fan figure')).breakInside") == "avoid"


@needs_browser
def test_months_have_the_range_of_the_table(report, con, page):
    page.goto(address(report, con))
    page.locator("summary", has_text="month").click()
    shown = page.locator("#months tbody tr").evaluate_all("all => all.map(row => row.cells[2].innerText)")
    stored = con.execute(
        "SELECT sales_low, sales_high FROM forecast_month WHERE firm = ? ORDER BY month", [FIRM]
    ).fetchall()
    assert shown == [f"{MONEY.short(low)} – {MONEY.short(high)}" for low, high in stored]


def test_a_sum_of_firms_has_the_range_of_what_is_known_of_them():
    """Two equal firms: alike the half widths add up, apart they grow by the root of two. Draws agree."""
    rng = np.random.default_rng(5)
    own = 100 + 10 * rng.standard_normal((2, 40_000))
    ends = tuple(np.quantile(own[0], [0.1, 0.9]))
    stories = [Mock(firm=name, sales=100.0) for name in "ab"]
    apart, alike = total_ranges(stories, {"a": ends, "b": ends})
    np.testing.assert_allclose(apart, np.quantile(own.sum(axis=0), [0.1, 0.9]), rtol=0.01)
    np.testing.assert_allclose(alike, np.quantile(2 * own[0], [0.1, 0.9]), rtol=1e-9)
    assert total_ranges(stories, {"a": ends}) == (None, None)


def test_unfinished_quarters_are_marked(report, con):
    text = unquote((report / "firms").joinpath(_slug(con) + ".html").read_text())
    weeks = con.execute("SELECT min(week), max(week) FROM firm_week WHERE firm = ?", [FIRM]).fetchall()[0]
    last = pd.Timestamp(weeks[1])
    whole = (last + pd.Timedelta(weeks=1)).quarter != last.quarter
    triangle = text.split('id="triangle"')[1].split("</figure>")[0]
    assert (f">{last.year} Q{last.quarter}*<" in triangle) == (not whole)
    assert "mark part" in triangle


def _slug(con):
    return con.execute("SELECT slug FROM firm WHERE firm = ?", [FIRM]).fetchall()[0][0]


@pytest.mark.parametrize(
    ("signals", "year", "hard", "shown_text"),
    [
        ([Signal("acquisition", -9.0, -20.0, 3.0)], None, "", "budget, the channels and the timing"),
        ([Signal("acquisition", -9.0, -20.0, -3.0)], None, "", "The whole range is a fall."),
        ([Signal("reorders", -4.0)], None, "", "retention"),
        ([Signal("value", -4.0)], None, "", "prices, promotions"),
        (
            [Signal(name, -4.0) for name in ("acquisition", "reorders", "value")],
            None,
            "",
            "All three drivers weaken",
        ),
        (
            [Signal(name, 1.0) for name in ("acquisition", "reorders", "value")],
            None,
            "",
            "nothing in the forecast calls for a change of course",
        ),
        (
            [Signal("acquisition", 1.0), Signal("value", 1.0)],
            None,
            "",
            "for new customers and order value; repeat orders of existing customers cannot be judged",
        ),
        (
            [Signal("acquisition", -9.0), Signal("value", 1.0)],
            None,
            "",
            "Repeat orders of existing customers cannot be judged: an existing base usually reorders less",
        ),
        ([Signal("value", 1.0)], (50.0, 150.0), "", "The range is wide: plan for both ends"),
        ([], (50.0, 150.0), "", "The range is wide: plan for both ends"),
        ([Signal("value", 1.0)], (99.0, 101.0), "this firm is hard", "This firm is hard: plan for both ends"),
    ],
)
def test_advice_follows_from_the_numbers(signals, year, hard, shown_text):
    found = plan_words.to_do(signals, year, hard)
    assert any(shown_text in text for text in found), found


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"acquisition": "-10% from 2020-06 to 2020-08 over 4 weeks"},
         "customers acquired −10% from 1 Jun 2020 to 31 Aug 2020, growing over 4 weeks"),
        ({"repeat_existing": "+2.5%", "aov": "=120"},
         "repeat orders of existing customers +2.5%; order value: 120 an order"),
    ],
)  # fmt: skip
def test_a_scenario_is_told_in_words(changes, said):
    assert plan_words.changes_in_words(Scenario.of(changes=changes).description) == said


def test_no_advice_without_numbers():
    assert plan_words.to_do([], None) == []
    steady = plan_words.to_do([Signal("acquisition", -1.0, -9.0, 9.0)], (90.0, 110.0))
    assert not any("budget" in text for text in steady)


def test_weeks_held_are_counted_of_the_model_and_of_weeks_that_have_passed():
    """Sales of 100 in two weeks; ranges of three forecasts, one of which is still to come true."""
    day = pd.Timestamp("2020-01-05")
    weeks = [day, day + pd.Timedelta(weeks=1)]
    sales = pd.DataFrame({"firm": FIRM, "week": weeks, "sales": 100.0})
    held = [
        # model, purpose, outcome, period, week, level, low, high
        ("m", "backtest", "sales", "week", weeks[0], 80, 90, 110),
        ("m", "live", "sales", "week", weeks[1], 80, 100, 120),
        ("m", "backtest", "sales", "week", weeks[1], 80, 101, 120),
        ("m", "live", "sales", "week", weeks[1] + pd.Timedelta(weeks=1), 80, 0, 1),
        ("m", "study", "sales", "week", weeks[0], 80, 0, 1),
        ("m", "live", "sales", "week", weeks[0], 50, 0, 1),
        ("m", "live", "orders", "week", weeks[0], 80, 0, 1),
        ("m", "live", "sales", "year", weeks[0], 80, 0, 1),
        ("other", "live", "sales", "week", weeks[0], 80, 0, 1),
    ]
    columns = ["model", "purpose", "outcome", "period", "week", "level", "low", "high"]
    ranges = pd.DataFrame(held, columns=columns).assign(firm=FIRM)
    with duckdb.connect() as con:
        con.register("firm_week", sales)
        con.register("forecast_band", ranges)
        assert held_weeks(con, FIRM, "m") == (2, 3)
        assert held_weeks(con, FIRM, None) == (0, 0)
    assert (
        plan_words.held_so_far(2, 3, 80)
        == "So far 67% of 3 weeks of earlier forecasts lay within their 80% range."
    )
    assert plan_words.held_so_far(0, 0, 80) == ""
