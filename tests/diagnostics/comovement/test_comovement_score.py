"""The score recovers a planted strength, applies to other firms, and keeps silent when firms are few."""

# ruff: noqa: PD011 (a score's `values` is a series, not an array)

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cbmt_core.diagnostics.comovement import MEASURES, MIN_FIRMS, comovement_score, fit_score, measures_of
from cbmt_core.simulate import Economy, sample_cohorts, truth_of

RISING = [name for name, measure in MEASURES.items() if measure.rises]


def firms_with(strength: np.ndarray, seed: int = 0) -> pd.DataFrame:
    """Measures that follow a strength with noise, as the registry says they should."""
    rng = np.random.default_rng(seed)
    sign = np.array([1.0 if measure.rises else 0.0 for measure in MEASURES.values()])
    values = np.outer(strength, sign) + rng.standard_normal((len(strength), len(MEASURES)))
    return pd.DataFrame(values, [f"firm {k}" for k in range(len(strength))], list(MEASURES))


@pytest.fixture
def strength() -> np.ndarray:
    return np.random.default_rng(1).standard_normal(80)


def test_score_is_the_first_component_in_standard_deviations(strength: np.ndarray) -> None:
    measures = firms_with(strength)
    score = comovement_score(measures)
    assert score.values.mean() == pytest.approx(0, abs=1e-9)
    assert score.values.std(ddof=0) == pytest.approx(1)
    assert (score.loadings**2).sum() == pytest.approx(1)
    # An independent computation: the largest eigenvalue of the columns' correlations.
    low, high = measures["tightness"].quantile([0.01, 0.99])
    largest = np.linalg.eigvalsh(measures.assign(tightness=measures["tightness"].clip(low, high)).corr())[-1]
    assert score.explained == pytest.approx(largest / 34)
    assert stats.pearsonr(score.values, strength).statistic > 0.9


def test_more_shared_structure_is_higher_whatever_the_sign_of_the_component(strength: np.ndarray) -> None:
    for seed in range(5):
        measures = firms_with(strength, seed)
        assert stats.spearmanr(comovement_score(measures).values, strength).statistic > 0.8
        assert stats.spearmanr(comovement_score(measures.iloc[::-1]).values[::-1], strength).statistic > 0.8


def test_units_of_a_measure_do_not_matter(strength: np.ndarray) -> None:
    measures = firms_with(strength)
    scaled = measures * np.random.default_rng(2).uniform(0.01, 100, len(MEASURES)) + 5
    pd.testing.assert_series_equal(comovement_score(scaled).values, comovement_score(measures).values)


def test_missing_values_count_as_the_median(strength: np.ndarray) -> None:
    measures = firms_with(strength)
    gap = measures.copy()
    gap.iloc[3, 4] = np.nan
    filled = gap.fillna(gap.median())
    pd.testing.assert_series_equal(comovement_score(gap).values, comovement_score(filled).values)


def test_an_extreme_tightness_is_winsorised(strength: np.ndarray) -> None:
    measures = firms_with(strength)
    extreme, more = measures.copy(), measures.copy()
    extreme.loc["firm 7", "tightness"], more.loc["firm 7", "tightness"] = -1e3, -1e6
    one, other = comovement_score(extreme), comovement_score(more)
    # The 1st percentile lies between the two lowest firms, so a little of the extreme remains.
    assert abs(one.values["firm 7"]) < 4
    assert one.model is not None
    assert one.model.columns.loc["tightness", "low"] > -1e3
    assert stats.spearmanr(one.values, other.values).statistic > 0.99


def test_a_firm_without_measures_has_no_score(strength: np.ndarray) -> None:
    measures = firms_with(strength)
    known = comovement_score(measures.drop(index="firm 5"))
    measures.loc["firm 5"] = np.nan
    score = comovement_score(measures)
    assert np.isnan(score.values["firm 5"])
    pd.testing.assert_series_equal(score.values.drop("firm 5"), known.values)
    assert score.firms == 79


def test_a_measure_that_never_varies_is_left_out(strength: np.ndarray) -> None:
    score = comovement_score(firms_with(strength).assign(granger=0.1, partial=np.nan))
    assert score.loadings[["granger", "partial"]].isna().all()
    assert score.values.notna().all()


def test_firms_of_a_held_out_fold_do_not_shape_the_score(strength: np.ndarray) -> None:
    measures = firms_with(strength)
    model = fit_score(measures[:60])
    wild = measures[60:] * 1e3
    alone, beside = model.values(measures[60:70]), model.values(pd.concat([measures[60:70], wild]))[:10]
    pd.testing.assert_series_equal(alone, beside)
    pd.testing.assert_series_equal(model.values(measures[:60]), comovement_score(measures[:60]).values)


def test_too_few_firms_are_said_so(strength: np.ndarray) -> None:
    score = comovement_score(firms_with(strength)[: MIN_FIRMS - 1])
    assert score.values.isna().all()
    assert score.model is None
    assert str(MIN_FIRMS) in score.note
    assert str(MIN_FIRMS - 1) in score.note
    assert comovement_score(firms_with(strength)[:MIN_FIRMS]).note == ""


@pytest.mark.slow
def test_score_recovers_the_hidden_strength_of_simulated_firms() -> None:
    economy = Economy(firms=60, seed=11)
    rows, truth = {}, {}
    for spec in economy.specs():
        panel = sample_cohorts(economy, spec).panel()
        rows[spec.name] = measures_of(panel.until(panel.design.origin), adjusted=True)
        truth[spec.name] = truth_of(economy, spec).comovement
    score = comovement_score(pd.DataFrame(rows).T)
    assert stats.spearmanr(score.values, pd.Series(truth)[score.values.index]).statistic >= 0.6
    # Nearly every measure that shared structure should raise does load that way.
    assert (score.loadings[RISING] > 0).mean() > 0.9
