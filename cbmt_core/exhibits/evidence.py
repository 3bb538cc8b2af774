"""Evidence: the input of the exhibits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import duckdb
import pandas as pd

from cbmt_core.bridge import BridgeErrors, BridgeWindows, bridge_errors
from cbmt_core.design import StudyDesign
from cbmt_core.evaluation import ALL_INDUSTRIES, Relations, compare, reference_of, whole_firms
from cbmt_core.exhibits.models import BENCHMARKS, FULL_MODEL, LABELS
from cbmt_core.schema import DIAGNOSTIC_TABLES

__all__ = ["Evidence", "gather"]


@dataclass(frozen=True, eq=False)
class Evidence:
    """Results of a study's holdout. Samples are common to the paper's models and the reference."""

    con: duckdb.DuckDBPyConnection
    relations: Relations
    design: StudyDesign
    firms: pd.DataFrame
    accuracy: pd.DataFrame
    """Errors at the study's origin, of all models."""
    reference: str | None
    """CBMT, or another model until it has run; None without any forecast."""
    summary: pd.DataFrame
    """Comparison of the paper's models."""
    bridges: BridgeErrors
    results: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Tables of the diagnostics that have been made."""
    ranges: pd.DataFrame = field(default_factory=pd.DataFrame)
    """Bands of the study's forecasts beside what happened, as `judged_bands` gives them."""

    def result(self, name: str) -> pd.DataFrame:
        """A table of the diagnostics; empty if it has not been made."""
        empty = pd.DataFrame(columns=DIAGNOSTIC_TABLES[name].column_names)
        return self.results.get(name, empty)

    def among(self, models: Sequence[str]) -> pd.DataFrame:
        """Rows of the comparison for these models and the reference, in this order, over all industries."""
        rows = self.summary[self.summary["industry"] == ALL_INDUSTRIES]
        return self.ordered(rows, models)

    def ordered(self, rows: pd.DataFrame, models: Sequence[str]) -> pd.DataFrame:
        order = list(dict.fromkeys([*([self.reference] if self.reference else []), *models]))
        kept = rows[rows["model"].isin(order)]
        kept = kept.assign(label=kept["model"].map(lambda name: LABELS.get(name, name)))
        return kept.sort_values("model", key=lambda names: names.map(order.index), kind="stable")

    def compared(self, models: Sequence[str]) -> pd.DataFrame:
        """A comparison of these models alone, the first as reference, over the firms they all have; empty if one is
        missing."""
        rows = self.summary.iloc[:0]
        if set(models) <= set(self.accuracy["model"]):
            rows = compare(self.accuracy, self.firms, models=models, reference=models[0], coverage=0.0)
        rows = rows[rows["industry"] == ALL_INDUSTRIES]
        return rows.assign(label=rows["model"].map(LABELS))


def gather(
    con: duckdb.DuckDBPyConnection,
    relations: Relations,
    design: StudyDesign,
    accuracy: pd.DataFrame,
    bridge: pd.DataFrame,
    results: Mapping[str, pd.DataFrame] | None = None,
    ranges: pd.DataFrame | None = None,
) -> Evidence:
    """Evidence from the tables `accuracy` and `bridge`, which may hold other origins and windows too, from
    those of the diagnostics, and from judged bands."""
    firms = whole_firms(con, relations)
    errors = accuracy[pd.to_datetime(accuracy["origin"]) == pd.Timestamp(design.origin)]
    errors = errors[errors["firm"].isin(firms["firm"])]
    reference = reference_of(errors["model"]) if len(errors) else None
    shown = [FULL_MODEL, *BENCHMARKS, *([reference] if reference else [])]
    windows = BridgeWindows.of(design)
    same = [
        pd.to_datetime(bridge[name]) == pd.Timestamp(day)
        for name, day in (("baseline_first", windows.baseline.first), ("target_first", windows.target.first))
    ]
    return Evidence(
        con=con,
        relations=relations,
        design=design,
        firms=firms,
        accuracy=errors,
        reference=reference,
        summary=compare(errors, firms, models=shown, reference=reference, resamples=0),
        bridges=bridge_errors(bridge[same[0] & same[1]], firms, models=shown),
        results=results or {},
        ranges=pd.DataFrame() if ranges is None else ranges,
    )
