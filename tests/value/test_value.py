"""Value is the revenue forecast cut another way: identities, and numbers worked out by hand."""

from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import pytest
from helpers.planned import drawn, firm

from cbmt_core.compose import compose_draws
from cbmt_core.errors import ConfigError
from cbmt_core.panel import CustomerHistory
from cbmt_core.value import (
    ValueTerms,
    acquisition_return,
    base_value,
    cohort_values,
    read_spend,
    retention,
    value_by_age,
)
from cbmt_core.value.cohorts import cohort_draws

TERMS = ValueTerms(margin=0.4, discount_rate=0.12)


@pytest.fixture(scope="module")
def panel():
    return firm()


@pytest.fixture(scope="module")
def draws(panel):
    return drawn(panel)


def test_cohorts_add_up_to_the_forecast_and_to_what_was_sold(panel, draws):
    table = cohort_values(panel, draws, TERMS)
    assert table["forecast_sales"].sum() == pytest.approx(draws.centre.S.sum(), rel=1e-12)
    assert table["realised_sales"].sum() == pytest.approx(panel.S.sum(), rel=1e-12)
    assert table["lifetime_sales"].sum() == pytest.approx(panel.S.sum() + draws.centre.S.sum())
    discount = 1.12 ** (-np.arange(1, 53) / 52)
    assert table["discounted_sales"].sum() == pytest.approx(draws.centre.S @ discount)
    assert table["forecast_value"].sum() == pytest.approx(0.4 * draws.centre.S @ discount)
    assert (table["forecast_low"] <= table["forecast_high"]).all()
    assert list(table["to_come"]) == [False] * panel.n_cohorts + [True] * 52


def test_cohorts_of_every_draw_add_up_to_its_sales(draws):
    weight = np.linspace(1, 0.5, 52)
    assert cohort_draws(draws, weight).sum(axis=0) == pytest.approx(compose_draws(draws).sales @ weight)


def test_the_base_and_cohorts_to_come_are_the_forecast(panel, draws):
    table = base_value(panel, draws, TERMS).set_index("part")
    cohorts = (
        cohort_values(panel, draws, TERMS).groupby("to_come")[["forecast_sales", "forecast_value"]].sum()
    )
    assert table.loc["total", "sales"] == pytest.approx(draws.centre.S.sum(), rel=1e-12)
    for part, to_come in (("existing", False), ("to_come", True)):
        assert table.loc[part, "sales"] == pytest.approx(cohorts.loc[to_come, "forecast_sales"])
        assert table.loc[part, "value"] == pytest.approx(cohorts.loc[to_come, "forecast_value"])
    assert table.loc["existing", "sales"] + table.loc["to_come", "sales"] == pytest.approx(
        table.loc["total", "sales"]
    )


def test_the_tail_is_in_no_total_and_fades_as_old_customers_do(panel, draws):
    table = base_value(panel, draws, TERMS).set_index("part")
    old = panel.birth < panel.n_weeks - 52
    q = np.nansum(draws.centre.Y[: panel.n_cohorts][old]) / np.nansum(panel.Y[old, -52:])
    assert 0 < q < 1
    series = sum(q**k for k in range(1, 5))
    assert table.loc["tail", "sales"] == pytest.approx(table.loc["existing", "sales"] * series)
    discounted = sum((q / 1.12) ** k for k in range(1, 5))
    assert table.loc["tail", "discounted_sales"] == pytest.approx(
        table.loc["existing", "discounted_sales"] * discounted
    )
    assert table.loc["total", "sales"] == pytest.approx(draws.centre.S.sum())


def test_a_young_firm_has_no_tail():
    young = firm(weeks=60)
    table = base_value(young, drawn(young, 50), TERMS).set_index("part")
    assert np.isnan(table.loc["tail", "sales"])
    assert table.loc["total", "sales"] > 0


def test_a_shorter_horizon_counts_its_weeks_alone(panel, draws):
    table = base_value(panel, draws, replace(TERMS, horizon_weeks=13)).set_index("part")
    assert table.loc["total", "sales"] == pytest.approx(draws.centre.S[:13].sum())
    cohorts = cohort_values(panel, draws, replace(TERMS, horizon_weeks=13))
    assert cohorts["forecast_sales"].sum() == pytest.approx(draws.centre.S[:13].sum())
    assert len(cohorts) == panel.n_cohorts + 13


def test_value_at_each_age_by_hand(panel, draws):
    table = value_by_age(panel, draws.centre, TERMS).set_index(["acquired_in", "age_days"])
    quarter = pd.Timestamp("2017-07-01")
    week = panel.weeks[0] + 7 * panel.birth
    members = [k for k in range(1, panel.n_cohorts) if "2017-07-01" <= str(week[k]) < "2017-10-01"]
    customers = panel.size[members].sum()
    for days, weeks in ((90, 13), (180, 26), (360, 52)):
        sold = sum(np.nansum(panel.Y[k, panel.birth[k] : panel.birth[k] + weeks]) for k in members)
        row = table.loc[(quarter, days)]
        assert row["sales_per_customer"] == pytest.approx(sold / customers)
        assert row["value_per_customer"] == pytest.approx(0.4 * sold / customers)
        assert row["source"] == "observed"
    first = sum(panel.size[k] * panel.V[k, panel.birth[k]] for k in members)
    assert table.loc[(quarter, 0), "sales_per_customer"] == pytest.approx(first / customers)
    assert table.loc[(quarter, 720), "source"] == "forecast"


def test_ages_beyond_the_horizon_are_left_out(panel, draws):
    table = value_by_age(panel, draws.centre, TERMS)
    assert (table[table["acquired_in"] == table["acquired_in"].max()]["age_days"] < 90).all()
    grown = table.sort_values("age_days").groupby("acquired_in")["sales_per_customer"]
    assert grown.apply(lambda each: bool((np.diff(each) >= 0).all())).all()


def test_cost_and_payback_by_hand(panel, draws):
    spend = pd.Series(1000.0, index=pd.DatetimeIndex(panel.weeks))
    table = acquisition_return(panel, draws.centre, replace(TERMS, discount_rate=0.0), spend).set_index(
        "acquired_in"
    )
    row = table.loc[pd.Timestamp("2017-07-01")]
    week = panel.weeks[0] + 7 * panel.birth
    members = [k for k in range(1, panel.n_cohorts) if "2017-07-01" <= str(week[k]) < "2017-10-01"]
    customers = panel.size[members].sum()
    held = sum("2017-07-01" <= str(one) < "2017-10-01" for one in panel.weeks)
    assert row["cac"] == pytest.approx(1000 * held / customers)
    margin = [
        0.4 * sum(np.nan_to_num(panel.Y[k, panel.birth[k] + a]) for k in members) / customers
        for a in range(60)
    ]
    assert row["ltv"] == pytest.approx(sum(margin[:52]))
    assert row["ltv_cac"] == pytest.approx(sum(margin[:52]) / row["cac"])
    payback = int(row["payback_weeks"]) if row["payback_weeks"] == row["payback_weeks"] else None
    if payback is not None and payback < 60:
        assert sum(margin[:payback]) >= row["cac"] > sum(margin[: payback - 1])


def test_quarters_without_spend_are_left_out(panel, draws):
    spend = pd.Series(10.0, index=pd.DatetimeIndex(panel.weeks[-20:]))
    assert len(acquisition_return(panel, draws.centre, TERMS, spend)) == 1


def test_spend_is_read_by_week(tmp_path):
    file = tmp_path / "spend.csv"
    file.write_text("week,spend,firm\n2020-06-14,10,a\n2020-06-17,5,a\n2020-06-21,7,b\n")
    con = duckdb.connect()
    assert read_spend(con, file, "a", 2).to_dict() == {pd.Timestamp("2020-06-14"): 15.0}
    file.write_text("week,cost\n2020-06-14,10\n")
    with pytest.raises(ConfigError, match="no column spend"):
        read_spend(con, file, "a")
    file.write_text("week,spend\n2020-06-14,ten\n")
    with pytest.raises(ConfigError, match="cannot be read"):
        read_spend(con, file, "a")
    with pytest.raises(ConfigError, match="needs a column firm"):
        read_spend(con, file, "a", 3)
    with pytest.raises(ConfigError, match="no file"):
        read_spend(con, tmp_path / "none.csv", "a")


def test_retention_counts_customers_once_a_period():
    """Three customers of one week: reorders in weeks 0, 5 and 20; in week 20 twice; never."""
    panel = firm(weeks=60)
    cohort = int(np.flatnonzero(panel.birth == 0)[0])
    history = CustomerHistory(
        cohort=np.array([cohort] * 3, np.int32),
        start=np.array([0, 4, 7, 8]),
        week=np.array([0, 0, 5, 20, 0, 20, 20, 0], np.int16),
    )
    table = retention(replace(panel, customers=history)).set_index(["acquired_in", "period"])["active"]
    quarter = pd.Timestamp("2017-01-01")
    assert [table[(quarter, k)] for k in range(4)] == [1, 2, 0, 0]
    assert (quarter, 4) not in table  # 60 weeks hold four periods of 13 weeks.
