"""Fits on disk: whole or not there, also those that came to nothing."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cbmt_core.fits import ModelFit, commit_markers, fit_model, load_fit, stage_fit
from cbmt_core.forecasting import forecast_fit, forecast_tables
from cbmt_core.models import load
from cbmt_core.panel import FirmPanel
from cbmt_core.simulate import Economy, sample_cohorts
from cbmt_pipeline.manifest import commit


def save_fit(fit: ModelFit, folder: Path) -> dict[str, str]:
    """Keep a fit as the pipeline does."""
    return commit(folder, stage_fit(fit, folder), commit_markers(folder))


@pytest.fixture(scope="module")
def panel() -> FirmPanel:
    economy = Economy(firms=1, seed=12)
    whole = sample_cohorts(economy, economy.specs()[0]).panel()
    return whole.until(whole.design.origin)


def test_a_saved_fit_forecasts_as_it_did(panel: FirmPanel, tmp_path: Path) -> None:
    fit = fit_model("cohort_glm", panel, 4)
    files = save_fit(fit, tmp_path)
    assert list(files) == ["arrays.safetensors", "model.json", "fit.json"], "the note is put in place last"
    back = load_fit(tmp_path)
    first, second = (forecast_fit(f, panel, 30).forecast for f in (fit, back))
    assert first is not None
    assert second is not None
    np.testing.assert_array_equal(first.S, second.S)
    np.testing.assert_array_equal(load(tmp_path).forecast(30).A, first.A)
    assert (back.firm, back.model, back.origin, back.seed) == (panel.firm, "cohort_glm", panel.origin, 4)


def test_a_fit_without_a_model_keeps_its_reason_and_its_profile(panel: FirmPanel, tmp_path: Path) -> None:
    """The model that stood there before is gone with it."""
    save_fit(fit_model("cohort_glm", panel, 4), tmp_path)
    short = panel.until(panel.weeks[9].astype(object))
    failed = fit_model("direct", short, 4, profile="smoke")
    save_fit(failed, tmp_path)
    run = forecast_fit(load_fit(tmp_path), short, 30)
    assert run.reason == "it has 10 weeks; at least 40 are needed"
    row = forecast_tables([run])["model_fit"].iloc[0]
    assert not row["succeeded"]
    assert row["parameters"] == '{"profile": "smoke"}'
    with pytest.raises(FileNotFoundError):
        load(tmp_path)


def test_a_writer_that_is_killed_before_all_is_written_leaves_the_earlier_fit(
    panel: FirmPanel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fit = fit_model("cohort_glm", panel, 4)
    save_fit(fit, tmp_path)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cbmt_core.models.storage.save_file", killed)
    with pytest.raises(KeyboardInterrupt):
        save_fit(replace(fit, seed=5), tmp_path)
    assert load_fit(tmp_path).seed == 4
    assert load_fit(tmp_path).fitted is not None


@pytest.mark.parametrize("renamed", [0, 1, 2])
def test_a_writer_that_is_killed_while_files_take_their_places_leaves_no_fit(
    panel: FirmPanel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renamed: int
) -> None:
    fit = fit_model("cohort_glm", panel, 4)
    save_fit(fit, tmp_path)
    real, done = os.replace, []

    def killed(source: Path, target: Path) -> None:
        if len(done) == renamed:
            raise KeyboardInterrupt
        done.append(target)
        real(source, target)

    monkeypatch.setattr("os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        save_fit(replace(fit, seed=5), tmp_path)
    with pytest.raises(FileNotFoundError):
        load_fit(tmp_path)
