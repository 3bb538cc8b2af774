"""Backfills of stale assets: their targets, and what is left over after firms failed in one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import dagster as dg
from dagster._core.definitions.assets.graph.asset_graph_subset import AssetGraphSubset
from dagster._core.definitions.assets.graph.base_asset_graph import BaseAssetGraph
from dagster._core.definitions.events import AssetKeyPartitionKey
from dagster._core.execution.asset_backfill import AssetBackfillData
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus, PartitionBackfill
from dagster._core.utils import make_new_backfill_id

from cbmt_core.timeline import Purpose
from cbmt_pipeline.plan import Plan, State, Step

__all__ = [
    "BACKFILL",
    "JOB",
    "ONLY_MISSING",
    "PURPOSES_TAG",
    "Target",
    "broken_steps",
    "in_progress",
    "launch",
    "left_over",
    "stale_target",
]

ONLY_MISSING = "cbmt/only_missing"
"""Tag of a run: leave alone what is up to date."""
PURPOSES_TAG = "cbmt/purposes"
"""Tag of a run: only at origins for these purposes, separated by commas."""
BACKFILL = "dagster/backfill"
JOB = "cbmt/job"
"""Tag of a backfill and its runs: the job that started it."""


@dataclass(frozen=True)
class Target:
    """Target of a backfill: the firms (partition keys) of each step, and the steps across firms."""

    firms: Mapping[str, frozenset[str]]
    across: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.across or any(self.firms.values()))

    @property
    def all_firms(self) -> frozenset[str]:
        return frozenset().union(*self.firms.values())

    def subset(self, plan: Plan, graph: BaseAssetGraph[Any]) -> AssetGraphSubset:
        """The target as Dagster's subset of asset partitions."""
        chosen = {
            AssetKeyPartitionKey(dg.AssetKey(asset), firm)
            for name, keys in self.firms.items()
            for asset in plan[name].asset_needs
            for firm in keys
        }
        chosen |= {
            AssetKeyPartitionKey(dg.AssetKey(asset)) for n in self.across for asset in plan[n].asset_needs
        }
        return AssetGraphSubset.from_asset_partition_set(chosen, graph)


def stale_target(state: State, purposes: Sequence[Purpose], without: Collection[str] = ()) -> Target:
    """Everything that is stale at origins for these purposes, and everything that becomes stale when it is remade.

    Args:
        without: steps that are left out.
    """
    plan = state.plan
    everyone = frozenset(unit.key for unit in state.project.intake.units())
    firms: dict[str, frozenset[str]] = {}
    across: set[str] = set()
    for step in plan:
        if step.name in without or not _is_for(state, step, purposes):
            continue
        tasks = state.todo(step, purposes=purposes)
        needed = plan.needed(step)
        if not step.by_firm:
            if tasks or any(other.name in across or firms.get(other.name) for other in needed):
                across.add(step.name)
            continue
        keys = {task.unit.key for task in tasks if task.unit}
        for other in needed:
            keys |= everyone if other.name in across else firms.get(other.name, frozenset())
        firms[step.name] = frozenset(keys)
    return Target({name: keys for name, keys in firms.items() if keys}, frozenset(across))


def _is_for(state: State, step: Step, purposes: Sequence[Purpose]) -> bool:
    if step.stale or not step.has_origins:
        return step.stale is None
    return any(origin.purpose in purposes for origin in step.at(state.project) if origin)


def broken_steps(instance: dg.DagsterInstance, backfill_id: str) -> set[str]:
    """Steps that failed in runs of a backfill; others of these runs may have been left out because of them."""
    runs = instance.get_runs(
        dg.RunsFilter(tags={BACKFILL: backfill_id}, statuses=[dg.DagsterRunStatus.FAILURE])
    )
    entries = [
        entry
        for run in runs
        for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
    ]
    return {entry.dagster_event.step_key or "" for entry in entries if entry.dagster_event}


def left_over(data: AssetBackfillData, plan: Plan, broken: Collection[str]) -> Target:
    """What a finished backfill left out because something failed, except what needs the failed parts.

    Dagster skips everything that depends on a failed partition, so one bad firm blocks all assets across firms and
    what the other firms make from these.

    Args:
        broken: steps that failed. A step across firms that did not fail itself is made from the available firms.
    """
    step_of = {asset: step for step in plan for asset in step.asset_needs}

    def pairs(subset: AssetGraphSubset) -> set[tuple[str, str | None]]:
        return {
            (step_of[key.to_user_string()].name, firm)
            for key, firm in subset.iterate_asset_partitions()
            if key.to_user_string() in step_of
        }

    begun = pairs(data.requested_subset | data.materialized_subset)
    failed = pairs(data.requested_subset - data.materialized_subset)
    out = set(failed)
    for step in plan:
        if step.by_firm:
            before = {other.name for other in plan.needed(step) if other.by_firm}
            out |= {(step.name, firm) for name, firm in set(out) if name in before and firm is not None}
    left = pairs(data.target_subset) - begun - out
    firms: dict[str, set[str]] = {}
    for name, firm in left:
        if firm is not None:
            firms.setdefault(name, set()).add(firm)
    made = pairs(data.materialized_subset)
    across = frozenset(
        name for name, firm in pairs(data.target_subset) - made if firm is None and name not in broken
    )
    return Target({name: frozenset(keys) for name, keys in firms.items()}, across)


def launch(
    instance: dg.DagsterInstance,
    graph: BaseAssetGraph[Any],
    plan: Plan,
    target: Target,
    *,
    title: str,
    description: str = "",
    tags: Mapping[str, str],
) -> str:
    """Ask Dagster's daemon for the backfill; returns its id."""
    made = PartitionBackfill.from_asset_graph_subset(
        backfill_id=make_new_backfill_id(),
        backfill_timestamp=datetime.now(UTC).timestamp(),
        tags=dict(tags),
        dynamic_partitions_store=instance,
        asset_graph_subset=target.subset(plan, graph),
        title=title,
        description=description or None,
        run_config=None,
    )
    instance.add_backfill(made)
    return str(made.backfill_id)


def in_progress(instance: dg.DagsterInstance, job: str) -> list[str]:
    """Backfills of a job that are not finished."""
    going = BulkActionsFilter(statuses=[BulkActionStatus.REQUESTED], tags={JOB: job})
    return [backfill.backfill_id for backfill in instance.get_backfills(filters=going)]
