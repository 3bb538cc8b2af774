"""The asset graph, written out, so that a change to it shows in a diff."""

from __future__ import annotations

import dagster as dg

from cbmt_pipeline.automation import contiguous_batches
from cbmt_pipeline.definitions import defs
from cbmt_pipeline.partitions import firm_partitions
from cbmt_pipeline.plan import the_plan


def test_the_graph_is_the_one_written_here() -> None:
    graph = defs.resolve_asset_graph()
    upstream = {
        key.to_user_string(): sorted(parent.to_user_string() for parent in graph.get(key).parent_keys)
        for key in graph.get_all_asset_keys()
    }
    assert upstream == {
        "intake": [],
        "transactions": ["intake"],
        "quarantine": ["intake"],
        "cohort_week": ["transactions"],
        "firm_week": ["cohort_week"],
        "firm": ["cohort_week", "transactions"],
        "path_priors": ["cohort_week"],
        "live_forecasts": ["cohort_week", "path_priors", "transactions"],
        "backtest_forecasts": ["cohort_week", "path_priors", "transactions"],
        "benchmark_forecasts": ["cohort_week", "transactions"],
        "tuned_models": ["cohort_week"],
        "neural_forecasts": ["tuned_models"],
        "plus_forecasts": ["cohort_week", "path_priors"],
        "forecast_choice": [
            "backtest_forecasts",
            "benchmark_forecasts",
            "firm_week",
            "live_forecasts",
            "plus_forecasts",
        ],
        "accuracy": [
            "benchmark_forecasts",
            "cohort_week",
            "firm",
            "firm_week",
            "neural_forecasts",
            "plus_forecasts",
        ],
        "bridge": [
            "benchmark_forecasts",
            "cohort_week",
            "firm",
            "firm_week",
            "live_forecasts",
            "neural_forecasts",
            "plus_forecasts",
        ],
        "firm_measures": ["cohort_week", "firm", "transactions"],
        "comovement": ["accuracy", "firm_measures"],
        "difficulty": ["accuracy", "firm_measures"],
        "routing": ["accuracy", "firm_measures"],
        "external_calibration": ["accuracy", "firm", "firm_week"],
        "exhibits": ["accuracy", "bridge", "comovement", "difficulty", "external_calibration", "routing"],
        "warehouse": [
            "accuracy",
            "backtest_forecasts",
            "benchmark_forecasts",
            "bridge",
            "cohort_week",
            "comovement",
            "difficulty",
            "exhibits",
            "external_calibration",
            "firm",
            "firm_measures",
            "firm_week",
            "forecast_choice",
            "intake",
            "live_forecasts",
            "neural_forecasts",
            "path_priors",
            "plus_forecasts",
            "quarantine",
            "routing",
            "transactions",
            "tuned_models",
        ],
        "report": ["warehouse"],
    }


def test_every_asset_carries_the_version_of_its_step() -> None:
    graph = defs.resolve_asset_graph()
    versions = {key.to_user_string(): graph.get(key).code_version for key in graph.get_all_asset_keys()}
    assert versions == {asset: step.version for step in the_plan() for asset in step.asset_needs}
    assert all(versions.values())


def test_firm_tables_are_partitioned_by_firm_and_batched() -> None:
    graph = defs.resolve_asset_graph()
    for table in (
        "transactions",
        "quarantine",
        "cohort_week",
        "firm_week",
        "firm",
        "firm_measures",
    ):
        node = graph.get(dg.AssetKey(table))
        assert isinstance(node.partitions_def, dg.DynamicPartitionsDefinition)
        assert node.partitions_def.name == "firm"
        assert node.backfill_policy is not None
        assert node.backfill_policy.max_partitions_per_run == 50


def test_forecasts_that_take_long_run_one_firm_at_a_time() -> None:
    for asset in ("benchmark_forecasts", "tuned_models", "neural_forecasts"):
        node = defs.resolve_asset_graph().get(dg.AssetKey(asset))
        assert node.partitions_def == firm_partitions
        assert node.backfill_policy is None or node.backfill_policy.max_partitions_per_run == 1


def test_forecasts_that_take_seconds_share_runs() -> None:
    sizes = {"live_forecasts": 25, "backtest_forecasts": 10, "plus_forecasts": 10}
    for asset, size in sizes.items():
        node = defs.resolve_asset_graph().get(dg.AssetKey(asset))
        assert node.partitions_def == firm_partitions
        assert node.backfill_policy is not None
        assert node.backfill_policy.max_partitions_per_run == size


def test_the_other_assets_are_made_across_firms() -> None:
    graph = defs.resolve_asset_graph()
    across = {k.to_user_string() for k in graph.get_all_asset_keys() if graph.get(k).partitions_def is None}
    assert across == {
        "intake",
        "path_priors",
        "forecast_choice",
        "accuracy",
        "bridge",
        "comovement",
        "difficulty",
        "routing",
        "external_calibration",
        "exhibits",
        "warehouse",
        "report",
    }


def test_jobs_sensors_and_checks() -> None:
    repository = defs.get_repository_def()
    jobs = {job.name for job in repository.get_all_jobs() if not job.name.startswith("__")}
    assert jobs == {"read_new_files", "refresh_firms", "move_study"}
    assert [(s.name, s.default_status) for s in repository.schedule_defs] == [
        ("move_study_quarterly", dg.DefaultScheduleStatus.STOPPED)
    ]
    sensors = {sensor.name for sensor in repository.sensor_defs}
    assert {"new_files_sensor", "firms_sensor"} <= sensors
    checks = {key.asset_key.to_user_string() for key in defs.resolve_asset_graph().asset_check_keys}
    assert checks == {"transactions", "cohort_week", "firm_week"}


def test_batches_are_ranges_of_neighbours() -> None:
    keys = list("abcdefgh")
    assert contiguous_batches(keys, list("abcdefgh"), 3) == [list("abc"), list("def"), list("gh")]
    assert contiguous_batches(keys, list("abdeh"), 10) == [list("ab"), list("de"), list("h")]
    assert contiguous_batches(keys, [], 3) == []
