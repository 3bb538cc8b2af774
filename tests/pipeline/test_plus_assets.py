"""cbmt_plus as assets: series of firms, priors across them, forecasts that know both, made anew when either changes."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import numpy as np
import pytest
from materialised import Materialised

from cbmt_core.compose import compose
from cbmt_core.customers import read_panel
from cbmt_core.models import load
from cbmt_core.models.neural.forecaster import FittedNeural
from cbmt_core.models.plus import CbmtPlus, PathPriors
from cbmt_core.models.plus import paths as paths_module
from cbmt_core.simulate import Economy
from cbmt_pipeline.assets.networks import neural_forecasts, tuned_models
from cbmt_pipeline.assets.plus import path_priors, plus_forecasts, weekly_series
from cbmt_pipeline.project import SEED

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("networks")]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Materialised]:
    """Three firms with series, of which the first has a network and cbmt_plus."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths_module, "LEARNING_STEPS", 5)
        project = Materialised(tmp_path_factory.mktemp("plus"), Economy(firms=3, scale=0.01, seed=33))
        first = project.units[0]
        settings = {"profile": "smoke", "models": ["cbmt"]}
        assert project.make([tuned_models, neural_forecasts], first, tuned_models=settings).success
        for unit in project.units:
            assert project.make([weekly_series], unit).success
        assert project.make([path_priors]).success
        assert project.make([plus_forecasts], first).success
        yield project


def test_series_priors_and_forecasts_are_published(made: Materialised) -> None:
    design = made.project.design()
    series = made.query("SELECT firm, series, count(*) FROM weekly_series GROUP BY ALL")
    names = ("acquisition", "repeat", "aov", "sales")
    weeks = len(design.study) - design.holdout_weeks
    assert sorted(series) == sorted((unit.name, one, weeks) for unit in made.units for one in names)
    assert made.query("SELECT DISTINCT firms FROM path_prior") == [(3,)]
    assert made.query("SELECT count(*) > 0 FROM path_prior WHERE parameter = 'mean' AND value <> 0") == [
        (True,)
    ]
    rows = made.query("SELECT firm, model, count(*) FROM forecast_week GROUP BY ALL")
    first = made.units[0].name
    assert sorted(rows) == [(first, model, design.holdout_weeks) for model in ("cbmt", "cbmt_plus")]


def test_the_library_gives_the_stored_forecast_from_the_published_tables(made: Materialised) -> None:
    unit, design = made.units[0], made.project.design()
    stored = made.query("SELECT sales FROM forecast_week WHERE model = 'cbmt_plus' ORDER BY week")
    with duckdb.connect(str(made.project.warehouse), read_only=True) as con:
        panel = read_panel(con, unit.name).until(design.origin)
        priors = PathPriors.from_frame(con.execute("FROM path_prior").df(), design.country)
    network = load(made.project.model_folder(unit, "cbmt"))
    assert isinstance(network, FittedNeural)
    fitted = CbmtPlus(priors=priors, network=network).fit(panel, seed=SEED)
    sales = compose(panel, fitted.forecast(design.holdout_weeks)).S
    np.testing.assert_allclose(sales, [row[0] for row in stored], rtol=1e-9)


def test_the_ui_shows_what_firms_have_in_common(made: Materialised) -> None:
    events = made.instance.get_latest_materialization_event(path_priors.key)
    assert events is not None
    materialization = events.asset_materialization
    assert materialization is not None
    assert materialization.metadata["firms"].value == 3
    assert "data:image/png;base64," in str(materialization.metadata["priors"].value)


def test_new_priors_make_the_forecast_stale(made: Materialised) -> None:
    assert made.project.without_plus() == []
    assert made.project.without_weekly_series() == []
    path = made.project.lake.whole_path("path_prior")
    before = path.read_bytes()
    try:
        path.write_bytes(before + b" ")
        assert made.project.without_plus() == [made.units[0]]
    finally:
        path.write_bytes(before)
