"""Check tables with their Great Expectations suites, with verdicts in plain words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import duckdb
import pandas as pd

from cbmt_core.config import QualityConfig
from cbmt_core.quality_suites import CHECKED_TABLES, FIRM, Facts
from cbmt_core.schema import TABLES
from cbmt_core.timeline import Timeline
from cbmt_core.transactions.orders import OrderCounts

__all__ = ["CHECKED_TABLES", "Facts", "TablesToCheck", "Verdict", "check_table", "check_tables"]

NOT_TRUE = "not true that"


@dataclass(frozen=True)
class Verdict:
    """The outcome of one suite on one firm's table."""

    table: str
    evaluated: int
    errors: tuple[str, ...] = ()
    """Failed expectations: the table must not be used."""
    warnings: tuple[str, ...] = ()
    """What a person should look at; the table is usable."""

    @property
    def passed(self) -> bool:
        return not self.errors


@dataclass(frozen=True)
class TablesToCheck:
    """A firm's tables to be checked.

    Args:
        con: the connection that holds them.
        relations: table -> its name on `con`.
    """

    con: duckdb.DuckDBPyConnection
    relations: Mapping[str, str]
    facts: Facts


def check_table(
    con: duckdb.DuckDBPyConnection,
    table: str,
    relations: dict[str, str],
    design: Timeline,
    limits: QualityConfig,
    counts: OrderCounts,
) -> Verdict:
    """Check one firm's table. `relations` maps each table to its name on `con`."""
    (verdict,) = check_tables(table, [TablesToCheck(con, relations, Facts(design, limits, counts))])
    return verdict


def check_tables(table: str, firms: Sequence[TablesToCheck]) -> list[Verdict]:
    """Check the same table of many firms, in their order.

    Running a suite costs far more than its rows. So the rows of all firms are checked together first; firms with a
    row that fails are then checked one by one, to word their verdicts.
    """
    query, _, suite = CHECKED_TABLES[table]
    verdicts: dict[int, Verdict] = {}
    frames: dict[int, pd.DataFrame] = {}
    for place, firm in enumerate(firms):
        if wrong := _wrong_columns(firm.con, table, firm.relations[table]):
            # With other columns the suite cannot run.
            verdicts[place] = Verdict(
                table, 1, (f"{NOT_TRUE} its columns and types are the declared ones: {wrong}",)
            )
        else:
            frames[place] = firm.con.execute(query(firm.relations, firm.facts)).df()
    groups: dict[object, list[int]] = {}
    for place, frame in frames.items():
        facts = firms[place].facts
        # Only firms with the same limits can be checked together. Firms without rows are checked alone, because
        # they add no row to a joint check.
        shared = (facts.design.panel.first, facts.design.panel.last, facts.limits) if len(frame) else place
        groups.setdefault(shared, []).append(place)
    for places in groups.values():
        promises = suite(_gx().expectations, replace(firms[places[0]].facts, firms=len(places)))
        suspect = set(places)
        if len(places) > 1:
            suspect = _with_failing_rows(table, promises, {place: frames[place] for place in places})
        evaluated = 1 + len(suite(_gx().expectations, firms[places[0]].facts))
        verdicts |= {place: Verdict(table, evaluated) for place in places if place not in suspect}
        verdicts |= {place: _judged(table, firms[place].facts, frames[place]) for place in suspect}
    return [verdicts[place] for place in range(len(firms))]


def _with_failing_rows(table: str, promises: list[Any], frames: Mapping[int, pd.DataFrame]) -> set[int]:
    """The firms with a failing row; all firms where an expectation does not report which rows failed."""
    together = pd.concat(
        [frame.assign(**{FIRM: place}) for place, frame in frames.items()], ignore_index=True
    )
    asked = {"result_format": "COMPLETE", "unexpected_index_column_names": [FIRM]}
    failing: set[int] = set()
    for item in _validated(table, promises, together, asked).results:
        if item.success:
            continue
        rows = item.result.get("unexpected_index_list")
        if not rows:
            return set(frames)
        failing |= {row[FIRM] for row in rows}
    return failing


def _judged(table: str, facts: Facts, frame: pd.DataFrame) -> Verdict:
    _, rows_named_by, suite = CHECKED_TABLES[table]
    asked = {
        "result_format": "SUMMARY",
        "unexpected_index_column_names": rows_named_by,
        "partial_unexpected_count": 3,
    }
    results = _validated(table, suite(_gx().expectations, facts), frame, asked).results
    errors: list[str] = []
    warnings: list[str] = []
    for item in results:
        if not item.success:
            words = _in_words(item, rows_named_by)
            (warnings if item.expectation_config.severity == "warning" else errors).append(words)
    return Verdict(table, 1 + len(results), tuple(sorted(errors)), tuple(sorted(warnings)))


def _validated(table: str, promises: list[Any], frame: pd.DataFrame, result_format: dict[str, Any]) -> Any:
    suite = _gx().ExpectationSuite(name=table, expectations=promises)
    batch = _batch().get_batch(batch_parameters={"dataframe": frame})
    return batch.validate(suite, result_format=result_format)


def _wrong_columns(con: duckdb.DuckDBPyConnection, table: str, relation: str) -> str:
    """How the relation's columns differ from the declared ones, in words; empty when they do not."""
    expected = {column.name: column.type for column in TABLES[table].columns}
    found = dict(
        con.execute(f"SELECT column_name, column_type FROM (DESCRIBE SELECT * FROM {relation})").fetchall()
    )
    words = [f"{name} is missing" for name in expected if name not in found]
    words += [f"{name} is not declared" for name in found if name not in expected]
    words += [
        f"{name} is {found[name]}, not {kind}"
        for name, kind in expected.items()
        if name in found and found[name] != kind
    ]
    if not words and list(found) != list(expected):
        words = [f"their order is {', '.join(found)}"]
    return "; ".join(words)


@cache
def _gx() -> Any:
    """Great Expectations, imported when first needed because the import takes seconds."""
    import great_expectations

    return great_expectations


@cache
def _batch() -> Any:
    context = _gx().get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False, "metric_calculations": False}
    asset = context.data_sources.add_pandas("memory").add_dataframe_asset("table")
    return asset.add_batch_definition_whole_dataframe("whole")


def _in_words(item: Any, rows_named_by: list[str]) -> str:
    says = item.expectation_config.meta["says"]
    found = item.result
    if item.exception_info.get("raised_exception") or not found:
        return f"{NOT_TRUE} {says}: it could not be evaluated"
    if "unexpected_count" not in found:
        return f"{NOT_TRUE} {says}: found {found.get('observed_value')}"
    if not rows_named_by:
        values = found["partial_unexpected_list"]
        shown = ", ".join(f"{value:.4g}" if isinstance(value, float) else str(value) for value in values)
        return f"{NOT_TRUE} {says}: found {shown}{_remedy(item.expectation_config.meta, values)}"
    where = "; ".join(
        ", ".join(f"{name} {row[name]:%Y-%m-%d}" for name in rows_named_by)
        for row in found.get("partial_unexpected_index_list", [])
    )
    return (
        f"{NOT_TRUE} {says}: {found['unexpected_count']} of {found['element_count']} rows, "
        f"such as {where} (found {', '.join(map(str, found['partial_unexpected_list']))})"
    )


def _remedy(meta: dict[str, Any], values: list[Any]) -> str:
    """Which setting to change, and the value that would pass."""
    if not meta["setting"]:
        return ""
    name, value = meta["setting"]
    passing = values[0] if meta["passing"] is None else meta["passing"]
    if not passing:
        return f" ([quality] {name} = {value:g} in cbmt.toml)"
    return f" ([quality] {name} = {value:g} in cbmt.toml; {passing:g} would pass)"
