"""The event log with open connections holds what Dagster's own would hold, in the same files."""

import dagster as dg
import pytest
import yaml
from dagster._core.instance.ref import InstanceRef
from dagster._core.storage.event_log import SqliteEventLogStorage

from cbmt_pipeline.event_log import MOST_OPEN, OpenEventLog
from cbmt_pipeline.instance import use_project
from cbmt_pipeline.project import Project

FIRMS = dg.StaticPartitionsDefinition(["a", "b"])


@dg.asset(partitions_def=FIRMS, check_specs=[dg.AssetCheckSpec("fine", asset="weeks")])
def weeks(context: dg.AssetExecutionContext):
    context.log.info("begun")
    yield dg.MaterializeResult(metadata={"rows": 3}, data_version=dg.DataVersion("one"))
    yield dg.AssetCheckResult(passed=True, check_name="fine")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """The Dagster home of a project."""
    project = Project(tmp_path / 'it is "here"')
    monkeypatch.setenv("DAGSTER_HOME", str(project.dagster_home))
    monkeypatch.setenv("CBMT_PROJECT", str(project.root))
    use_project(project)
    return project.dagster_home


def test_dagsters_own_log_reads_what_was_stored(home):
    with dg.DagsterInstance.from_config(str(home)) as instance:
        assert isinstance(instance.event_log_storage, OpenEventLog)
        runs = [
            dg.materialize([weeks], instance=instance, partition_key=key).run_id
            for key in ("a", "b", *"ab" * MOST_OPEN)
        ]
        entries_before = [[str(entry) for entry in instance.all_logs(run)] for run in runs]
    folder = home / "history" / "runs"
    # Closed with the instance: nothing is left in journals.
    assert not list(folder.glob("*-wal"))
    own = SqliteEventLogStorage(str(folder))
    assert [[str(entry) for entry in own.get_logs_for_run(run)] for run in runs] == entries_before
    assert all("begun" in " ".join(entries) for entries in entries_before)
    key = dg.AssetKey("weeks")
    assert own.get_materialized_partitions(key) == {"a", "b"}
    latest = own.get_latest_storage_id_by_partition(
        key, dg.DagsterEventType.ASSET_MATERIALIZATION, {"a", "b"}
    )
    assert latest.keys() == {"a", "b"}
    (record,) = own.get_asset_records([key])
    assert record.asset_entry.last_run_id == runs[-1]


def test_settings_follow_a_project_that_is_moved_and_keep_what_was_changed(home, monkeypatch):
    settings = home / "dagster.yaml"
    settings.write_text(settings.read_text().replace("max_concurrent_runs: 2", "max_concurrent_runs: 7"))
    moved = Project(home.parents[2] / "moved")
    home.parents[1].rename(moved.root)
    monkeypatch.setenv("DAGSTER_HOME", str(moved.dagster_home))
    use_project(moved)
    found = yaml.safe_load((moved.dagster_home / "dagster.yaml").read_text())
    assert found["event_log_storage"]["config"] == {"base_dir": str(moved.dagster_home / "history/runs")}
    assert found["concurrency"]["runs"]["max_concurrent_runs"] == 7


def test_only_the_log_differs_from_dagsters_defaults(home):
    kept, usual = InstanceRef.from_dir(str(home)), InstanceRef.config_defaults(str(home))
    assert kept.event_storage_data.class_name == "OpenEventLog"
    assert kept.run_storage_data == usual["run_storage"]
    assert kept.schedule_storage_data == usual["schedule_storage"]
