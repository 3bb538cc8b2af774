"""Dagster's asset checks of one firm's tables and forecasts."""

from __future__ import annotations

import warnings

import dagster as dg

from cbmt_core.names import Unit
from cbmt_core.quality import CHECKED_TABLES, Verdict
from cbmt_pipeline.metadata import as_text
from cbmt_pipeline.partitions import firm_partitions
from cbmt_pipeline.plan import State, Step

__all__ = ["TRUSTED", "check_specs", "evaluation", "verdict_on_forecasts"]

TRUSTED = "trusted"


def check_specs(step: Step) -> list[dg.AssetCheckSpec]:
    """One check for each data table and each asset of forecasts. They run inside the batch, so that one firm's
    failure stops only that firm.
    """
    described = {
        table: f"Great Expectations suite of {table}: types, ranges, uniqueness, reconciliation."
        for table in CHECKED_TABLES
        if table in step.asset_needs
    }
    if step.promises:
        described[step.name] = f"Of every model's forecast: {'; '.join(step.promises)}."
    with warnings.catch_warnings():
        # Partitioned checks are in preview in this release of Dagster; the version is pinned.
        warnings.simplefilter("ignore", dg.PreviewWarning)
        return [
            dg.AssetCheckSpec(
                TRUSTED,
                asset=asset,
                partitions_def=firm_partitions,
                blocking=not step.promises,
                description=text,
            )
            for asset, text in described.items()
        ]


def verdict_on_forecasts(state: State, step: Step, unit: Unit) -> Verdict:
    """The verdict on a firm's forecasts at every present origin, also on those made by earlier runs."""
    errors, warned, models = [], [], 0
    for origin in step.at(state.project):
        made = state.manifest(step, origin, unit)
        if made is None or origin is None:
            continue
        errors += [f"{model} at {origin.week}: {text}" for model, text in made.errors.items()]
        warned += [f"{model} at {origin.week}: {text}" for model, text in made.warnings.items()]
        models += len({*made.items, *made.errors})
    return Verdict(step.name, models * len(step.promises), tuple(errors), tuple(warned))


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
        blocking=verdict.table in CHECKED_TABLES,
        severity=dg.AssetCheckSeverity.ERROR if verdict.errors else dg.AssetCheckSeverity.WARN,
        description="; ".join([*verdict.errors, *verdict.warnings]) or "all expectations are met",
        metadata={
            "expectations": dg.MetadataValue.text(f"{verdict.evaluated} evaluated"),
            "findings": dg.MetadataValue.md("\n".join(lines) or "none"),
        },
        partition=partition,
    )
