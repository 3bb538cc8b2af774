"""Histories of earlier versions, whose partition keys were slugs: every place names the firm afterwards."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.assets.graph.asset_graph_subset import AssetGraphSubset
from dagster._core.definitions.events import AssetKeyPartitionKey
from dagster._core.execution.backfill import PartitionBackfill
from helpers.servers import need, postgres

from cbmt_core.names import Unit
from cbmt_pipeline import partition_keys
from cbmt_pipeline.partition_keys import rename_old_keys
from cbmt_pipeline.partitions import firm_partitions

UNITS = (Unit("A, B & Söhne"), Unit("Fennosk"), Unit("50% off", "on line"))
# Slugs and names that look alike: "a+b" is the slug of "a b", and the name of another firm.
ALIKE = (Unit("a b"), Unit("a+b"))
WEEKS = dg.AssetKey("weeks")


@dg.asset(partitions_def=firm_partitions)
def weeks(context: dg.AssetExecutionContext) -> None:
    context.log_event(
        dg.AssetCheckEvaluation(
            asset_key=WEEKS, check_name="fine", passed=True, partition=context.partition_key
        )
    )


DEFS = dg.Definitions(assets=[weeks])


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=[pytest.mark.slow, need("postgresql")])])
def instance(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    """With SQLite runs and events lie in databases of their own, with PostgreSQL in one."""
    if request.param == "sqlite":
        (tmp_path / "dagster.yaml").write_text("telemetry: {enabled: false}\n")
        with dg.DagsterInstance.from_config(str(tmp_path)) as opened:
            yield opened
        return
    pytest.importorskip("dagster_postgres")
    with postgres() as place:
        url = f"postgresql+psycopg2://cbmt@{place}/postgres"
        (tmp_path / "dagster.yaml").write_text(f"storage: {{postgres: {{postgres_url: '{url}'}}}}\n")
        with dg.DagsterInstance.from_config(str(tmp_path)) as opened:
            yield opened


def old_history(instance: dg.DagsterInstance, units: tuple[Unit, ...]) -> None:
    """A run for each firm and a backfill of all, as 0.6 wrote them."""
    slugs = [unit.slug for unit in units]
    instance.add_dynamic_partitions("firm", slugs)
    for slug in slugs:
        assert dg.materialize([weeks], instance=instance, partition_key=slug).success
    graph = DEFS.resolve_asset_graph()
    chosen = AssetGraphSubset.from_asset_partition_set(
        {AssetKeyPartitionKey(WEEKS, slug) for slug in slugs}, graph
    )
    backfill = PartitionBackfill.from_asset_graph_subset(
        backfill_id="old",
        backfill_timestamp=1e9,
        tags={},
        dynamic_partitions_store=instance,
        asset_graph_subset=chosen,
        title=None,
        description=None,
        run_config=None,
    )
    instance.add_backfill(backfill)


def checked(instance: dg.DagsterInstance) -> set[str | None]:
    history = instance.event_log_storage.get_asset_check_execution_history(
        dg.AssetCheckKey(WEEKS, "fine"), limit=100
    )
    events = [record.event.dagster_event for record in history if record.event]
    return {event.event_specific_data.partition for event in events if event}  # type: ignore[union-attr]


def test_every_place_names_the_firm_and_nothing_is_made_again(instance: dg.DagsterInstance) -> None:
    old_history(instance, UNITS)
    keys = {unit.key for unit in UNITS}
    assert rename_old_keys(instance) == 2
    assert set(instance.get_dynamic_partitions("firm")) == keys
    assert instance.event_log_storage.get_materialized_partitions(WEEKS) == keys
    status = instance.get_status_by_partition(WEEKS, sorted(keys), firm_partitions)
    assert status is not None
    assert {key: value.value for key, value in status.items() if value} == dict.fromkeys(keys, "MATERIALIZED")
    assert checked(instance) == keys
    assert {run.tags["dagster/partition"] for run in instance.get_runs()} == keys
    for key in keys:
        assert len(instance.get_runs(dg.RunsFilter(tags={"dagster/partition": key}))) == 1
        newest = instance.fetch_materializations(
            dg.AssetRecordsFilter(WEEKS, asset_partitions=[key]), limit=1
        )
        assert newest.records[0].partition_key == key
    backfill = instance.get_backfill("old")
    assert backfill is not None
    data = backfill.get_asset_backfill_data(DEFS.resolve_asset_graph())
    assert {one.partition_key for one in data.target_subset.iterate_asset_partitions()} == keys
    assert rename_old_keys(instance) == 0


def test_a_name_that_looks_like_a_slug_is_not_renamed_twice(instance: dg.DagsterInstance) -> None:
    old_history(instance, ALIKE)
    rename_old_keys(instance)
    assert set(instance.get_dynamic_partitions("firm")) == {"a b", "a+b"}
    rename_old_keys(instance)
    assert set(instance.get_dynamic_partitions("firm")) == {"a b", "a+b"}
    assert instance.event_log_storage.get_materialized_partitions(WEEKS) == {"a b", "a+b"}


def test_stopped_between_runs_and_events_it_goes_on(
    instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_history(instance, UNITS)

    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(partition_keys, "_rename_in_events", killed)
        with pytest.raises(Killed):
            rename_old_keys(instance)
    assert set(instance.get_dynamic_partitions("firm")) == {unit.slug for unit in UNITS}
    assert rename_old_keys(instance) == 2
    keys = {unit.key for unit in UNITS}
    assert instance.event_log_storage.get_materialized_partitions(WEEKS) == checked(instance) == keys
    assert {run.tags["dagster/partition"] for run in instance.get_runs()} == keys
