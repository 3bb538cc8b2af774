"""An exported file opens elsewhere: with other clients, an older DuckDB, and without the project it came from."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import adbc_driver_duckdb.dbapi
import duckdb
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner
from helpers.demo_project import FIRM

from cbmt_core.duck import parquet
from cbmt_core.errors import CbmtError
from cbmt_core.names import Unit
from cbmt_core.schema import VIEWS
from cbmt_pipeline.cli import main
from cbmt_pipeline.export import DICTIONARY, export
from cbmt_pipeline.plan import the_plan
from cbmt_pipeline.project import Project
from cbmt_pipeline.publish import READABLE_SINCE

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("demo")]

OF_THE_LAKE = ("transactions", "forecast_cohort_week")
RELATIONS = """SELECT CASE schema WHEN 'main' THEN name ELSE schema || '.' || name END FROM (SHOW ALL TABLES)
    WHERE database <> 'temp' ORDER BY ALL"""


@pytest.fixture(scope="module")
def moved(demo: Project, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Three ways to take the results along, on a machine without the project."""
    folder = tmp_path_factory.mktemp("elsewhere")
    export(demo, the_plan(), folder / "it's all.duckdb")
    export(demo, the_plan(), folder / "parquet")
    shutil.copy(demo.warehouse, folder / "copy.duckdb")
    # Once more as if the machine had no project: its folder is called something else for as long as this is read.
    return {"file": folder / "it's all.duckdb", "folder": folder / "parquet", "copy": folder / "copy.duckdb"}


@pytest.fixture
def without_project(demo: Project) -> object:
    away = demo.root.with_name("moved away")
    demo.root.rename(away)
    yield
    away.rename(demo.root)


def counts(con: duckdb.DuckDBPyConnection) -> dict[str, int]:
    names = [name for (name,) in con.execute(RELATIONS).fetchall()]
    return {name: con.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0] for name in names}


def test_the_study_is_published_with_what_happened_in_its_holdout(demo: Project) -> None:
    """Realised rows of the bridge have the holdout's last week as their origin, not the study's."""
    (file,) = (demo.lake.root / "bridge").glob("*/bridge-study.parquet")
    made = f"SELECT firm, model, origin, purpose, target_sales FROM {parquet([file])}"
    stored = "SELECT firm, model, origin, purpose, target_sales FROM bridge WHERE purpose = 'study'"
    with duckdb.connect(str(demo.warehouse), read_only=True) as con:
        assert con.execute(f"({made}) EXCEPT ({stored})").fetchall() == []
        assert con.execute(f"({stored}) EXCEPT ({made})").fetchall() == []
        happened = f"SELECT count(*) FROM ({stored}) WHERE model = 'realised'"
        assert con.execute(happened).fetchall() == con.execute("SELECT count(*) FROM firm").fetchall()


def test_a_file_of_another_version_is_refused_with_what_it_lacks(demo: Project, tmp_path: Path) -> None:
    older = Project(tmp_path)
    older.warehouse.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(demo.warehouse, older.warehouse)
    with duckdb.connect(str(older.warehouse)) as con:
        con.execute("ALTER TABLE forecast_band RENAME COLUMN median TO middle")
    with pytest.raises(CbmtError, match=r"has no forecast_band\.median: .* another version; run `cbmt run`"):
        export(older, the_plan(), tmp_path / "out.duckdb")
    assert not (tmp_path / "out.duckdb").exists()


def test_the_file_holds_every_relation_with_the_same_rows(demo: Project, moved: dict[str, Path]) -> None:
    with duckdb.connect(str(demo.warehouse), read_only=True) as con:
        published = counts(con)
        sums = con.execute("SELECT sum(amount) FROM transactions").fetchall()
    with duckdb.connect(str(moved["file"]), read_only=True) as con:
        assert counts(con) == published
        assert con.execute("SELECT sum(amount) FROM transactions").fetchall() == sums
        views = con.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
        assert {name for (name,) in views} == {view.name for view in VIEWS}, "no view of the lake is left"
        bare = con.execute("SELECT table_name FROM duckdb_columns() WHERE NOT internal AND comment IS NULL")
        assert bare.fetchall() == []
    assert published["transactions"] > 1000
    assert published["forecast_cohort_week"] > 1000


@pytest.mark.usefixtures("without_project")
def test_the_file_opens_without_its_project_and_a_plain_copy_says_what_to_do(moved: dict[str, Path]) -> None:
    with duckdb.connect(str(moved["file"]), read_only=True) as con:
        assert all(name in counts(con) for name in OF_THE_LAKE)
    with duckdb.connect(str(moved["copy"]), read_only=True) as con:
        assert con.execute("SELECT count(*) FROM forecast").fetchall() == [(3 * 52,)]
        for name in OF_THE_LAKE:
            with pytest.raises(duckdb.IOException, match="for a copy of the file use cbmt export"):
                con.execute(f"SELECT count(*) FROM {name}")


def test_pandas_and_polars_read_the_parquet_folder(moved: dict[str, Path]) -> None:
    with duckdb.connect(str(moved["file"]), read_only=True) as con:
        expected = counts(con)
        sales = con.execute("SELECT sum(sales) FROM firm_week").fetchall()[0][0]
    files = {path: str(path.relative_to(moved["folder"]))[: -len(".parquet")].replace("/", ".")
             for path in moved["folder"].rglob("*.parquet")}  # fmt: skip
    assert {name: len(pd.read_parquet(path)) for path, name in files.items()} == expected
    assert {name: pl.read_parquet(path).height for path, name in files.items()} == expected
    assert sum(pd.read_parquet(moved["folder"] / "firm_week.parquet")["sales"]) == sales
    weeks = pl.read_parquet(moved["folder"] / "firm_week.parquet")
    assert weeks["sales"].sum() == sales
    assert weeks.schema["week"] == pl.Date
    choice = pl.read_parquet(moved["folder"] / "forecast_choice.parquet")
    assert choice.schema["evidence"] == pl.String
    with (moved["folder"] / DICTIONARY).open(newline="") as file:
        explained = {(row["table"], row["column"]) for row in csv.DictReader(file) if row["meaning"]}
    assert {
        (name, column) for path, name in files.items() for column in pl.read_parquet_schema(path)
    } == explained


def test_an_adbc_client_reads_the_file(moved: dict[str, Path]) -> None:
    """The interface of database clients that replaces ODBC and JDBC, with DuckDB's own driver."""
    with duckdb.connect(str(moved["file"]), read_only=True) as con:
        expected = con.execute(
            "SELECT firm, sum(amount) FROM transactions GROUP BY firm ORDER BY firm"
        ).fetchall()
    with adbc_driver_duckdb.dbapi.connect(str(moved["file"])) as con, con.cursor() as cursor:
        cursor.execute("SELECT firm, sum(amount) FROM transactions GROUP BY firm ORDER BY firm")
        assert [tuple(row) for row in cursor.fetchall()] == expected
        cursor.execute("SELECT count(*) FROM exhibit.horizon")
        assert cursor.fetchone()[0] > 0
        listed = con.adbc_get_objects(depth="tables", db_schema_filter="exhibit").read_all().to_pylist()
    assert "horizon" in str(listed)
    assert isinstance(expected[0][1], Decimal)


OLD_READER = """
import sys, duckdb
assert duckdb.__version__ == sys.argv[2], duckdb.__version__
con = duckdb.connect(sys.argv[1], read_only=True)
con.execute("SET enable_progress_bar = false")
for schema, name in con.execute("SELECT schema, name FROM (SHOW ALL TABLES)").fetchall():
    con.execute(f"SELECT * FROM {schema}.{name}").fetchall()
print(con.execute("SELECT count(*) FROM transactions").fetchall()[0][0])
"""


def test_the_oldest_promised_duckdb_reads_every_relation(moved: dict[str, Path], tmp_path: Path) -> None:
    version = READABLE_SINCE.removeprefix("v")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--only-binary", ":all:", "--target",
           str(tmp_path / "old"), f"duckdb=={version}"]  # fmt: skip
    installed = subprocess.run(pip, capture_output=True, text=True)
    if installed.returncode:
        pytest.skip(f"duckdb {version} cannot be installed here: {installed.stderr.strip()[-200:]}")
    command = [sys.executable, "-c", OLD_READER, str(moved["file"]), version]
    read = subprocess.run(command, capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path / "old")})
    assert read.returncode == 0, read.stderr
    with duckdb.connect(str(moved["file"]), read_only=True) as con:
        assert int(read.stdout) == con.execute("SELECT count(*) FROM transactions").fetchall()[0][0]


def test_some_firms_alone(demo: Project, tmp_path: Path) -> None:
    export(demo, the_plan(), tmp_path / "one", firms=[Unit(FIRM)])
    for name in ("transactions", "firm_week", "forecast", "bridge_wide", "retention", "track_record"):
        assert set(pl.read_parquet(tmp_path / "one" / f"{name}.parquet")["firm"]) == {FIRM}


def test_the_command_says_what_it_made_and_replaces_only_its_own(demo: Project, tmp_path: Path) -> None:
    def cbmt(*arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(main, ["--project", str(demo.root), "export", *arguments])
        return done.exit_code, done.output

    target = tmp_path / "out.duckdb"
    code, said = cbmt(str(target))
    assert (code, "rows" in said, str(target) in said) == (0, True, True)
    assert "is there already" in cbmt(str(target))[1]
    assert cbmt(str(target), "--overwrite")[0] == 0
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years of work")
    code, said = cbmt(str(tmp_path / "mine"), "--overwrite")
    assert (code, "was not made by" in said) == (1, True)
    assert (tmp_path / "mine/thesis.txt").read_text() == "years of work"
    assert "is the published file itself" in cbmt(str(demo.warehouse))[1]
    code, said = cbmt(str(tmp_path / "x.duckdb"), "--firm", "keldevar clohting")
    assert (code, "did you mean Keldevar Clothing?" in said) == (1, True)
    assert not (tmp_path / "x.duckdb").exists()
    assert not list(tmp_path.glob(".*.tmp*"))
