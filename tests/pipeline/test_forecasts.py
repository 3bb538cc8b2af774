"""The forecast asset: every model's record, one model's failure loses nothing, a part of the models can be rerun."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import duckdb
import pytest

from cbmt_core.models import MODELS
from cbmt_core.models.registry import ModelEntry
from cbmt_core.simulate import Economy, write_economy
from cbmt_pipeline.assets.firm_data import firm_data
from cbmt_pipeline.assets.forecasts import benchmark_forecasts
from cbmt_pipeline.assets.intake import intake
from cbmt_pipeline.assets.warehouse import warehouse
from cbmt_pipeline.project import Project
from cbmt_pipeline.resources import ProjectResource
from cbmt_pipeline.sources import add_source

QUICK = ["seasonal_naive", "cohort_glm", "gls_v2"]


class Broken:
    def fit(self, panel: object, *, seed: int) -> object:
        raise ZeroDivisionError("planted")


class Materialised:
    """A project of one firm whose assets are materialised in this process on an instance of its own."""

    def __init__(self, root: Path) -> None:
        write_economy(Economy(firms=1, scale=0.003), root / "raw")
        names = ("firm", "customer", "order_time", "amount", "order_id", "industry")
        source = {"name": "economy", "path": "raw/orders", "currency": "USD", "timezone": "UTC"}
        add_source(root, source, {name: name for name in names})
        self.project = Project(root)
        self.instance = dg.DagsterInstance.ephemeral()
        self.make([intake])
        (self.unit,) = self.project.intake.units()
        self.make([firm_data], self.unit.slug)

    def make(
        self, assets: list[dg.AssetsDefinition], firm: str | None = None, **config: object
    ) -> dg.ExecuteInProcessResult:
        resources = {"project": ProjectResource(root=str(self.project.root))}
        ops = {"ops": {"benchmark_forecasts": {"config": config}}} if config else None
        return dg.materialize(
            assets, instance=self.instance, partition_key=firm, resources=resources, run_config=ops
        )

    def forecast(self, models: list[str], seed: int = 1) -> dg.ExecuteInProcessResult:
        return self.make([benchmark_forecasts], self.unit.slug, models=models, seed=seed)

    def query(self, sql: str) -> list[tuple[object, ...]]:
        self.make([warehouse])
        with duckdb.connect(str(self.project.warehouse), read_only=True) as con:
            return con.execute(sql).fetchall()


@pytest.fixture
def materialised(tmp_path: Path) -> Materialised:
    return Materialised(tmp_path)


def test_every_model_leaves_a_record_and_a_full_forecast(materialised: Materialised) -> None:
    materialised.forecast(QUICK)
    weeks = materialised.project.design().holdout_weeks
    rows = materialised.query(
        "SELECT model, count(*), min(horizon), max(horizon), bool_and(isfinite(sales) AND sales >= 0) "
        "FROM forecast_week GROUP BY model"
    )
    assert sorted(rows) == [(model, weeks, 1, weeks, True) for model in sorted(QUICK)]
    fits = materialised.query("SELECT model, succeeded, seconds >= 0, json_valid(parameters) FROM model_fit")
    assert sorted(fits) == [(model, True, True, True) for model in sorted(QUICK)]


def test_weeks_are_the_sums_of_their_cohorts(materialised: Materialised) -> None:
    materialised.forecast(QUICK)
    gaps = materialised.query("""
        WITH c AS (
            SELECT firm, model, week, sum(sales) AS sales, sum(cohort_size * ropc) AS repeats,
                sum(cohort_size) AS customers, sum(cohort_size) FILTER (cohort = week) AS born
            FROM forecast_cohort_week GROUP BY ALL)
        SELECT max(abs(f.sales - c.sales) / f.sales), max(abs(f.repeat_orders - c.repeats) / f.repeat_orders),
            max(abs(f.ropc - c.repeats / c.customers)), max(abs(f.acquired - c.born)), count(*)
        FROM forecast_week f JOIN c USING (firm, model, week)""")
    *gap, count = gaps[0]
    assert count == len(QUICK) * materialised.project.design().holdout_weeks
    assert max(gap) < 1e-9


def test_one_models_failure_is_recorded_and_loses_nothing(
    materialised: Materialised, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cbmt_core.models.seasonal_naive.Broken", Broken, raising=False)
    monkeypatch.setitem(MODELS, "broken", ModelEntry("broken", "floor", "seasonal_naive:Broken"))
    result = materialised.forecast(["seasonal_naive", "broken", "cohort_glm"])
    assert result.success
    rows = materialised.query("SELECT model, succeeded, reason FROM model_fit ORDER BY model")
    assert rows == [
        ("broken", False, "unexpected ZeroDivisionError: planted"),
        ("cohort_glm", True, None),
        ("seasonal_naive", True, None),
    ]
    assert materialised.query("SELECT count(DISTINCT model) FROM forecast_week") == [(2,)]


def test_running_some_models_keeps_the_others_of_the_same_data(materialised: Materialised) -> None:
    materialised.forecast(["seasonal_naive", "gls_v2"])
    before = materialised.query("SELECT * FROM forecast_week WHERE model = 'gls_v2' ORDER BY week")
    materialised.forecast(["cohort_glm"])
    assert materialised.query("SELECT * FROM forecast_week WHERE model = 'gls_v2' ORDER BY week") == before
    models = materialised.query("SELECT model FROM model_fit ORDER BY model")
    assert models == [(name,) for name in sorted(QUICK)]
    # Another seed is another study: what was made with the first is not mixed in.
    materialised.forecast(["cohort_glm"], seed=2)
    assert materialised.query("SELECT model, seed FROM model_fit") == [("cohort_glm", 2)]
