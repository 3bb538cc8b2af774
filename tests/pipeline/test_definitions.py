"""The asset graph, written out, so that a change to it shows in a diff."""

from __future__ import annotations

from dataclasses import replace

import dagster as dg
import pytest

from cbmt_pipeline.batches import contiguous_batches
from cbmt_pipeline.definitions import defs
from cbmt_pipeline.partitions import firm_partitions
from cbmt_pipeline.plan import Plan, the_plan


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
        "firm": ["cohort_week"],
        "benchmark_forecasts": ["cohort_week"],
        "tuned_models": ["cohort_week"],
        "neural_forecasts": ["tuned_models"],
        "path_priors": ["cohort_week"],
        "plus_forecasts": ["cohort_week", "path_priors"],
        "accuracy": ["benchmark_forecasts", "neural_forecasts", "plus_forecasts"],
        "backtest_forecasts": ["cohort_week", "path_priors"],
        "band_factors": ["backtest_forecasts"],
        "live_forecasts": ["cohort_week", "path_priors"],
        "forecast_choice": ["backtest_forecasts", "benchmark_forecasts", "live_forecasts", "plus_forecasts"],
        "forecast_bands": ["backtest_forecasts", "band_factors", "forecast_choice", "live_forecasts"],
        "band_coverage": ["forecast_bands"],
        "study_bands": ["band_factors", "benchmark_forecasts", "neural_forecasts", "plus_forecasts"],
        "study_band_coverage": ["study_bands"],
        "bridge": ["benchmark_forecasts", "live_forecasts", "neural_forecasts", "plus_forecasts"],
        "firm_measures": ["firm"],
        "comovement": ["accuracy", "firm_measures"],
        "customer_value": ["forecast_bands"],
        "difficulty": ["accuracy", "firm_measures"],
        "external_calibration": ["accuracy"],
        "routing": ["accuracy", "firm_measures"],
        "exhibits": ["bridge", "comovement", "difficulty", "external_calibration", "routing", "study_bands"],
        "scenarios": ["forecast_bands"],
        "warehouse": ["band_coverage", "customer_value", "exhibits", "scenarios", "study_band_coverage"],
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


def test_steps_that_need_one_another_never_share_a_run_of_many_firms() -> None:
    plan = the_plan()
    for step in plan:
        others = [other for other in plan.needed(step) if other.by_firm]
        assert step.batch == 1 or step.batch not in {other.batch for other in others}
    measures = plan["firm_measures"]
    with pytest.raises(ValueError, match="firm_measures needs firm_data and has the same batch"):
        Plan(replace(step, batch=plan["firm_data"].batch) if step is measures else step for step in plan)


def test_the_other_assets_are_made_across_firms() -> None:
    graph = defs.resolve_asset_graph()
    across = {k.to_user_string() for k in graph.get_all_asset_keys() if graph.get(k).partitions_def is None}
    assert across == {
        "intake",
        "path_priors",
        "forecast_choice",
        "band_factors",
        "band_coverage",
        "study_band_coverage",
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
    assert jobs == {"weekly", "study", "read_new_files", "refresh_firms"}
    assert {s.name for s in repository.schedule_defs} == {"weekly_schedule", "study_schedule"}
    running = {sensor.name for sensor in repository.sensor_defs if sensor.default_status.value == "RUNNING"}
    assert running == {"finish_backfills", "failure_notice"}
    assert {sensor.name for sensor in repository.sensor_defs} - running == {
        "new_files_sensor",
        "firms_sensor",
        "automation",
    }
    checks = {key.asset_key.to_user_string() for key in defs.resolve_asset_graph().asset_check_keys}
    forecasts = {f"{kind}_forecasts" for kind in ("live", "backtest", "benchmark", "plus", "neural")}
    assert checks == {"transactions", "cohort_week", "firm_week"} | forecasts


def test_batches_are_ranges_of_neighbours() -> None:
    keys = list("abcdefgh")
    assert contiguous_batches(keys, list("abcdefgh"), 3) == [list("abc"), list("def"), list("gh")]
    assert contiguous_batches(keys, list("abdeh"), 10) == [list("ab"), list("de"), list("h")]
    assert contiguous_batches(keys, [], 3) == []
