"""The neural forecasters: families, selection, refit, stored searches, and what lies beyond the paper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import optuna
import pytest
from helpers.panels import calibration, ordinary
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from cbmt_core.compose import compose
from cbmt_core.forecasting import ModelRun, forecast_tables
from cbmt_core.metrics import score
from cbmt_core.models.contract import FitRecord, SalesForecast
from cbmt_core.models.neural import Direct, NeuralForecaster
from cbmt_core.models.neural.direct import CANDIDATES
from cbmt_core.models.neural.family import FAMILY_PARTS
from cbmt_core.models.neural.forecaster import PATIENCE, validate
from cbmt_core.models.neural.profiles import PROFILES
from cbmt_core.models.sequence import OUTCOMES, validation_split
from cbmt_core.panel import FirmPanel
from cbmt_core.tuning import Stages


@pytest.fixture(scope="module")
def seen() -> FirmPanel:
    return calibration(ordinary())


def test_families_share_as_the_paper_says() -> None:
    outcomes = {name: [part.outcomes for part in parts] for name, parts in FAMILY_PARTS.items()}
    assert outcomes["cbmt"] == outcomes["joint"] == [OUTCOMES]
    assert outcomes["single_task"] == outcomes["lstm"] == [("A",), ("R",), ("V",)]
    parts = [(name, part) for name, parts in FAMILY_PARTS.items() for part in parts]
    assert {name for name, part in parts if "weight_C" in part.space()} == {"cbmt"}
    for _, part in parts:
        for name, value in part.default().items():
            assert part.space()[name]._contains(part.space()[name].to_internal_repr(value)), name


def other_order_values(panel: FirmPanel) -> FirmPanel:
    return replace(panel, V=panel.V * (1 + 0.3 * np.sin(np.arange(panel.n_weeks))))


def test_single_task_network_of_one_driver_does_not_see_the_others(seen: FirmPanel) -> None:
    """Other order values: the forecasts of acquisition and ROPC do not move by a digit."""
    model = NeuralForecaster("single_task", profile="smoke")
    chosen = FitRecord({**FAMILY_PARTS["single_task"][0].default(), "steps": 12})
    forecast = model.train(seen, chosen, 1).forecast(6)
    changed = model.train(other_order_values(seen), chosen, 1).forecast(6)
    np.testing.assert_array_equal(forecast.R, changed.R)
    np.testing.assert_array_equal(forecast.A, changed.A)
    assert not np.array_equal(forecast.V, changed.V)


def test_single_task_search_of_one_driver_does_not_see_the_others(
    seen: FirmPanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other order values: every trial of acquisition and ROPC errs as before, and so the choice is the same."""
    monkeypatch.setitem(PROFILES, "smoke", replace(PROFILES["smoke"], stages=Stages(random=3)))
    model = NeuralForecaster("single_task", profile="smoke")
    records = [model.choose(panel, 1) for panel in (seen, other_order_values(seen))]
    for driver in ("acquisition", "ropc", "aov"):
        same = [[(t["choice"], t["error"]) for t in r.trials if t["driver"] == driver] for r in records]
        assert len(same[0]) == 3
        assert (same[0] == same[1]) == (driver != "aov")
        (chosen,) = [t for t in records[0].trials if t["driver"] == driver and t["chosen"]]
        assert records[0].parameters[driver] == {**chosen["choice"], "steps": chosen["notes"]["steps"]}
    errors = [t["error"] for t in records[0].trials if t["chosen"]]
    assert records[0].validation_error == pytest.approx(np.mean(errors))


def test_drivers_train_with_settings_of_their_own(seen: FirmPanel) -> None:
    """Networks of two sizes in one family: each driver's forecast is that of its own setting."""
    model = NeuralForecaster("single_task", profile="smoke")
    default = FAMILY_PARTS["single_task"][0].default()
    small = {**default, "width": 16, "layers": 1, "steps": 12}
    default = {**default, "steps": 12}
    mixed = FitRecord({"acquisition": small, "ropc": default, "aov": small})
    forecast = model.train(seen, mixed, 1).forecast(6)
    for choice, drivers in ((small, "AV"), (default, "R")):
        alone = model.train(seen, FitRecord(choice), 1).forecast(6)
        for driver in drivers:
            np.testing.assert_allclose(getattr(forecast, driver), getattr(alone, driver), rtol=1e-4)


def test_search_is_stored_by_firm_and_model_and_taken_up_again(seen: FirmPanel, tmp_path: Path) -> None:
    journal = tmp_path / "study.log"
    first = NeuralForecaster("cbmt", profile="smoke", storage=journal).fit(seen, seed=3)
    size = journal.stat().st_size
    again = NeuralForecaster("cbmt", profile="smoke", storage=journal).fit(seen, seed=3)
    assert journal.stat().st_size < 1.5 * size, "finished trials are not run again"
    assert again.record == first.record
    np.testing.assert_array_equal(again.forecast(5).A, first.forecast(5).A)
    in_memory = NeuralForecaster("cbmt", profile="smoke").fit(seen, seed=3)
    assert in_memory.record == first.record


def test_every_profile_that_is_meant_for_use_has_all_three_stages() -> None:
    for name in ("quick", "standard", "paper"):
        stages = PROFILES[name].stages
        assert min(stages.random, stages.grid, stages.refined) > 0


@pytest.mark.parametrize("family", FAMILY_PARTS)
def test_one_network_stands_behind_each_outcome_and_its_record_says_how_far_it_moved(
    family: str, seen: FirmPanel
) -> None:
    fitted = NeuralForecaster(family, profile="smoke").fit(seen, seed=1)
    outcomes = [name for network, _ in fitted.model.networks for name in network.config.outcomes]
    assert len(outcomes) == len(set(outcomes))
    assert set("ARV") <= set(outcomes)
    moved = fitted.record.parameters["backbone_moved"]
    assert len(moved) == len(FAMILY_PARTS[family])
    assert all(share > 0 for share in moved.values())


def test_training_ends_when_the_validation_weeks_are_forecast_no_better(seen: FirmPanel) -> None:
    """And the network is taken from where they were forecast best."""
    (part,) = FAMILY_PARTS["joint"]
    wild = {**part.default(), "rate": 8e-3, "backbone_share": 0.8}
    trial = validate(part, wild, replace(PROFILES["smoke"], steps=120), seen, 1)
    checks = trial.curve["validation"]
    errors = [error for _, error in checks]
    assert [trial.steps, trial.error] == checks[int(np.argmin(errors))]
    assert len(checks) == min(6, int(np.argmin(errors)) + 1 + PATIENCE)


def test_no_network_sees_the_validation_weeks_before_it_is_chosen(seen: FirmPanel) -> None:
    """Other sales after the training weeks: the losses of the trial are the same."""
    (part,) = FAMILY_PARTS["cbmt"]
    late = np.arange(seen.n_weeks) >= validation_split(seen).n_weeks
    other = replace(seen, V=np.where(late, seen.V * 3, seen.V))
    trials = [validate(part, part.default(), PROFILES["smoke"], panel, 1) for panel in (seen, other)]
    assert trials[0].curve["training"] == trials[1].curve["training"]
    assert trials[0].error != trials[1].error


def test_direct_has_the_eight_candidates_of_the_table_and_tries_them_all(
    seen: FirmPanel, tmp_path: Path
) -> None:
    assert list(CANDIDATES) == [f"C0{k}" for k in range(1, 9)]
    assert [c.weeks for c in CANDIDATES.values()] == [20, 20, 20, 20, 20, 20, 12, 24]
    assert [c.rate for c in CANDIDATES.values()] == [5e-4, 1e-4, 1e-3, 5e-4, 5e-4, 3e-4, 5e-4, 3e-4]
    journal = tmp_path / "direct.log"
    Direct(profile="smoke", storage=journal).fit(seen, seed=1)
    storage = JournalStorage(JournalFileBackend(str(journal)))
    (study,) = optuna.get_all_study_summaries(storage)
    trials = optuna.load_study(study_name=study.study_name, storage=storage).trials
    assert [t.params["candidate"] for t in trials] == list(CANDIDATES)


def test_forecast_of_sales_alone_is_scored_and_stored_as_such() -> None:
    panel = ordinary()
    seen = calibration(panel)
    weeks = panel.n_weeks - seen.n_weeks
    revenue = compose(seen, SalesForecast(panel.S[seen.n_weeks :] * 1.1))
    assert not revenue.has_drivers
    scores = score(panel, revenue, seen.origin)
    assert {s.outcome for s in scores} == {"total_sales"}
    assert scores[-1].smape == pytest.approx(100 * 0.1 / 1.05)
    run = ModelRun(seen.firm, "direct", seen.origin, 1, 0.0, FitRecord(), revenue)
    tables = forecast_tables([run])
    rows = tables["forecast_week"]
    assert len(rows) == weeks
    np.testing.assert_allclose(rows["sales"], panel.S[seen.n_weeks :] * 1.1)
    assert rows[["acquired", "orders", "repeat_orders", "ropc", "aov"]].isna().all(axis=None)
    assert tables["forecast_cohort_week"].empty
