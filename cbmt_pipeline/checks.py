"""Asset checks: each verdict of the core's suites as a Dagster check of one firm's table."""

from __future__ import annotations

import warnings

import dagster as dg

from cbmt_core.quality import CHECKED_TABLES, Verdict
from cbmt_pipeline.metadata import as_text
from cbmt_pipeline.partitions import firm_partitions

__all__ = ["TRUSTED", "check_specs", "evaluation"]

TRUSTED = "trusted"


def check_specs() -> list[dg.AssetCheckSpec]:
    """One check a table. The gate stands inside the batch, so that one firm's failure stops only that firm."""
    with warnings.catch_warnings():
        # Partitioned checks are in preview in this release of Dagster; the version is pinned.
        warnings.simplefilter("ignore", dg.PreviewWarning)
        return [
            dg.AssetCheckSpec(
                TRUSTED,
                asset=table,
                partitions_def=firm_partitions,
                blocking=True,
                description=f"Great Expectations suite of {table}: types, ranges, uniqueness, reconciliation.",
            )
            for table in CHECKED_TABLES
        ]


def evaluation(verdict: Verdict, partition: str) -> dg.AssetCheckEvaluation:
    """The verdict on one firm as Dagster records it: errors block, warnings show."""
    lines = [
        *(f"- {as_text(text)}" for text in verdict.errors),
        *(f"- (warning) {as_text(text)}" for text in verdict.warnings),
    ]
    return dg.AssetCheckEvaluation(
        asset_key=dg.AssetKey(verdict.table),
        check_name=TRUSTED,
        passed=verdict.passed and not verdict.warnings,
        blocking=True,
        severity=dg.AssetCheckSeverity.ERROR if verdict.errors else dg.AssetCheckSeverity.WARN,
        description="; ".join([*verdict.errors, *verdict.warnings]) or "every expectation holds",
        metadata={
            "expectations": dg.MetadataValue.text(f"{verdict.evaluated} evaluated"),
            "findings": dg.MetadataValue.md("\n".join(lines) or "none"),
        },
        partition=partition,
    )
