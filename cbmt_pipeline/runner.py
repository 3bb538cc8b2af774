"""Runs without a daemon: the same assets on the same instance, driven by a pool of worker processes."""

from __future__ import annotations

import logging
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dagster as dg

from cbmt_pipeline.automation import contiguous_batches
from cbmt_pipeline.instance import open_instance
from cbmt_pipeline.partitions import FIRM_PARTITIONS
from cbmt_pipeline.project import Project

__all__ = ["RunOutcome", "run_assets", "run_firms"]

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass(frozen=True)
class RunOutcome:
    """One Dagster run: whether it succeeded and, if not, why."""

    run_id: str
    firms: tuple[str, ...]
    success: bool
    failure: str = ""


def run_assets(project: Project, assets: Sequence[str]) -> RunOutcome:
    """Materialise unpartitioned assets in one run in this process."""
    outcome = _execute(project.root, tuple(assets), (), {})
    return outcome if outcome.success else replace(outcome, failure=f"{', '.join(assets)}: {outcome.failure}")


def run_firms(
    project: Project,
    assets: Sequence[str],
    slugs: Sequence[str],
    *,
    workers: int,
    batch: int,
    on_batch: Callable[[RunOutcome], None],
    config: Callable[[str], dict[str, Any]] | None = None,
) -> list[RunOutcome]:
    """Materialise firm-partitioned assets for the given firms, `batch` firms a run, `workers` at a time.

    `config(firm)` gives the run configuration of the run that begins with that firm.
    """
    with open_instance(project) as instance:
        known = list(instance.get_dynamic_partitions(FIRM_PARTITIONS))
        instance.add_dynamic_partitions(FIRM_PARTITIONS, [slug for slug in slugs if slug not in set(known)])
        keys = list(instance.get_dynamic_partitions(FIRM_PARTITIONS))
    # Batches small enough that every worker has something to do.
    size = max(1, min(batch, -(-len(slugs) // workers)))
    batches = contiguous_batches(keys, list(slugs), size)
    outcomes = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, max(1, len(batches))), mp_context=context) as pool:
        futures = [
            pool.submit(
                _execute, project.root, tuple(assets), tuple(batch), config(batch[0]) if config else {}
            )
            for batch in batches
        ]
        for future in as_completed(futures):
            outcomes.append(future.result())
            on_batch(outcomes[-1])
    return outcomes


def _execute(
    root: Path, assets: tuple[str, ...], firms: tuple[str, ...], config: dict[str, Any]
) -> RunOutcome:
    from cbmt_pipeline.definitions import defs

    logging.getLogger("dagster").setLevel(logging.CRITICAL)
    tags = {}
    if len(firms) == 1:
        tags = {"dagster/partition": firms[0]}
    elif firms:
        tags = {
            "dagster/asset_partition_range_start": firms[0],
            "dagster/asset_partition_range_end": firms[-1],
        }
    with open_instance(Project(root)) as instance:
        job = defs.resolve_implicit_global_asset_job_def().get_subset(
            asset_selection={dg.AssetKey(name) for name in assets}
        )
        result = job.execute_in_process(
            instance=instance, tags=tags, run_config=QUIET | config, raise_on_error=False
        )
        failure = next((_why(event) for event in result.all_events if event.is_step_failure), "")
        return RunOutcome(result.run_id, firms, result.success, failure)


def _why(event: dg.DagsterEvent) -> str:
    """What made a step fail: our own words where there are some, else the innermost error."""
    data = event.step_failure_data
    if data.user_failure_data and data.user_failure_data.description:
        return data.user_failure_data.description
    error = data.error
    while error and error.cause:
        error = error.cause
    return error.message.strip() if error else "for an unknown reason"
