"""A rule as a policy: out-of-fold probabilities, the threshold chosen from them, and the decisions for held-out
firms."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from sklearn.model_selection import KFold

from cbmt_core.arrays import Bools, Floats
from cbmt_core.diagnostics.routing.panel import RoutingPanel
from cbmt_core.diagnostics.routing.rules import Rule, win_probability

__all__ = ["FOLDS", "Decision", "best_threshold", "decide"]


FOLDS = 5


@dataclass(frozen=True, eq=False)
class Decision:
    """A rule's decisions for held-out firms, with the threshold it learned."""

    threshold: float
    """Firms whose probability is lower get the single-task model."""
    own: Floats
    """Out-of-fold probabilities of the firms it was learned from."""
    others: Floats
    """Probabilities of the other firms."""

    @property
    def to_joint(self) -> Bools:
        return self.others >= self.threshold


def decide(rule: Rule, training: RoutingPanel, others: RoutingPanel, seed: int) -> Decision:
    """Learn the rule and its threshold from `training` and apply both, once, to `others`.

    A firm's probability depends neither on the errors of `others` nor on the inputs of other firms among them.
    """
    inputs, wins = training.inputs, training.joint_wins
    own = np.empty(len(wins))
    for fitting, validation in KFold(FOLDS, shuffle=True, random_state=seed).split(inputs):
        own[validation] = win_probability(rule, inputs[fitting], wins[fitting], inputs[validation], seed)
    return Decision(
        threshold=best_threshold(own, training.joint, training.single),
        own=own,
        others=win_probability(rule, inputs, wins, others.inputs, seed),
    )


def best_threshold(probability: Floats, joint: Floats, single: Floats) -> float:
    """The threshold with the lowest mean error, when firms below it get the single-task model. Of equally good ones
    it is the lowest, which leaves the most firms with the joint model: 0 leaves all of them, infinity none.
    """
    order = np.argsort(probability, kind="stable")
    p = probability[order]
    gain = np.concatenate([[0.0], np.cumsum((single - joint)[order])])
    # A cut lies between two different probabilities, below all, or above all.
    possible = np.concatenate([[True], p[1:] > p[:-1], [True]])
    # Sums that differ only by rounding count as equal.
    k = int(np.argmin(np.where(possible, np.round(gain, 9), np.inf)))
    if k == 0:
        return 0.0
    return math.inf if k == len(p) else float((p[k - 1] + p[k]) / 2)
