"""DiagnosticData: the input of the diagnostics across firms: errors, measures, features and histories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import pandas as pd

from cbmt_core.design import StudyDesign
from cbmt_core.evaluation import Relations, whole_firms
from cbmt_core.evaluation.comparison import NO_INDUSTRY
from cbmt_core.metrics import FULL

__all__ = ["DiagnosticData", "DiagnosticState", "gather_diagnostics"]


@dataclass(frozen=True)
class DiagnosticState:
    """A row of the table `diagnostic`: whether a diagnostic could be made, for how many firms, or why not."""

    diagnostic: str
    firms: int
    needed: int
    made: bool
    note: str

    def frame(self) -> pd.DataFrame:
        return pd.DataFrame([self])


@dataclass(frozen=True, eq=False)
class DiagnosticData:
    """Inputs of the diagnostics; segments are left out. Frames by firm are indexed by its name, all in the same
    order."""

    industry: pd.Series[str]
    errors: pd.DataFrame
    """[firm, (outcome, model)] SMAPE over the full holdout, NaN where there is none."""
    measures: pd.DataFrame
    """[firm, measure] of drivers in log(1 + x)."""
    adjusted_measures: pd.DataFrame
    """[firm, measure] of the same without slow movement and holidays."""
    features: pd.DataFrame
    """[firm, feature]"""
    controls: pd.DataFrame
    """[firm, scale and dispersion] of the years before the origin."""

    @property
    def models(self) -> set[str]:
        return set(self.errors.columns.get_level_values("model"))

    def lacking(self, models: Sequence[str]) -> list[str]:
        return [name for name in models if name not in self.models]

    def smape(self, outcome: str, model: str) -> pd.Series[float]:
        """By firm; all NaN for a model that has not run."""
        if (outcome, model) not in self.errors.columns:
            return pd.Series(float("nan"), self.errors.index)
        column: pd.Series[float] = self.errors[(outcome, model)]
        return column


def gather_diagnostics(
    con: duckdb.DuckDBPyConnection,
    relations: Relations,
    design: StudyDesign,
    accuracy: pd.DataFrame,
    *,
    measures: str = "comovement_measure",
    features: str = "difficulty_feature",
    history: str = "firm_history",
) -> DiagnosticData:
    """Gather the inputs for all firms with measures: errors at the design's origin, and tables of measures."""
    firms = whole_firms(con, relations).set_index("firm")
    measured, adjusted = (_wide(con, measures, "measure", value) for value in ("value", "adjusted"))
    featured = _wide(con, features, "feature", "value")
    known = firms.index.intersection(measured.index).intersection(featured.index)
    full = accuracy[
        (accuracy["horizon"] == FULL)
        & (pd.to_datetime(accuracy["origin"]) == pd.Timestamp(design.origin))
        & accuracy["firm"].isin(known)
    ]
    errors = full.pivot(index="firm", columns=["outcome", "model"], values="smape")  # noqa: PD010
    controls = con.execute(f"SELECT firm, scale, dispersion FROM {history}").df().set_index("firm")
    return DiagnosticData(
        industry=firms.loc[known, "industry"].fillna(NO_INDUSTRY),
        errors=errors.reindex(known),
        measures=measured.loc[known],
        adjusted_measures=adjusted.loc[known],
        features=featured.loc[known],
        controls=controls.reindex(known).astype(float),
    )


def _wide(con: duckdb.DuckDBPyConnection, relation: str, name: str, value: str) -> pd.DataFrame:
    """Pivot to one row for each firm and one column for each name."""
    rows = con.execute(f"SELECT firm, {name}, {value} AS value FROM {relation}").df()
    return rows.pivot(index="firm", columns=name, values="value").astype(float)  # noqa: PD010
