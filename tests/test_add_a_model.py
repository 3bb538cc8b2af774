"""The worked example of docs/add-a-model.md is a model that keeps the contract."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from cbmt_core.forecasting import run_models
from cbmt_core.models import MODELS, load, save
from cbmt_core.models.registry import ModelEntry, build
from cbmt_core.simulate import Economy, sample_cohorts

PAGE = (Path(__file__).parents[1] / "docs/add-a-model.md").read_text()
MODULE = "cbmt_core.models.autoets"


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's module and registry line, as a reader would put them in place."""
    code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    (line,) = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "autoets.py"
    path.write_text(code)
    spec = importlib.util.spec_from_file_location(MODULE, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, MODULE, module)
    spec.loader.exec_module(module)
    entry = eval(line.strip().rstrip(","), {"ModelEntry": ModelEntry})
    monkeypatch.setitem(MODELS, entry.name, entry)


@pytest.mark.usefixtures("example")
def test_the_example_forecasts_and_survives_storage(tmp_path: Path) -> None:
    economy = Economy(firms=3, seed=7)
    panel = sample_cohorts(economy, economy.specs()[0]).panel()
    (run,) = run_models(panel, ["autoets"], panel.design.origin, 47, seed=1)
    assert run.reason is None
    assert run.forecast is not None
    assert (run.forecast.S > 0).all()
    fitted = build("autoets").fit(panel.until(panel.design.origin), seed=1)
    save(fitted, tmp_path / "saved")
    again = load(tmp_path / "saved").forecast(47)
    np.testing.assert_array_equal(again.A, run.forecast.A)
    np.testing.assert_array_equal(again.R, run.forecast.R)
