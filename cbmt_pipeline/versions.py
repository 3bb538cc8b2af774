"""Data versions for Dagster: digests of an asset's content and of its inputs.

Without them an asset would count as stale after every upstream run, also one that changed nothing.
"""

from __future__ import annotations

import dagster as dg
from dagster._core.definitions.data_version import (
    CODE_VERSION_TAG,
    DATA_VERSION_TAG,
    DEFAULT_DATA_VERSION,
    NULL_DATA_VERSION,
    extract_data_version_from_entry,
    get_input_data_version_tag,
    get_input_event_pointer_tag,
)

from cbmt_core.names import Unit
from cbmt_pipeline.manifest import digest_of
from cbmt_pipeline.plan import Plan, State, Step

__all__ = ["DATA_VERSION_TAG", "data_version", "provenance"]

ALWAYS = 2**62
"""Event number larger than all others: assets of one step are made together, so none is older than another."""


def data_version(state: State, step: Step, unit: Unit | None) -> str:
    """Digest of a step's outputs at all present origins; empty where there are none."""
    made = [state.manifest(step, origin, unit) for origin in step.at(state.project)]
    digests = [manifest.digest for manifest in made if manifest]
    return digests[0] if len(digests) == 1 else digest_of(digests) if digests else ""


def provenance(instance: dg.DagsterInstance, plan: Plan, step: Step) -> dict[str, dict[str, str]]:
    """For each asset of a step by firm, the tags that say which version of its needs a firm is made from.

    Dagster writes them itself only for assets whose output it sees; firms of a batch are recorded one by one. Of a
    need that is made by firm it compares event numbers, so one question about the asset serves all firms of the run.
    """
    latest = {}
    for need in {n for needs in plan.edges(step).values() for n in needs}:
        record = instance.get_latest_data_version_record(dg.AssetKey(need))
        if record is None:
            latest[need] = (NULL_DATA_VERSION.value, "NULL")
        else:
            found = extract_data_version_from_entry(record.event_log_entry) or DEFAULT_DATA_VERSION
            latest[need] = (found.value, str(record.storage_id))
    tags = {}
    for asset, needs in plan.edges(step).items():
        tags[asset] = {CODE_VERSION_TAG: step.version}
        for need in needs:
            key = dg.AssetKey(need)
            version, number = latest[need]
            tags[asset][get_input_data_version_tag(key)] = version
            tags[asset][get_input_event_pointer_tag(key)] = (
                str(ALWAYS) if need in step.asset_needs else number
            )
    return tags
