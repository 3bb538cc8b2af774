"""What pages show, against the same figures computed another way."""

import numpy as np
import pandas as pd
import pytest
from helpers.published import publish

from cbmt_core import duck
from cbmt_core.report.cohorted_panel import cohorted_panel
from cbmt_core.report.firm_data import gather_layers, read_firm
from cbmt_core.report.firm_outlook import quarters
from cbmt_core.report.numbers import Money, count, percent
from cbmt_core.report.pages import write_report
from cbmt_core.report.planning import read_planning
from cbmt_core.report.story import read_stories
from cbmt_core.report.svg import shades, ticks
from cbmt_core.report.track import BANDS, gather_track, panel_track, read_track
from cbmt_core.report.watch import EARLY_WEEKS

FIRM = "Nordwind"


@pytest.fixture(scope="module")
def con():
    with duck.connect() as connection:
        publish(connection, [FIRM], models=("cohort_glm", "seasonal_naive"), scale=0.05)
        yield connection


@pytest.fixture(scope="module")
def data(con):
    stories = read_stories(con)
    gather_layers(con, stories.live.values())
    return read_firm(con, FIRM, stories.live[FIRM])


@pytest.fixture(scope="module")
def cells(con):
    frame = con.execute("SELECT * FROM cohort_week").df()
    return frame.assign(sales=frame["sales"].astype(float))


def test_layers_add_up_to_observed_then_forecast_sales(con, data):
    total = np.sum([layer.values for layer in data.layers], axis=0)  # noqa: PD011
    seen = slice(0, data.origin + 1)
    assert total[seen] == pytest.approx(data.observed["sales"].to_numpy(dtype=float)[seen])
    assert total[data.origin + 1 :] == pytest.approx(data.forecast["sales"].to_numpy()[data.origin + 1 :])
    assert data.weeks[data.origin] == read_stories(con).live[FIRM].origin
    assert data.weeks[data.origin] == con.execute("SELECT max(week) FROM firm_week").fetchone()[0]
    assert len(data.weeks) == data.origin + 1 + 52


def test_live_and_study_are_told_apart(con):
    stories = read_stories(con)
    live, study = stories.live[FIRM], stories.study[FIRM]
    assert (live.purpose, study.purpose) == ("live", "study")
    assert study.origin < live.origin == stories.newest
    last = con.execute("SELECT sales FROM firm_week WHERE week <= ? ORDER BY week", [live.origin]).df()[
        "sales"
    ]
    assert live.last_sales == pytest.approx(float(last.iloc[-52:].astype(float).sum()))
    assert live.sales == pytest.approx(live.forecast.target_sales)
    assert live.last_sales == pytest.approx(live.forecast.baseline_sales)
    # The year before: its target is the live baseline. The study's: the same weeks as its forecast.
    assert live.realised.target_sales == pytest.approx(live.last_sales)
    assert live.realised.target_last == live.origin
    assert study.realised.target_first == study.forecast.target_first
    assert study.realised.baseline_sales == pytest.approx(study.forecast.baseline_sales)


def test_the_model_is_that_of_forecast_choice(con):
    chosen = con.execute("SELECT purpose, model, why FROM forecast_choice").fetchall()
    stories = read_stories(con)
    by_purpose = {"live": stories.live[FIRM], "study": stories.study[FIRM]}
    assert sorted(chosen) == sorted((s.purpose, s.model, s.why) for s in by_purpose.values())
    with duck.connect() as own:
        publish(own, [FIRM], models=("cohort_glm", "seasonal_naive"), backtests=0)
        own.execute("UPDATE forecast_choice SET model = 'seasonal_naive' WHERE purpose = 'live'")
        stories = read_stories(own)
        assert (stories.live[FIRM].model, stories.study[FIRM].model) == ("seasonal_naive", "cohort_glm")
        # A model without a forecast, then no choice at all: the registry's first model that has one.
        own.execute("UPDATE forecast_choice SET model = 'cbmt_plus'")
        assert (read_stories(own).live[FIRM].model, read_stories(own).live[FIRM].why) == (
            "seasonal_naive",
            "",
        )
        own.execute("DELETE FROM forecast_choice; DELETE FROM forecast_week WHERE model = 'seasonal_naive'")
        assert read_stories(own).live[FIRM].model == "cohort_glm"


def test_quarters_add_up_to_the_year(con, data):
    story = read_stories(con).live[FIRM]
    rows = quarters(data, story, Money("USD"), read_planning(con, story))
    assert [row["total"] for row in rows] == [False] * 4 + [True]
    weeks = con.execute(
        "SELECT f.week, f.sales, f.orders, f.acquired, w.sales::DOUBLE AS past FROM forecast AS f JOIN firm_week AS w "
        "ON w.firm = f.firm AND w.week = f.week - 364 WHERE f.firm = ? ORDER BY f.week",
        [FIRM],
    ).df()
    assert len(weeks) == 52
    for k, row in enumerate(rows[:4]):
        part = weeks.iloc[13 * k : 13 * (k + 1)].sum(numeric_only=True)
        assert row["cells"][0] == Money("USD").short(part["sales"])
        assert row["cells"][3] == percent(100 * (part["sales"] / part["past"] - 1), plus=True)
        assert row["cells"][4:] == [count(part["orders"]), count(part["acquired"])]
    assert rows[4]["cells"][3] == percent(story.change, plus=True)


def test_errors_by_weeks_ahead_are_those_of_track_record(con):
    gather_track(con)
    track = read_track(con, FIRM, "cohort_glm")
    rows = con.execute("SELECT * FROM track_record").df()
    for model in ("cohort_glm", "seasonal_naive"):
        own = rows[(rows["model"] == model) & (rows["purpose"] == "backtest")]
        shown = track.row(model, "backtest")
        for k, (first, last) in enumerate(BANDS):
            part = own[own["weeks_ahead"].between(first, last)]
            off = 200 * (part["forecast"] - part["actual"]).abs() / (part["forecast"] + part["actual"])
            assert shown[str(k)] == pytest.approx(off.mean())
        assert shown["origins"] == own["origin"].nunique() == 3
    assert track.row("cohort_glm", "live") is None
    own = rows[rows["model"] == "cohort_glm"].groupby("origin")[["forecast", "actual"]].sum()
    assert list(track.vintages["forecast"]) == pytest.approx(list(own["forecast"]))
    whole = own[rows[rows["model"] == "cohort_glm"].groupby("origin").size() == 52]
    assert track.years == len(whole) == 1
    assert track.year_error == pytest.approx((100 * (whole["forecast"] / whole["actual"] - 1)).abs().mean())
    # One firm: the panel's means are its own.
    panel = panel_track(con).set_index("model")
    assert panel.loc["cohort_glm", "0"] == pytest.approx(track.row("cohort_glm", "backtest")["0"])
    assert panel.loc["cohort_glm", "firms"] == 1


def test_tenure_curves_are_orders_over_customers(data, cells):
    row, step = 2, data.tenure_step
    quarter = pd.Period(data.cohorts[row].replace(" ", ""), "Q")
    own = cells[~cells["left_censored"] & (cells["cohort"].dt.to_period("Q") == quarter)]
    for k in (0, 3):
        part = own[own["tenure"].between(k * step + 1, (k + 1) * step)]
        assert data.tenure[row, k] == pytest.approx(part["repeat_orders"].sum() / part["cohort_size"].sum())


def test_what_to_watch_ends_at_the_last_observed_week(data, cells):
    origin = cells["week"].max()
    watch = data.watch
    assert watch.last == origin.date()
    newest = origin - pd.Timedelta(weeks=EARLY_WEEKS - 1)
    early = cells[~cells["left_censored"] & (cells["tenure"] < EARLY_WEEKS) & (cells["cohort"] <= newest)]
    assert early["week"].max() <= origin
    rates = []
    for years in (0, 1):
        last = newest - pd.Timedelta(weeks=52 * years)
        part = early[(early["cohort"] <= last) & (early["cohort"] > last - pd.Timedelta(weeks=52))]
        rates.append(part["repeat_orders"].sum() / part.groupby("cohort")["cohort_size"].first().sum())
    assert watch.early_change == pytest.approx(100 * (rates[0] / rates[1] - 1))
    born = cells[cells["week"] <= origin].groupby("week")["initial_orders"].sum()
    assert watch.acquired == (born.iloc[-52:].sum(), born.iloc[-104:-52].sum())
    year = cells[(cells["week"] <= origin) & (cells["week"] > origin - pd.Timedelta(weeks=52))]
    assert watch.old_share == pytest.approx(
        year.loc[year["left_censored"], "sales"].sum() / year["sales"].sum()
    )


def test_the_triangle_holds_all_sales(data, cells):
    assert data.triangle["sales"].sum() == pytest.approx(cells["sales"].sum())
    assert set(data.triangle["period"]) == set(data.periods)


def test_a_model_of_total_sales_alone_is_drawn_as_a_line(con, tmp_path):
    with duck.connect() as own:
        publish(own, [FIRM], models=("cohort_glm",))
        own.execute("DELETE FROM forecast_cohort_week; DELETE FROM bridge WHERE model = 'cohort_glm'")
        own.execute("UPDATE forecast_week SET acquired = NULL, orders = NULL, ropc = NULL, aov = NULL")
        page = write_report(own, tmp_path)[0].read_text()
    assert "gives no sources of the change" in page
    assert '"name":"forecast"' in page[page.index('id="layers"') : page.index("Next year by quarter")]


def test_long_histories_are_grouped_by_year(tmp_path):
    with duck.connect() as own:
        publish(own, [FIRM], models=("cohort_glm",))
        own.execute("""
            INSERT INTO cohort_week SELECT * REPLACE (cohort - INTERVAL 1820 DAY AS cohort,
                week - INTERVAL 1820 DAY AS week) FROM cohort_week WHERE NOT left_censored""")
        stories = read_stories(own)
        gather_layers(own, stories.live.values())
        data = read_firm(own, FIRM, stories.live[FIRM])
    assert all(len(name) == 4 for name in data.cohorts)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0, 10, [0, 2, 4, 6, 8, 10]), (0, 0.07, [0, 0.02, 0.04, 0.06]), (3, 3, [3])],
)
def test_ticks_are_round(low, high, expected):
    assert ticks(low, high) == pytest.approx(expected)


def test_shades_grow_lighter():
    light = [
        sum(int(c[k : k + 2], 16) * w for k, w in ((1, 0.299), (3, 0.587), (5, 0.114))) for c in shades(13)
    ]
    assert light == sorted(light)
    assert shades(0) == []
    assert len(shades(1)) == 1


def test_the_cohorted_panel_multiplies_out(con, cells):
    own = cells[~cells["left_censored"]]
    newest = own[own["cohort"].isin(sorted(own["cohort"].unique())[-4:])].sort_values(["cohort", "week"])
    first = newest[newest["week"] >= newest["week"].max() - pd.Timedelta(weeks=3)].iloc[0]
    tables = {table.name: table for table in cohorted_panel(con, first["firm"], Money("USD"))}
    assert len(tables) == 5
    acquired, orders = tables["Customers acquired"], tables["Orders: acquired + repeat"]
    assert acquired.rows[0][1][0] == f"{first['cohort_size']:,}"
    assert orders.rows[0][1][0] == f"{first['orders']:,}"
    # A cohort has no cell before its birth, and customers are acquired in their birth week only.
    assert all(
        cells[k] == ""
        for table in tables.values()
        for n, (_, cells) in enumerate(table.rows)
        for k in range(n)
    )
    assert all(sum(cell != "" for cell in cells) == 1 for _, cells in acquired.rows)
