"""Sensors: new files ask for a run, new firms become partitions, changed firms are made anew."""

from __future__ import annotations

import shutil
from pathlib import Path

import dagster as dg
import duckdb
import pytest
from helpers.small_project import make_all

from cbmt_core.simulate import Economy, write_economy
from cbmt_pipeline.automation import firms_sensor, new_files_sensor
from cbmt_pipeline.project import Project
from cbmt_pipeline.resources import ProjectResource
from cbmt_pipeline.sources import add_source


@pytest.fixture
def project(tmp_path: Path) -> Project:
    write_economy(Economy(firms=3, scale=0.002), tmp_path / "raw")
    source = {"name": "economy", "path": "raw/orders", "currency": "USD", "timezone": "UTC"}
    names = ("firm", "customer", "order_time", "amount", "order_id", "industry")
    add_source(tmp_path, source, {name: name for name in names})
    project = Project(tmp_path)
    project.check_schema()
    return project


def sensed(
    sensor: dg.SensorDefinition, project: Project, instance: dg.DagsterInstance, cursor: str | None = None
):
    context = dg.build_sensor_context(
        instance=instance, cursor=cursor, resources={"project": ProjectResource(root=str(project.root))}
    )
    return sensor(context)


def test_new_files_ask_for_one_run_until_they_are_read(project: Project) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        first = sensed(new_files_sensor, project, instance)
        assert isinstance(first, dg.RunRequest)
        assert sensed(new_files_sensor, project, instance).run_key == first.run_key
        project.intake.update(project.config, project.root)
        assert isinstance(sensed(new_files_sensor, project, instance), dg.SkipReason)


def test_firms_become_partitions_and_only_changed_firms_are_asked_for(project: Project) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        assert isinstance(sensed(firms_sensor, project, instance), dg.SkipReason)
        project.intake.update(project.config, project.root)
        result = sensed(firms_sensor, project, instance)
        keys = [unit.key for unit in project.intake.units()]
        assert result.dynamic_partitions_requests[0].partition_keys == keys
        assert len(keys) == 3
        (run,) = result.run_requests
        assert run.tags["dagster/asset_partition_range_start"] == keys[0]
        assert run.tags["dagster/asset_partition_range_end"] == keys[-1]
        instance.add_dynamic_partitions("firm", keys)
        assert isinstance(sensed(firms_sensor, project, instance, result.cursor), dg.SkipReason)


def test_only_firms_with_other_orders_are_asked_for_again(project: Project) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        project.check_schema()
        project.intake.update(project.config, project.root)
        keys = [unit.key for unit in project.intake.units()]
        instance.add_dynamic_partitions("firm", keys)
        assert make_all(project) == {}
        done = sensed(firms_sensor, project, instance)
        assert done.run_requests == []
        file = sorted((project.root / "raw/orders").iterdir())[1]
        with duckdb.connect() as con:
            con.execute(f"CREATE TABLE o AS FROM '{file}'; UPDATE o SET amount = amount * 2")
            con.execute(f"COPY o TO '{file}'")
        project.intake.update(project.config, project.root)
        (run,) = sensed(firms_sensor, project, instance, done.cursor).run_requests
        assert run.tags["dagster/asset_partition_range_start"] == keys[1]
        assert run.tags["dagster/asset_partition_range_end"] == keys[1]


def test_a_file_that_vanished_and_came_back_changes_nothing(project: Project, tmp_path: Path) -> None:
    project.intake.update(project.config, project.root)
    version = project.intake.version
    file = sorted((tmp_path / "raw/orders").iterdir())[0]
    shutil.move(file, tmp_path / "aside")
    project.intake.update(project.config, project.root)
    shutil.move(tmp_path / "aside", file)
    project.intake.update(project.config, project.root)
    assert project.intake.version == version
