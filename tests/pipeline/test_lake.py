"""The lake: one file a firm, table and step; manifests say what each was made from."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from datetime import date

import duckdb
import pyarrow.parquet as pq
import pytest
from helpers import TESTS
from helpers.firm_weeks import TABLE, WEEKS, write
from helpers.small_project import FIRMS, make_all, new_project

from cbmt_core import atomic
from cbmt_core.names import Unit
from cbmt_core.schema import TABLES
from cbmt_pipeline.lake import Lake
from cbmt_pipeline.manifest import Manifest
from cbmt_pipeline.plan import Plan, State, Step, Task, the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.transaction import carry_out
from cbmt_pipeline.work import Made


@pytest.fixture
def con():
    with duckdb.connect() as connection:
        yield connection


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path)


def path_of(project, firm):
    return project.lake.path(TABLE.name, "weeks", unit=Unit(firm))


def manifest_of(project, firm):
    return project.manifests.read("weeks", unit=Unit(firm))


@pytest.mark.parametrize("firm", FIRMS)
def test_what_is_written_is_read_back_in_the_declared_types(project, con, firm):
    lake = project.lake
    assert write(project, firm, 3) == 3
    assert lake.units("firm_week") == [Unit(firm)]
    described = con.execute(
        f"SELECT column_name, column_type FROM (DESCRIBE FROM {lake.relation(TABLE, unit=Unit(firm))})"
    ).fetchall()
    assert described == [(c.name, c.type) for c in TABLE.columns]
    assert con.execute(f"SELECT DISTINCT firm FROM {lake.relation(TABLE)}").fetchall() == [(firm,)]


def test_a_step_leaves_a_manifest_of_its_files(project):
    assert manifest_of(project, "F") is None
    write(project, "F", 1)
    path = path_of(project, "F")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
    assert manifest_of(project, "F") == Manifest(
        step="weeks", version="1", inputs={}, files={str(path.relative_to(project.data)): digest}
    )


def test_writing_again_replaces_and_leaves_nothing_behind(project, con):
    write(project, "F", 3)
    before = manifest_of(project, "F")
    write(project, "F", 2)
    assert [p.name for p in path_of(project, "F").parent.iterdir()] == ["weeks.parquet"]
    assert con.execute(f"SELECT count(*) FROM {project.lake.relation(TABLE)}").fetchall() == [(2,)]
    assert manifest_of(project, "F").digest != before.digest


def test_a_failed_write_leaves_the_earlier_file_and_its_manifest(project, con):
    write(project, "F", 3)
    before = manifest_of(project, "F")
    with pytest.raises(duckdb.Error):
        write(project, "F", 0, "(SELECT error('broken') AS firm)")
    assert [p.name for p in path_of(project, "F").parent.iterdir()] == ["weeks.parquet"]
    assert con.execute(f"SELECT count(*) FROM {project.lake.relation(TABLE)}").fetchall() == [(3,)]
    assert manifest_of(project, "F") == before


def test_the_lake_may_lie_in_a_folder_of_any_name(tmp_path, con):
    project = Project(tmp_path / "firm=x" / "[1]*" / "it's")
    write(project, "F", 3)
    lake = project.lake
    assert con.execute(f"SELECT count(*), any_value(firm) FROM {lake.relation(TABLE)}").fetchall() == [
        (3, "F")
    ]
    assert con.execute(f"SELECT count(*) FROM {lake.relation(TABLE, unit=Unit('F'))}").fetchall() == [(3,)]


def test_origins_lie_side_by_side_and_are_read_one_or_all(project, con):
    for week, rows in ((date(2020, 1, 5), 1), (date(2020, 1, 12), 2)):
        target = project.lake.path(TABLE.name, "weeks", week, Unit("F"))
        temporary, _ = project.lake.stage(con, TABLE, WEEKS.format(firm="F", rows=rows), target)
        os.replace(temporary, target)

    def count(*where):
        return con.execute(f"SELECT count(*) FROM {project.lake.relation(TABLE, *where)}").fetchall()[0][0]

    assert count(date(2020, 1, 5)) == 1
    assert count(date(2020, 1, 12), Unit("F")) == 2
    assert count() == 3
    assert count(date(2020, 1, 19)) == 0
    assert project.lake.units(TABLE.name) == [Unit("F")]


WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from cbmt_pipeline.project import Project
from helpers.firm_weeks import write
print("ready", flush=True)
while True:
    write(Project(Path(sys.argv[1])), "F", 0, sys.argv[2])
"""


@pytest.mark.parametrize("after", [0.03, 0.15, 0.4])
def test_a_killed_writer_leaves_every_table_readable(project, con, after):
    rows = 200_000
    write(project, "F", rows)
    write(project, "G", 3)
    relation = WEEKS.format(firm="F", rows=rows)
    command = [sys.executable, "-c", WRITER, str(project.root), relation, str(TESTS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "ready\n"
        time.sleep(after)
        writer.send_signal(signal.SIGKILL)
    assert writer.returncode == -signal.SIGKILL
    assert con.execute(
        f"SELECT firm, count(*) FROM {project.lake.relation(TABLE)} GROUP BY ALL ORDER BY 1"
    ).fetchall() == [
        ("F", rows),
        ("G", 3),
    ]
    assert pq.read_metadata(path_of(project, "F")).num_rows == rows
    manifest = manifest_of(project, "F")
    digest = hashlib.sha256(path_of(project, "F").read_bytes()).hexdigest()[:16]
    assert manifest is None or list(manifest.files.values()) == [digest], "a manifest tells the truth"
    write(project, "F", 2)
    assert con.execute(f"SELECT count(*) FROM {project.lake.relation(TABLE)}").fetchall() == [(5,)]


@pytest.mark.parametrize("renamed", [0, 1, 2])
def test_a_writer_killed_between_two_renames_leaves_no_manifest(project, monkeypatch, renamed):
    """Some files are new and some old: only without a manifest are all of them made again."""
    both = (TABLE, TABLES["firm"])
    relation = WEEKS.format(firm="F", rows=1)
    firm = f"(SELECT {', '.join(f'NULL AS {column.name}' for column in TABLES['firm'].columns)})"
    plan = Plan(
        [Step("weeks", lambda _: Made({"firm_week": relation, "firm": firm}), "W.", "data", writes=both)]
    )
    task = Task(plan["weeks"], None, Unit("F"))
    carry_out(project, plan, task)
    assert State(project, plan).todo(plan["weeks"], units=[Unit("F")]) == []
    replace, done = os.replace, []

    def killed(source, target):
        if len(done) == renamed:
            raise KeyboardInterrupt
        done.append(target)
        replace(source, target)

    monkeypatch.setattr("os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        carry_out(project, plan, task)
    assert State(project, plan).todo(plan["weeks"], units=[Unit("F")]) == [task]


def test_what_a_killed_writer_left_is_swept_a_day_later(project):
    write(project, "F", 1)
    folder = path_of(project, "F").parent
    for name, age in ((".weeks.parquet.old.tmp", 2), (".weeks.parquet.young.tmp", 0)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (time.time() - age * atomic.ABANDONED,) * 2)
    write(project, "F", 1)
    assert sorted(p.name for p in folder.iterdir()) == [".weeks.parquet.young.tmp", "weeks.parquet"]


def stale_firms(project):
    """The firms whose data tables must be made."""
    tasks = State(project, the_plan()).todo(the_plan()["firm_data"])
    return [task.unit.firm for task in tasks]


def test_only_what_changed_is_stale(tmp_path):
    project = new_project(tmp_path / "p", FIRMS[:2])
    assert set(stale_firms(project)) == set(FIRMS[:2])
    assert make_all(project) == {}
    assert stale_firms(project) == []
    # A corrected row of one firm, then another source: only the firms they name are stale.
    file = tmp_path / "p/orders/1.csv"
    file.write_text(file.read_text().replace("10.00", "11.00", 1))
    project.intake.update(project.config, project.root)
    assert stale_firms(project) == [FIRMS[1]]
    make_all(project)
    (tmp_path / "p/more.csv").write_text(file.read_text().replace("it's", "its"))
    text = (tmp_path / "p/cbmt.toml").read_text()
    more = text.replace('"shop"', '"more"').replace('"orders"', '"more.csv"').split("[quality]")[0]
    (tmp_path / "p/cbmt.toml").write_text(more + text)
    project = Project(tmp_path / "p")
    assert project.intake.update(project.config, project.root).failed == {}
    assert stale_firms(project) == ["its 50% off/.."]


def data_files(project, table, firm):
    (path,) = project.lake.folder(table, unit=Unit(firm)).glob("*.parquet")
    return path.read_bytes()


def test_a_bad_firm_does_not_touch_the_others(tmp_path):
    project = new_project(tmp_path / "p")
    assert make_all(project) == {}
    good = {firm: data_files(project, "firm_week", firm) for firm in FIRMS}
    manifests = {firm: project.manifests.read("firm_data", unit=Unit(firm)) for firm in FIRMS}
    bad = tmp_path / "p/orders/1.csv"
    bad.write_text(bad.read_text().replace(",10.00\n", ",ten\n"))
    project.intake.update(project.config, project.root)
    failed = make_all(project)
    assert list(failed) == [Unit(FIRMS[1]).slug]
    assert "at most 5% of its rows are bad" in failed[Unit(FIRMS[1]).slug]
    # The bad firm keeps its last good tables; its quarantine says what is wrong now.
    assert {firm: data_files(project, "firm_week", firm) for firm in FIRMS} == good
    with duckdb.connect() as con:
        quarantine = project.lake.relation(TABLES["quarantine"])
        reasons = con.execute(f"SELECT firm, reason, count(*) FROM {quarantine} GROUP BY ALL").fetchall()
    assert reasons == [(FIRMS[1], "unparseable amount", 179)]
    # What is made from the tables sees them unchanged; the firm itself stays to be made.
    kept = project.manifests.read("firm_data", unit=Unit(FIRMS[1]))
    assert kept is not None
    assert kept.as_of == manifests[FIRMS[1]].as_of
    assert kept.digest != manifests[FIRMS[1]].digest, "the warehouse must publish the new quarantine"
    assert stale_firms(project) == [FIRMS[1]]
    live = State(project, the_plan()).todo(the_plan()["live_forecasts"])
    assert {task.unit.firm for task in live} == {FIRMS[0], FIRMS[2]}, "no forecast from refused data"
    bad.write_text(bad.read_text().replace(",ten\n", ",10.00\n"))
    project.intake.update(project.config, project.root)
    assert make_all(project) == {}
    assert {f: project.manifests.read("firm_data", unit=Unit(f)).digest for f in FIRMS} == {
        firm: manifest.digest for firm, manifest in manifests.items()
    }


def test_files_of_units_that_are_gone_are_removed_and_no_others(project):
    for firm in FIRMS:
        write(project, firm, 3)
    lake, manifests = project.lake, project.manifests
    assert lake.keep_only([Unit(firm) for firm in FIRMS]) == []
    assert lake.keep_only([Unit(FIRMS[0])]) == sorted(
        (Unit(firm) for firm in FIRMS[1:]), key=lambda u: u.slug
    )
    assert lake.units("firm_week") == [Unit(FIRMS[0])]
    manifests.keep_only({Unit(FIRMS[0]).slug})
    assert [unit for unit, _ in manifests.of_firms("weeks")] == [Unit(FIRMS[0])]


def test_draws_of_the_newest_origins_stay_and_older_ones_go(tmp_path):
    lake = Lake(tmp_path)
    weeks = [date(2020, 1, 5), date(2019, 12, 29), date(2020, 1, 12)]
    for week in weeks:
        for table in ("forecast_draw", "forecast_band"):
            path = lake.path(table, "forecast_bands-live", week, Unit(FIRMS[0]))
            path.parent.mkdir(parents=True)
            path.touch()
    assert lake.keep_newest("forecast_draw", 3) == []
    assert lake.keep_newest("forecast_draw", 2) == [lake.folder("forecast_draw", weeks[1])]
    assert [lake.folder("forecast_draw", week).exists() for week in weeks] == [True, False, True]
    assert all(lake.folder("forecast_band", week).exists() for week in weeks)
