"""`cbmt ingest` and what `cbmt run` makes of changed sources: nothing half-added, no firm counted that is gone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dagster as dg
import duckdb
import pytest
from click.testing import CliRunner
from helpers.projects import cbmt
from helpers.small_project import WEEKS, orders_csv

from cbmt_core.config import ProjectConfig
from cbmt_pipeline.cli import main

pytestmark = pytest.mark.slow

STATED = ("--currency", "GBP", "--timezone", "Europe/London")
FLOOR = ("--no-networks", "--model", "seasonal_naive")


def firms(root: Path) -> list[tuple[str, int]]:
    with duckdb.connect(str(root / "data/cbmt.duckdb"), read_only=True) as con:
        return con.execute("SELECT firm, orders FROM firm ORDER BY firm").fetchall()


def test_a_firm_that_left_its_file_leaves_the_tables(tmp_path: Path) -> None:
    """Renamed in its source, it would otherwise be counted twice."""
    good, other = tmp_path / "good.csv", tmp_path / "other.csv"
    good.write_text(orders_csv("Good"))
    other.write_text(orders_csv("Other"))
    for file in (good, other):
        cbmt(tmp_path, "ingest", file.name, *STATED)
    cbmt(tmp_path, "run", *FLOOR)
    before = dict(firms(tmp_path))
    assert set(before) == {"Good", "Other"}
    good.write_text(orders_csv("Better"))
    printed = cbmt(tmp_path, "run", *FLOOR).stdout
    assert "removed from the tables: Good" in printed
    assert firms(tmp_path) == [("Better", before["Good"]), ("Other", before["Other"])]
    instance = dg.DagsterInstance.from_config(str(tmp_path / "data/dagster"))
    assert set(instance.get_dynamic_partitions("firm")) == {"Better", "Other"}
    event = instance.get_latest_materialization_event(dg.AssetKey("intake"))
    assert event is not None
    assert event.asset_materialization is not None
    assert event.asset_materialization.metadata["firms"].value == 2


def test_a_source_that_cannot_be_read_is_not_added_and_may_be_tried_again(tmp_path: Path) -> None:
    (tmp_path / "shop.csv").write_text(orders_csv("Shop").replace("customer", "whom", 1))
    wrong = cbmt(tmp_path, "ingest", "shop.csv", *STATED, check=False)
    assert wrong.returncode == 1
    assert "no column for customer" in wrong.stderr
    assert "--column customer=" in wrong.stderr
    assert not (tmp_path / "cbmt.toml").exists()
    (tmp_path / "names.csv").write_text("customer,order_time,amount\n")
    assert "holds no rows" in cbmt(tmp_path, "ingest", "names.csv", *STATED, check=False).stderr
    cbmt(tmp_path, "ingest", "shop.csv", *STATED, "--column", "customer=whom")
    before = (tmp_path / "cbmt.toml").read_text()
    assert 'country = "GB"' in before
    assert cbmt(tmp_path, "ingest", "nowhere.csv", *STATED, check=False).returncode == 1
    assert (tmp_path / "cbmt.toml").read_text() == before
    # A source that was read and is gone is said to be, every time.
    (tmp_path / "shop.csv").rename(tmp_path / "elsewhere.csv")
    gone = cbmt(tmp_path, "ingest", check=False)
    assert gone.returncode == 1
    assert "there is no file at shop.csv" in gone.stderr


def test_what_a_csv_file_looks_like_can_be_stated(tmp_path: Path) -> None:
    lines = [
        "firm;customer;order_time;amount",
        "Café;c1;02.01.2017 10:00;1.234,50",
        "Café;c2;03.01.2017 10:00;12.50",
    ]
    (tmp_path / "o.csv").write_bytes("\r\n".join(lines).encode("latin-1"))
    dialect = ("--decimal-separator", ",", "--time-format", "%d.%m.%Y %H:%M", "--encoding", "latin1")
    printed = cbmt(tmp_path, "ingest", "o.csv", *STATED, *dialect).stdout
    assert "2 rows, 1 cannot be used: unparseable amount 1" in printed
    assert "customer = 'customer'" in printed


def test_files_of_other_kinds_in_a_folder_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    folder.mkdir()
    (folder / "shop.csv").write_text(orders_csv("Shop"))
    for name in ("a.zip", "b.json", "c.xml", "d.xml"):
        (folder / name).touch()
    told = " ".join(cbmt(tmp_path, "ingest", "orders", *STATED).stdout.split())
    assert "files of kinds that are not read: a.zip, b.json, c.xml and 1 more" in told


def test_a_firm_without_new_data_is_reported_and_made_all_the_same(tmp_path: Path) -> None:
    still = orders_csv("Still", weeks=WEEKS - 12).partition("\n")[2]
    (tmp_path / "both.csv").write_text(orders_csv("Live") + still)
    cbmt(tmp_path, "ingest", "both.csv", *STATED)
    printed = cbmt(tmp_path, "run", *FLOOR).stdout
    assert "warning: Still: " in printed
    assert "warning: Live" not in printed
    assert [firm for firm, _ in firms(tmp_path)] == ["Live", "Still"]


def test_segments_are_no_firms_that_lack_a_forecast(tmp_path: Path) -> None:
    head, *rows = orders_csv("Shop").splitlines()
    lines = [f"{head},channel", *(f"{row},{('web', 'store')[k % 2]}" for k, row in enumerate(rows))]
    (tmp_path / "shop.csv").write_text("\n".join(lines) + "\n")
    cbmt(tmp_path, "ingest", "shop.csv", *STATED, "--column", "segment=channel")
    printed = cbmt(tmp_path, "run", *FLOOR).stdout
    assert "seasonal_naive" in printed
    assert "compared on the" not in printed
    with duckdb.connect(str(tmp_path / "data/cbmt.duckdb"), read_only=True) as con:
        assert con.execute("SELECT count(DISTINCT firm) FROM accuracy").fetchall() == [(3,)]


KILLED = """
import os, signal, sys
from pathlib import Path
import dagster as dg
from cbmt_pipeline import runner
from cbmt_pipeline.definitions import defs
from cbmt_pipeline.instance import open_instance
from cbmt_pipeline.project import Project

with open_instance(Project(Path(sys.argv[1]))) as instance:
    job = defs.resolve_implicit_global_asset_job_def().get_subset(asset_selection={dg.AssetKey("warehouse")})
    tags = {runner.PROCESS: runner.this_process()}
    run = instance.create_run_for_job(job, tags=tags)
    instance.report_dagster_event(
        dg.DagsterEvent(dg.DagsterEventType.RUN_START.value, run.job_name), run_id=run.run_id
    )
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_start_with_nothing_to_make_fails_the_runs_a_killed_one_left(tmp_path: Path) -> None:
    """Its runs would take the place of others in the queue of the UI."""
    (tmp_path / "shop.csv").write_text(orders_csv("Shop"))
    cbmt(tmp_path, "ingest", "shop.csv", *STATED)
    cbmt(tmp_path, "run", *FLOOR)
    subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], capture_output=True)
    instance = dg.DagsterInstance.from_config(str(tmp_path / "data/dagster"))
    started = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED])
    assert len(instance.get_runs(started)) == 1
    before = len(instance.get_runs())
    printed = cbmt(tmp_path, "run", *FLOOR).stdout
    assert len(instance.get_runs(started)) == 0
    assert "everything is up to date for seasonal_naive" in printed
    assert len(instance.get_runs()) == before, "with nothing to do nothing is run"


def test_a_file_that_is_mostly_unusable_leaves_nothing_behind_and_its_correction_is_taken(
    tmp_path: Path,
) -> None:
    (tmp_path / "shop.csv").write_text(orders_csv("Shop"))
    wrong = cbmt(tmp_path, "ingest", "shop.csv", *STATED, "--time-format", "%d/%m/%Y", check=False)
    assert wrong.returncode == 1
    assert "rows of shop.csv cannot be used (unparseable time" in wrong.stderr
    assert "order_time: unparseable time 2016-01" in wrong.stderr
    assert not (tmp_path / "cbmt.toml").exists()
    assert "added source 'shop'" in cbmt(tmp_path, "ingest", "shop.csv", *STATED).stdout
    other = cbmt(tmp_path, "ingest", "shop.csv", *STATED, "--order-grain", "day", check=False)
    assert other.returncode == 1
    assert "--replace" in other.stderr
    cbmt(tmp_path, "ingest", "shop.csv", *STATED, "--order-grain", "day", "--replace")
    assert 'order_grain = "day"' in cbmt(tmp_path, "sources", "show", "shop").stdout
    cbmt(tmp_path, "sources", "remove", "shop")
    assert "shop" not in cbmt(tmp_path, "sources").stdout


def test_a_relative_path_is_meant_from_where_one_stands_then_from_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand, root = tmp_path / "stand", tmp_path / "project"
    (root / "in").mkdir(parents=True)
    stand.mkdir()
    monkeypatch.chdir(stand)

    def ingest(path: str, name: str = "shop") -> str:
        done = CliRunner().invoke(main, ["--project", str(root), "ingest", path, "--name", name, *STATED])
        return done.output

    def paths() -> list[str]:
        return [source.path for source in ProjectConfig.load(root / "cbmt.toml").sources]

    both = (f"{stand}/shop.csv", f"{root}/shop.csv")
    assert f"there is no file at {both[0]}, nor at {both[1]}" in " ".join(ingest("shop.csv").split())
    for file, firm in ((stand / "shop.csv", "Here"), (root / "shop.csv", "There"), (root / "in/1.csv", "In")):
        file.write_text(orders_csv(firm, weeks=3))
    ingest("shop.csv")
    assert paths() == [str(stand / "shop.csv")], "the one where the user stands"
    ingest("in/*.csv", "in")
    ingest("../project/in/1.csv", "one")
    assert paths()[1:] == ["in/*.csv", "in/1.csv"], "a project can be moved with what lies in it"
    monkeypatch.chdir(root)
    assert "read 0 new files" in ingest("../stand/shop.csv"), "the same file by another name"
    (stand / "shop.csv").unlink()
    said = CliRunner().invoke(main, ["ingest"]).output
    assert said.count("source 'shop'") == 1
    assert "source 'shop' was left as it was: there is no file at" in said
