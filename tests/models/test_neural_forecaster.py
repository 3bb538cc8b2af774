"""The neural forecasters: families, selection, refit, stored searches, and what lies beyond the paper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from panels import calibration, ordinary

from cbmt_core.compose import compose
from cbmt_core.forecasting import ModelRun, forecast_tables
from cbmt_core.metrics import score
from cbmt_core.models.contract import FitRecord, SalesForecast
from cbmt_core.models.neural import Direct, NeuralForecaster
from cbmt_core.models.neural.direct import CANDIDATES
from cbmt_core.models.neural.forecaster import FAMILIES
from cbmt_core.models.neural.profiles import PROFILES
from cbmt_core.models.sequence import OUTCOMES
from cbmt_core.panel import FirmPanel


@pytest.fixture(scope="module")
def seen() -> FirmPanel:
    return calibration(ordinary())


def test_families_share_as_the_paper_says() -> None:
    assert FAMILIES["cbmt"].groups == FAMILIES["joint"].groups == (OUTCOMES,)
    assert FAMILIES["single_task"].groups == FAMILIES["lstm"].groups == (("A",), ("R",), ("V",))
    aligned = {name for name, family in FAMILIES.items() if "weight_C" in family.space()}
    assert aligned == {"cbmt"}
    for family in FAMILIES.values():
        for name, value in family.default().items():
            assert family.space()[name]._contains(family.space()[name].to_internal_repr(value)), name


def test_single_task_network_of_one_driver_does_not_see_the_others(seen: FirmPanel) -> None:
    """Other order values, other acquisition: the forecast of ROPC does not move by a digit."""
    model = NeuralForecaster("single_task", profile="smoke")
    chosen = FitRecord({**FAMILIES["single_task"].default(), "steps": 12})
    forecast = model.train(seen, chosen, 1).forecast(6)
    other = replace(seen, V=seen.V * (1 + 0.3 * np.sin(np.arange(seen.n_weeks))))
    changed = model.train(other, chosen, 1).forecast(6)
    np.testing.assert_array_equal(forecast.R, changed.R)
    np.testing.assert_array_equal(forecast.A, changed.A)
    assert not np.array_equal(forecast.V, changed.V)


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


def test_profiles_grow() -> None:
    names = ("smoke", "quick", "standard", "paper")
    work = [PROFILES[n].stages.total * PROFILES[n].steps * PROFILES[n].batch for n in names]
    assert work == sorted(work)
    for name in ("standard", "paper"):
        stages = PROFILES[name].stages
        assert min(stages.random, stages.grid, stages.refined) > 0


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
