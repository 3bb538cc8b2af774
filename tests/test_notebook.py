"""The library as notebooks use it: any frame, the same rules as the pipeline, errors that say what to do."""

from __future__ import annotations

import doctest
import importlib
import pydoc
import subprocess
import sys
import warnings
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cbmt_core as cbmt
from cbmt_core.errors import ConfigError
from cbmt_core.models import CannotFit
from cbmt_core.names import UnknownFirm
from cbmt_core.notebook.plot import LABELS

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def orders() -> pd.DataFrame:
    return cbmt.example_orders(scale=0.004)


@pytest.fixture(scope="module")
def panel(orders: pd.DataFrame) -> cbmt.Panel:
    return cbmt.panel_from_orders(orders, country="GB", name="Shop")


def sunday(times: pd.Series) -> pd.Series:
    days = times.dt.normalize()
    return days - pd.to_timedelta((days.dt.day_of_week + 1) % 7, unit="D")


def test_the_weeks_are_what_pandas_counts(orders: pd.DataFrame, panel: cbmt.Panel) -> None:
    """Independent of the SQL that makes cohorts: first orders and sums of each week, by pandas."""
    week = sunday(pd.to_datetime(orders["order_time"]))
    first = week.groupby(orders["customer"]).transform("min")
    weeks = panel.to_frame().index
    sales = orders.groupby(week)["amount"].sum().astype(float)
    born = orders.assign(first=first).drop_duplicates("customer").groupby("first").size()
    table = panel.to_frame()
    np.testing.assert_allclose(table["sales"], sales.reindex(weeks, fill_value=0))
    np.testing.assert_allclose(table["acquired"], born.reindex(weeks, fill_value=0))
    np.testing.assert_allclose(table["orders"], orders.groupby(week).size().reindex(weeks, fill_value=0))
    assert weeks[0] - sunday(pd.to_datetime(orders["order_time"])).min() == pd.Timedelta(weeks=53)


def test_any_frame_gives_the_same_panel(orders: pd.DataFrame, panel: cbmt.Panel) -> None:
    strings = orders.assign(order_time=orders["order_time"].astype(str), amount=orders["amount"].astype(str))
    shuffled = orders.sample(frac=1, random_state=1).assign(remark=object())
    zoned = orders.assign(order_time=pd.to_datetime(orders["order_time"]).dt.tz_localize("UTC"))
    for frame in (
        pl.DataFrame(orders),
        pl.LazyFrame(orders),
        pa.Table.from_pandas(orders),
        pa.table(pl.DataFrame(orders)),
        strings,
        shuffled.drop(columns="remark"),
        zoned,
        orders.astype({"customer": "category"}),
        orders.set_index("firm"),
    ):
        assert cbmt.panel_from_orders(frame, country="GB", name="Shop").digest == panel.digest
    renamed = orders.rename(columns={"customer": "user_id", "order_time": "created_at", "amount": "total"})
    again = cbmt.panel_from_orders(
        renamed, country="GB", name="Shop", customer="user_id", order_time="created_at", amount="total"
    )
    assert again.digest == panel.digest


def test_rows_that_cannot_be_used_are_counted(orders: pd.DataFrame, panel: cbmt.Panel) -> None:
    bad = pd.DataFrame({**orders.iloc[[0, 1, 2]].to_dict("list"), "amount": ["oops", None, "n/a"]})
    bad["order_id"] = ["x1", "x2", "x3"]
    mixed = pd.concat([orders.astype({"amount": object}), bad], ignore_index=True)
    with pytest.warns(
        cbmt.RowsNotUsed, match=r"3 of [\d,]+ rows were not used: unparseable amount 2, missing amount 1"
    ):
        found = cbmt.panel_from_orders(mixed, country="GB", name="Shop")
    assert found.digest == panel.digest
    with pytest.raises(cbmt.CbmtError, match=r"3 of the 3 rows .* cannot be used"):
        cbmt.panel_from_orders(bad)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cbmt.panel_from_orders(orders)


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        (lambda o: o.rename(columns={"customer": "customer_id"}), {}, "is it customer='customer_id'?"),
        (lambda o: o.drop(columns="amount"), {}, "say which it is with amount="),
        (lambda o: o, {"order_id": "invoice"}, "no column 'invoice'"),
        (lambda o: o.iloc[:0], {}, "the orders have no rows"),
        (lambda o: o, {"country": "XX"}, "no holidays are known for 'XX'"),
        (lambda o: o, {"timezone": "London"}, "is not a time zone"),
        (lambda o: o[o["order_time"] < "2016-01-05"], {}, "whole weeks"),
    ],
)
def test_what_cannot_be_a_panel_is_explained(orders, change, options, words) -> None:
    with pytest.raises(cbmt.CbmtError, match=words.replace("?", r"\?")):
        cbmt.panel_from_orders(change(orders), **options)
    with pytest.raises(TypeError, match="a pandas, polars or Arrow frame, not list"):
        cbmt.panel_from_orders([1])


def test_a_forecast_answers_the_usual_questions(panel: cbmt.Panel) -> None:
    forecast = panel.forecast("cohort_glm", weeks=52)
    weekly, monthly, quarters = (forecast.to_frame(by=by) for by in ("week", "month", "quarter"))
    assert list(weekly["horizon"]) == list(range(1, 53))
    assert weekly["week"].iloc[0] == pd.Timestamp(panel.origin) + pd.Timedelta(weeks=1)
    for frame in (monthly, quarters):
        np.testing.assert_allclose(frame[["sales", "orders"]].sum(), weekly[["sales", "orders"]].sum())
    assert monthly["days"].sum() == 7 * 52
    assert [len(quarters), str(quarters["last"].iloc[-1].date())] == [4, str(date(2021, 2, 27))]
    np.testing.assert_allclose(weekly["sales"], weekly["orders"] * weekly["aov"])
    cohorts = forecast.cohorts()
    np.testing.assert_allclose(cohorts.groupby("week")["sales"].sum().to_numpy(), weekly["sales"])
    bridge = forecast.bridge()["sales"]
    assert bridge["last_year"] == pytest.approx(panel.S[-52:].sum())
    assert bridge["next_year"] == pytest.approx(weekly["sales"].sum())
    assert bridge.iloc[1:4].sum() == pytest.approx(bridge["next_year"] - bridge["last_year"])
    assert "Forecast of 'Shop' by cohort_glm: 52 weeks from 2020-03-01" in repr(forecast)
    half = panel.forecast("cohort_glm", weeks=26)
    assert half.bridge()["sales"]["last_year"] == pytest.approx(panel.S[-52:-26].sum())
    np.testing.assert_allclose(half.revenue.S, forecast.revenue.S[:26])


def test_a_backtest_sees_nothing_after_its_origin(panel: cbmt.Panel) -> None:
    earlier = panel.until("2019-03-31")
    assert earlier.origin == date(2019, 3, 31)
    assert pd.to_datetime(earlier.cohort_week["week"]).max() == pd.Timestamp("2019-03-31")
    scores = earlier.forecast("seasonal_naive", weeks=47).score(panel).set_index(["outcome", "horizon"])
    actual, said = panel.S[-47:], earlier.forecast("seasonal_naive", weeks=47).revenue.S
    expected = 200 * np.mean(np.abs(said - actual) / (np.abs(said) + np.abs(actual)))
    assert scores.loc[("total_sales", "full"), "smape"] == pytest.approx(expected)


def test_what_cannot_be_forecast_is_explained(panel: cbmt.Panel) -> None:
    with pytest.raises(ConfigError, match="did you mean cbmt_plus"):
        panel.forecast("cbmt_pluss")
    with pytest.raises(ValueError, match="at least one week ahead"):
        panel.forecast("cohort_glm", weeks=0)
    with pytest.raises(CannotFit, match="weeks"):
        panel.until("2017-02-05").forecast("cohort_glm")
    with pytest.raises(cbmt.NoBridge, match="but the panel begins with 2017-01-01"):
        panel.until("2017-10-01").forecast("cohort_glm").bridge()
    with pytest.raises(ValueError, match="there is no 'profit' to draw"):
        panel.plot("profit")


@pytest.mark.parametrize("what", list(LABELS))
def test_pictures_show_the_forecast_from_the_last_week_on(panel: cbmt.Panel, what: str) -> None:
    from matplotlib import pyplot

    forecast = panel.until("2019-03-31").forecast("cohort_glm", weeks=20)
    ax = forecast.plot(what, actual=panel)
    observed, ahead, *_ = ax.get_lines()
    assert len(ahead.get_ydata()) == 21
    assert len(observed.get_ydata()) > 104
    np.testing.assert_allclose(ahead.get_ydata()[1:], forecast.to_frame()[what].astype(float))
    pyplot.close(ax.figure)


def test_panels_of_several_firms_and_their_common_prior() -> None:
    panels = cbmt.panels_from_orders(cbmt.example_orders(firms=2, scale=0.003), country="US")
    assert len({panel.first_week for panel in panels.values()}) == 1
    one, other = panels
    with pytest.raises(UnknownFirm, match=f"did you mean {one}"):
        panels[one.lower()]
    assert other in panels
    assert one.lower() not in panels


def test_own_models_take_part_and_the_products_cannot_be_replaced(panel: cbmt.Panel) -> None:
    class Flat:
        def __init__(self, share: float = 1.0) -> None:
            self.share = share

        def fit(self, panel: cbmt.Panel, *, seed: int) -> Flat:
            self.cohorts, self.acquired = panel.n_cohorts, panel.A.mean()
            return self

        def forecast(self, horizon: int) -> cbmt.PrimitiveForecast:
            born = np.arange(horizon) >= np.arange(-self.cohorts, horizon)[:, None]
            A = np.full(horizon, self.share * self.acquired)
            return cbmt.PrimitiveForecast(A=A, R=np.where(born, 0.0, np.nan), V=np.where(born, 10.0, np.nan))

    cbmt.register_model("flat", Flat)
    try:
        # No repeat orders: sales are first orders alone, 10 each.
        assert pytest.approx(5 * panel.A.mean()) == panel.forecast("flat", weeks=4, share=0.5).revenue.S
        assert "flat" in cbmt.MODELS
        with pytest.raises(ConfigError, match="register it with replace=True"):
            cbmt.register_model("flat", Flat)
        cbmt.register_model("flat", Flat, replace=True)
        with pytest.raises(ConfigError, match="takes a name first"):
            cbmt.register_model(Flat)
        with pytest.raises(ConfigError, match="choose another name"):
            cbmt.register_model("cbmt", Flat, replace=True)
        with pytest.raises(ConfigError, match="flat takes no option shape"):
            panel.forecast("flat", shape=2)
    finally:
        cbmt.unregister_model("flat")
    assert "flat" not in cbmt.MODELS


def test_a_firm_without_a_usable_week_says_so(orders: pd.DataFrame) -> None:
    stray = orders.iloc[-2:].assign(firm="Young", order_time=pd.Timestamp("2020-03-02 10:00"))
    both = pd.concat([orders, stray], ignore_index=True)
    with pytest.warns(cbmt.RowsNotUsed, match="Young was left out: has no order from"):
        panels = cbmt.panels_from_orders(both)
    assert list(panels) == [orders["firm"].iloc[0]]


def test_scenarios_change_the_drivers_and_nothing_else(panel: cbmt.Panel) -> None:
    forecast = panel.forecast("cohort_glm")
    sales, same = forecast.revenue.S, forecast.scenario(acquisition=0.0, aov="x1").revenue
    for name in "ARVYS":
        np.testing.assert_array_equal(getattr(same, name), getattr(forecast.revenue, name))
    np.testing.assert_allclose(forecast.scenario(aov=0.03).revenue.S, 1.03 * sales)
    fewer = forecast.scenario(acquisition=-0.1, first="2020-06")
    factor = np.where(forecast.revenue.weeks < np.datetime64("2020-06-01"), 1.0, 0.9)
    np.testing.assert_allclose(fewer.revenue.A, factor * forecast.revenue.A)
    known = panel.n_cohorts
    np.testing.assert_array_equal(fewer.revenue.Y[:known], forecast.revenue.Y[:known])
    assert "scenario: acquisition -10% from 2020-06-01" in repr(fewer)
    bridge = fewer.bridge()["sales"]
    assert bridge["next_year"] == pytest.approx(fewer.revenue.S.sum())
    assert bridge["order_volume"] == pytest.approx(forecast.bridge()["sales"]["order_volume"])
    with pytest.raises(ConfigError, match="no driver is called 'aquisition'"):
        forecast.scenario(aquisition=0.1)
    with pytest.raises(cbmt.CbmtError, match="cohort_glm has no distribution of its own"):
        forecast.bands()


@pytest.mark.slow
def test_bands_lie_around_the_forecast_and_follow_its_scenario(panel: cbmt.Panel) -> None:
    forecast = panel.forecast("cbmt_plus", weeks=26)
    bands = forecast.bands(draws=200).set_index(["outcome", "period", "level"]).sort_index()
    whole = bands.loc[("sales", "horizon")]
    assert (whole["low"].diff().dropna() < 0).all(), "wider at higher levels"
    assert whole["low"].iloc[0] < forecast.revenue.S.sum() < whole["high"].iloc[0]
    dearer = (
        forecast.scenario(aov=0.5).bands(draws=200).set_index(["outcome", "period", "level"]).sort_index()
    )
    columns = ["low", "high", "mean"]
    np.testing.assert_allclose(dearer.loc[("sales", "horizon"), columns], 1.5 * whole[columns])
    assert forecast.draws(20).acquired.shape == (20, 26)


@pytest.mark.slow
@pytest.mark.parametrize("weeks", [26, 52])
def test_the_sources_of_the_change_have_ranges_around_the_bridge(panel: cbmt.Panel, weeks: int) -> None:
    forecast = panel.forecast("cbmt_plus", weeks=weeks)
    bridge = forecast.bridge()["sales"]
    found = forecast.bands(draws=200)
    whole = found[found["weeks"] == weeks].set_index(["outcome", "level"])
    sources = ["order_volume", "spend_per_order", "net_replenishment"]
    for name in sources:
        low, high = whole.loc[(name, 95), ["low", "high"]]
        assert low < bridge[name] < high, name
    mean = whole.xs(50, level="level").groupby("outcome")["mean"].first()
    assert mean["sales_change"] == pytest.approx(mean["sales"] - bridge["last_year"])
    assert mean[sources].sum() == pytest.approx(mean["sales_change"])
    short = panel.until(panel.weeks[40].item()).forecast("cbmt_plus", weeks=weeks)
    assert not set(sources) & set(short.bands(draws=20)["outcome"]), "there is no year before to compare with"


CHEAP = """
import sys, cbmt_core
heavy = {"numpy", "pandas", "duckdb", "torch", "matplotlib", "pyarrow", "scipy"} & set(sys.modules)
assert not heavy, heavy
cbmt_core.panel_from_orders(cbmt_core.example_orders(scale=0.002)).forecast("seasonal_naive").bridge()
assert not {"torch", "matplotlib", "dagster"} & set(sys.modules)
"""


def test_importing_the_library_loads_nothing_and_a_simple_forecast_no_torch() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", CHEAP], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_help_explains_the_library() -> None:
    text = pydoc.render_doc(cbmt, renderer=pydoc.plaintext)
    assert "panel_from_orders(orders, country=" in text
    for name in cbmt.__all__:
        assert name in text
        assert (getattr(cbmt, name).__doc__ or "").strip(), f"{name} has no docstring"
    assert set(cbmt.__all__) <= set(dir(cbmt))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        cbmt.nothing  # noqa: B018


@pytest.mark.parametrize(
    "module",
    [
        "models.registry",
        "names",
        "notebook.examples",
        "notebook.forecast",
        "notebook.orders",
        "notebook.panel",
    ],
)
def test_the_examples_of_docstrings_hold(module: str) -> None:
    found = doctest.testmod(importlib.import_module(f"cbmt_core.{module}"))
    assert found.attempted > 0
    assert found.failed == 0
