"""Automation conditions of the assets."""

from __future__ import annotations

import functools
import operator
from typing import Any

import dagster as dg

from cbmt_pipeline.plan import Plan, Step

__all__ = ["condition_of"]

Condition = dg.AutomationCondition
AnyCondition = dg.AutomationCondition[Any]

_NEWS: AnyCondition = Condition.newly_missing() | Condition.any_deps_updated()
_BEHIND = _NEWS.since_last_handled().with_label(
    "something it is made from was updated since it was last asked for"
)
_QUIET = ~Condition.any_deps_in_progress() & ~Condition.in_progress()

# Across firms: once after all of them, without waiting for missing firms, which may be broken.
ACROSS = (_BEHIND & _QUIET).with_label("after the firms")

# New weeks do not affect a study or backtest at an earlier week, so they start no run of it.
_NEW_CODE: AnyCondition = Condition.newly_missing() | Condition.code_version_changed()
ONCE = (_NEW_CODE.since_last_handled() & _QUIET & ~Condition.any_deps_missing()).with_label(
    "for new firms and new code"
)


def condition_of(plan: Plan, step: Step) -> AnyCondition | None:
    """The condition that follows from what a step is; none for the data tables, which sensors ask for firm by firm."""
    if step.stale or step.assets:
        return None
    if not step.by_firm:
        return ACROSS
    if step.purposes and "live" not in step.purposes:
        return ONCE
    own, across = _kinds_of_needs(plan, step)
    behind = _updated(own) & _updated(across) if across else _updated(own)
    new = Condition.newly_missing().since_last_handled()
    return ((behind | new) & _QUIET & ~Condition.any_deps_missing()).with_label("with new data of the firm")


def _kinds_of_needs(plan: Plan, step: Step) -> tuple[list[str], list[str]]:
    """A step's needs of the same firm and across firms: both must be new, otherwise a firm is made twice a week."""
    (needs,) = plan.edges(step).values()
    across = [asset for other in plan.needed(step) if not other.by_firm for asset in other.asset_needs]
    return [asset for asset in needs if asset not in across], [asset for asset in needs if asset in across]


def _updated(assets: list[str]) -> AnyCondition:
    # Not any_deps_updated().allow(...): Dagster stores the state of two such conditions under one name.
    one: list[AnyCondition] = [
        Condition.asset_matches(dg.AssetKey(asset), Condition.newly_updated()) for asset in assets
    ]
    return functools.reduce(operator.or_, one).since_last_handled()
