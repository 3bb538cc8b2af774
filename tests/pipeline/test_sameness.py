"""The same data give the same tables: in another order, by other workers, after a firm has left."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.accidents import in_child
from helpers.in_process import bring_up_to_date
from helpers.projects import cbmt
from helpers.small_project import CONFIG, orders_csv
from helpers.whole_state import differences, whole_state

from cbmt_core.timeline import Timeline
from cbmt_pipeline.project import Project

pytestmark = pytest.mark.soak

FIRMS = {"A, B & Söhne": "10.00", "two": "12.50", "three": "7.00"}
MODELS = ("cbmt_plus", "cohort_glm", "seasonal_naive")
SETTINGS = '[forecast]\nmodels = ["cbmt_plus", "cohort_glm", "seasonal_naive"]\n[networks]\nmodels = []\n'
SECOND = '[[sources]]\nname = "leaves"\npath = "more"\ncurrency = "GBP"\ntimezone = "Europe/London"\n'


def delivered(root: Path, order: tuple[str, ...]) -> Project:
    """A project whose files hold the firms, each file named by its place in `order`."""
    (root / "orders").mkdir(parents=True)
    (root / "cbmt.toml").write_text(CONFIG + SETTINGS)
    for k, firm in enumerate(order):
        (root / "orders" / f"{k}.csv").write_text(orders_csv(firm, amount=FIRMS[firm]))
    return Project(root)


def tables(project: Project) -> dict[str, str]:
    """What was made: without the intake, and without the data version, which both know the names of files."""
    found = whole_state(project, without=project.intake.version)
    return {path: digest for path, digest in found.items() if not path.startswith("lake/intake")}


def test_order_and_workers_change_nothing(tmp_path: Path) -> None:
    names = tuple(FIRMS)
    first = delivered(tmp_path / "first", names)
    cbmt(first.root, "run", "--workers", "1", "--no-networks")
    expected = tables(first)
    tried = 0
    for k, (order, workers) in enumerate([(names, "2"), (names[::-1], "2"), (names, "1")]):
        other = delivered(tmp_path / str(k), order)
        cbmt(other.root, "run", "--workers", workers, "--no-networks")
        assert differences(tables(other), expected) == []
        assert (other.intake.version == first.intake.version) == (order == names)
        tried += 1
    print(f"sameness: {len(expected)} files of {tried} further runs (1 and 2 workers, other order), differ 0")


def test_a_firm_that_left_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in the prior that it helped to teach either."""
    all_of_them = Timeline.backtest_origins
    monkeypatch.setattr(Timeline, "backtest_origins", lambda self: all_of_them(self)[-1:])
    names = tuple(FIRMS)
    never = delivered(tmp_path / "never", names)
    in_child(lambda: bring_up_to_date(never, models=MODELS, without=()))
    left = delivered(tmp_path / "left", names)
    (left.root / "more").mkdir()
    (left.root / "more" / "9.csv").write_text(orders_csv("it leaves", amount="99.00"))
    text = (left.root / "cbmt.toml").read_text()
    (left.root / "cbmt.toml").write_text(text + SECOND)
    in_child(lambda: bring_up_to_date(left, models=MODELS, without=()))
    assert list((left.data / "lake").glob("path_prior/**/*.parquet")), "a prior was learned"
    taught = tables(left)
    pinned = (left.root / "cbmt.toml").read_text()
    (left.root / "cbmt.toml").write_text(pinned.replace(SECOND, ""))
    in_child(lambda: bring_up_to_date(Project(left.root), models=MODELS, without=()))
    expected, now = tables(never), tables(left)
    assert differences(taught, expected), "while it was there, others' forecasts rested on it"
    assert differences(now, expected) == []
    print(
        f"a firm that left: {len(expected)} files compared, {len(differences(taught, expected))} had changed, differ 0"
    )
