"""Comparison of policies: over all firms, on the primary split, and on many re-randomised splits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from cbmt_core.arrays import Bools
from cbmt_core.diagnostics.routing.panel import RoutingPanel
from cbmt_core.diagnostics.routing.policy import Decision, decide
from cbmt_core.diagnostics.routing.rules import RULES
from cbmt_core.diagnostics.routing.splits import split
from cbmt_core.evaluation.paired import SEED
from cbmt_core.schema import DIAGNOSTIC_TABLES

__all__ = ["ALL", "NEEDED", "POLICIES", "PRIMARY", "RESPLIT", "RESPLITS", "RoutingStudy", "study"]


ALL, PRIMARY, RESPLIT = "all firms", "primary", "re-split"
RESPLITS = 100
NEEDED = 40
"""Minimum number of firms for learned rules: 28 for training, 12 held out."""
POLICIES = ("always_single_task", "always_cbmt", *(rule.name for rule in RULES), "oracle")


_POLICY, _CHOICE = (DIAGNOSTIC_TABLES[name].column_names for name in ("routing_policy", "routing_choice"))


@dataclass(frozen=True, eq=False)
class RoutingStudy:
    policies: pd.DataFrame
    """Rows of the table `routing_policy`."""
    choices: pd.DataFrame
    """Rows of the table `routing_choice`."""


def study(
    panel: RoutingPanel,
    *,
    resplits: int = RESPLITS,
    seed: int = SEED,
    on_split: Callable[[int, int], None] | None = None,
) -> RoutingStudy:
    """Compare the policies on the firms of `panel` that both models have forecast.

    With fewer than `NEEDED` of them only the fixed policies are compared. The rules of the primary split also choose
    for firms that have no holdout yet.
    """
    known, unscored = (panel.take(np.flatnonzero(rows)) for rows in (panel.scored, ~panel.scored))
    rows = _fixed(known, ALL, 0)
    choices = pd.DataFrame(columns=_CHOICE)
    if len(known.firms) >= NEEDED:
        for number in range(resplits + 1):
            training, held = (known.take(part) for part in split(known.industry, seed + number))
            others = held if number else held.joined(unscored)
            made = {rule.name: decide(rule, training, others, seed + number) for rule in RULES}
            sample = RESPLIT if number else PRIMARY
            rows += _fixed(held, sample, number)
            rows += [
                _row(held, sample, number, name, one.to_joint[: len(held.firms)], one.threshold)
                for name, one in made.items()
            ]
            if number == 0:
                parts = [_choices(training, held, unscored, name, one) for name, one in made.items()]
                choices = pd.concat(parts, ignore_index=True)
            if on_split is not None:
                on_split(number, resplits)
    return RoutingStudy(pd.DataFrame(rows, columns=_POLICY), choices)


def _fixed(panel: RoutingPanel, sample: str, number: int) -> list[dict[str, object]]:
    """Rows of the fixed policies, which are not learned."""
    n = len(panel.firms)
    if n == 0:
        return []
    to_joint = {
        "always_single_task": np.zeros(n, bool),
        "always_cbmt": np.ones(n, bool),
        "oracle": panel.joint_wins,
    }
    return [_row(panel, sample, number, name, chosen) for name, chosen in to_joint.items()]


def _row(
    panel: RoutingPanel, sample: str, number: int, policy: str, to_joint: Bools, threshold: float | None = None
) -> dict[str, object]:  # fmt: skip
    return {
        "sample": sample,
        "split": number,
        "policy": policy,
        "firms": len(to_joint),
        "smape": float(np.where(to_joint, panel.joint, panel.single).mean()),
        "to_cbmt": int(to_joint.sum()),
        "to_single_task": int((~to_joint).sum()),
        "threshold": threshold,
    }


def _choices(
    training: RoutingPanel, held: RoutingPanel, unscored: RoutingPanel, name: str, made: Decision
) -> pd.DataFrame:
    """A rule's choice for each firm, by a fit without that firm."""
    probability = np.concatenate([made.own, made.others])
    samples = (("training", training), ("held out", held), ("no holdout", unscored))
    return pd.DataFrame(
        {
            "firm": [firm for _, part in samples for firm in part.firms],
            "policy": name,
            "sample": [label for label, part in samples for _ in part.firms],
            "probability": probability,
            "threshold": made.threshold,
            "model": np.where(probability >= made.threshold, "cbmt", "single_task"),
        }
    )
