"""Ranges at the study's origin: of every model, from nothing later, judged on what the holdout brought."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from importlib import import_module
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from helpers.in_process import content

from cbmt_core.models import MODELS
from cbmt_core.models.contract import FitRecord, SalesForecast
from cbmt_core.models.registry import ModelEntry
from cbmt_core.panel import FirmPanel
from cbmt_core.simulate import Economy, write_economy
from cbmt_core.timeline import WEEK
from cbmt_pipeline.plan import State, Task, the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.transaction import carry_out

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("study_bands")]

ALONE, ALONE_TOO = "alone", "alone_too"
BACKTESTED = ("cohort_glm", "seasonal_naive", ALONE)
BORROWING = ("gls_v1", ALONE_TOO)
SOURCES = {**dict.fromkeys(BACKTESTED, "calibrated"), **dict.fromkeys(BORROWING, "borrowed")}
STUDY = ("backtest_forecasts", "benchmark_forecasts", "band_factors", "study_bands", "study_band_coverage")
ALL = (*STUDY, "live_forecasts", "forecast_choice", "forecast_bands", "bridge", "accuracy", "exhibits")
CONFIG = """
[[sources]]
name = "economy"
path = "orders"
currency = "USD"
timezone = "UTC"
columns = { firm = "firm", customer = "customer", order_time = "order_time", amount = "amount", order_id = "order_id" }
[forecast]
models = ["cohort_glm", "seasonal_naive", "alone"]
[networks]
models = []
[bands]
draws = 100
"""


class Alone:
    """Sales of the same week a year before, and nothing of the drivers."""

    def fit(self, panel: FirmPanel, *, seed: int) -> Alone:
        self.year, self.record = panel.S[-52:], FitRecord()
        return self

    def forecast(self, horizon: int) -> SalesForecast:
        return SalesForecast(self.year[:horizon])


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    folder = tmp_path_factory.mktemp("economy")
    write_economy(Economy(firms=4, scale=0.003, seed=78), folder)
    return pd.concat([pd.read_parquet(file) for file in sorted((folder / "orders").glob("*.parquet"))])


@pytest.fixture(scope="module", autouse=True)
def patched() -> Iterator[None]:
    """Two models of sales alone; and six backtests of other firms are enough to borrow from."""
    with pytest.MonkeyPatch.context() as patch:
        for name in (ALONE, ALONE_TOO):
            patch.setitem(MODELS, name, ModelEntry(name, "floor", Alone))
        patch.setattr(import_module("cbmt_core.bands.error_paths"), "LEAST_PATHS", 6)
        yield


def useless(project: Project, task: Task) -> bool:
    """A backtest that had not been observed whole by the study's origin lends nothing."""
    at = task.origin
    late = project.study().origin - project.study().holdout_weeks * WEEK
    return at is not None and at.purpose == "backtest" and at.week > late


def made(root: Path, orders: pd.DataFrame, steps: Collection[str], *, backwards: bool = False) -> Project:
    """A project in which these steps were carried out; with `backwards` the last firm comes first."""
    (root / "orders").mkdir(parents=True)
    orders.to_parquet(root / "orders" / "all.parquet")
    (root / "cbmt.toml").write_text(CONFIG)
    project = Project(root)
    project.check_schema()
    assert project.intake.update(project.config, root).failed == {}
    plan, models = the_plan(), {*BACKTESTED, *BORROWING}
    for step in plan:
        if step.name not in ("firm_data", *steps):
            continue
        purposes = ("live", "study", *(("backtest",) if step.name == "backtest_forecasts" else ()))
        tasks = [
            task for task in State(project, plan).todo(step, purposes=purposes) if not useless(project, task)
        ]
        assert tasks, step.name
        for task in reversed(tasks) if backwards else tasks:
            items = tuple(model for model in task.items if model in models)
            carry_out(project, plan, Task(step, task.origin, task.unit, items))
    return project


@pytest.fixture(scope="module")
def project(orders: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return made(tmp_path_factory.mktemp("first"), orders, ALL)


def rows(project: Project, table: str, where: str = "true") -> pd.DataFrame:
    with duckdb.connect() as con:
        relation = project.lake.relation(the_plan().tables[table])
        return con.execute(f"SELECT * FROM {relation} WHERE {where}").df()


def test_every_model_of_the_study_has_bands_and_says_whose_errors_they_are_made_of(project: Project) -> None:
    ranges = rows(project, "forecast_band", "purpose = 'study'")
    assert set(ranges["firm"]) == {unit.name for unit in project.intake.units()}
    assert set(pd.to_datetime(ranges["origin"]).dt.date) == {project.study().origin}
    sources = ranges.groupby("model")["source"].unique()
    assert {model: " ".join(found) for model, found in sources.items()} == SOURCES
    outcomes = ranges.groupby("model")["outcome"].agg(set)
    assert outcomes[ALONE] == outcomes[ALONE_TOO] == {"sales"}
    assert outcomes["gls_v1"] >= {"sales", "acquired", "ropc", "aov", "order_volume", "sales_change"}
    weeks = ranges[(ranges["period"] == "week") & (ranges["level"] == 80)]
    assert (weeks.groupby(["firm", "model"])["week"].nunique() == project.study().holdout_weeks).all()
    assert (weeks["low"] >= 0).all()
    assert (weeks["low"] <= weeks["high"]).all()
    lent = rows(project, "error_path", "purpose = 'study'")
    assert set(lent["model"]) == set(BACKTESTED)
    observed = pd.to_datetime(lent["backtest"]) + pd.to_timedelta(7 * lent["horizon"], "D")
    assert observed.max().date() <= project.study().origin


def test_a_borrowed_band_lies_around_the_models_own_forecast(project: Project) -> None:
    forecast = rows(project, "forecast_week", "purpose = 'study'").groupby(["firm", "model"])["sales"].sum()
    total = rows(project, "forecast_band", "purpose = 'study' AND period = 'horizon' AND outcome = 'sales'")
    wide = total[total["level"] == 95].set_index(["firm", "model"])
    assert len(wide) == 4 * 5
    assert ((wide["low"] < forecast[wide.index]) & (forecast[wide.index] < wide["high"])).mean() >= 0.9
    parts = rows(project, "forecast_band", "purpose = 'study' AND period = 'horizon' AND level = 80")
    mean = parts.pivot_table(index=["firm", "model"], columns="outcome", values="mean").dropna()
    assert set(mean.index.get_level_values("model")) == {"cohort_glm", "seasonal_naive", "gls_v1"}
    added = mean["order_volume"] + mean["spend_per_order"] + mean["net_replenishment"]
    np.testing.assert_allclose(added, mean["sales_change"], rtol=1e-9, atol=1e-6)


def test_nothing_after_the_origin_and_no_order_of_firms_reaches_them(
    project: Project, orders: pd.DataFrame, tmp_path: Path
) -> None:
    later = pd.to_datetime(orders["order_time"]).dt.date > project.study().holdout.first
    scrambled = orders.copy()
    scrambled.loc[later, "amount"] = scrambled.loc[later, "amount"] * 7 + 3
    other = made(tmp_path, scrambled, STUDY, backwards=True)
    assert other.study() == project.study()
    part = f"origin={project.study().origin}"

    def seen(one: Project) -> dict[str, str]:
        tables = ("band_factor", "error_path", "forecast_band")
        return {
            path: digest
            for path, digest in content(one).items()
            if path.split("/")[0] in tables
            and part in path
            and path.endswith(("study.parquet", "bands.parquet"))
        }

    assert len(seen(project)) == 1 + 1 + 4
    assert seen(other) == seen(project)
    assert rows(other, "band_coverage").to_dict() != rows(project, "band_coverage").to_dict()


def test_they_are_judged_on_the_holdout_and_the_paper_bridge(project: Project) -> None:
    """Coverage counted anew from the published tables, the bridge against the one the study is judged on."""
    ranges = rows(project, "forecast_band", "purpose = 'study' AND level = 80")
    actual = rows(project, "firm_week")[["firm", "week", "sales", "acquired"]]
    weeks = ranges[(ranges["period"] == "week") & (ranges["model"] == "gls_v1")].merge(
        actual, on=["firm", "week"]
    )
    weeks = weeks[weeks["week"] < weeks["week"].min() + pd.Timedelta(weeks=4)]
    inside = weeks["sales"].astype(float).between(weeks["low"], weeks["high"]).groupby(weeks["firm"]).mean()
    held = rows(project, "band_coverage", "purpose = 'study' AND of_purpose = 'study' AND \"group\" = 'all'")
    row = held[(held["model"] == "gls_v1") & (held["ahead"] == "1-4") & (held["level"] == 80)]
    assert row["coverage"].tolist() == pytest.approx([100 * inside.mean()])
    realised = rows(project, "bridge", "purpose = 'study' AND model = 'realised'").set_index("firm")
    total = ranges[(ranges["period"] == "horizon") & (ranges["model"] == "cohort_glm")].set_index(
        ["firm", "outcome"]
    )
    for outcome in ("sales_change", "order_volume", "spend_per_order", "net_replenishment"):
        ends = total.xs(outcome, level="outcome")
        share = 100 * realised[outcome].between(ends["low"], ends["high"]).mean()
        row = held[(held["model"] == "cohort_glm") & (held["outcome"] == outcome) & (held["level"] == 80)]
        assert row["coverage"].tolist() == pytest.approx([share])
    pit = rows(project, "band_pit", "purpose = 'study'")
    np.testing.assert_allclose(pit.groupby(["model", "outcome", "ahead"])["share"].sum(), 100)


def test_every_model_stands_side_by_side_in_the_exhibits(project: Project) -> None:
    scores = rows(project, "exhibit_band_scores").set_index("model")
    assert set(scores.index) == {*BACKTESTED, *BORROWING}
    assert scores["source"].to_dict() == SOURCES
    assert scores["weeks_crps"].is_monotonic_increasing
    # The same forecast with its own errors and with borrowed ones.
    assert scores.loc[ALONE, "weeks_crps"] == pytest.approx(scores.loc[ALONE_TOO, "weeks_crps"], rel=0.5)
    held = rows(project, "exhibit_band_calibration")
    assert set(held["ahead"]) == {"1-4", "5-13", "14-26", "27-52", "horizon"}
    np.testing.assert_allclose(held[[f"pit_{k}" for k in range(1, 9)]].sum(axis=1), 100)


def test_a_model_of_sales_alone_has_live_bands_and_draws_of_sales(project: Project) -> None:
    live = rows(project, "forecast_band", f"purpose = 'live' AND model = '{ALONE}'")
    assert set(live["outcome"]) == {"sales"}
    assert set(live["period"]) == {"week", "to_date", "month", "quarter", "year"}
    assert set(live["source"]) == {"calibrated"}
    assert (live.groupby("firm")["level"].nunique() == 3).all()
    assert live["firm"].nunique() == 4
