"""Sentences about the results of the diagnostics, made from their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from cbmt_core.report.numbers import UNKNOWN, percent, value
from cbmt_core.report.rows import records
from cbmt_core.report.words import plural

__all__ = ["headline", "lead", "p_value"]

SURE = 0.05
"""p value below which an association is reported as such."""
RULES = ("logistic", "tree", "boosted")
FIXED = {"always_cbmt": "CBMT", "always_single_task": "single-task models"}
WORTH_IT = 0.1
"""Share of the gap to a perfect choice that a rule must close to be called better."""


def p_value(p: float | None) -> str:
    if p is None or p != p:
        return UNKNOWN
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def headline(shown: Mapping[str, pd.DataFrame], made: set[str]) -> str:
    if "routing" in made:
        policies = _by(shown["routing_resplits"], "policy")
        best = min(FIXED, key=lambda name: policies[name]["smape"])
        rule, closed = max(
            ((name, _closed(policies, best, name)) for name in RULES), key=lambda pair: pair[1]
        )
        if closed >= WORTH_IT:
            return (
                f"Choosing the model firm by firm pays: {policies[rule]['label'].lower()} closes "
                f"{percent(100 * closed, digits=0)} of the gap to a perfect choice"
            )
        return f"Deploy {FIXED[best]} for every firm: no rule that chooses between models does clearly better"
    if "difficulty" in made:
        return "How hard each firm is to forecast, predicted in advance"
    return "The diagnostics need more firms, or more forecasts"


def _closed(policies: Mapping[str, Mapping[str, Any]], fixed: str, rule: str) -> float:
    """Share of the gap between the better fixed policy and the oracle that a rule closes, over the re-splits."""
    gap = policies[fixed]["smape"] - policies["oracle"]["smape"]
    return float((policies[fixed]["smape"] - policies[rule]["smape"]) / gap) if gap > 0 else 0.0


def lead(shown: Mapping[str, pd.DataFrame], made: set[str]) -> list[str]:
    """A sentence or two for each diagnostic that could be made."""
    out = []
    rates = _by(shown["base_rates"], "policy")
    if rates:
        oracle, joint, single = rates["oracle"], rates["always_cbmt"], rates["always_single_task"]
        out.append(
            f"CBMT errs less than the single-task models for {oracle['to_cbmt']} of {plural(oracle['firms'], 'firm')}. "
            f"Mean error of total sales is {percent(joint['smape'])} with CBMT everywhere, "
            f"{percent(single['smape'])} with single-task models everywhere, and {percent(oracle['smape'])} if one "
            "knew the better of the two."
        )
    if "comovement" in made:
        out.append(_comovement(shown["comovement_tests"]))
    if "difficulty" in made:
        out.append(_difficulty(shown["predicted_difficulty"]))
    return [text for text in out if text]


def _comovement(rows: pd.DataFrame) -> str:
    tests = _by(rows, "test")
    for name in ("lpm_controls", "lpm"):
        row = tests.get(name, {})
        if row.get("estimate") is not None:
            break
    else:
        return ""
    held = ", scale, dispersion and industry held constant" if name == "lpm_controls" else ""
    points = f"{value(abs(100 * row['estimate']), 1)} percentage points"
    if row["p"] is None or row["p"] >= SURE:
        return (
            "Joint forecasting does not clearly win more often where a firm's drivers move together: a standard "
            f"deviation more of co-movement goes with {points} {'more' if row['estimate'] > 0 else 'fewer'} "
            f"wins{held}, which may be chance (p = {p_value(row['p'])})."
        )
    return (
        f"Joint forecasting wins {'more' if row['estimate'] > 0 else 'less'} often where a firm's drivers move "
        f"together: by {points} for a standard deviation of co-movement{held} (p {_equals(row['p'])})."
    )


def _equals(p: float) -> str:
    text = p_value(p)
    return text if text.startswith("<") else f"= {text}"


def _difficulty(rows: pd.DataFrame) -> str:
    known = rows.dropna(subset=["smape"])
    if known.empty:
        return ""
    own = known[known["model"] == known["model"].iloc[0]].set_index("band")
    low, high = (own["smape"].get(name) for name in ("low", "high"))
    if low is None or high is None:
        return ""
    name = str(own["label"].iloc[0])
    claim = (
        "Difficulty can be predicted in advance"
        if low < own["smape"].get("medium", low) < high
        else "Difficulty could not be predicted in advance"
    )
    return (
        f"{claim}: {name}'s error of cohort sales is {percent(low)} among the third of firms that "
        f"looked easiest at the origin and {percent(high)} among those that looked hardest."
    )


def _by(rows: pd.DataFrame, key: str) -> dict[str, dict[str, Any]]:
    return {row[key]: row for row in records(rows)}
