"""Routing: policies follow from errors, rules find what is planted, and nothing of held-out firms reaches a rule."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from cbmt_core.diagnostics.routing import (
    ALL,
    NEEDED,
    POLICIES,
    PRIMARY,
    RESPLIT,
    RULES,
    RoutingPanel,
    best_threshold,
    decide,
    split,
    strata,
    study,
)
from cbmt_core.diagnostics.routing.policy import Decision
from cbmt_core.diagnostics.routing.study import _choices


def panel_of(n: int, *, signal: float = 0.0, seed: int = 3, measures: int = 6) -> RoutingPanel:
    """Firms with one hidden strength behind all measures; the joint model gains by `signal` times it."""
    rng = np.random.default_rng(seed)
    strength = rng.standard_normal(n)
    seen = strength[:, None] + 0.5 * rng.standard_normal((n, measures))
    seen[rng.random(seen.shape) < 0.05] = np.nan
    joint = 10 + 5 * rng.random(n)
    return RoutingPanel(
        firms=[f"f{k:03d}" for k in range(n)],
        industry=[f"i{k % 4}" for k in range(n)],
        measures=seen,
        log_orders=rng.normal(9, 1, n),
        volatility=rng.random(n),
        joint=joint,
        single=joint + rng.standard_normal(n) + signal * strength,
    )


def errors_of(frame, sample, split=0):
    rows = frame[(frame["sample"] == sample) & (frame["split"] == split)]
    return rows.set_index("policy")["smape"]


def test_the_published_base_rates_follow_from_the_published_wins_and_losses():
    # 718 wins by 7.74 points and 248 losses by 2.69 give 15.48, 20.54 and 14.79.
    wins = np.arange(966) < 718
    panel = replace(
        panel_of(966),
        joint=np.full(966, 15.48),
        single=15.48 + np.where(wins, 7.74, -2.69),
    )
    rows = study(panel, resplits=0).policies
    rows = rows[rows["sample"] == ALL]
    errors = errors_of(rows, ALL)
    assert errors["always_cbmt"] == pytest.approx(15.48)
    assert errors["always_single_task"] == pytest.approx(20.54, abs=0.006)
    assert errors["oracle"] == pytest.approx(14.79, abs=0.006)
    oracle = rows.set_index("policy").loc["oracle"]
    assert (oracle["to_cbmt"], oracle["to_single_task"]) == (718, 248)


def test_the_split_of_966_firms_is_the_published_one_and_keeps_industries_in_proportion():
    industry = [f"i{k % 23}" for k in range(950)] + ["rare"] * 9 + ["rarer"] * 7
    training, held = split(industry, 1)
    assert (len(training), len(held)) == (676, 290)
    assert sorted([*training, *held]) == list(range(966))
    groups = strata(industry)
    assert {"rare", "rarer"}.isdisjoint(groups)
    share = {name: count / 966 for name, count in Counter(groups).items()}
    drawn = Counter(groups[k] for k in held)
    assert all(abs(drawn[name] - 290 * part) <= 1 for name, part in share.items())
    assert not np.array_equal(held, split(industry, 2)[1])


@pytest.mark.parametrize("industry", [["a"] * 40 + ["b"], ["a"] * 3 + ["b"] * 4, ["a"] * 12])
def test_every_panel_can_be_split(industry):
    training, held = split(industry, 0)
    assert len(held) == math.ceil(0.3 * len(industry))
    assert not set(training) & set(held)


@pytest.mark.parametrize("seed", range(20))
def test_the_threshold_is_the_best_of_all_there_are(seed):
    rng = np.random.default_rng(seed)
    p = rng.integers(0, 6, 12) / 5
    joint, single = rng.random(12), rng.random(12)

    def error(threshold):
        return np.where(p >= threshold, joint, single).mean()

    found = best_threshold(p, joint, single)
    assert error(found) == pytest.approx(min(error(t) for t in (*np.unique(p), 0.0, math.inf)))


def test_a_threshold_that_gains_nothing_leaves_every_firm_with_the_joint_model():
    p, joint = np.linspace(0, 1, 9), np.full(9, 5.0)
    assert best_threshold(p, joint, joint) == 0.0
    assert best_threshold(p, joint, joint + 1) == 0.0
    assert best_threshold(p, joint, joint - 1) == math.inf


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_planted_strength_is_found(rule):
    panel = panel_of(240, signal=4.0)
    training, held = (panel.take(rows) for rows in split(panel.industry, 1))
    made = decide(rule, training, held, seed=1)
    policy = np.where(made.to_joint, held.joint, held.single).mean()
    fixed, oracle = min(held.joint.mean(), held.single.mean()), np.minimum(held.joint, held.single).mean()
    # At least half of what perfect foresight would gain.
    assert policy < (fixed + oracle) / 2


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_column_that_copies_the_outcome_of_held_out_firms_is_of_no_use(rule):
    panel = panel_of(240)
    kept, held = split(panel.industry, 1)
    rng = np.random.default_rng(0)
    gains = []
    for seed in range(5):
        spy = rng.standard_normal(240)
        spy[held] = np.where(panel.joint_wins[held], 3.0, -3.0)
        spied = replace(panel, measures=np.column_stack([panel.measures, spy]))
        made = decide(rule, spied.take(kept), spied.take(held), seed)
        others = panel.take(held)
        policy = np.where(made.to_joint, others.joint, others.single).mean()
        gains.append(min(others.joint.mean(), others.single.mean()) - policy)
    possible = min(others.joint.mean(), others.single.mean()) - np.minimum(others.joint, others.single).mean()
    assert np.mean(gains) < 0.2 * possible
    # The same column known for all firms is a perfect guide: the check above can fail.
    informed = replace(panel, measures=np.where(panel.joint_wins, 3.0, -3.0)[:, None])
    made = decide(rule, informed.take(kept), informed.take(held), 0)
    assert np.array_equal(made.to_joint, panel.joint_wins[held])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_held_out_firms_teach_a_rule_nothing(rule):
    panel = panel_of(120, signal=1.0)
    training, held = (panel.take(rows) for rows in split(panel.industry, 1))
    made = decide(rule, training, held, seed=1)
    # Their errors have no part in anything.
    blind = decide(rule, training, replace(held, joint=held.single, single=held.joint), seed=1)
    assert np.array_equal(made.others, blind.others)
    assert made.threshold == blind.threshold
    # Nor have one firm's inputs in another's probability, as an imputation or a scale learned there would.
    wild = held.measures.copy()
    wild[0], wild[1] = 1e6, np.nan
    mixed = decide(rule, training, replace(held, measures=wild), seed=1)
    assert np.array_equal(made.others[2:], mixed.others[2:])
    assert np.array_equal(made.own, mixed.own)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_out_of_fold_probabilities_do_not_see_their_own_outcome(rule):
    panel = panel_of(60, signal=1.0)
    made = decide(rule, panel, panel.take(np.arange(2)), seed=1)
    flipped = replace(panel, joint=panel.joint.copy(), single=panel.single.copy())
    flipped.joint[7], flipped.single[7] = panel.single[7], panel.joint[7]
    assert decide(rule, flipped, panel.take(np.arange(2)), seed=1).own[7] == made.own[7]


def test_a_study_has_a_row_for_every_split_and_policy_and_repeats():
    panel = panel_of(60, signal=2.0)
    heard = []
    made = study(panel, resplits=2, seed=5, on_split=lambda k, n: heard.append((k, n)))
    assert heard == [(0, 2), (1, 2), (2, 2)]
    keys = set(made.policies[["sample", "split", "policy"]].itertuples(index=False, name=None))
    fixed = ("always_single_task", "always_cbmt", "oracle")
    learned = {(s, k, policy) for s, k in ((PRIMARY, 0), (RESPLIT, 1), (RESPLIT, 2)) for policy in POLICIES}
    assert keys == {(ALL, 0, policy) for policy in fixed} | learned
    assert (made.policies["to_cbmt"] + made.policies["to_single_task"] == made.policies["firms"]).all()
    best = made.policies.groupby(["sample", "split"])["smape"].transform("min")
    oracle = made.policies["policy"] == "oracle"
    assert np.array_equal(made.policies.loc[oracle, "smape"], best[oracle])
    again = study(panel, resplits=2, seed=5)
    assert made.policies.equals(again.policies)
    assert made.choices.equals(again.choices)


def test_too_few_firms_learn_no_rule():
    made = study(panel_of(NEEDED - 1))
    assert set(made.policies["policy"]) == {"always_single_task", "always_cbmt", "oracle"}
    assert made.choices.empty
    assert study(panel_of(0)).policies.empty


def test_a_firm_without_a_holdout_gets_a_choice_and_has_no_part_in_the_rules():
    panel = panel_of(60, signal=2.0)
    young = panel_of(3, seed=8)
    young = replace(young, firms=["new1", "new2", "new3"], joint=np.full(3, np.nan))
    alone, together = (study(one, resplits=0).choices for one in (panel, panel.joined(young)))
    new = together[together["sample"] == "no holdout"]
    assert sorted(set(new["firm"])) == ["new1", "new2", "new3"]
    assert len(new) == 3 * len(RULES)
    rest = together[together["sample"] != "no holdout"].reset_index(drop=True)
    assert rest.equals(alone)


def test_one_class_among_the_training_firms_is_no_error():
    panel = panel_of(60)
    made = study(replace(panel, single=panel.joint + 1), resplits=0)
    assert set(errors_of(made.policies, PRIMARY).drop("always_single_task")) == {
        errors_of(made.policies, PRIMARY)["oracle"]
    }
    assert set(made.choices["model"]) == {"cbmt"}


def test_a_probability_at_the_threshold_gets_the_joint_model():
    """As in the search for the threshold, which counts such a firm among those of the joint model."""
    made = Decision(threshold=0.5, own=np.array([0.5, 0.4]), others=np.array([0.4, 0.5, 0.6]))
    assert made.to_joint.tolist() == [False, True, True]
    first, second = panel_of(2), replace(panel_of(3), firms=["x", "y", "z"])
    chosen = _choices(first, second, second.take(np.array([], int)), "logistic", made)
    assert chosen["model"].tolist() == ["cbmt", "single_task", "single_task", "cbmt", "cbmt"]


def test_the_joint_model_wins_by_a_strictly_lower_error():
    panel = replace(panel_of(3), joint=np.array([1.0, 2.0, 3.0]), single=np.array([2.0, 2.0, 2.0]))
    assert panel.joint_wins.tolist() == [True, False, False]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_what_only_the_size_of_a_firm_tells_is_found(rule):
    panel = panel_of(240)
    panel = replace(panel, single=panel.joint + 4 * (panel.log_orders - panel.log_orders.mean()))
    training, held = (panel.take(rows) for rows in split(panel.industry, 1))
    made = decide(rule, training, held, seed=1)
    assert (made.to_joint == held.joint_wins).mean() > 0.9


def test_the_settings_of_the_rules_are_those_that_the_documents_name():
    _, tree, boosted = (rule.classifier(0).get_params() for rule in RULES)
    assert (tree["max_depth"], tree["min_samples_leaf"]) == (3, 10)
    names = ("n_estimators", "learning_rate", "max_depth", "subsample", "max_features")
    assert tuple(boosted[name] for name in names) == (100, 0.05, 2, 0.5, "sqrt")


def test_a_resplit_is_the_primary_split_of_the_seed_after():
    panel = panel_of(60, signal=2.0)
    later = errors_of(study(panel, resplits=1, seed=5).policies, RESPLIT, 1)
    assert later.equals(errors_of(study(panel, resplits=0, seed=6).policies, PRIMARY))
