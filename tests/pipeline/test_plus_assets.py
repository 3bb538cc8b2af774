"""cbmt_plus as assets: priors learned across firms, forecasts that know them, made anew when they change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import duckdb
import numpy as np
import pandas as pd
import pytest
from helpers.materialised import Materialised

from cbmt_core.compose import compose
from cbmt_core.models.plus import CbmtPlus, PathPriors
from cbmt_core.models.plus import prior as prior_module
from cbmt_core.schema import TABLES
from cbmt_core.simulate import Economy
from cbmt_core.stored_panel import read_panel
from cbmt_pipeline.plan import State, Task, the_plan
from cbmt_pipeline.project import SEED
from cbmt_pipeline.transaction import carry_out
from cbmt_pipeline.work import Made

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("networks")]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Materialised]:
    """Three firms that have taught a prior, of which the first has a forecast of the study and of the year ahead."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prior_module, "LEARNING_STEPS", 5)
        project = Materialised(tmp_path_factory.mktemp("plus"), Economy(firms=3, scale=0.01, seed=33))
        first = project.units[0]
        assert project.make(["path_priors"], path_priors={"purposes": ["live", "study"]}).success
        assert project.make(["plus_forecasts"], first).success
        assert project.make(["live_forecasts"], first, live_forecasts={"models": ["cbmt_plus"]}).success
        yield project


def test_priors_and_forecasts_are_published(made: Materialised) -> None:
    study = made.project.study()
    (live,) = made.project.origins("live")
    learned = {study.origin, made.project.timeline().prior_week(live)}
    assert made.query("SELECT DISTINCT origin, firms FROM diagnostic.path_prior ORDER BY origin") == [
        (week, 3) for week in sorted(learned)
    ]
    assert made.query(
        "SELECT count(*) > 0 FROM diagnostic.path_prior WHERE parameter = 'mean' AND value <> 0"
    ) == [(True,)]
    rows = made.query("SELECT firm, model, purpose, origin, count(*) FROM forecast_week GROUP BY ALL")
    first = made.units[0].name
    assert sorted(rows) == [
        (first, "cbmt_plus", "live", live.week, 52),
        (first, "cbmt_plus", "study", study.origin, study.holdout_weeks),
    ]


@pytest.mark.parametrize("purpose", ["study", "live"])
def test_the_library_gives_the_stored_forecast_from_the_published_tables(
    made: Materialised, purpose: str
) -> None:
    unit, project = made.units[0], made.project
    (origin,) = project.origins(purpose)
    stored = made.query(
        f"SELECT sales FROM forecast_week WHERE model = 'cbmt_plus' AND purpose = '{purpose}' ORDER BY week"
    )
    with duckdb.connect(str(project.warehouse), read_only=True) as con:
        panel = read_panel(con, unit.name).until(origin.week)
        taught = project.timeline().prior_week(origin)
        frame = con.execute(f"FROM diagnostic.path_prior WHERE origin = DATE '{taught}'").df()
        priors = PathPriors.from_frame(frame, project.timeline().country)
    fitted = CbmtPlus(priors=priors).fit(panel, seed=SEED)
    sales = compose(panel, fitted.forecast(origin.horizon)).S
    np.testing.assert_allclose(sales, [row[0] for row in stored], rtol=1e-9)


def test_the_ui_shows_what_firms_have_in_common(made: Materialised) -> None:
    metadata = made.metadata("path_priors")
    assert metadata["firms"].value == 3
    assert "data:image/png;base64," in str(metadata["priors"].value)


def test_new_priors_make_the_forecast_stale(made: Materialised) -> None:
    project, plan, unit = made.project, the_plan(), made.units[0]
    assert unit not in made.missing("plus_forecasts")
    assert set(made.missing("plus_forecasts")) == set(made.units[1:]), "the others have none yet"

    def priors_to_make() -> list[object]:
        return State(project, plan).todo(plan["path_priors"], purposes=["study", "live"])

    assert priors_to_make() == []
    (study,) = project.origins("study")
    tasks = State(project, plan).todo(plan["path_priors"], purposes=["study", "live"], everything=True)
    (task,) = [one for one in tasks if one.origin and one.origin.week == study.week]
    frame = duckdb.sql(f"FROM {project.lake.relation(TABLES['path_prior'], study.week)}").df()

    def store(rows: pd.DataFrame) -> None:
        step = replace(plan["path_priors"], make=lambda _: Made({"path_prior": rows}))
        carry_out(project, plan, Task(step, task.origin, None))

    try:
        store(frame.assign(value=frame["value"] * 1.01))
        assert unit in made.missing("plus_forecasts")
    finally:
        store(frame)
    assert unit not in made.missing("plus_forecasts"), "the same priors make the same forecast"


def test_a_firms_new_orders_make_the_prior_stale(made: Materialised) -> None:
    """As if one firm's tables said something else of the weeks before the origin."""
    project, plan = made.project, the_plan()
    path = project.manifests.path("firm_data", None, made.units[2])
    before = path.read_text()
    known = project.manifests.read("firm_data", None, made.units[2])
    assert known is not None
    try:
        path.write_text(before.replace(known.up_to(project.study().origin), "0" * 16))
        todo = State(project, plan).todo(plan["path_priors"], purposes=["study"])
        assert [task.origin.week for task in todo if task.origin] == [project.study().origin]
    finally:
        path.write_text(before)
    assert State(project, plan).todo(plan["path_priors"], purposes=["study"]) == []
