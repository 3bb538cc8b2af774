"""Forecasts in time: new weeks add a vintage, earlier ones stay, and nothing after an origin reaches it."""

from __future__ import annotations

import hashlib
from datetime import date, timedelta
from pathlib import Path
from zlib import crc32

import duckdb
import pandas as pd
import pytest
from helpers.in_process import bring_up_to_date, content

from cbmt_core.simulate import Economy, write_economy
from cbmt_pipeline.plan import the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.sources import add_source
from cbmt_pipeline.upgrade import upgrade

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("vintages")]

MODELS = ("cbmt_plus", "cohort_glm", "seasonal_naive")
COLUMNS = ("firm", "customer", "order_time", "amount", "order_id", "industry")
LAST = date(2020, 2, 29)


@pytest.fixture(scope="module")
def economy(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    folder = tmp_path_factory.mktemp("economy")
    write_economy(Economy(firms=3, scale=0.004, seed=77), folder)
    return pd.concat([pd.read_parquet(file) for file in sorted((folder / "orders").glob("*.parquet"))])


def project_of(root: Path, orders: pd.DataFrame) -> Project:
    (root / "orders").mkdir(parents=True)
    source = {"name": "economy", "path": "orders", "currency": "USD", "timezone": "UTC"}
    add_source(root, source, {name: name for name in COLUMNS})
    deliver(root, "first", orders)
    return Project(root)


def deliver(root: Path, name: str, orders: pd.DataFrame) -> None:
    orders.to_parquet(root / "orders" / f"{name}.parquet")


def days(orders: pd.DataFrame) -> pd.Series:
    return pd.to_datetime(orders["order_time"]).dt.date


def files(project: Project, week: date) -> dict[str, str]:
    """Digest of every file below an origin, tables and manifests."""
    found = project.data.glob(f"lake/**/origin={week}/**/*")
    return {
        str(path.relative_to(project.data)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in found
        if path.is_file()
    }


@pytest.fixture(scope="module")
def lived(
    economy: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Project, dict[str, object]]:
    """A project with four weeks less, brought up to date, then given the four weeks."""
    early = LAST - timedelta(weeks=4)
    project = project_of(tmp_path_factory.mktemp("lived"), economy[days(economy) <= early])
    bring_up_to_date(project, models=MODELS)
    week = project.origins("live")[0].week
    study = project.study().origin
    before = {"week": week, "study": study, "vintage": files(project, week), "studied": files(project, study)}
    deliver(project.root, "later", economy[days(economy) > early])
    before["done"] = bring_up_to_date(Project(project.root), models=MODELS)
    return Project(project.root), before


def test_every_firm_is_forecast_a_year_beyond_its_last_week(lived: tuple[Project, dict[str, object]]) -> None:
    project, _ = lived
    with duckdb.connect(str(project.warehouse), read_only=True) as con:
        rows = con.execute(
            "SELECT f.firm, count(*), min(f.week), max(f.week), w.last FROM forecast AS f JOIN "
            "(SELECT firm, max(week) AS last FROM firm_week GROUP BY firm) AS w USING (firm) GROUP BY ALL"
        ).fetchall()
    assert len(rows) == 3
    for _, weeks, first, last, seen in rows:
        assert (weeks, first, last) == (52, seen + timedelta(weeks=1), seen + timedelta(weeks=52))


def test_new_weeks_add_a_vintage_and_leave_the_earlier_one_as_it_was(
    lived: tuple[Project, dict[str, object]],
) -> None:
    project, before = lived
    assert project.origins("live")[0].week == before["week"] + timedelta(weeks=4)
    assert before["vintage"]
    assert files(project, before["week"]) == before["vintage"]
    with duckdb.connect(str(project.warehouse), read_only=True) as con:
        vintages = con.execute(
            "SELECT origin, count(DISTINCT firm) FROM forecast_week WHERE purpose = 'live' GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        record = con.execute(
            "SELECT weeks_ahead, count(DISTINCT firm), sum(error - (forecast - actual)) FROM track_record "
            "WHERE purpose = 'live' AND model = 'cbmt_plus' GROUP BY ALL ORDER BY ALL"
        ).fetchall()
    assert vintages == [(before["week"], 3), (before["week"] + timedelta(weeks=4), 3)]
    assert record == [(k, 3, 0.0) for k in (1, 2, 3, 4)]


def test_new_weeks_do_not_restart_the_study(lived: tuple[Project, dict[str, object]]) -> None:
    project, before = lived
    assert project.study().origin == before["study"]
    assert files(project, before["study"]) == before["studied"]
    studied = {step.name for step in the_plan() if step.purposes == ("study",)}
    assert not studied & {step for step, *_ in before["done"]}


def test_a_backtest_is_the_live_forecast_of_its_week(
    economy: pd.DataFrame, lived: tuple[Project, dict[str, object]], tmp_path: Path
) -> None:
    """The same data up to an origin give the same forecasts, whether it was the last week or lies years back."""
    project, _ = lived
    origin = project.origins("backtest")[-1].week
    then = project_of(tmp_path, economy[days(economy) <= origin + timedelta(days=6)])
    bring_up_to_date(
        then, models=MODELS, without=("tuned_models", "neural_forecasts", "report", "backtest_forecasts")
    )
    assert then.origins("live")[0].week == origin
    query = (
        "SELECT firm, model, week, acquired, orders, aov, sales FROM forecast_week "
        "WHERE purpose = ? AND origin = ? ORDER BY ALL"
    )
    rows = []
    for one, purpose in ((then, "live"), (project, "backtest")):
        with duckdb.connect(str(one.warehouse), read_only=True) as con:
            rows.append(con.execute(query, [purpose, origin]).fetchall())
    assert len(rows[0]) == 3 * len(MODELS) * 52
    assert rows[0] == rows[1]


def test_nothing_after_an_origin_reaches_a_forecast_made_there(
    economy: pd.DataFrame, lived: tuple[Project, dict[str, object]], tmp_path: Path
) -> None:
    """Priors learned across firms, choices and measures included."""
    project, _ = lived
    cut = project.study().origin
    later = days(economy) > cut + timedelta(days=6)
    scrambled = economy.copy()
    scrambled.loc[later, "amount"] = scrambled.loc[later, "amount"] * 7 + 3
    kept = economy["customer"].astype(str).map(lambda name: crc32(name.encode()) % 3 > 0)
    scrambled = scrambled[~later | kept | (days(economy) == LAST)]
    other = project_of(tmp_path, scrambled)
    study = project.config.study
    assert study is not None
    with (tmp_path / "cbmt.toml").open("a") as text:
        text.write(f"\n[study]\norigin = {study.origin}\nholdout_weeks = {study.holdout_weeks}\n")
    bring_up_to_date(other, models=MODELS)

    def seen(one: Project) -> dict[str, str]:
        """What was made at origins up to the cut."""
        known = content(one, but=("accuracy", "accuracy_failure", "accuracy_summary", "bridge"))
        return {
            path: digest
            for path, digest in known.items()
            if "/origin=" in path
            and path.split("/origin=")[1][:10] <= cut.isoformat()
            and path.split("/")[0]
            in ("forecast_week", "forecast_cohort_week", "model_fit", "path_prior", "forecast_choice",
                "forecast_spread", "band_factor", "error_path", "forecast_band",
                "comovement_measure", "difficulty_feature", "firm_history")
        }  # fmt: skip

    assert {path.split("/")[0] for path in seen(project)} >= {
        "forecast_week",
        "path_prior",
        "forecast_choice",
        "band_factor",
        "forecast_band",
    }
    assert seen(other) == seen(project)


def test_a_young_project_is_forecast_and_says_what_the_study_lacks(
    economy: pd.DataFrame, tmp_path: Path
) -> None:
    start = LAST - timedelta(weeks=45)
    project = project_of(tmp_path, economy[days(economy) > start])
    bring_up_to_date(project, models=MODELS)
    assert "are missing" in project.why_no_study()
    assert project.origins("study") == []
    with duckdb.connect(str(project.warehouse), read_only=True) as con:
        weeks = con.execute("SELECT firm, count(*) FROM forecast GROUP BY ALL").fetchall()
        notes = con.execute(
            "SELECT DISTINCT diagnosis FROM model_fit WHERE model = 'cbmt_plus' AND purpose = 'live'"
        ).fetchall()
    assert [count for _, count in weeks] == [52, 52, 52]
    assert all("prior" in note for (note,) in notes)


def test_upgrading_the_present_layout_does_nothing(lived: tuple[Project, dict[str, object]]) -> None:
    project, _ = lived
    project.check_schema()
    assert upgrade(project) == ["nothing to do: the project has the present layout"]
