"""Old runs are removed unless they are the last to have made something."""

from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest

from cbmt_pipeline.history import forget_old_runs
from cbmt_pipeline.instance import open_instance
from cbmt_pipeline.project import Project

FIRMS = dg.StaticPartitionsDefinition(["a", "b"])
LATER = datetime.now(UTC) + timedelta(days=31)


@dg.asset(partitions_def=FIRMS, check_specs=[dg.AssetCheckSpec("fine", asset="weeks")])
def weeks():
    yield dg.MaterializeResult()
    yield dg.AssetCheckResult(passed=True, check_name="fine")


def project_keeping(folder, days: int, monkeypatch) -> Project:
    folder.joinpath("cbmt.toml").write_text(f"[history]\nkeep_days = {days}\n")
    project = Project(folder)
    monkeypatch.setenv("DAGSTER_HOME", str(project.dagster_home))
    monkeypatch.setenv("CBMT_PROJECT", str(folder))
    return project


@pytest.mark.parametrize(
    ("days", "now", "left"), [(30, LATER, [1, 3]), (30, None, [0, 1, 2, 3]), (0, LATER, [0, 1, 2, 3])]
)
def test_what_a_later_run_has_made_anew_is_forgotten(tmp_path, monkeypatch, days, now, left):
    project = project_keeping(tmp_path, days, monkeypatch)
    with open_instance(project) as instance:
        runs = [
            dg.materialize([weeks], instance=instance, partition_key=key).run_id
            for key in ("a", "b", "a", "a")
        ]
        assert forget_old_runs(instance, project, now) == len(runs) - len(left)
        assert {run.run_id for run in instance.get_runs()} == {runs[k] for k in left}
        assert instance.event_log_storage.get_materialized_partitions(dg.AssetKey("weeks")) == {"a", "b"}
        history = instance.event_log_storage.get_asset_check_execution_history(
            dg.AssetCheckKey(dg.AssetKey("weeks"), "fine"), limit=10
        )
        assert {record.run_id for record in history} == {runs[k] for k in left}
    files = {path.stem for path in (project.dagster_home / "history/runs").glob("*.db")}
    assert files == {"index", *(runs[k] for k in left)}
    assert not list((project.dagster_home / "history/runs").glob("*-wal"))


def test_runs_on_a_home_that_projects_share_stay(tmp_path, monkeypatch):
    project = project_keeping(tmp_path, 30, monkeypatch)
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    with dg.DagsterInstance.get() as instance:
        for _ in range(2):
            dg.materialize([weeks], instance=instance, partition_key="a")
        assert forget_old_runs(instance, project, LATER) == 0
