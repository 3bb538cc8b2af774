"""Networks as assets: trained, kept, loaded and forecast from; made anew only when something changed."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import dagster as dg
import duckdb
import numpy as np
import pytest
from helpers.materialised import ASSETS, Materialised
from helpers.small_project import make_all, new_project

from cbmt_core.compose import compose
from cbmt_core.models import MODELS, load, networks
from cbmt_core.models.registry import ModelEntry
from cbmt_core.models.seasonal_naive import SeasonalNaive
from cbmt_core.schema import TABLES
from cbmt_core.simulate import Economy
from cbmt_core.stored_panel import read_panel
from cbmt_pipeline.plan import State, the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.resources import ProjectResource

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("networks")]

ECONOMY = Economy(firms=2, scale=0.003, seed=31)


def train(project: Materialised, firm: int, **settings: object) -> dg.ExecuteInProcessResult:
    """Tune and forecast with the smallest profile unless stated."""
    shared = {name: settings[name] for name in ("models", "seed", "only_missing") if name in settings}
    return project.make(
        ["tuned_models", "neural_forecasts"],
        project.units[firm],
        tuned_models={"profile": "smoke", **settings},
        neural_forecasts=shared,
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Materialised:
    """Two firms: one with every network, one with `direct` alone."""
    project = Materialised(tmp_path_factory.mktemp("networks"), ECONOMY)
    assert train(project, 0).success
    assert train(project, 1, models=["direct"]).success
    return project


def test_every_network_has_a_record_and_a_full_forecast(trained: Materialised) -> None:
    weeks = trained.project.study().holdout_weeks
    first, second = (unit.name for unit in trained.units)
    rows = trained.query("SELECT firm, model, count(*), bool_and(sales >= 0) FROM forecast_week GROUP BY ALL")
    expected = [(first, model, weeks, True) for model in networks()] + [(second, "direct", weeks, True)]
    assert sorted(rows) == sorted(expected)
    fits = trained.query(
        "SELECT model, succeeded, parameters->>'profile', validation_error > 0, seconds > 0 "
        f"FROM model_fit WHERE firm = '{first}'"
    )
    assert sorted(fits) == [(model, True, "smoke", True, True) for model in sorted(networks())]


@pytest.mark.parametrize("model", networks())
def test_the_saved_model_gives_the_stored_forecast(trained: Materialised, model: str) -> None:
    unit, design = trained.units[0], trained.project.study()
    with duckdb.connect() as con:
        relation = trained.project.lake.relation(TABLES["cohort_week"], unit=unit)
        panel = read_panel(con, unit.name, design, cohort_week=relation).until(design.origin)
        forecasts = trained.project.lake.relation(TABLES["forecast_week"], design.origin, unit)
        stored = con.execute(
            f"SELECT sales, acquired FROM {forecasts} WHERE model = '{model}' ORDER BY week"
        ).df()
    fitted = load(trained.project.model_folder(design.origin, unit, model))
    made = compose(panel, fitted.forecast(design.holdout_weeks))
    np.testing.assert_array_equal(made.S, stored["sales"])
    if made.has_drivers:
        np.testing.assert_array_equal(made.A, stored["acquired"])


def test_the_ui_shows_curves_history_errors_and_time(trained: Materialised) -> None:
    metadata = trained.metadata("tuned_models", trained.units[0])
    for name in ("learning_curves", "tuning_history"):
        encoded = re.search(r"data:image/png;base64,([^)]+)", str(metadata[name].value))
        assert encoded is not None
        assert base64.b64decode(encoded[1]).startswith(b"\x89PNG")
    assert metadata["models"].value == len(networks())
    assert metadata["failed"].value == 0
    assert float(str(metadata["seconds"].value)) > 0
    trials = metadata["trials"]
    assert isinstance(trials, dg.TableMetadataValue)
    searches = {str(record.data["search"]) for record in trials.records}
    drivers = {
        f"{model} {driver}" for model in ("single_task", "lstm") for driver in ("acquisition", "ropc", "aov")
    }
    assert searches == {"cbmt", "joint", "direct"} | drivers
    of_direct = [record.data for record in trials.records if record.data["search"] == "direct"]
    assert [row["trial"] for row in of_direct] == list(range(1, 9))
    (chosen,) = [row for row in of_direct if row["chosen"]]
    errors = [float(str(row["validation error"])) for row in of_direct]
    assert float(str(chosen["validation error"])) == min(errors)
    assert float(str(metadata["validation_error_direct"].value)) == pytest.approx(min(errors), rel=1e-3)


def test_what_is_up_to_date_is_kept_and_another_seed_is_another_fit(trained: Materialised) -> None:
    folder = trained.project.model_folder(trained.project.study().origin, trained.units[1], "direct")
    before = (folder / "arrays.safetensors").read_bytes(), (folder / "fit.json").stat().st_mtime_ns
    train(trained, 1, models=["direct"], only_missing=True)
    assert (folder / "fit.json").stat().st_mtime_ns == before[1]
    # Anew, with the trials forgotten, gives the same bits: nothing but the seed draws.
    train(trained, 1, models=["direct"], fresh=True)
    assert trained.metadata("tuned_models", trained.units[1])["models"].value == 1
    assert (folder / "fit.json").stat().st_mtime_ns > before[1]
    assert (folder / "arrays.safetensors").read_bytes() == before[0]
    train(trained, 1, models=["direct"], seed=5, only_missing=True)
    assert (folder / "arrays.safetensors").read_bytes() != before[0]
    assert "direct" in trained.missing("neural_forecasts", "smoke")[trained.units[1]]
    train(trained, 1, models=["direct"], only_missing=True)
    assert (folder / "arrays.safetensors").read_bytes() == before[0]
    assert "direct" not in trained.missing("neural_forecasts", "smoke")[trained.units[1]]


@pytest.mark.parametrize("step", ["tuned_models", "neural_forecasts"])
def test_missing_are_those_of_a_smaller_profile_or_other_data(trained: Materialised, step: str) -> None:
    first, second = trained.units
    others = [name for name in networks() if name != "direct"]
    assert trained.missing(step, "smoke") == {second: others}, "a larger profile serves a smaller one"
    assert trained.missing(step, "quick") == {first: networks(), second: networks()}
    project = trained.project
    made = project.manifests.read(step, project.study().origin, second)
    assert made is not None
    assert made.items == {"direct": f"{MODELS['direct'].version} smoke"}


def test_a_larger_profile_serves_a_smaller_one() -> None:
    for step in ("tuned_models", "neural_forecasts"):
        enough = the_plan()[step].enough
        assert enough("1 quick", "1 smoke")
        assert enough("1 quick", "1 quick")
        assert not enough("1 quick", "1 standard")
        assert not enough("1 paper", "2 smoke")


def test_evaluation_takes_networks_alone(trained: Materialised) -> None:
    """No benchmark was run in this project."""
    assert trained.make(["accuracy"]).success
    scored = trained.query("SELECT DISTINCT model FROM accuracy WHERE outcome = 'total_sales'")
    assert sorted(model for (model,) in scored) == sorted(networks())


class Broken:
    def fit(self, panel: object, *, seed: int) -> object:
        raise ZeroDivisionError("planted")


def test_a_network_that_breaks_is_recorded_and_tried_again(
    trained: Materialised, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cbmt_core.models.seasonal_naive.Broken", Broken, raising=False)
    monkeypatch.setitem(MODELS, "broken", ModelEntry("broken", "neural", "seasonal_naive:Broken"))
    assert train(trained, 1, models=["broken", "direct"]).success
    assert trained.make(["accuracy"]).success  # the study is published as a whole
    unit = trained.units[1]
    rows = trained.query(f"SELECT model, reason FROM model_fit WHERE firm = '{unit.name}' ORDER BY model")
    assert rows == [("broken", "unexpected ZeroDivisionError: planted"), ("direct", None)]
    for step in ("tuned_models", "neural_forecasts"):
        missing = trained.missing(step, "smoke")[unit]
        assert "broken" in missing
        assert "direct" not in missing
    # Mended, it is tried again and nothing else is.
    monkeypatch.setattr("cbmt_core.models.seasonal_naive.Broken", SeasonalNaive)
    assert train(trained, 1, models=["broken", "direct"], only_missing=True).success
    assert trained.metadata("tuned_models", unit)["models"].value == 1
    assert trained.make(["accuracy"]).success
    rows = trained.query(f"SELECT model, reason FROM model_fit WHERE firm = '{unit.name}' ORDER BY model")
    assert rows == [("broken", None), ("direct", None)]
    assert "broken" not in trained.missing("neural_forecasts", "smoke")[unit]


def test_changed_data_make_every_network_missing(tmp_path: Path) -> None:
    project = Materialised(tmp_path, Economy(firms=1, scale=0.003, seed=32))
    train(project, 0, models=["direct"])
    (unit,) = project.units
    assert "direct" not in project.missing("neural_forecasts", "smoke")[unit]
    (file,) = (tmp_path / "raw/orders").iterdir()
    with duckdb.connect() as con:
        con.execute(f"CREATE TABLE o AS FROM '{file}'; UPDATE o SET amount = amount * 2 WHERE random() < 0.5")
        con.execute(f"COPY o TO '{file}'")
    project.refresh()
    assert project.missing("tuned_models", "smoke") == {unit: networks()}
    with pytest.raises(Exception, match="no direct was trained on its present data"):
        project.make(["neural_forecasts"], unit, neural_forecasts={"models": ["direct"]})


def test_the_year_ahead_takes_a_networks_settings_once_it_is_tuned(tmp_path: Path) -> None:
    project = Materialised(tmp_path, Economy(firms=1, scale=0.003, seed=32))
    (unit,) = project.units
    with (tmp_path / "cbmt.toml").open("a", encoding="utf-8") as file:
        file.write('\n[forecast]\nmodels = ["seasonal_naive", "direct"]\n')

    def live() -> list[tuple[object, ...]]:
        project.make(["live_forecasts"], unit, live_forecasts={"only_missing": True})
        return project.query(
            "SELECT model, succeeded, reason FROM model_fit WHERE purpose = 'live' ORDER BY model"
        )

    refused = "it was not tuned yet: cbmt run --model direct"
    assert live() == [("direct", False, refused), ("seasonal_naive", True, None)]
    assert project.missing("live_forecasts") == {}
    train(project, 0, models=["direct"])
    assert project.missing("live_forecasts") == {unit: ["seasonal_naive", "direct"]}
    assert live() == [("direct", True, None), ("seasonal_naive", True, None)]
    assert project.missing("live_forecasts") == {}


def test_a_history_too_short_for_a_network_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study design leaves every model of ours enough weeks, so `direct` is made to ask for more."""
    monkeypatch.setattr("cbmt_core.models.neural.direct.MIN_WEEKS", 100)
    project = new_project(tmp_path)
    assert make_all(project) == {}
    unit = next(iter(project.intake.units()))
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("firm", [unit.key])
        settings = {"models": ["direct", "joint"], "profile": "smoke"}
        result = dg.materialize(
            [ASSETS["tuned_models"], ASSETS["neural_forecasts"]],
            instance=instance,
            partition_key=unit.key,
            resources={"project": ProjectResource(root=str(tmp_path))},
            run_config={
                "ops": {
                    "tuned_models": {"config": settings},
                    "neural_forecasts": {"config": {"models": settings["models"]}},
                }
            },
        )
    assert result.success
    project = Project(tmp_path)
    with duckdb.connect() as con:
        relation = project.lake.relation(TABLES["model_fit"], project.study().origin, unit)
        fits = con.execute(f"SELECT model, succeeded, reason FROM {relation} ORDER BY model").fetchall()
    weeks = len(project.study().calibration)
    assert fits == [
        ("direct", False, f"it has {weeks} weeks; at least 100 are needed"),
        ("joint", True, None),
    ]
    (task,) = State(project.with_profile("smoke"), the_plan()).todo(
        the_plan()["neural_forecasts"], units=[unit]
    )
    assert not {"direct", "joint"} & set(task.items), "a refusal is an answer"
