"""Shared by the steps of diagnostics across firms: reading their inputs and storing their row of `diagnostic`."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd

from cbmt_core.diagnostics.data import DiagnosticData, DiagnosticState, gather_diagnostics
from cbmt_core.errors import CbmtError
from cbmt_core.schema import DIAGNOSTIC_TABLES
from cbmt_pipeline.plan import Step
from cbmt_pipeline.work import Made, Work

__all__ = ["diagnostic_made", "diagnostic_step", "gathered"]

Tables = tuple[dict[str, pd.DataFrame], DiagnosticState]


def diagnostic_step(
    name: str,
    make: Callable[[Work], Made],
    description: str,
    tables: tuple[str, ...],
    *,
    needs: tuple[str, ...] = ("accuracy", "firm_measures"),
    code: tuple[str, ...],
    version: str = "1",
    **more: object,
) -> Step:
    """A step of one diagnostic across the firms of the study; it adds a row to `diagnostic`."""
    return Step(
        name=name,
        make=make,
        description=description,
        group="diagnostics",
        writes=(*(DIAGNOSTIC_TABLES[table] for table in tables), DIAGNOSTIC_TABLES["diagnostic"]),
        needs=needs,
        code=code,
        version=version,
        by_firm=False,
        purposes=("study",),
        sees_target=True,
        kinds=frozenset({"python", "duckdb"}),
        **more,  # type: ignore[arg-type]
    )


def gathered(work: Work) -> DiagnosticData:
    """The inputs of the diagnostics, from the lake."""
    lake, week = work.project.lake, work.at.week
    for table, asset in (("comovement_measure", "firm_measures"), ("firm", "firm")):
        if not lake.units(table):
            raise CbmtError(f"no firm has a {table} yet; materialise {asset} for some firms first")
    return gather_diagnostics(
        work.con,
        work.relations(),
        work.study,
        work.frame("accuracy"),
        measures=lake.relation(DIAGNOSTIC_TABLES["comovement_measure"], week),
        features=lake.relation(DIAGNOSTIC_TABLES["difficulty_feature"], week),
        history=lake.relation(DIAGNOSTIC_TABLES["firm_history"], week),
    )


def diagnostic_made(work: Work, made: Tables) -> Made:
    """The tables of one diagnostic and its row of `diagnostic`."""
    frames, state = made
    work.log(f"{state.diagnostic}: {state.note}")
    return Made(
        {**frames, "diagnostic": state.frame()},
        metadata={"firms": state.firms, "made": state.made, "note": state.note},
    )
