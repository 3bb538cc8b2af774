"""The published file: whole, described, and replaced under the eyes of its readers."""

import shutil
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest
from helpers.small_project import FIRMS, WEEKS, make_all, new_project, orders_csv

from cbmt_core.design import StudyDesign
from cbmt_core.firm_tables import DATA_TABLES
from cbmt_core.schema import FILE_TABLES, STUDY, VIEWS
from cbmt_core.stored_panel import read_panel, read_timeline
from cbmt_pipeline.lake import Lake
from cbmt_pipeline.plan import State, Task, the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.publish import publish
from cbmt_pipeline.transaction import carry_out

QUALIFIED = "CASE schema_name WHEN 'main' THEN table_name ELSE schema_name || '.' || table_name END"


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    project = new_project(tmp_path_factory.mktemp("published") / "it's [1]")
    assert make_all(project) == {}
    publish(project, the_plan())
    return project


@pytest.fixture
def con(published):
    with duckdb.connect(str(published.warehouse), read_only=True) as connection:
        yield connection


def test_the_tables_hold_what_was_sold(con):
    # 90 weeks: one new customer each, one repeat order from the second on, and c0's first Sunday.
    assert con.execute("SELECT firm, orders, sales, customers FROM firm ORDER BY firm").fetchall() == [
        (firm, 2 * WEEKS, Decimal("1791.0000"), WEEKS) for firm in sorted(FIRMS)
    ]
    assert con.execute("SELECT count(DISTINCT firm) FROM cohort_week").fetchall() == [(3,)]
    assert con.execute("SELECT count(*) FROM transactions").fetchall() == [(3 * 2 * WEEKS,)]


def test_every_table_has_its_primary_key(con):
    keys = con.execute(
        f"SELECT {QUALIFIED}, constraint_column_names FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY'"
    ).fetchall()
    tables = {name for (name,) in con.execute(f"SELECT {QUALIFIED} FROM duckdb_tables()").fetchall()}
    declared = {t.relation: list(t.key) for t in [*the_plan().tables.values(), *FILE_TABLES]}
    assert dict(keys) == {name: declared[name] for name in tables}
    assert tables >= {*DATA_TABLES, "timeline", "study", "study_window"} - {"transactions"}
    assert not tables & {"transactions", "forecast_cohort_week", "forecast_draw"}, (
        "the largest are read from the lake"
    )


def test_every_table_view_and_column_is_explained(con):
    assert (
        con.execute("SELECT table_name FROM duckdb_tables() WHERE comment IS NULL OR comment = ''").fetchall()
        == []
    )
    views = "SELECT view_name, comment FROM duckdb_views() WHERE NOT internal"
    assert {name for name, comment in con.execute(views).fetchall() if comment} == {
        "transactions", "forecast_cohort_week", "forecast_draw", *(view.name for view in VIEWS),
    }  # fmt: skip
    unexplained = "FROM duckdb_columns() WHERE NOT internal AND (comment IS NULL OR comment = '')"
    assert con.execute(f"SELECT table_name, column_name {unexplained}").fetchall() == []


def test_every_view_can_be_read(con):
    for view in VIEWS:
        con.execute(f"SELECT * FROM {view.name}").fetchall()
    years = con.execute("SELECT sum(weeks), sum(orders) FROM firm_year").fetchall()
    assert years == con.execute("SELECT count(*), sum(orders) FROM firm_week").fetchall()


def test_the_design_comes_back_as_it_was(published, con):
    names = STUDY.column_names
    (values,) = con.execute(f"SELECT {', '.join(names)} FROM study").fetchall()
    assert StudyDesign(**dict(zip(names, values, strict=True))) == published.study()
    assert read_timeline(con) == published.timeline()
    windows = con.execute('SELECT "window", first_week, last_week, weeks FROM study_window').fetchall()
    for name, first, last, weeks in windows:
        window = getattr(published.study(), name)
        assert (window.first, window.last, len(window)) == (first, last, weeks)


def test_a_notebook_needs_two_lines(con):
    panel = read_panel(con, FIRMS[0], orders="transactions")
    assert panel.S.sum() == pytest.approx(
        float(con.execute("SELECT sum(sales) FROM firm_week WHERE firm = ?", [FIRMS[0]]).fetchall()[0][0])
    )
    assert panel.customers.start[-1] == panel.orders.sum()


def test_older_tools_can_open_it(published):
    """The shell that comes with the pipeline is of an older DuckDB than the one that wrote the file."""
    shell = Path(sys.executable).with_name("duckdb")
    question = "SELECT count(*) FROM firm JOIN transactions USING (firm)"
    command = [shell, "-readonly", "-noheader", "-csv", published.warehouse, question]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert int(printed) == 3 * 2 * WEEKS


READER = """
import sys, duckdb
con = duckdb.connect(sys.argv[1], read_only=True)
while True:
    print(con.execute("SELECT count(*), sum(sales) FROM firm").fetchall(), flush=True)
    sys.stdin.readline()
"""


def test_an_open_connection_survives_a_publish_and_a_new_one_sees_it(tmp_path):
    project = new_project(tmp_path / "p", FIRMS[:1])
    make_all(project)
    publish(project, the_plan())
    command = [sys.executable, "-c", READER, str(project.warehouse)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as analyst:
        before = analyst.stdout.readline()
        (tmp_path / "p/orders/9.csv").write_text(orders_csv(FIRMS[1]))
        project.intake.update(project.config, project.root)
        make_all(project)
        publish(project, the_plan())
        analyst.stdin.write("again\n")
        analyst.stdin.flush()
        assert analyst.stdout.readline() == before
        with duckdb.connect(str(project.warehouse), read_only=True) as con:
            after = con.execute("SELECT count(*), sum(sales) FROM firm").fetchall()
        analyst.kill()
    assert before == "[(1, Decimal('1791.0000'))]\n"
    assert after == [(2, Decimal("3582.0000"))]


PUBLISHER = """
import sys
from pathlib import Path
from cbmt_pipeline.plan import the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.publish import publish
print("ready", flush=True)
while True:
    publish(Project(Path(sys.argv[1])), the_plan())
"""


@pytest.mark.parametrize("after", [0.05, 0.3, 0.7])
def test_a_killed_publisher_leaves_the_file_whole(published, after):
    command = [sys.executable, "-c", PUBLISHER, str(published.root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as publisher:
        assert publisher.stdout.readline() == "ready\n"
        time.sleep(after)
        publisher.send_signal(signal.SIGKILL)
    with duckdb.connect(str(published.warehouse), read_only=True) as con:
        assert con.execute("SELECT count(*) FROM firm").fetchall() == [(3,)]


def test_rows_that_name_no_firm_are_in_the_published_quarantine(tmp_path):
    project = new_project(tmp_path / "p", FIRMS[:1])
    file = tmp_path / "p/orders/0.csv"
    lines = file.read_text().splitlines()
    lines[5:5] = ["short", "short", ",c1,2016-02-01,5", "short", ",c1,2016-02-01,5"]
    file.write_text("\n".join(lines) + "\n")
    project.intake.update(project.config, project.root)
    make_all(project)
    rows = publish(project, the_plan())
    with duckdb.connect(str(project.warehouse), read_only=True) as con:
        found = con.execute("SELECT row, firm, reason FROM quarantine ORDER BY row").fetchall()
        ledger = con.execute("SELECT sum(rows_in), sum(rows_used) FROM firm").fetchall()[0]
    assert found == [
        (5, "", "unparseable line"),
        (6, "", "unparseable line"),
        (7, "", "missing firm"),
        (8, "", "unparseable line"),
        (9, "", "missing firm"),
    ]
    assert rows["quarantine"] == 5
    assert ledger == (2 * WEEKS, 2 * WEEKS)


def test_new_rows_that_name_no_firm_make_the_warehouse_stale(tmp_path):
    project = new_project(tmp_path / "p", FIRMS[:1])
    make_all(project)
    plan = the_plan()

    def to_publish():
        return State(project, plan).todo(plan["warehouse"])

    (task,) = to_publish()
    carry_out(project, plan, task)
    assert to_publish() == []
    (tmp_path / "p/orders/9.csv").write_text("firm,customer,order_time,amount\n,c1,2016-02-01,5\n")
    project.intake.update(project.config, project.root)
    assert State(project, plan).todo(plan["firm_data"]) == []
    assert to_publish() == [Task(plan["warehouse"], None, None)]


def test_a_restored_or_copied_project_is_published_again(published, tmp_path):
    def stale(project):
        return [task.step.name for task in State(project, the_plan()).todo(the_plan()["warehouse"])]

    carry_out(published, the_plan(), Task(the_plan()["warehouse"], None, None))
    assert stale(published) == []
    # A backup of the lake alone, and a copy whose views still read the first project's lake.
    for name, left_out in (("restored", ["cbmt.duckdb", "spill"]), ("copied [2]'s", ["spill"])):
        shutil.copytree(published.root, tmp_path / name, ignore=shutil.ignore_patterns(*left_out))
        project = Project(tmp_path / name)
        assert stale(project) == ["warehouse"], name
        carry_out(project, the_plan(), Task(the_plan()["warehouse"], None, None))
        assert stale(project) == []
        with duckdb.connect(str(project.warehouse), read_only=True) as con:
            [(sql,)] = con.execute(
                "SELECT sql FROM duckdb_views() WHERE view_name = 'transactions'"
            ).fetchall()
            assert con.execute("SELECT count(*) FROM transactions").fetchall() == [(3 * 2 * WEEKS,)]
        assert str(published.root).replace("'", "''") not in sql


def test_of_the_study_only_the_present_one_is_published(tmp_path):
    project, plan = new_project(tmp_path / "p", FIRMS[:1]), the_plan()

    def study():
        make_all(project)
        for task in State(project, plan).todo(plan["benchmark_forecasts"]):
            carry_out(
                project, plan, Task(task.step, task.origin, task.unit, ("seasonal_naive", "cohort_glm"))
            )
        publish(project, plan)
        with duckdb.connect(str(project.warehouse), read_only=True) as con:
            tables = ("model_fit", "forecast_week", "forecast_cohort_week")
            return [con.execute(f"SELECT DISTINCT origin FROM {table}").fetchall() for table in tables]

    first = project.study().origin
    assert study() == [[(first,)]] * 3
    (tmp_path / "p/orders/0.csv").write_text(orders_csv(FIRMS[0], weeks=WEEKS + 4))
    project.intake.update(project.config, project.root)
    assert study() == [[(first,)]] * 3, "new weeks do not move it"
    # The study grows before it moves: then its forecasts are made again, as long as its holdout is now.
    moved = project.move_study()
    assert (moved.origin, moved.holdout_weeks) == (first, 22)
    assert study() == [[(first,)]] * 3
    with duckdb.connect(str(project.warehouse), read_only=True) as con:
        weeks = con.execute("SELECT model, count(*) FROM forecast_week GROUP BY ALL ORDER BY ALL").fetchall()
    assert weeks == [("cohort_glm", 22), ("seasonal_naive", 22)]
    (tmp_path / "p/orders/0.csv").write_text(orders_csv(FIRMS[0], weeks=WEEKS + 40))
    project.intake.update(project.config, project.root)
    assert project.move_study().origin > first
    assert study() == [[(project.study().origin,)]] * 3


def test_a_firm_that_is_gone_leaves_earlier_vintages_too(tmp_path):
    project, plan = new_project(tmp_path / "p", FIRMS[:2]), the_plan()
    tables = ("forecast_choice", "bridge", "forecast_week")

    def vintages():
        make_all(project)
        for step in ("live_forecasts", "forecast_choice", "bridge"):
            for task in State(project, plan).todo(plan[step], purposes=["live"]):
                items = ("seasonal_naive",) if plan[step].items else ()
                carry_out(project, plan, Task(plan[step], task.origin, task.unit, items))
        publish(project, plan)
        with duckdb.connect(str(project.warehouse), read_only=True) as con:
            counts = "SELECT firm, count(DISTINCT origin) FROM {} WHERE purpose = 'live' GROUP BY firm ORDER BY firm"
            return [con.execute(counts.format(table)).fetchall() for table in tables]

    first, second = sorted(FIRMS[:2])
    assert vintages() == [[(first, 1), (second, 1)]] * 3
    (tmp_path / "p/orders/0.csv").write_text(orders_csv(FIRMS[0], weeks=WEEKS + 1))
    (tmp_path / "p/orders/1.csv").write_text(orders_csv("Renamed", weeks=WEEKS + 1))
    carry_out(project, plan, Task(plan["intake"], None, None))
    assert vintages() == [[(FIRMS[0], 2), ("Renamed", 1)]] * 3


def test_a_firm_leaves_also_where_the_intake_was_killed_after_its_ledger(tmp_path, monkeypatch):
    project, plan = new_project(tmp_path / "p", FIRMS[:2]), the_plan()
    make_all(project)
    (tmp_path / "p/orders/1.csv").write_text(orders_csv("Renamed"))
    with monkeypatch.context() as killed:
        killed.setattr(Lake, "keep_only", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            carry_out(project, plan, Task(plan["intake"], None, None))
    assert len(project.lake.units("firm")) == 2
    (task,) = State(project, plan).todo(plan["intake"])
    carry_out(project, plan, task)
    assert [unit.firm for unit in project.lake.units("firm")] == [FIRMS[0]]
    assert State(project, plan).todo(plan["intake"]) == []
