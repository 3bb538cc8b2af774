"""The learned rules: classifier pipelines of which every part is fitted on the training firms alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from cbmt_core.arrays import Bools, Floats

__all__ = ["RULES", "Rule", "win_probability"]


@dataclass(frozen=True)
class Rule:
    """A classifier of firms where the joint model wins; its settings are the same in every split."""

    name: str
    classifier: Callable[[int], Any]
    """Makes the classifier from a seed."""
    every_measure: bool
    """Whether its inputs include the single measures, not only their common score."""

    def chain(self, measures: int, seed: int) -> Pipeline:
        """Medians, scales, the score (first principal component) and the classifier, to be fitted together."""
        own, context = slice(0, measures), slice(measures, measures + 2)
        parts = [("score", make_pipeline(_median(), StandardScaler(), PCA(1, svd_solver="full")), own)]
        parts += [("measures", _median(), own)] if self.every_measure else []
        parts += [("context", _median(), context)]
        return make_pipeline(ColumnTransformer(parts), StandardScaler(), self.classifier(seed))


def _median() -> SimpleImputer:
    return SimpleImputer(strategy="median", keep_empty_features=True)


RULES = (
    Rule("logistic", lambda _: LogisticRegression(), every_measure=False),
    Rule(
        "tree",
        lambda seed: DecisionTreeClassifier(max_depth=3, min_samples_leaf=10, random_state=seed),
        every_measure=True,
    ),
    Rule(
        "boosted",
        lambda seed: GradientBoostingClassifier(
            n_estimators=100, learning_rate=0.05, max_depth=2, subsample=0.5, max_features="sqrt", random_state=seed
        ),
        every_measure=True,
    ),
)  # fmt: skip
"""Inputs and kinds as in Web App. "Model Selection for Deployment"; settings the paper leaves open are ours."""


def win_probability(rule: Rule, inputs: Floats, wins: Bools, others: Floats, seed: int) -> Floats:
    """Probability that the joint model wins for the firms `others`, learned from `inputs` and `wins` alone."""
    if wins.all() or not wins.any():
        return np.full(len(others), float(wins.all()))
    fitted = rule.chain(inputs.shape[1] - 2, seed).fit(inputs, wins)
    chances: Floats = fitted.predict_proba(others)[:, 1]
    return chances
