"""What pages show, against the same figures computed another way."""

import numpy as np
import pandas as pd
import pytest
from published import publish

from cbmt_core import duck
from cbmt_core.report import write_report
from cbmt_core.report.cohorted_panel import cohorted_panel
from cbmt_core.report.firm_data import EARLY_WEEKS, gather_layers, read_firm
from cbmt_core.report.numbers import Money
from cbmt_core.report.story import stories
from cbmt_core.report.svg import shades, ticks

FIRM = "Nordwind"


@pytest.fixture(scope="module")
def con():
    with duck.connect() as connection:
        publish(connection, [FIRM], models=("cohort_glm",), scale=0.05)
        yield connection


@pytest.fixture(scope="module")
def data(con):
    told = stories(con)
    gather_layers(con, told.values())
    return read_firm(con, FIRM, told[FIRM])


@pytest.fixture(scope="module")
def cells(con):
    frame = con.execute("SELECT * FROM cohort_week").df()
    return frame.assign(sales=frame["sales"].astype(float))


def test_layers_add_up_to_observed_then_forecast_sales(con, data):
    total = np.sum([layer.values for layer in data.layers], axis=0)  # noqa: PD011
    seen = slice(0, data.origin + 1)
    assert total[seen] == pytest.approx(data.observed["sales"].to_numpy(dtype=float)[seen])
    assert total[data.origin + 1 :] == pytest.approx(data.forecast["sales"].to_numpy()[data.origin + 1 :])
    assert data.weeks[data.origin] == stories(con)[FIRM].origin


def test_tenure_curves_are_orders_over_customers(data, cells):
    row, step = 2, data.tenure_step
    quarter = pd.Period(data.cohorts[row].replace(" ", ""), "Q")
    own = cells[~cells["left_censored"] & (cells["cohort"].dt.to_period("Q") == quarter)]
    for k in (0, 3):
        part = own[own["tenure"].between(k * step + 1, (k + 1) * step)]
        assert data.tenure[row, k] == pytest.approx(part["repeat_orders"].sum() / part["cohort_size"].sum())


def test_cohort_quality_and_acquisition_know_nothing_after_the_origin(con, data, cells):
    origin = pd.Timestamp(data.weeks[data.origin])
    newest = origin - pd.Timedelta(weeks=EARLY_WEEKS - 1)
    early = cells[~cells["left_censored"] & (cells["tenure"] < EARLY_WEEKS) & (cells["cohort"] <= newest)]
    assert early["week"].max() <= origin
    rates = []
    for years in (0, 1):
        last = newest - pd.Timedelta(weeks=52 * years)
        part = early[(early["cohort"] <= last) & (early["cohort"] > last - pd.Timedelta(weeks=52))]
        rates.append(part["repeat_orders"].sum() / part.groupby("cohort")["cohort_size"].first().sum())
    assert data.early_change == pytest.approx(100 * (rates[0] / rates[1] - 1))
    born = cells[cells["week"] <= origin].groupby("week")["initial_orders"].sum()
    assert data.acquired == (born.iloc[-52:].sum(), born.iloc[-104:-52].sum())
    year = cells[(cells["week"] <= origin) & (cells["week"] > origin - pd.Timedelta(weeks=52))]
    assert data.old_share == pytest.approx(
        year.loc[year["left_censored"], "sales"].sum() / year["sales"].sum()
    )


def test_the_triangle_holds_all_sales(data, cells):
    assert data.triangle["sales"].sum() == pytest.approx(cells["sales"].sum())
    assert set(data.triangle["period"]) == set(data.periods)


def test_a_model_of_total_sales_alone_is_drawn_as_a_line(con, tmp_path):
    with duck.connect() as own:
        publish(own, [FIRM], models=("cohort_glm",))
        own.execute("DELETE FROM forecast_cohort_week; DELETE FROM bridge WHERE model = 'cohort_glm'")
        own.execute("UPDATE forecast_week SET acquired = NULL, ropc = NULL, aov = NULL")
        page = write_report(own, tmp_path)[0].read_text()
    assert "gives no sources of the change" in page
    assert '"name":"forecast"' in page[page.index('id="layers"') : page.index("The three drivers")]


def test_long_histories_are_grouped_by_year(tmp_path):
    with duck.connect() as own:
        publish(own, [FIRM], models=("cohort_glm",))
        own.execute("""
            INSERT INTO cohort_week SELECT * REPLACE (cohort - INTERVAL 1820 DAY AS cohort,
                week - INTERVAL 1820 DAY AS week) FROM cohort_week WHERE NOT left_censored""")
        told = stories(own)
        gather_layers(own, told.values())
        data = read_firm(own, FIRM, told[FIRM])
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
    first = cells[~cells["left_censored"]].sort_values(["cohort", "week"]).iloc[0]
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
