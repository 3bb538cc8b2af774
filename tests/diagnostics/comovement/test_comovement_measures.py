"""Every measure of co-movement sees what it is meant to see, and nothing in noise."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import pytest
from helpers.planted_drivers import CASES, WEEKS, firm_with
from scipy import stats
from statsmodels import api as sm

from cbmt_core.design import StudyDesign
from cbmt_core.diagnostics.comovement import GROUPS, MEASURES, measures_of, measures_table
from cbmt_core.simulate import Economy, sample_cohorts

SEEDS = range(4)


@dataclass(frozen=True)
class Promise:
    """Means over planted firms: `null` holds in noise and in every case of `blind`; the cases of `sees`
    exceed their bound."""

    null: tuple[float, float]
    sees: dict[str, float] = field(default_factory=dict)
    blind: tuple[str, ...] = ("first_orders",)


SAME_WEEK = ("lagged", "square")
LAG = ("square",)
# Bounds of noise: |r| of 118 independent weeks is 0.07 on average, the largest of 9 lags 0.17 (normal law);
# a third of the variance belongs to any component, plus what the search for lags finds.
PROMISES = {
    "pearson": Promise((0, 0.14), {"shared": 0.6, "opposed": 0.3}, SAME_WEEK),
    "pearson_max": Promise((0, 0.22), {"shared": 0.7, "opposed": 0.8}, SAME_WEEK),
    "spearman": Promise((0, 0.14), {"shared": 0.6, "opposed": 0.3}, SAME_WEEK),
    "partial": Promise((0, 0.14), {"shared": 0.35, "opposed": 0.25}, SAME_WEEK),
    "max_lead_lag_short": Promise((0, 0.22), {"shared": 0.6, "lagged": 0.6, "opposed": 0.35}, LAG),
    "max_lead_lag_long": Promise((0, 0.26), {"shared": 0.6, "lagged": 0.6, "opposed": 0.35}, LAG),
    "decay_weighted_lag": Promise((0, 0.095), {"shared": 0.14, "lagged": 0.11}, LAG),
    "acquisition_to_orders": Promise((0, 0.22), {"lagged": 0.6}, ("shared", "square")),
    "acquisition_to_spend": Promise((0, 0.24), {"lagged": 0.6}, ("shared", "square")),
    "cohort_directional": Promise((0, 0.2), {"lagged": 0.4}, ("shared", "square")),
    "tenure_coupling": Promise((0, 0.25), {"shared": 0.6, "lagged": 0.6, "opposed": 0.33}, LAG),
    "mutual_information": Promise((0, 0.3), {"shared": 0.65, "lagged": 0.65, "square": 0.45}),
    "distance_correlation": Promise((0, 0.26), {"shared": 0.6, "lagged": 0.6, "square": 0.32}),
    "kernel_dependence": Promise((0, 0.06), {"shared": 0.3, "lagged": 0.25, "square": 0.12}),
    "tail_upper": Promise((0.1, 0.3), {"shared": 0.5, "lagged": 0.45, "square": 0.35}),
    "tail_lower": Promise((0.1, 0.3), {"shared": 0.5, "lagged": 0.45}),
    "incremental_prediction": Promise((0, 0.03), {"lagged": 0.25}, ("shared", "square")),
    "granger": Promise((0, 0.08), {"lagged": 0.3}, ("shared", "square")),
    "transfer_entropy": Promise((-0.03, 0.04), {"lagged": 0.07}, ("shared", "square")),
    "spillover": Promise((0, 0.12), {"shared": 0.4, "lagged": 0.3, "opposed": 0.2}, LAG),
    "shared_covariance": Promise((0, 0.24), {"shared": 0.6, "lagged": 0.6, "opposed": 0.6}, LAG),
    "generalised_variance": Promise((0, 0.2), {"shared": 0.7, "lagged": 0.7, "opposed": 0.6}, LAG),
    "offsetting_errors": Promise((-0.3, 0.3), {"opposed": 0.45}, ("square",)),
    "principal_share": Promise((1 / 3, 0.5), {"shared": 0.75, "lagged": 0.75, "opposed": 0.6}, LAG),
    "factor_share": Promise((0, 0.4), {"shared": 0.65, "lagged": 0.65, "opposed": 0.5}, LAG),
    "spike_coincidence": Promise((-0.15, 0.15), {"spikes": 0.6}, LAG),
    "coherence_slow": Promise((0, 0.32), {"shared": 0.5, "lagged": 0.5}, LAG),
    "coherence_fast": Promise((0, 0.22), {"shared": 0.45, "lagged": 0.45, "opposed": 0.3}, LAG),
    "rolling_stability": Promise((0, 0.22), {"shared": 0.55, "lagged": 0.55, "opposed": 0.3}, LAG),
    "order_spend_coupling": Promise((0, 0.05), {"cohorts": 0.9}, ("shared", "lagged", "square")),
    "acquisition_dispersion_orders": Promise((0, 0.25), {"cohorts": 0.3, "shared": 0.4}, LAG),
    "acquisition_dispersion_spend": Promise((0, 0.25), {"cohorts": 0.3}, LAG),
    "young_cohorts": Promise((0, 0.25), {"shared": 0.6, "lagged": 0.6, "opposed": 0.33}, LAG),
    "tightness": Promise((-0.2, 0.3), {"first_orders": 0.98}, ("lagged", "square")),
}


@pytest.fixture(scope="module")
def found() -> pd.DataFrame:
    """[measure, case] means over planted firms."""
    cases = {
        name: pd.DataFrame([measures_of(make(np.random.default_rng(seed)), adjusted=True) for seed in SEEDS])
        for name, make in CASES.items()
    }
    assert not any(frame.isna().any(axis=None) for frame in cases.values())
    return pd.DataFrame({name: frame.mean() for name, frame in cases.items()})


def test_registry_is_the_papers_table() -> None:
    table = measures_table()
    assert len(table) == len(MEASURES) == 34
    families = table.drop_duplicates("number")
    assert families["number"].tolist() == list(range(1, 29))
    assert table.groupby("number")["family"].nunique().eq(1).all()
    # Families of the paper's eight groups.
    assert families.groupby("group").size().reindex(list(GROUPS)).tolist() == [3, 3, 2, 4, 4, 5, 6, 1]
    assert table[["formula", "reference"]].map(len).gt(3).all(axis=None)
    assert set(PROMISES) == set(MEASURES)


@pytest.mark.parametrize("name", PROMISES)
def test_measure_sees_what_was_planted_and_only_that(name: str, found: pd.DataFrame) -> None:
    promise, row = PROMISES[name], found.loc[name]
    low, high = promise.null
    for case in ("noise", *promise.blind):
        assert low <= row[case] <= high, f"{case}: {row[case]:.3f}"
    assert promise.sees
    for case, least in promise.sees.items():
        assert least > high
        assert row[case] >= least, f"{case}: {row[case]:.3f}"


def test_shared_shocks_add_errors_up(found: pd.DataFrame) -> None:
    assert found.loc["offsetting_errors", "shared"] < -1  # three equal errors would give -2


def test_correlations_are_those_of_scipy() -> None:
    panel = CASES["shared"](np.random.default_rng(3))
    repeat = np.nansum(panel.size[:, None] * panel.R, axis=0)
    ropc = repeat / (panel.born * panel.size[:, None]).sum(axis=0)
    x = np.log1p(pd.DataFrame({"a": panel.A, "r": ropc, "v": panel.S / panel.orders.sum(axis=0)}))
    pairs = [("a", "r"), ("a", "v"), ("r", "v")]
    kept = measures_of(panel)
    pearson = [abs(stats.pearsonr(x[i], x[j]).statistic) for i, j in pairs]
    assert kept["pearson"] == pytest.approx(np.mean(pearson))
    assert kept["pearson_max"] == pytest.approx(max(pearson))
    spearman = [abs(stats.spearmanr(x[i], x[j]).statistic) for i, j in pairs]
    assert kept["spearman"] == pytest.approx(np.mean(spearman))
    # Without slow movement and holidays: first the moving mean, then one regression on what is left of both.
    calendar = pd.DataFrame(panel.calendar().holiday)
    calendar = calendar.loc[:, calendar.any()].T.drop_duplicates().T
    slow = [frame.rolling(27, center=True, min_periods=1).mean() for frame in (x, calendar)]
    moving = x - slow[0]
    moving = moving.apply(lambda y: sm.OLS(y, sm.add_constant(calendar - slow[1])).fit().resid)
    without = [abs(stats.pearsonr(moving[i], moving[j]).statistic) for i, j in pairs]
    assert measures_of(panel, adjusted=True)["pearson"] == pytest.approx(np.mean(without))


def test_long_lags_are_seen_by_the_long_window_alone() -> None:
    rng = np.random.default_rng(4)
    common = rng.standard_normal(WEEKS + 22)
    panel = firm_with(common[22:], common[11:-11], common[:-22], rng)  # eleven weeks apart
    got = measures_of(panel, adjusted=True)
    assert got["max_lead_lag_short"] < 0.3
    assert got["max_lead_lag_long"] > 0.5  # acquisition and spend are 22 weeks apart


def test_trends_alone_are_no_co_movement() -> None:
    rng = np.random.default_rng(5)
    slope = np.linspace(-3, 3, WEEKS)
    panel = firm_with(*(slope + rng.standard_normal((3, WEEKS))), rng)
    assert measures_of(panel)["pearson"] > 0.5
    assert measures_of(panel, adjusted=True)["pearson"] < 0.2


def test_holidays_alone_are_no_co_movement() -> None:
    rng = np.random.default_rng(5)
    empty = CASES["noise"](rng)
    feast = 5 * empty.calendar().holiday[:, empty.calendar().holiday_names.index("Black Friday")]
    assert feast.sum() == 10  # two of them
    panel = firm_with(*(feast + 0.5 * rng.standard_normal((3, WEEKS))), rng)
    assert measures_of(panel)["pearson"] > 0.5
    assert measures_of(panel, adjusted=True)["pearson"] < 0.2


def test_coherence_knows_slow_from_fast() -> None:
    rng = np.random.default_rng(6)
    t = np.arange(WEEKS)
    slow = 2 * np.cos(2 * np.pi * t / 13) + 2 * np.cos(2 * np.pi * t / 9 + 1)
    got = measures_of(firm_with(*(slow + rng.standard_normal((3, WEEKS))), rng))
    assert got["coherence_slow"] > got["coherence_fast"] + 0.3


def test_a_relation_that_turns_around_is_not_steady() -> None:
    rng = np.random.default_rng(7)
    common = rng.standard_normal(WEEKS)
    turning = common * np.where(np.arange(WEEKS) < WEEKS / 2, 1, -1)
    steady, turned = (
        measures_of(firm_with(common, other, other, rng), adjusted=True)["rolling_stability"]
        for other in (common, turning)
    )
    assert steady > 2 * turned


def test_spikes_in_other_weeks_do_not_coincide() -> None:
    rng = np.random.default_rng(8)
    x = 0.3 * rng.standard_normal((3, WEEKS))
    weeks = rng.permutation(np.arange(5, WEEKS - 5, 4))[:24].reshape(3, 8)
    np.put_along_axis(x, weeks, 4, axis=1)
    assert measures_of(firm_with(*x, rng), adjusted=True)["spike_coincidence"] < 0.35


def test_nothing_after_the_origin_matters() -> None:
    economy = Economy(firms=3, seed=5)
    panel = sample_cohorts(economy, economy.specs()[1]).panel()
    later = panel.weeks > np.datetime64(panel.design.origin)
    assert later.sum() == 47
    factor = np.where(later, 7.0, 1.0)
    other = replace(panel, A=panel.A * factor, S=panel.S * factor, R=panel.R * factor, V=panel.V * factor)
    assert measures_of(other.until(panel.design.origin), adjusted=True) == measures_of(
        panel.until(panel.design.origin), adjusted=True
    )


def _constant_price() -> dict[str, float]:
    panel = CASES["noise"](np.random.default_rng(9))
    V = np.where(panel.born, 50.0, np.nan)
    Y = panel.orders * 50.0
    return measures_of(replace(panel, V=V, Y=Y, S=Y.sum(axis=0)), adjusted=True)


def _too_short() -> dict[str, float]:
    panel = CASES["noise"](np.random.default_rng(9))
    return measures_of(panel.until(panel.weeks[30].astype(object)), adjusted=True)


def _nobody_new() -> dict[str, float]:
    panel = CASES["noise"](np.random.default_rng(9))
    size = np.append(panel.size[0], np.zeros(WEEKS))
    return measures_of(replace(panel, A=np.zeros(WEEKS), size=size, S=panel.Y[0]), adjusted=True)


@pytest.mark.parametrize("make", [_constant_price, _too_short, _nobody_new])
def test_undefined_is_nan_without_a_warning(make) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = make()
    assert list(got) == list(MEASURES)
    assert all(np.isnan(value) for value in got.values())


@pytest.mark.parametrize("week", [0, 1, -2, -1])
@pytest.mark.parametrize("adjusted", [False, True])
def test_a_price_that_moves_in_one_week_at_an_end_does_no_harm(week: int, adjusted: bool) -> None:
    panel = CASES["noise"](np.random.default_rng(9))
    price = np.full(WEEKS, 50.0)
    price[week] = 60.0
    Y = panel.orders * price
    moved = replace(panel, V=np.where(panel.born, price, np.nan), Y=Y, S=Y.sum(axis=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = measures_of(moved, adjusted=adjusted)
    assert list(got) == list(MEASURES)
    assert np.isfinite(got["pearson"])
    if not adjusted:
        # Past values of a price that did not move before the last week, or in the weeks after the first, say nothing.
        assert np.isnan(got["spillover"]) == (week in (0, -1, -2))


def test_copies_of_one_series_and_tiny_firms_do_no_harm() -> None:
    rng = np.random.default_rng(10)
    common = rng.standard_normal(WEEKS)
    flat = np.zeros((WEEKS + 1, WEEKS))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copies = measures_of(
            firm_with(common, common, common, rng, cohort_R=flat, cohort_V=flat), adjusted=True
        )
        economy = Economy(firms=6, scale=0.002, seed=5)
        for spec in economy.specs():
            measures_of(sample_cohorts(economy, spec).panel(), adjusted=True)
    assert copies["pearson"] > 0.98
    assert copies["factor_share"] > 0.95


def test_a_firm_takes_well_under_two_seconds() -> None:
    panel = CASES["shared"](np.random.default_rng(11))
    measures_of(panel, adjusted=True)
    start = time.process_time()
    measures_of(panel, adjusted=True)
    assert time.process_time() - start < 1.0


def test_the_paper_window_is_what_is_measured() -> None:
    assert len(StudyDesign().calibration) == WEEKS == 118
