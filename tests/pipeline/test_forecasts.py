"""The forecast asset: every model's record, one model's failure loses nothing, a part of the models can be rerun."""

from __future__ import annotations

from pathlib import Path

import dagster as dg
import pytest
from helpers.materialised import Materialised

from cbmt_core.models import MODELS
from cbmt_core.models.registry import ModelEntry
from cbmt_core.models.seasonal_naive import SeasonalNaive
from cbmt_core.simulate import Economy
from cbmt_pipeline.project import SEED

QUICK = ["seasonal_naive", "cohort_glm", "gls_v2"]


class Broken:
    def fit(self, panel: object, *, seed: int) -> object:
        raise ZeroDivisionError("planted")


def forecast(
    project: Materialised, models: list[str], seed: int = 1, only_missing: bool = False
) -> dg.ExecuteInProcessResult:
    settings = {"models": models, "seed": seed, "only_missing": only_missing}
    return project.make(["benchmark_forecasts"], project.units[0], benchmark_forecasts=settings)


@pytest.fixture
def materialised(tmp_path: Path) -> Materialised:
    return Materialised(tmp_path, Economy(firms=1, scale=0.003))


def test_every_model_leaves_a_record_and_a_full_forecast(materialised: Materialised) -> None:
    forecast(materialised, QUICK)
    weeks = materialised.project.study().holdout_weeks
    rows = materialised.query(
        "SELECT model, count(*), min(horizon), max(horizon), bool_and(isfinite(sales) AND sales >= 0) "
        "FROM forecast_week GROUP BY model"
    )
    assert sorted(rows) == [(model, weeks, 1, weeks, True) for model in sorted(QUICK)]
    fits = materialised.query("SELECT model, succeeded, seconds >= 0, json_valid(parameters) FROM model_fit")
    assert sorted(fits) == [(model, True, True, True) for model in sorted(QUICK)]


def test_weeks_are_the_sums_of_their_cohorts(materialised: Materialised) -> None:
    forecast(materialised, QUICK)
    gaps = materialised.query("""
        WITH c AS (
            SELECT firm, model, week, sum(sales) AS sales, sum(cohort_size * ropc) AS repeats,
                sum(cohort_size) AS customers, sum(cohort_size) FILTER (cohort = week) AS born
            FROM forecast_cohort_week GROUP BY ALL)
        SELECT max(abs(f.sales - c.sales) / f.sales), max(abs(f.repeat_orders - c.repeats) / f.repeat_orders),
            max(abs(f.ropc - c.repeats / c.customers)), max(abs(f.acquired - c.born)), count(*)
        FROM forecast_week f JOIN c USING (firm, model, week)""")
    *gap, count = gaps[0]
    assert count == len(QUICK) * materialised.project.study().holdout_weeks
    assert max(gap) < 1e-9


def test_one_models_failure_is_recorded_and_loses_nothing(
    materialised: Materialised, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cbmt_core.models.seasonal_naive.Broken", Broken, raising=False)
    monkeypatch.setitem(MODELS, "broken", ModelEntry("broken", "floor", "seasonal_naive:Broken"))
    result = forecast(materialised, ["seasonal_naive", "broken", "cohort_glm"], seed=SEED)
    assert result.success
    rows = materialised.query("SELECT model, succeeded, reason FROM model_fit ORDER BY model")
    assert rows == [
        ("broken", False, "unexpected ZeroDivisionError: planted"),
        ("cohort_glm", True, None),
        ("seasonal_naive", True, None),
    ]
    assert materialised.query("SELECT count(DISTINCT model) FROM forecast_week") == [(2,)]
    # What broke is tried again, as soon as anything is: it may have been mended.
    (missing,) = materialised.missing("benchmark_forecasts").values()
    assert "broken" in missing
    assert not {"seasonal_naive", "cohort_glm"} & set(missing)
    before = materialised.query("SELECT * FROM model_fit WHERE model <> 'broken' ORDER BY model")
    monkeypatch.setattr("cbmt_core.models.seasonal_naive.Broken", SeasonalNaive)
    forecast(materialised, ["seasonal_naive", "broken", "cohort_glm"], seed=SEED, only_missing=True)
    assert materialised.query("SELECT * FROM model_fit WHERE model <> 'broken' ORDER BY model") == before
    assert materialised.query("SELECT count(DISTINCT model) FROM forecast_week") == [(3,)]
    (missing,) = materialised.missing("benchmark_forecasts").values()
    assert "broken" not in missing


def test_what_is_up_to_date_is_left_alone_where_only_the_missing_is_asked_for(
    materialised: Materialised,
) -> None:
    forecast(materialised, QUICK[:2], seed=SEED)
    unit, project = materialised.units[0], materialised.project
    path = project.manifests.path("benchmark_forecasts", project.study().origin, unit)
    before = path.stat().st_mtime_ns
    forecast(materialised, QUICK[:2], seed=SEED, only_missing=True)
    assert path.stat().st_mtime_ns == before
    forecast(materialised, QUICK, seed=SEED, only_missing=True)
    assert materialised.metadata("benchmark_forecasts", unit)["models"].value == 1
    assert materialised.query("SELECT count(DISTINCT model) FROM forecast_week") == [(3,)]


def test_running_some_models_keeps_the_others_of_the_same_data(materialised: Materialised) -> None:
    forecast(materialised, ["seasonal_naive", "gls_v2"])
    before = materialised.query("SELECT * FROM forecast_week WHERE model = 'gls_v2' ORDER BY week")
    forecast(materialised, ["cohort_glm"])
    assert materialised.query("SELECT * FROM forecast_week WHERE model = 'gls_v2' ORDER BY week") == before
    models = materialised.query("SELECT model FROM model_fit ORDER BY model")
    assert models == [(name,) for name in sorted(QUICK)]
    # Another seed is another study: what was made with the first is not mixed in.
    forecast(materialised, ["cohort_glm"], seed=2)
    assert materialised.query("SELECT model, seed FROM model_fit") == [("cohort_glm", 2)]
