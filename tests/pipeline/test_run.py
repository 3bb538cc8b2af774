"""`cbmt run` on twenty firms, one of them corrupt: exactly that firm is red, the others are published."""

from __future__ import annotations

import re
from pathlib import Path

import dagster as dg
import duckdb
import pytest
from helpers.projects import FIRMS, FLOORS, RunProject, cbmt, corrupt_amounts

from cbmt_pipeline.definitions import defs
from cbmt_pipeline.partitions import firm_partitions
from cbmt_pipeline.project import Project

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("twenty_firms")]


@pytest.fixture(scope="module")
def instance(twenty_firms: RunProject) -> dg.DagsterInstance:
    return dg.DagsterInstance.from_config(str(twenty_firms.root / "data/dagster"))


def test_the_run_fails_and_says_which_firm_why(twenty_firms: RunProject) -> None:
    assert twenty_firms.run.returncode == 1
    assert "firms are not usable; the others are done" in twenty_firms.run.stdout
    assert "of its rows are bad" in twenty_firms.run.stdout
    assert twenty_firms.bad.name in twenty_firms.run.stdout


@pytest.mark.parametrize("table", ["transactions", "cohort_week", "firm_week", "firm"])
def test_exactly_the_corrupt_firm_is_red(
    twenty_firms: RunProject, instance: dg.DagsterInstance, table: str
) -> None:
    keys = instance.get_dynamic_partitions("firm")
    assert len(keys) == FIRMS
    status = instance.get_status_by_partition(dg.AssetKey(table), keys, firm_partitions)
    assert status is not None
    red = [key for key, value in status.items() if value and value.value == "FAILED"]
    green = [key for key, value in status.items() if value and value.value == "MATERIALIZED"]
    assert red == [twenty_firms.bad.key]
    assert len(green) == FIRMS - 1


def test_the_corrupt_firms_check_failed_with_a_reason(
    twenty_firms: RunProject, instance: dg.DagsterInstance
) -> None:
    records = instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(dg.AssetKey("transactions"), "trusted"), limit=100
    )
    evaluations = [
        r.event.dagster_event.event_specific_data for r in records if r.event and r.event.dagster_event
    ]
    verdicts = {e.partition: e for e in evaluations}
    assert len(verdicts) == FIRMS
    assert [key for key, e in verdicts.items() if not e.passed] == [twenty_firms.bad.key]
    assert "rows are bad" in verdicts[twenty_firms.bad.key].description


def test_the_warehouse_holds_the_other_nineteen(twenty_firms: RunProject) -> None:
    bad = twenty_firms.bad.name
    with duckdb.connect(str(twenty_firms.root / "data/cbmt.duckdb"), read_only=True) as con:
        firms = [name for (name,) in con.execute("SELECT firm FROM firm").fetchall()]
        weeks = con.execute("SELECT count(DISTINCT firm), count(DISTINCT week) FROM firm_week").fetchall()
        reasons = con.execute("SELECT DISTINCT reason FROM quarantine WHERE firm = ?", [bad]).fetchall()
        rows = con.execute("SELECT count(*) FROM quarantine WHERE firm <> ?", [bad]).fetchall()
    assert len(firms) == FIRMS - 1
    assert bad not in firms
    assert weeks == [(FIRMS - 1, 165)]
    assert reasons == [("unparseable amount",)]
    assert rows == [(0,)]


def test_materialisations_carry_rows_columns_and_a_picture(
    twenty_firms: RunProject, instance: dg.DagsterInstance
) -> None:
    event = instance.get_latest_materialization_event(dg.AssetKey("cohort_week"))
    assert event is not None
    assert event.asset_materialization is not None
    metadata = event.asset_materialization.metadata
    assert metadata["dagster/row_count"].value > 0
    assert "data:image/png;base64," in str(metadata["cohort_layers"].value)
    declared = defs.resolve_asset_graph().get(dg.AssetKey("cohort_week")).metadata
    assert "dagster/column_schema" in declared


def test_a_second_run_makes_nothing_that_is_up_to_date(
    twenty_firms: RunProject, instance: dg.DagsterInstance
) -> None:
    lake = Project(twenty_firms.root).lake
    tables = [path for path in lake.root.glob("*/**/*.parquet") if twenty_firms.bad.slug not in str(path)]
    before = {path: path.stat().st_mtime_ns for path in tables}
    assert len(before) > 10 * FIRMS
    runs = len(instance.get_runs())
    again = cbmt(twenty_firms.root, "run", *FLOORS, check=False)
    assert again.returncode == 1
    assert "read 0 new files" in again.stdout
    assert "1 of 1 firms are not usable" in again.stdout
    assert {path: path.stat().st_mtime_ns for path in tables} == before
    # The bad firm is tried once; nothing else runs.
    (new,) = instance.get_runs(limit=len(instance.get_runs()) - runs)
    assert new.tags["dagster/partition"] == twenty_firms.bad.key


def test_a_firm_that_turns_bad_keeps_its_last_good_tables(tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("turns-bad")
    cbmt(root, "simulate", "--firms", "2", "--scale", "0.003", "--format", "csv")
    cbmt(root, "run", *FLOORS)
    file = sorted((root / "data/raw/economy/orders").glob("*.csv"))[0]
    corrupt_amounts(file)
    assert cbmt(root, "run", *FLOORS, check=False).returncode == 1
    with duckdb.connect(str(root / "data/cbmt.duckdb"), read_only=True) as con:
        assert con.execute("SELECT count(*) FROM firm").fetchall() == [(2,)]
        assert con.execute("SELECT count(DISTINCT firm) FROM quarantine").fetchall() == [(1,)]


def test_the_query_of_the_readme_answers(twenty_firms: RunProject) -> None:
    page = (Path(__file__).parents[2] / "README.md").read_text()
    (query,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    with duckdb.connect(str(twenty_firms.root / "data/cbmt.duckdb"), read_only=True) as con:
        (firm,) = con.execute("SELECT firm FROM firm WHERE firm NOT LIKE '%''%' LIMIT 1").fetchall()[0]
        assert len(con.execute(query.replace("Fennosk", firm)).fetchall()) == 4


def test_the_report_has_a_page_for_every_published_firm(twenty_firms: RunProject) -> None:
    pages = list((twenty_firms.root / "data/report/firms").glob("*.html"))
    assert len(pages) == FIRMS - 1
    assert (twenty_firms.root / "data/report/index.html").exists()
