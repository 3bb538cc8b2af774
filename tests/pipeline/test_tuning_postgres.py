"""Searches kept in PostgreSQL, where several machines share them: the same promises as for a journal file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import optuna
import pytest
from helpers.materialised import Materialised
from helpers.servers import need, postgres
from optuna.distributions import CategoricalDistribution, FloatDistribution

from cbmt_core.models import build
from cbmt_core.simulate import Economy, sample_cohorts
from cbmt_core.tuning import Choice, Found, Report, Stages, forget, search

pytest.importorskip("psycopg", reason="needs the extra [postgres]")

pytestmark = [pytest.mark.slow, need("postgresql")]

SPACE = {"rate": FloatDistribution(1e-4, 1.0, log=True), "kind": CategoricalDistribution(["a", "b"])}
DEFAULT = {"rate": 0.5, "kind": "b"}
STAGES = Stages(random=3, grid=2, refined=2)


class Killed(BaseException):
    pass


@pytest.fixture(scope="module")
def database() -> Iterator[str]:
    """The address of a server of its own."""
    with postgres() as place:
        yield f"postgresql+psycopg://cbmt@{place}/postgres"


class Slope:
    def __init__(self, killed_at: int | None = None) -> None:
        self.seen: list[Choice] = []
        self.killed_at = killed_at

    def __call__(self, choice: Choice, report: Report) -> tuple[float, dict[str, object]]:
        if len(self.seen) == self.killed_at:
            raise Killed
        self.seen.append(choice)
        return choice["rate"] + (choice["kind"] == "b"), {
            "curve": {"training": [[k, 0.1234] for k in range(30)]}
        }


def run(slope: Slope, storage: str | None = None) -> Found:
    return search(slope, SPACE, [DEFAULT], STAGES, seed=3, storage=storage, study="A, B & Söhne/cbmt")


def test_killed_search_goes_on_in_the_database_and_can_be_forgotten(database: str) -> None:
    whole, first, rest, idle, anew = Slope(), Slope(4), Slope(), Slope(0), Slope()
    expected = run(whole)
    with pytest.raises(Killed):
        run(first, database)
    assert run(rest, database) == expected
    assert first.seen + rest.seen == whole.seen
    found = run(idle, database)
    assert found == expected
    assert [t["notes"] for t in found.history] == [t["notes"] for t in expected.history]
    forget(database, "A, B & Söhne/cbmt")
    assert run(anew, database) == expected
    assert anew.seen == whole.seen


def test_a_network_tuned_in_the_database_is_the_one_tuned_in_memory(database: str) -> None:
    economy = Economy(firms=1, seed=34)
    panel = sample_cohorts(economy, economy.specs()[0]).panel()
    seen = panel.until(panel.design.origin)
    stored = build("direct", profile="smoke", storage=database).fit(seen, seed=2)
    again = build("direct", profile="smoke", storage=database).fit(seen, seed=2)
    memory = build("direct", profile="smoke").fit(seen, seed=2)
    for other in (again, memory):
        assert other.record == stored.record
        assert other.forecast(20).S.tolist() == stored.forecast(20).S.tolist()


def test_the_pipeline_keeps_its_searches_where_the_project_says(database: str, tmp_path: Path) -> None:
    project = Materialised(tmp_path, Economy(firms=1, scale=0.003, seed=31))
    with (tmp_path / "cbmt.toml").open("a", encoding="utf-8") as file:
        file.write(f'\n[networks]\nstorage = "{database}"\n')
    (unit,) = project.units
    settings = {"profile": "smoke", "models": ["joint"]}
    assert project.make(
        ["tuned_models", "neural_forecasts"],
        unit,
        tuned_models=settings,
        neural_forecasts={"models": ["joint"]},
    ).success
    studies = optuna.get_all_study_names(database)
    assert [name for name in studies if name.startswith(f"{unit.name}/joint/")]
    assert not [path for path in (tmp_path / "data").rglob("*journal*") if path.is_file()]
    (weeks,) = project.query("SELECT count(*) FROM forecast_week WHERE model = 'joint'")[0]
    assert weeks == project.project.study().holdout_weeks
