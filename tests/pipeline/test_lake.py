"""The lake: one file a firm and table, whole whatever happens to its writer."""

import os
import signal
import subprocess
import sys
import time

import duckdb
import pyarrow.parquet as pq
import pytest
from small_project import FIRMS, make_all, new_project

from cbmt_core import atomic
from cbmt_core.names import Unit
from cbmt_core.schema import TABLES
from cbmt_pipeline.lake import Lake, Stamp
from cbmt_pipeline.project import Project

STAMP = Stamp(code="1", config="c", inputs="i", seed=7)
WEEKS = (
    "(SELECT '{firm}' AS firm, DATE '2017-01-01' + CAST(7 * i AS INTEGER) AS week, 1 AS acquired, 1 AS orders, "
    "1 AS initial_orders, 0 AS repeat_orders, 5 AS sales, 5 AS initial_sales, 0 AS repeat_sales, "
    "1 AS active_customers, i + 1 AS cumulative_customers, 0 AS ropc, 5 AS aov FROM range({rows}) t(i))"
)


@pytest.fixture
def con():
    with duckdb.connect() as connection:
        yield connection


def write(lake, con, firm, rows):
    return lake.write(
        con, "firm_week", Unit(firm), WEEKS.format(firm=firm.replace("'", "''"), rows=rows), STAMP
    )


@pytest.mark.parametrize("firm", FIRMS)
def test_what_is_written_is_read_back_in_the_declared_types(tmp_path, con, firm):
    lake = Lake(tmp_path)
    assert write(lake, con, firm, 3) == 3
    assert lake.units("firm_week") == [Unit(firm)]
    described = con.execute(
        f"SELECT column_name, column_type FROM (DESCRIBE FROM {lake.relation('firm_week', Unit(firm))})"
    ).fetchall()
    assert described == [(c.name, c.type) for c in TABLES["firm_week"].columns]
    assert con.execute(f"SELECT DISTINCT firm FROM {lake.glob('firm_week')}").fetchall() == [(firm,)]


def test_a_file_carries_its_stamp(tmp_path, con):
    lake = Lake(tmp_path)
    assert lake.stamp("firm_week", Unit("F")) is None
    write(lake, con, "F", 1)
    assert lake.stamp("firm_week", Unit("F")) == STAMP


def test_writing_again_replaces_and_leaves_nothing_behind(tmp_path, con):
    lake = Lake(tmp_path)
    write(lake, con, "F", 3)
    write(lake, con, "F", 2)
    folder = lake.path("firm_week", Unit("F")).parent
    assert [p.name for p in folder.iterdir()] == ["part.parquet"]
    assert con.execute(f"SELECT count(*) FROM {lake.glob('firm_week')}").fetchall() == [(2,)]


def test_a_failed_write_leaves_the_earlier_file(tmp_path, con):
    lake = Lake(tmp_path)
    write(lake, con, "F", 3)
    with pytest.raises(duckdb.Error):
        lake.write(con, "firm_week", Unit("F"), "(SELECT error('broken') AS firm)", STAMP)
    assert [p.name for p in lake.path("firm_week", Unit("F")).parent.iterdir()] == ["part.parquet"]
    assert con.execute(f"SELECT count(*) FROM {lake.glob('firm_week')}").fetchall() == [(3,)]


def test_the_lake_may_lie_in_a_folder_of_any_name(tmp_path, con):
    lake = Lake(tmp_path / "firm=x" / "[1]*" / "it's")
    write(lake, con, "F", 3)
    assert con.execute(f"SELECT count(*), any_value(firm) FROM {lake.glob('firm_week')}").fetchall() == [
        (3, "F")
    ]
    assert con.execute(f"SELECT count(*) FROM {lake.relation('firm_week', Unit('F'))}").fetchall() == [(3,)]


WRITER = """
import sys
from pathlib import Path
import duckdb
from cbmt_core.names import Unit
from cbmt_pipeline.lake import Lake, Stamp
lake, con = Lake(Path(sys.argv[1])), duckdb.connect()
print("ready", flush=True)
while True:
    lake.write(con, "firm_week", Unit("F"), sys.argv[2], Stamp("1", "c", "i"))
"""


@pytest.mark.parametrize("after", [0.03, 0.15, 0.4])
def test_a_killed_writer_leaves_every_table_readable(tmp_path, con, after):
    lake = Lake(tmp_path)
    rows = 200_000
    write(lake, con, "F", rows)
    write(lake, con, "G", 3)
    command = [sys.executable, "-c", WRITER, str(tmp_path), WEEKS.format(firm="F", rows=rows)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "ready\n"
        time.sleep(after)
        writer.send_signal(signal.SIGKILL)
    assert writer.returncode == -signal.SIGKILL
    assert con.execute(
        f"SELECT firm, count(*) FROM {lake.glob('firm_week')} GROUP BY ALL ORDER BY 1"
    ).fetchall() == [
        ("F", rows),
        ("G", 3),
    ]
    assert pq.read_metadata(lake.path("firm_week", Unit("F"))).num_rows == rows
    write(lake, con, "F", 2)
    assert con.execute(f"SELECT count(*) FROM {lake.glob('firm_week')}").fetchall() == [(5,)]


def test_what_a_killed_writer_left_is_swept_a_day_later(tmp_path, con):
    lake = Lake(tmp_path)
    write(lake, con, "F", 1)
    folder = lake.path("firm_week", Unit("F")).parent
    for name, age in ((".part.parquet.old.tmp", 2), (".part.parquet.young.tmp", 0)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (time.time() - age * atomic.ABANDONED,) * 2)
    write(lake, con, "F", 1)
    assert sorted(p.name for p in folder.iterdir()) == [".part.parquet.young.tmp", "part.parquet"]


def test_only_what_changed_is_stale(tmp_path):
    project = new_project(tmp_path / "p", FIRMS[:2])
    assert {unit.firm for unit in project.stale_units()} == set(FIRMS[:2])
    assert make_all(project) == {}
    assert project.stale_units() == []
    # A corrected row of one firm, then another source: only the firms they name are stale.
    file = tmp_path / "p/orders/1.csv"
    file.write_text(file.read_text().replace("10.00", "11.00", 1))
    project.intake.update(project.config, project.root)
    assert [unit.firm for unit in project.stale_units()] == [FIRMS[1]]
    make_all(project)
    (tmp_path / "p/more.csv").write_text(file.read_text().replace("it's", "its"))
    text = (tmp_path / "p/cbmt.toml").read_text()
    more = text.replace('"shop"', '"more"').replace('"orders"', '"more.csv"').split("[quality]")[0]
    (tmp_path / "p/cbmt.toml").write_text(more + text)
    project = Project(tmp_path / "p")
    assert project.intake.update(project.config, project.root).failed == {}
    assert [unit.firm for unit in project.stale_units()] == ["its 50% off/.."]


def test_a_bad_firm_does_not_touch_the_others(tmp_path):
    project = new_project(tmp_path / "p")
    assert make_all(project) == {}
    good = {unit: project.lake.stamp("firm_week", unit) for unit in project.lake.units("firm_week")}
    bad = tmp_path / "p/orders/1.csv"
    bad.write_text(bad.read_text().replace(",10.00\n", ",ten\n"))
    project.intake.update(project.config, project.root)
    failed = make_all(project)
    assert list(failed) == [Unit(FIRMS[1]).slug]
    assert "at most 5% of its rows are bad" in failed[Unit(FIRMS[1]).slug]
    # The bad firm keeps its last good tables; its quarantine says what is wrong now.
    assert {unit: project.lake.stamp("firm_week", unit) for unit in good} == good
    with duckdb.connect() as con:
        reasons = con.execute(
            f"SELECT firm, reason, count(*) FROM {project.lake.glob('quarantine')} GROUP BY ALL"
        ).fetchall()
    assert reasons == [(FIRMS[1], "unparseable amount", 179)]


def test_files_of_units_that_are_gone_are_removed_and_no_others(tmp_path, con):
    lake = Lake(tmp_path)
    for firm in FIRMS:
        write(lake, con, firm, 3)
    assert lake.keep_only([Unit(firm) for firm in FIRMS]) == []
    assert lake.keep_only([Unit(FIRMS[0])]) == sorted(
        (Unit(firm) for firm in FIRMS[1:]), key=lambda u: u.slug
    )
    assert lake.units("firm_week") == [Unit(FIRMS[0])]
