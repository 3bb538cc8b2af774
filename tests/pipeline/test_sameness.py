"""The same data give the same tables: in another order, by other workers, after a firm has left."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from zlib import crc32

import pytest
from helpers.accidents import in_child
from helpers.in_process import bring_up_to_date
from helpers.projects import cbmt
from helpers.small_project import CONFIG, orders_csv
from helpers.whole_state import differences, whole_state

from cbmt_core.timeline import Timeline
from cbmt_pipeline.plan import the_plan
from cbmt_pipeline.project import Project

FIRMS = {"A, B & Söhne": "10.00", "two": "12.50", "three": "7.00"}
MODELS = ("cbmt_plus", "cohort_glm", "seasonal_naive")
SETTINGS = '[forecast]\nmodels = ["cbmt_plus", "cohort_glm", "seasonal_naive"]\n[networks]\nmodels = []\n'
SECOND = '[[sources]]\nname = "leaves"\npath = "more"\ncurrency = "GBP"\ntimezone = "Europe/London"\n'


def delivered(root: Path, order: tuple[str, ...], settings: str = SETTINGS) -> Project:
    """A project whose files hold the firms, each file named by its place in `order`."""
    (root / "orders").mkdir(parents=True)
    (root / "cbmt.toml").write_text(CONFIG + settings)
    for k, firm in enumerate(order):
        (root / "orders" / f"{k}.csv").write_text(orders_csv(firm, amount=FIRMS[firm]))
    return Project(root)


def tables(project: Project) -> dict[str, str]:
    """What was made: without the intake, and without the data version, which both know the names of files."""
    found = whole_state(project, without=project.intake.version)
    return {path: digest for path, digest in found.items() if not path.startswith("lake/intake")}


def one_backtest(monkeypatch: pytest.MonkeyPatch) -> None:
    """One is enough here."""
    all_of_them = Timeline.backtest_origins
    monkeypatch.setattr(Timeline, "backtest_origins", lambda self: all_of_them(self)[-1:])


@pytest.mark.slow
def test_the_order_of_firms_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, with two quick models; the soak has every step, and workers."""
    one_backtest(monkeypatch)
    names = tuple(FIRMS)[:2]
    one, other = (delivered(tmp_path / str(k), order) for k, order in enumerate((names, names[::-1])))
    for project in (one, other):
        in_child(lambda project=project: bring_up_to_date(project))
    assert len(tables(one)) > 50
    assert differences(tables(one), tables(other)) == []
    assert one.intake.version != other.intake.version


@pytest.mark.soak
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


@pytest.mark.soak
def test_nothing_after_the_study_origin_reaches_what_was_made_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searches, networks, fits, forecasts, bands, priors, choices and measures of the whole pipeline."""
    one_backtest(monkeypatch)
    names, models = tuple(FIRMS)[:2], (*MODELS, "direct")
    networks = '[networks]\nprofile = "smoke"\nmodels = ["direct"]\n'
    settings = SETTINGS.replace("[networks]\nmodels = []\n", networks)
    as_it_was = delivered(tmp_path / "true", names, settings)
    in_child(lambda: bring_up_to_date(as_it_was, models=models, without=()))
    # The study is pinned now.
    pinned, cut = Project(as_it_was.root).config.study, as_it_was.study().origin
    assert pinned is not None
    study = f"\n[study]\norigin = {cut}\nholdout_weeks = {pinned.holdout_weeks}\n"
    other = delivered(tmp_path / "scrambled", names, settings + study)
    for file in (other.root / "orders").iterdir():
        file.write_text(scrambled(file.read_text(), (cut + timedelta(days=6)).isoformat()))
    in_child(lambda: bring_up_to_date(other, models=models, without=()))
    blind = {table.name for step in the_plan() if not step.sees_target for table in step.writes}
    blind -= {table.name for step in the_plan() if step.sees_target for table in step.writes}

    def made_there(project: Project) -> dict[str, str]:
        return {
            path: digest
            for path, digest in whole_state(project).items()
            if "/origin=" in path
            and path.split("/origin=")[1][:10] <= cut.isoformat()
            and (path.startswith("models/") or path.split("/")[1] in blind)
        }

    expected = made_there(as_it_was)
    kinds = {path.split("/")[1] for path in expected}
    assert {"forecast_week", "path_prior", "forecast_band", "comovement_measure", f"origin={cut}"} <= kinds
    assert differences(made_there(other), expected) == []
    assert differences(tables(other), tables(as_it_was)), "what came later is different"
    print(f"a scrambled future: {len(expected)} files of {len(kinds)} tables and networks, differ 0")


def scrambled(text: str, last: str) -> str:
    """Orders with other amounts, and some without them, after a day; the newest day keeps its orders."""
    head, *lines = text.splitlines()
    orders = [line.rsplit(",", 2) for line in lines]
    newest, kept = max(day for _, day, _ in orders), [head]
    for who, day, amount in orders:
        if day <= last:
            kept.append(f"{who},{day},{amount}")
        elif day == newest or crc32(f"{who}{day}".encode()) % 4:
            kept.append(f"{who},{day},{7 * float(amount) + 3:.2f}")
    return "\n".join(kept) + "\n"


@pytest.mark.soak
def test_a_firm_that_left_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in the prior that it helped to teach either."""
    one_backtest(monkeypatch)
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
