"""Many models on one firm: each has a record, also those that fail, and none sees a later week."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest
from helpers.panels import ordinary, scramble_after

from cbmt_core import register_model
from cbmt_core.compose import compose
from cbmt_core.forecasting import FORECAST_TABLES, ModelRun, forecast_tables, run_models
from cbmt_core.models import build, unregister_model
from cbmt_core.panel import FirmPanel
from cbmt_core.schema import TABLES

HORIZON = 13
MODELS = ("cohort_glm", "broken", "direct", "seasonal_naive")


class Broken:
    def fit(self, panel: FirmPanel, *, seed: int) -> None:
        raise ZeroDivisionError("a defect")


@pytest.fixture(scope="module")
def panel() -> FirmPanel:
    return ordinary()


@pytest.fixture(scope="module")
def runs(panel: FirmPanel) -> Iterator[dict[str, ModelRun]]:
    register_model("broken", Broken)
    short = panel.weeks[35].astype(object)  # too few weeks for `direct`
    yield {run.model: run for run in run_models(panel, MODELS, short, HORIZON, seed=3)}
    unregister_model("broken")


def test_a_failed_model_has_its_reason_and_the_others_still_run(runs: dict[str, ModelRun]) -> None:
    assert list(runs) == list(MODELS)
    assert runs["direct"].reason == "it has 36 weeks; at least 40 are needed"
    assert "a defect" in (runs["broken"].reason or "")
    for name in ("cohort_glm", "seasonal_naive"):
        assert runs[name].reason is None
        assert runs[name].forecast is not None


def test_a_forecast_is_what_the_model_gives_on_the_weeks_up_to_the_origin(
    panel: FirmPanel, runs: dict[str, ModelRun]
) -> None:
    run = runs["cohort_glm"]
    seen = panel.until(run.origin)
    assert run.history == seen.n_weeks == 36
    made = compose(seen, build("cohort_glm").fit(seen, seed=3).forecast(HORIZON))
    assert run.forecast is not None
    np.testing.assert_array_equal(run.forecast.S, made.S)
    (again,) = run_models(scramble_after(panel, run.origin), ["cohort_glm"], run.origin, HORIZON, seed=3)
    assert again.forecast is not None
    np.testing.assert_array_equal(again.forecast.S, made.S)


def test_tables_have_a_fit_for_every_model_and_weeks_for_those_that_forecast(
    runs: dict[str, ModelRun],
) -> None:
    tables = forecast_tables(runs.values(), "backtest")
    fits = tables["model_fit"].set_index("model")
    assert fits["succeeded"].to_dict() == {name: runs[name].forecast is not None for name in MODELS}
    assert fits.loc["broken", "parameters"] is None
    assert json.loads(str(fits.loc["cohort_glm", "parameters"]))
    for table in FORECAST_TABLES:
        assert set(TABLES[table].column_names) == set(tables[table].columns)
        assert set(tables[table]["purpose"]) == {"backtest"}
    weeks = tables["forecast_week"].set_index(["model", "horizon"]).sort_index()
    cohorts = tables["forecast_cohort_week"].groupby(["model", "week"])["sales"].sum()
    for name in ("cohort_glm", "seasonal_naive"):
        sales = weeks.loc[name, "sales"].to_numpy()
        assert len(sales) == HORIZON
        forecast = runs[name].forecast
        assert forecast is not None
        np.testing.assert_allclose(sales, forecast.S, rtol=1e-12)
        np.testing.assert_allclose(sales, cohorts[name].to_numpy(), rtol=1e-9)


def test_nothing_that_ran_gives_empty_tables_of_the_declared_columns() -> None:
    for name, frame in forecast_tables([]).items():
        assert frame.empty
        assert list(frame.columns) == list(TABLES[name].column_names)


def test_a_horizon_of_no_weeks_is_refused(panel: FirmPanel) -> None:
    with pytest.raises(ValueError, match="at least one week"):
        run_models(panel, ["cohort_glm"], panel.origin, 0, seed=1)
