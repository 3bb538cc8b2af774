"""Late firms: their weeks are missing, they keep their last vintage, and catch up as if they had not been late."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import duckdb
import pytest
from helpers.in_process import bring_up_to_date, content
from helpers.small_project import CONFIG, orders_csv

from cbmt_pipeline.project import Project

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("late")]

FIRMS = tuple("ABCDE")
LATE = "E"
FLOOR = ("seasonal_naive",)
WITHOUT = (
    *("tuned_models", "neural_forecasts", "report", "plus_forecasts", "path_priors"),
    *("firm_measures", "comovement", "difficulty", "routing", "external_calibration", "exhibits"),
)


def new(root: Path) -> Project:
    (root / "orders").mkdir(parents=True)
    (root / "cbmt.toml").write_text(CONFIG + '[forecast]\nmodels = ["seasonal_naive"]\n')
    return Project(root)


def deliver(project: Project, weeks: int, firms: tuple[str, ...] = FIRMS) -> None:
    for firm in firms:
        (project.root / "orders" / f"{firm}.csv").write_text(orders_csv(firm, weeks))


def refresh(project: Project) -> list[tuple[str, str, str]]:
    return bring_up_to_date(Project(project.root), models=FLOOR, without=WITHOUT)


def query(project: Project, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(project.warehouse), read_only=True) as con:
        return con.execute(sql).fetchall()


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Ninety weeks of five firms; five weeks of one firm; five weeks of the others but one; at last of that one too."""
    project = new(tmp_path_factory.mktemp("lived"))
    deliver(project, 90)
    refresh(project)
    seen: dict[str, object] = {"project": project, "first": project.timeline().panel.last}
    deliver(project, 95, FIRMS[:1])
    seen["alone"] = refresh(project)
    seen["after one"] = project.timeline().panel.last
    deliver(project, 95, FIRMS[1:-1])
    refresh(project)
    seen["after most"] = project.timeline().panel.last
    seen["late"] = project.deliveries().late
    seen["forecasts"] = query(
        project, "SELECT firm, min(origin), count(*) FROM forecast GROUP BY firm ORDER BY firm"
    )
    seen["weeks"] = dict(query(project, "SELECT firm, max(week) FROM firm_week GROUP BY firm"))
    seen["zero"] = query(project, "SELECT count(*) FROM firm_week WHERE sales = 0")
    seen["bridge"] = query(
        project, "SELECT DISTINCT firm, origin FROM bridge WHERE purpose = 'live' ORDER BY ALL"
    )
    deliver(project, 95, FIRMS[-1:])
    seen["caught up"] = refresh(project)
    return seen


def test_weeks_of_one_firm_move_the_origin_of_nobody(lived: dict[str, object]) -> None:
    assert lived["after one"] == lived["first"]
    done = {(step, firm) for step, _, firm in lived["alone"]}  # type: ignore[attr-defined]
    assert {firm for step, firm in done if step == "firm_data"} == {"A"}
    assert not {step for step, _ in done} & {
        "live_forecasts",
        "backtest_forecasts",
        "forecast_choice",
        "bridge",
    }


def test_a_late_firm_keeps_its_last_vintage_and_its_weeks_are_missing(lived: dict[str, object]) -> None:
    first, last = lived["first"], lived["after most"]
    assert isinstance(first, date)
    assert isinstance(last, date)
    assert last == first + timedelta(weeks=5)
    assert lived["late"] == (LATE,)
    assert lived["forecasts"] == [(firm, first if firm == LATE else last, 52) for firm in FIRMS]
    assert lived["weeks"] == {firm: first if firm == LATE else last for firm in FIRMS}
    assert lived["zero"] == [(0,)]
    assert (LATE, last) not in lived["bridge"]  # type: ignore[operator]
    assert ("A", last) in lived["bridge"]  # type: ignore[operator]


def test_a_firm_that_caught_up_is_forecast_where_the_others_are(lived: dict[str, object]) -> None:
    done = lived["caught up"]
    last = f"live {lived['after most']}"
    assert [(step, origin, firm) for step, origin, firm in done if step == "live_forecasts"] == [  # type: ignore
        ("live_forecasts", last, LATE)
    ]


def test_late_data_end_as_if_all_files_had_come_at_once(lived: dict[str, object], tmp_path: Path) -> None:
    project = lived["project"]
    assert isinstance(project, Project)
    at_once = new(tmp_path / "at_once")
    study = Project(project.root).config.study
    assert study is not None
    with (at_once.root / "cbmt.toml").open("a") as text:
        text.write(f"[study]\norigin = {study.origin}\nholdout_weeks = {study.holdout_weeks}\n")
    deliver(at_once, 95)
    refresh(at_once)
    earlier = f"origin={lived['first']}"
    # How bands held is judged on earlier vintages too, which a project made at once does not have.
    judged = ("band_coverage", "band_pit")
    assert content(at_once, but=judged)
    assert content(at_once, but=judged) == {
        path: digest for path, digest in content(project, but=judged).items() if earlier not in path
    }
