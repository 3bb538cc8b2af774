"""What carrying out a step leaves on disk: files, manifest and digests, item by item, firm by firm."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path

import duckdb
import pandas as pd
import pytest
from helpers.small_project import CONFIG, make_all, new_project

from cbmt_core import duck
from cbmt_core.errors import BadFirmData, CbmtError
from cbmt_core.names import Unit
from cbmt_core.schema import TABLES, Table
from cbmt_core.schema.kinds import Column
from cbmt_core.timeline import Origin
from cbmt_pipeline.holder import holding_task
from cbmt_pipeline.manifest import Manifest, Manifests, commit, digest_of
from cbmt_pipeline.plan import Plan, State, Step, Task
from cbmt_pipeline.project import Project
from cbmt_pipeline.transaction import Outcome, carry_out, carry_out_together, task_key
from cbmt_pipeline.work import Made, Options, Work

NUMBERS = Table(
    "numbers",
    "Numbers.",
    ("firm", "model", "n"),
    (
        Column("firm", "VARCHAR", "Firm."),
        Column("model", "VARCHAR", "Model."),
        Column("n", "INTEGER", "Number."),
        Column("note", "VARCHAR", "Note.", nullable=True),
    ),
)
F = Unit("F")
SUNDAY = date(2020, 1, 5)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "cbmt.toml").write_text(CONFIG)
    return Project(tmp_path)


def rows(model: str, *numbers: int, note: str | None = None) -> pd.DataFrame:
    return pd.DataFrame({"note": note, "n": list(numbers), "model": model, "firm": "F"})


def step_of(make, **options) -> tuple[Plan, Step]:
    plan = Plan([Step("numbers", make, "N.", "data", writes=(NUMBERS,), **options)])
    return plan, plan["numbers"]


def stored(project: Project, *where: object) -> list[tuple[object, ...]]:
    with duckdb.connect() as con:
        return con.execute(f"FROM {project.lake.relation(NUMBERS, *where)}").fetchall()  # type: ignore[arg-type]


def test_rows_are_stored_in_declared_columns_and_the_order_of_the_whole_key(project: Project) -> None:
    plan, step = step_of(lambda _: Made({"numbers": pd.concat([rows("b", 2, 10, 1), rows("a", 3)])}))
    outcome = carry_out(project, plan, Task(step, None, F))
    assert outcome.rows == {"numbers": 4}
    assert stored(project) == [
        ("F", "a", 3, None),
        ("F", "b", 1, None),
        ("F", "b", 2, None),
        ("F", "b", 10, None),
    ]


def test_items_made_later_stand_beside_earlier_ones_and_replace_their_own(project: Project) -> None:
    """A model made alone leaves the rows and the record of the others; one that breaks loses its own."""
    made: dict[str, Made] = {
        "first": Made(
            {"numbers": pd.concat([rows("a", 1), rows("b", 2), rows("c", 3)])},
            {"a": "v1", "b": "v1", "c": "v1"},
        ),
        "again": Made({"numbers": rows("b", 20)}, {"b": "v2"}),
    }
    which = ["first"]
    plan, step = step_of(lambda _: made[which[0]], items=lambda _: {"a": "v1", "b": "v2", "c": "v1"})
    carry_out(project, plan, Task(step, None, F, ("a", "b", "c")))
    which[0] = "again"
    # b is made anew, c is tried and breaks.
    outcome = carry_out(project, plan, Task(step, None, F, ("b", "c")))
    assert stored(project) == [("F", "a", 1, None), ("F", "b", 20, None)]
    assert outcome.manifest.items == {"a": "v1", "b": "v2"}
    assert outcome.manifest == project.manifests.read("numbers", None, F)
    assert State(project, plan).todo(step, units=[F]) == [Task(step, None, F, ("c",))]


def test_what_was_tried_can_be_less_than_what_was_asked_for(project: Project) -> None:
    first = Made({"numbers": pd.concat([rows("a", 1), rows("b", 2)])}, {"a": "v", "b": "v"})
    made = [first, Made({"numbers": rows("a", 5)}, {"a": "v"}, attempted=("a",))]
    plan, step = step_of(lambda _: made.pop(0), items=lambda _: {"a": "v", "b": "v"})
    carry_out(project, plan, Task(step, None, F, ("a", "b")))
    outcome = carry_out(project, plan, Task(step, None, F, ("a", "b")))
    assert stored(project) == [("F", "a", 5, None), ("F", "b", 2, None)]
    assert outcome.manifest.items == {"a": "v", "b": "v"}


def test_items_from_other_inputs_do_not_stay(project: Project) -> None:
    inputs = {"data": "old"}
    made = [Made({"numbers": rows("a", 1)}, {"a": "v"}), Made({"numbers": rows("b", 2)}, {"b": "v"})]
    plan, step = step_of(
        lambda _: made.pop(0), items=lambda _: {"a": "v", "b": "v"}, settings=lambda *_: dict(inputs)
    )
    carry_out(project, plan, Task(step, None, F, ("a",)))
    inputs["data"] = "new"
    outcome = carry_out(project, plan, Task(step, None, F, ("b",)))
    assert stored(project) == [("F", "b", 2, None)]
    assert (outcome.manifest.items, outcome.manifest.inputs) == ({"b": "v"}, {"data": "new"})


def test_a_step_without_items_replaces_all_its_rows(project: Project) -> None:
    made = [Made({"numbers": rows("a", 1)}), Made({"numbers": rows("b", 2)})]
    plan, step = step_of(lambda _: made.pop(0))
    for _ in range(2):
        carry_out(project, plan, Task(step, None, F))
    assert stored(project) == [("F", "b", 2, None)]


def test_a_step_that_makes_parts_commits_each_and_the_last_is_the_outcome(project: Project) -> None:
    seen: list[dict[str, str]] = []

    def make(work: Work) -> Iterator[Made]:
        for item in work.items:
            yield Made({"numbers": rows(item, 1)}, {item: "v"}, attempted=(item,), metadata={"item": item})
            manifest = project.manifests.read("numbers", None, F)
            assert manifest is not None
            seen.append(dict(manifest.items))

    plan, step = step_of(make, items=lambda _: {"a": "v", "b": "v"})
    outcome = carry_out(project, plan, Task(step, None, F, ("a", "b")))
    assert seen == [{"a": "v"}, {"a": "v", "b": "v"}]
    assert outcome.metadata == {"item": "b"}
    assert stored(project) == [("F", "a", 1, None), ("F", "b", 1, None)]


def test_rejected_outputs_are_stored_but_the_step_is_not_done(project: Project) -> None:
    """What is made from the last good outputs stays as it is: their digest and weeks are kept."""
    good = Made({"numbers": rows("a", 1)}, as_of={"2020-01-05": "d1"})
    bad = Made({"numbers": rows("a", 2)}, as_of={"2020-01-12": "d2"}, rejected="too many bad rows")
    made = [bad, good, bad]
    plan, step = step_of(lambda _: made.pop(0))
    first = carry_out(project, plan, Task(step, None, F))
    assert (first.rejected, first.manifest.rejected) == ("too many bad rows",) * 2
    assert State(project, plan).is_current(step, None, F) is None
    carry_out(project, plan, Task(step, None, F))
    assert State(project, plan).is_current(step, None, F) is not None
    outcome = carry_out(project, plan, Task(step, None, F))
    assert outcome.manifest.as_of == {"2020-01-05": "d1"}
    assert outcome.manifest.rejected == "too many bad rows"
    assert State(project, plan).todo(step, units=[F]) == [Task(step, None, F)]


def test_further_files_are_committed_and_gone_ones_leave_the_manifest(project: Project) -> None:
    folder = project.data / "models"
    folder.mkdir(parents=True)

    def staged(name: str, text: str) -> dict[Path, Path]:
        temporary = folder / f".{name}.tmp"
        temporary.write_text(text)
        return {folder / name: temporary}

    made = [
        Made(files={**staged("one", "1"), **staged("two", "2")}, items={"a": "v"}),
        Made(files=staged("three", "3"), gone=(folder / "one",), items={"b": "v"}, attempted=("b",)),
    ]
    plan, step = step_of(lambda _: made.pop(0), items=lambda _: {"a": "v", "b": "v"})
    carry_out(project, plan, Task(step, None, F, ("a",)))
    (folder / ".three.tmp").write_text("3")
    outcome = carry_out(project, plan, Task(step, None, F, ("b",)))
    assert sorted(os.listdir(folder)) == ["three", "two"]
    assert outcome.manifest.files == {
        f"models/{name}": hashlib.sha256(text.encode()).hexdigest()[:16]
        for name, text in (("two", "2"), ("three", "3"))
    }


def test_the_commit_marker_is_removed_first_and_written_last(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, step = step_of(lambda _: Made({"numbers": rows("a", 1)}))
    task = Task(step, None, F)
    carry_out(project, plan, task)
    marker = project.manifests.path("numbers", None, F)
    events: list[tuple[str, str, bool]] = []
    replace, fsync = os.replace, os.fsync

    def renamed(source: Path, target: Path) -> None:
        events.append(("rename", Path(target).suffix, marker.exists()))
        replace(source, target)

    def synced(handle: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{handle}"))
        events.append(("fsync", "folder" if path.is_dir() else path.suffix, marker.exists()))
        fsync(handle)

    monkeypatch.setattr("os.replace", renamed)
    monkeypatch.setattr("os.fsync", synced)
    carry_out(project, plan, task)
    assert events == [
        ("fsync", ".tmp", True),
        ("rename", ".parquet", False),
        ("fsync", "folder", False),
        ("fsync", ".tmp", False),
        ("rename", ".json", False),
        ("fsync", "folder", True),
    ]


def test_staged_files_of_a_step_that_breaks_are_removed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, step = step_of(lambda _: Made({"numbers": rows("a", 1)}))
    before = carry_out(project, plan, Task(step, None, F)).manifest

    def full(*_: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        carry_out(project, plan, Task(step, None, F))
    folder = project.lake.folder("numbers", unit=F)
    assert os.listdir(folder) == ["numbers.parquet"]
    assert project.manifests.read("numbers", None, F) == before


def test_commit_reports_the_digest_of_what_is_now_there(tmp_path: Path) -> None:
    target, temporary, old = tmp_path / "a" / "x", tmp_path / "a" / ".x.tmp", tmp_path / "a" / "old"
    target.parent.mkdir()
    target.write_text("before")
    old.write_text("old")
    temporary.write_text("after")
    digests = commit(tmp_path, {target: temporary}, [old, tmp_path / "never there"])
    assert digests == {"a/x": hashlib.sha256(b"after").hexdigest()[:16]}
    assert sorted(os.listdir(target.parent)) == ["x"]
    assert target.read_text() == "after"


def test_a_manifest_knows_its_weeks() -> None:
    made = Manifest("s", "1", {}, as_of={"2020-01-05": "a", "2020-01-12": "b", "2020-01-26": "d"})
    week = timedelta(weeks=1)
    assert [made.up_to(SUNDAY + k * week) for k in (-1, 0, 1, 2, 3, 9)] == ["", "a", "b", "b", "d", "d"]
    assert [made.reaches(SUNDAY + k * week) for k in (-1, 3, 4)] == [True, True, False]
    assert [made.covers(SUNDAY + k * week) for k in (-1, 0, 3, 4)] == [False, True, True, False]
    empty = Manifest("s", "1", {})
    assert (empty.up_to(SUNDAY), empty.reaches(SUNDAY), empty.covers(SUNDAY)) == ("", False, False)


def test_the_digest_of_a_manifest_is_that_of_its_outputs() -> None:
    """Inputs and version count only where no file tells what came of them."""
    with_files = Manifest("s", "1", {"a": "1"}, files={"x": "d"})
    assert with_files.digest == Manifest("s", "2", {"a": "2"}, files={"x": "d"}).digest
    assert with_files.digest != Manifest("s", "1", {"a": "1"}, files={"x": "e"}).digest
    assert with_files.digest != Manifest("s", "1", {"a": "1"}, files={"x": "d"}, rejected="bad").digest
    without = Manifest("s", "1", {"a": "1"})
    assert without.digest not in (
        Manifest("s", "2", {"a": "1"}).digest,
        Manifest("s", "1", {"a": "2"}).digest,
    )
    assert digest_of({"b": 1, "a": 2}) == digest_of({"a": 2, "b": 1})
    assert len(with_files.digest) == 16


def test_manifests_of_firms_are_told_apart_and_kept_by_slug(tmp_path: Path) -> None:
    manifests = Manifests(tmp_path / "m")
    made = Manifest("s", "1", {"a": "1"}, items={"i": "v"}, as_of={"2020-01-05": "d"}, rejected="r")
    names = ["it's 50% off/..", "b", "../../x"]
    for name in names:
        for origin in (None, SUNDAY):
            manifests.write("s", origin, Unit(name), made)
    manifests.write("s", None, None, made)
    assert manifests.read("s", None, Unit("b")) == made
    assert manifests.read("s", SUNDAY) is None
    assert [unit for unit, _ in manifests.of_firms("s")] == sorted(
        map(Unit, names), key=lambda unit: unit.slug
    )
    assert dict(manifests.of_firms("s", SUNDAY)) == dict.fromkeys(map(Unit, names), made)
    manifests.keep_only({Unit("b").slug})
    left = sorted(str(path.relative_to(tmp_path / "m")) for path in (tmp_path / "m").glob("**/*.json"))
    assert left == ["s/firm=b.json", f"s/origin={SUNDAY}/firm=b.json", "s/panel.json"]
    manifests.remove("s", None, Unit("b"))
    manifests.remove("s", None, Unit("never"))
    assert manifests.read("s", None, Unit("b")) is None
    assert json.loads((tmp_path / "m/s/panel.json").read_text())["inputs"] == {"a": "1"}


def test_files_of_firms_that_are_gone_are_removed_and_the_firms_named(project: Project) -> None:
    plan, step = step_of(lambda work: Made({"numbers": rows("a", 1).assign(firm=work.firm.name)}))
    for name in ("x", "a/b", "z"):
        carry_out(project, plan, Task(step, None, Unit(name)))
    (project.lake.root / "firm=stray.txt").write_text("no folder")
    assert project.lake.keep_only([Unit("z")]) == [Unit("a/b"), Unit("x")]
    assert project.lake.units("numbers") == [Unit("z")]
    assert project.lake.keep_only([Unit("z")]) == []
    assert [firm for firm, *_ in stored(project)] == ["z"]


def test_a_table_whose_older_files_lack_a_column_is_read_whole(project: Project) -> None:
    """A firm that was rejected keeps the tables of an earlier version."""
    plan, step = step_of(lambda _: Made({"numbers": rows("a", 1, note="new")}))
    carry_out(project, plan, Task(step, None, F))
    older = project.lake.path("numbers", "numbers", unit=Unit("Old"))
    older.parent.mkdir()
    with duckdb.connect() as con:
        con.execute(f"COPY (SELECT 'Old' AS firm, 'a' AS model, 7 AS n) TO '{older}' (FORMAT parquet)")
    assert sorted(stored(project), key=str) == [("F", "a", 1, "new"), ("Old", "a", 7, None)]
    assert stored(project, None, Unit("Old")) == [("Old", "a", 7, None)]
    assert stored(project, SUNDAY) == []


def test_work_says_what_it_lacks(project: Project) -> None:
    plan, step = step_of(lambda work: Made({"numbers": str(work.panel(until=SUNDAY))}))
    with pytest.raises(BadFirmData, match="its cohort tables do not exist"):
        carry_out(project, plan, Task(step, None, F))
    for wanted, said in ((lambda work: work.at, "has no origin"), (lambda work: work.firm, "across firms")):
        plan, step = step_of(wanted, by_firm=False)
        with pytest.raises(AssertionError, match=said):
            carry_out(project, plan, Task(step, None, None))


def week_rows(firm: str, weeks: int) -> str:
    return (
        f"(SELECT '{firm}' AS firm, DATE '2017-01-01' + CAST(7 * i AS INTEGER) AS week, 1 AS acquired, 1 AS orders, "
        "1 AS initial_orders, 0 AS repeat_orders, 5 AS sales, 5 AS initial_sales, 0 AS repeat_sales, "
        f"1 AS active_customers, i + 1 AS cumulative_customers, 0 AS ropc, 5 AS aov FROM range({weeks}) t(i))"
    )


@pytest.mark.parametrize(
    ("sees_target", "last", "firms"), [(False, 3, ["long", "short"]), (True, 5, ["long"])]
)
def test_a_step_sees_weeks_up_to_its_origin_of_firms_that_have_delivered_them(
    project: Project, sees_target: bool, last: int, firms: list[str]
) -> None:
    """Three weeks are seen at the origin; a step that judges forecasts sees the two weeks of its target too."""
    table = TABLES["firm_week"]
    lengths = {"long": 9, "short": 3}

    def weeks(work: Work) -> Made:
        return Made({"firm_week": week_rows(work.firm.name, lengths[work.firm.name])})

    data = Plan([Step("weeks", weeks, "W.", "data", writes=(table,))])
    for name in ("long", "short"):
        carry_out(project, data, Task(data["weeks"], None, Unit(name)))
    origin = Origin(date(2017, 1, 15), 2, "study" if sees_target else "backtest")
    found = {}

    def look(work: Work) -> Made:
        relation = work.relations().firm_week
        found["rows"] = work.con.execute(
            f"SELECT firm, count(*), max(week) FROM {relation} GROUP BY firm ORDER BY firm"
        ).fetchall()
        return Made()

    plan = Plan(
        [
            Step(
                "look",
                look,
                "L.",
                "data",
                by_firm=False,
                purposes=("study", "backtest"),
                sees_target=sees_target,
            )
        ]
    )
    with duckdb.connect() as con:
        work = Work(project, plan, State(project, plan), plan["look"], con, origin, None, (), Options(),
                    lambda *_: None, lambda _: None)  # fmt: skip
        look(work)
    until = date(2017, 1, 1) + timedelta(weeks=last - 1)
    assert found["rows"] == [(firm, last, until) for firm in firms]


def test_firms_made_together_are_prepared_once_and_one_that_breaks_stops_no_other(project: Project) -> None:
    prepared: list[list[str]] = []

    def prepare(works: Sequence[Work]) -> None:
        prepared.append([work.firm.name for work in works])
        for work in works:
            work.prepared = f"of {len(works)}"

    def make(work: Work) -> Made:
        if work.firm == Unit("bad"):
            raise BadFirmData("bad", "it breaks")
        return Made({"numbers": rows("a", 1).assign(note=work.prepared, firm=work.firm.name)})

    plan, step = step_of(make, prepare=prepare)
    assert list(carry_out_together(project, plan, [])) == []
    tasks = [Task(step, None, Unit(name)) for name in ("z", "bad", "a")]
    z, bad, a = carry_out_together(project, plan, tasks)
    assert isinstance(bad, BadFirmData)
    assert isinstance(z, Outcome)
    assert isinstance(a, Outcome)
    assert prepared == [["z", "bad", "a"]]
    assert stored(project) == [("a", "a", 1, "of 3"), ("z", "a", 1, "of 3")]
    assert not list(project.task_locks.iterdir())
    # One by itself is prepared too.
    carry_out(project, plan, Task(step, None, F))
    assert prepared[1:] == [["F"]]


@pytest.mark.parametrize(
    ("wanted", "made_there", "taken"),
    [(("a",), ("a",), True), (("a", "b"), ("a",), False), (("a",), ("b",), False), ((), ("a", "b"), True)],
)
@pytest.mark.parametrize("together", [False, True])
def test_what_another_made_meanwhile_is_taken_if_it_is_all_that_was_asked_for(
    project: Project, wanted: tuple[str, ...], made_there: tuple[str, ...], taken: bool, together: bool
) -> None:
    """The other has the task, and makes some items while this one waits."""
    made = [made_there, wanted]

    def make(_: Work) -> Made:
        items = made.pop(0)
        return Made(
            {"numbers": pd.concat([rows(item, len(made)) for item in items])},
            dict.fromkeys(items, "v"),
            attempted=items,
        )

    plan, step = step_of(make, items=lambda _: {"a": "v", "b": "v"}, prepare=lambda _: None)
    mine, waited = Task(step, None, F, wanted), threading.Event()
    found: list[object] = []

    def wait_for_it() -> None:
        if together:
            # Nothing is found where the iterator breaks after its first outcome.
            found.extend([*carry_out_together(project, plan, [mine], log=lambda _: waited.set())])
        else:
            found.append(carry_out(project, plan, mine, log=lambda _: waited.set()))

    with holding_task(project, task_key(mine), lambda _: None):
        waits = threading.Thread(target=wait_for_it)
        waits.start()
        assert waited.wait(30)
        manifest = _made_by_another(project, plan, Task(step, None, F, made_there))
    waits.join(60)
    (outcome,) = found
    assert isinstance(outcome, Outcome)
    assert (outcome.metadata.get("note") == "made by another process at the same time") == taken
    assert (outcome.manifest == manifest) == taken
    assert len(made) == (1 if taken else 0)


@pytest.mark.parametrize("together", [False, True])
def test_a_step_that_is_carried_out_checks_the_layout_and_pins_the_study(
    tmp_path: Path, together: bool
) -> None:
    """Also where no command has done so before: tasks of the UI come this way."""
    project = new_project(tmp_path, ("one",))
    plan, step = step_of(lambda _: Made(), prepare=lambda _: None, purposes=("study",))

    def begin() -> list[object]:
        tasks = [Task(step, project.origins("study")[0], unit) for unit in project.intake.units()]
        together_or_not = carry_out_together if together else _one_after_another
        return [*together_or_not(project, plan, tasks)]

    study = project.study()
    assert project.config.study is None
    assert len(begin()) == 1
    assert Project(tmp_path).config.study
    assert Project(tmp_path).study() == study
    (project.lake.root / "schema.json").write_text(json.dumps({"schema": 99}))
    with pytest.raises(CbmtError, match="newer version"):
        begin()


def _one_after_another(project: Project, plan: Plan, tasks: Sequence[Task]) -> list[Outcome]:
    return [carry_out(project, plan, task) for task in tasks]


def _made_by_another(project: Project, plan: Plan, task: Task) -> Manifest:
    """What the holder of a task makes of it: its lock is held already."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cbmt_pipeline.transaction.task_key", lambda _: "of the other")
        return carry_out(project, plan, task).manifest


@pytest.mark.parametrize(("options", "alone"), [({}, True), ({"by_firm": False}, False)])
def test_a_firm_at_an_origin_has_one_thread_and_what_has_the_machine_to_itself_has_all(
    project: Project, options: dict[str, object], alone: bool
) -> None:
    """Many firms are made at once, so each has one; a step across firms runs by itself."""
    threads = []

    def make(work: Work) -> Made:
        threads.extend(work.con.execute("SELECT current_setting('threads')").fetchall())
        return Made()

    for purposes in ((), ("backtest",)):
        plan, step = step_of(make, purposes=purposes, **options)
        origin = Origin(SUNDAY, 2, "backtest") if purposes else None
        carry_out(project, plan, Task(step, origin, F if alone else None))
    own = duck.connect(project.spill).execute("SELECT current_setting('threads')").fetchall()
    assert threads == [*own, (1,) if alone else own[0]]


def test_a_panel_holds_customers_only_where_they_are_asked_for(tmp_path: Path) -> None:
    project = new_project(tmp_path / "project", ("F",))
    assert make_all(project) == {}
    held = {}

    def look(work: Work) -> Made:
        end = project.timeline().panel.last
        held.update(
            {
                "not": work.panel(until=end).customers,
                "asked": work.panel(customers=True, until=end).customers,
            }
        )
        return Made()

    plan, step = step_of(look)
    carry_out(project, plan, Task(step, None, F))
    assert held["not"] is None
    assert held["asked"] is not None


def test_the_bytes_of_a_manifest_do_not_depend_on_the_order_in_which_it_was_filled(tmp_path: Path) -> None:
    manifests = Manifests(tmp_path)
    for name, items in (("one", {"a": "1", "b": "2"}), ("two", {"b": "2", "a": "1"})):
        manifests.write("s", None, Unit(name), Manifest("s", "1", dict(items), items))
    assert len({path.read_bytes() for path in tmp_path.glob("s/*.json")}) == 1


def test_another_process_may_remove_a_manifest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manifests = Manifests(tmp_path)
    manifests.write("s", None, F, Manifest("s", "1", {}))
    listed = list(tmp_path.glob("**/firm=*.json"))
    manifests.remove("s", None, F)
    monkeypatch.setattr(Path, "glob", lambda *_: iter(listed))
    manifests.keep_only(set())
    assert not listed[0].exists()
